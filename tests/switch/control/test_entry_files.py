"""Files that fill a switch: commands of simple_switch_CLI, and s1-runtime.json of p4lang's tutorials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from served_program import SERVED, Served
from single_targets import PROGRAMS

from inakit.switch.control.entry_files import fill_switch, read_entries
from inakit.switch.control.simple_switch_cli import CommandedSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.testing.target_comparison import Outcome, compare
from inakit.topo.errors import InputError

RUNTIME = {
    "table_entries": [
        {
            "table": "RouterIngress.ipv4_lpm",
            "match": {"hdr.ipv4.dst": ["10.0.1.0", 24]},
            "action_name": "RouterIngress.forward",
            "action_params": {"mac": "08:00:00:00:01:11", "port": 2},
        }
    ]
}
COMMAND = "table_add ipv4_lpm forward 10.0.1.0/24 => 08:00:00:00:01:11 2\n"
EXACT = {"table": "exact_match", "match": {"key": 7}, "action_name": "send", "action_params": {"port": 3}}


def written(path: Path, document: object) -> Path:
    """A file with this document as JSON."""
    path.write_text(json.dumps(document))
    return path


def test_both_formats_give_the_same_entries(tmp_path: Path) -> None:
    router, commands = read_program(PROGRAMS / "router.json"), tmp_path / "s1-commands.txt"
    commands.write_text(COMMAND)
    runtime = written(tmp_path / "s1-runtime.json", RUNTIME)
    assert read_entries(runtime, router).tables == read_entries(commands, router).tables != ()


def test_both_formats_fill_a_running_switch(tmp_path: Path) -> None:
    served, commands = Served(), tmp_path / "s1-commands.txt"
    commands.write_text("table_add exact_match send 8 => 4\n")
    for path in (written(tmp_path / "s1-runtime.json", {"table_entries": [EXACT]}), commands):
        fill_switch(path, CommandedSwitch(served.control))
    assert [served.ports("exact_match", key) for key in (7, 8)] == [[3], [4]]


def test_targets_are_compared_with_such_a_file(tmp_path: Path) -> None:
    runtime = written(tmp_path / "s1-runtime.json", RUNTIME)
    compared = compare(PROGRAMS / "router.json", ("interpreted", "interpreted"), 20, commands=runtime)
    assert compared.outcome is Outcome.IDENTICAL


def test_an_entry_that_the_program_does_not_have_is_named(tmp_path: Path) -> None:
    wrong = written(tmp_path / "s1-runtime.json", {"table_entries": [EXACT | {"table": "exact"}]})
    with pytest.raises(InputError, match="unknown table 'exact'"):
        read_entries(wrong, read_program(SERVED))
