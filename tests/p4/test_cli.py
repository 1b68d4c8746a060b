"""Entries as text, given to `simple_switch_CLI`, make the same switch as entries that are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scenario_packets import gradient, result
from scenarios import ROOT_PORT, example_entries
from sequences import with_last_packets

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry

TOOL = shutil.which("simple_switch_CLI")
pytestmark = [
    pytest.mark.root,
    pytest.mark.bmv2,
    pytest.mark.skipif(TOOL is None, reason="needs BMv2's tool simple_switch_CLI (it is not installed)"),
]

OWNER, SEQ = "InaIngress.slot_owner", "InaIngress.slot_seq"


def run_cli(control_port: int, commands: str) -> str:
    """What the command line tool prints. It is a script for the Python that has BMv2's modules: this one."""
    done = subprocess.run(
        [sys.executable, str(TOOL), "--thrift-port", str(control_port)],
        input=commands, text=True, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_command_file_installs_what_install_does(tmp_path: Path) -> None:
    from reference import running_reference  # noqa: PLC0415, needs p4-utils

    example = example_entries()
    presets = (RegisterPreset(OWNER, 3, 2**32 - 1), RegisterPreset(SEQ, 0, 5))
    doubling = [
        TableEntry("InaIngress.doubling.ways", (ROOT_PORT, 0), "InaIngress.doubling.doubled", (2**32 - 1, 11)),
        *(TableEntry("InaIngress.arrival.arriving", (p,), "InaIngress.arrival.faulty", (0, 0)) for p in (1, 2, 3)),
    ]
    groups = (*example.groups, MulticastGroup(11, (ROOT_PORT,), ((0, ROOT_PORT),)))
    entries = SwitchEntries("s1", (*example.tables, *doubling), groups, presets)
    steps = [*(gradient(port, 10 + port, 0, port) for port in (1, 2, 3)), result(0)]
    complete, all_steps = with_last_packets(entries, steps)
    with running_reference(tmp_path) as reference:
        installed = reference.run(entries, steps, (OWNER, SEQ))
        reference.runtime.reset()
        printed = run_cli(reference.process.control_port, complete.cli())
        by_hand = reference.play(all_steps, (OWNER, SEQ))
    assert "Invalid" not in printed, printed
    assert "Error" not in printed, printed
    assert by_hand.sent == installed.sent
    assert sum(map(len, by_hand.sent.values())) == 7
    assert {name: values.tolist() for name, values in by_hand.registers.items()} == {
        name: values.tolist() for name, values in installed.registers.items()
    }
