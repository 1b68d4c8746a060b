"""All commands of `inakit`, in the order in which its help lists them.

A command is a function. The first paragraph of its docstring is its line in the list, and its own `--help` also shows
the rest. The line is read from the source, so that a list of commands imports none of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).with_name("commands")


@dataclass(frozen=True)
class Command:
    """A command: `place` is its file in `commands/` and its function, joined by a colon.

    `passes_options_on`: options that it does not know are arguments for a program that it starts.
    """

    place: str
    passes_options_on: bool = False

    @property
    def function(self) -> str:
        """The module and the function, joined by a colon."""
        return f"inakit.experiments.cli.commands.{self.place}"

    @cached_property
    def help(self) -> str:
        """The first paragraph of the docstring, in one line."""
        file, _, function = self.place.partition(":")
        source = (FOLDER / f"{file}.py").read_text(encoding="utf-8")
        found = re.search(
            rf'^def {function}\(.*?\) -> None:\n    """(.*?)(?:\n\n|""")', source, re.DOTALL | re.MULTILINE
        )
        assert found is not None, f"{self.place} is no function with a docstring"
        return " ".join(found[1].split())


@dataclass(frozen=True)
class Group:
    """Several commands, which follow the group's name; `help` is its line in a list.

    `alone` is the command that runs if no command follows the group's name; without it the help is shown.
    """

    help: str
    commands: Mapping[str, Command]
    alone: str | None = None


PLANNERS = Group(
    "List the planners and schedulers (also without `list`); write a starter planner.",
    {"list": Command("planning:list_planners"), "new": Command("planning:new")},
    alone="list",
)
LABS = Group(
    "The course: the students' files, grading a class, checking the grader.",
    {
        "list": Command("labs:list_labs"),
        "export": Command("labs:export"),
        "class": Command("labs:grade_class"),
        "bundle": Command("labs:bundle"),
        "similar": Command("labs:similar"),
        "throughput": Command("labs:throughput"),
        "leaderboard": Command("labs:leaderboard"),
        "fabric": Command("labs:fabric"),
        "compile": Command("labs:compile_lab"),
        "mutants": Command("labs:mutants"),
    },
)
STUDY = Group(
    "Many runs by design: one table, summaries with intervals, figures.",
    {"new": Command("study:new"), "run": Command("study:run"), "show": Command("study:show")},
)
SWITCH = Group(
    "A single switch: packet in, packet out, without a network.",
    {
        "stf": Command("switch:stf"),
        "compare": Command("switch:compare"),
        "ptf": Command("switch:ptf", passes_options_on=True),
        "replay": Command("switch:replay"),
        "network": Command("switch:network"),
    },
)
HARDWARE = Group(
    "From emulation to hardware: fit plans to chips, hand them over, compare switches.",
    {
        "fit": Command("hardware:fit"),
        "record": Command("hardware:record"),
        "export": Command("hardware:export"),
        "diff": Command("hardware:diff"),
    },
)

COMMANDS: Mapping[str, Command | Group] = {
    "emulate": Command("emulate:emulate"),
    "train": Command("emulate:train"),
    "report": Command("report:report"),
    "plan": Command("planning:plan"),
    "design": Command("design:design"),
    "validate": Command("hardware:validate"),
    "schedule": Command("schedule:schedule"),
    "place": Command("place:place"),
    "topo": Command("planning:topo"),
    "jobs": Command("planning:jobs"),
    "check": Command("planning:check"),
    "bench": Command("bench:bench"),
    "exactness": Command("bench:exactness"),
    "agree": Command("bench:agree"),
    "grade": Command("labs:grade"),
    "p4c": Command("p4c:p4c"),
    "reproduce": Command("reproduce:reproduce"),
    "dump": Command("live:dump"),
    "calibrate": Command("calibrate:calibrate"),
    "capture": Command("live:capture"),
    "top": Command("live:top"),
    "dissector": Command("live:dissector"),
    "shim": Command("switch:shim"),
    "planners": PLANNERS,
    "labs": LABS,
    "study": STUDY,
    "switch": SWITCH,
    "hardware": HARDWARE,
}
