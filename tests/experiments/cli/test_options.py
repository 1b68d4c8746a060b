"""Options over all commands: one name for one thing, and former names that are told the present ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import inakit

from inakit.experiments.cli.app import Commands, LazyCommand
from inakit.experiments.cli.known_commands import Command, Group

TWO_MEANINGS = {
    "--model": "of --planners goat, whose gradient it is",
    "--workers": "of one job, in every command; the defaults differ",
    "--program": "by name where the kit's programs run, by file where any P4 program does",
}
"""Options that may have several types or defaults, and what they have in common."""


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, LazyCommand]]:
    """Every command with its name."""
    for name, each in (group or Commands(name="inakit")).commands.items():
        if isinstance(each, LazyCommand):
            yield " ".join((*path, name)), each
        else:
            yield from commands(each, (*path, name))


ALL = dict(commands())


def options(command: LazyCommand) -> Iterator[Any]:
    return (each for each in command.loaded().params if each.opts[0].startswith("--"))


def kind(option: Any) -> str:
    """What the option takes: a file, a number, a text, nothing."""
    return "flag" if option.is_flag else option.metavar or str(option.type_descriptor.annotation)


@pytest.fixture(scope="module")
def uses() -> dict[str, dict[str, Any]]:
    """Each name of an option, with the commands that have it."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, command in ALL.items():
        for option in options(command):
            found[option.opts[0]][name] = option
    return found


def test_an_option_takes_the_same_in_every_command(uses: dict[str, dict[str, Any]]) -> None:
    kinds = {option: {kind(each) for each in of.values()} for option, of in uses.items() if option not in TWO_MEANINGS}
    assert {option: found for option, found in kinds.items() if len(found) > 1} == {}


def test_no_two_names_differ_by_an_ending_only(uses: dict[str, dict[str, Any]]) -> None:
    """Neither a plural nor a unit makes another option."""
    assert [name for name in uses for ending in ("s", "-s", "put") if name + ending in uses] == []


def test_a_time_has_any_unit(uses: dict[str, dict[str, Any]]) -> None:
    times = {name for name, of in uses.items() if "TIME" in {kind(each) for each in of.values()}}
    assert {"--compute", "--time-limit", "--duration", "--interval", "--at", "--round-trip", "--delay"} == times
    assert [name for name, of in uses.items() for each in of.values() if "seconds" in each.help] == []


FORMER = [(name, old, new) for name, command in ALL.items() for old, new in command.row.renamed.items()]


@pytest.mark.parametrize(("name", "old", "new"), FORMER, ids=[f"{name} {old}" for name, old, _ in FORMER])
def test_a_former_name_is_told_the_present_one_and_works(
    name: str, old: str, new: str, uses: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert name not in uses.get(old, {})
    args = ALL[name].with_present_names(["before", f"{old}=value", old, "value"])
    assert args == ["before", *f"{new}=value".split(), *new.split(), "value"]
    assert capsys.readouterr().err.count(f"{old} is now {new}\n") == 2
    option = new.split(maxsplit=1)[0]
    if option.startswith("-"):
        assert name in uses[option]
    else:  # an argument of `bench`
        assert option in ALL[name].loaded().params[0].help


def test_a_former_name_runs_the_command(tmp_path: Path) -> None:
    said = inakit("plan", "--topo", "aro-figure1", "--planner=aro", at=tmp_path)
    assert (said.code, said.error) == (0, "inakit plan: --planner is now --planners\n")
    assert "aro on aro-figure1" in said.output


def test_every_command_has_a_panel_and_emulate_a_panel_for_each_topic() -> None:
    def panels(table: Any) -> Iterator[str]:
        for row in table.values():
            yield row.panel

    from inakit.experiments.cli.known_commands import COMMANDS  # noqa: PLC0415

    assert list(dict.fromkeys(panels(COMMANDS))) == ["Plan", "Run", "Look", "P4", "Machine", "Course", "Hardware"]
    assert all(isinstance(row, Command | Group) for row in COMMANDS.values())
    shown = {each.rich_help_panel for each in options(ALL["emulate"])}
    assert {"Fabric", "Job", "Run", "Look", "Output"} <= shown
