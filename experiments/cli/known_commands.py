"""All commands of `inakit`, in the order in which its help lists them.

A command is a function. The first paragraph of its docstring is its line in the list, and its own `--help` also shows
the rest. The line is read from the source, so that a list of commands imports none of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).with_name("commands")


@dataclass(frozen=True)
class Command:
    """A command: `place` is its file in `commands/` and its function, joined by a colon.

    `renamed`: former spellings of its options, and the present ones. A former spelling works, and its user is told.
    `tables`: it prints tables, and takes options of how; `details`: it does, and prints some of them only if asked.
    `passes_options_on`: options that it does not know are arguments for a program that it starts.
    """

    place: str
    panel: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    passes_options_on: bool = False
    tables: bool = False
    details: bool = False

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
    panel: str
    commands: Mapping[str, Command]
    alone: str | None = None


PLAN, RUN, LOOK, P4, MACHINE, COURSE, HARDWARE = "Plan", "Run", "Look", "P4", "Machine", "Course", "Hardware"
"""The panels in which the help shows the commands."""
PLANNERS_OPTION = {"--planner": "--planners"}
POLICIES_OPTION = {"--policy": "--policies"}
OUTPUT_OPTION = {"--out": "--output"}
TABLE_OPTION = {"--table": "--output"}
JSON = "--format json"
TRAIN_OPTIONS = PLANNERS_OPTION | POLICIES_OPTION | {"--compute-s": "--compute"}
AGREE_OPTIONS = {"--short": "--quick", "--seconds": "--duration", "--against": "--reference"}
BENCHES = {"--planners": "planners", "--sweeps": "studies", "--peers": "peers"}

PLANNERS = Group(
    "List the planners and schedulers (also without `list`); write a starter planner.",
    PLAN,
    {"list": Command("planning:list_planners", tables=True), "new": Command("planning:new")},
    alone="list",
)
LABS = Group(
    "The course: the students' files, grading a class, checking the grader.",
    COURSE,
    {
        "list": Command("labs:list_labs", tables=True),
        "export": Command("labs:export"),
        "class": Command("labs:grade_class", renamed=TABLE_OPTION | {"--jobs": "--processes"}, tables=True),
        "collect": Command("labs:collect", tables=True),
        "bundle": Command("labs:bundle", renamed=OUTPUT_OPTION),
        "similar": Command("labs:similar", renamed=TABLE_OPTION, tables=True),
        "throughput": Command("labs:throughput", renamed={"--rate": "--capacity"}, tables=True),
        "leaderboard": Command("labs:leaderboard", renamed=TABLE_OPTION, tables=True),
        "fabric": Command("labs:fabric"),
        "compile": Command("labs:compile_lab"),
        "mutants": Command("labs:mutants", tables=True),
    },
)
STUDY = Group(
    "Many runs by design: one table, summaries with intervals, figures.",
    RUN,
    {"new": Command("study:new"), "run": Command("study:run"), "show": Command("study:show", tables=True)},
)
SWITCH = Group(
    "A single switch: packet in, packet out, without a network.",
    P4,
    {
        "stf": Command("switch:stf", renamed={"--trace": "--steps"}),
        "compare": Command("switch:compare", renamed={"--targets": "--between"}),
        "ptf": Command("switch:ptf", passes_options_on=True),
        "replay": Command("switch:replay", renamed=OUTPUT_OPTION, tables=True),
        "network": Command("switch:network", renamed={"--run": "--execute"}),
    },
)
HANDOVER = Group(
    "From emulation to hardware: fit plans to chips, hand them over, compare switches.",
    HARDWARE,
    {
        "fit": Command("hardware:fit", tables=True),
        "record": Command("hardware:record"),
        "export": Command("hardware:export"),
        "diff": Command("hardware:diff", tables=True),
    },
)

COMMANDS: Mapping[str, Command | Group] = {
    "plan": Command("planning:plan", PLAN, PLANNERS_OPTION, details=True),
    "planners": PLANNERS,
    "check": Command("planning:check", PLAN, tables=True),
    "jobs": Command("planning:jobs", PLAN),
    "place": Command("place:place", PLAN, {"--by": "--placements"}, tables=True),
    "schedule": Command(
        "schedule:schedule", PLAN, {"--scheduler": "--schedulers", "--jobs": "--first", "--json": JSON}, tables=True
    ),
    "design": Command("design:design", PLAN, {"--time-limit-s": "--time-limit"}, tables=True),
    "emulate": Command("emulate:emulate", RUN, PLANNERS_OPTION | POLICIES_OPTION, details=True),
    "train": Command("emulate:train", RUN, TRAIN_OPTIONS, details=True),
    "study": STUDY,
    "reproduce": Command("reproduce:reproduce", RUN, tables=True),
    "report": Command("report:report", LOOK),
    "topo": Command("planning:topo", LOOK, PLANNERS_OPTION),
    "top": Command("live:top", LOOK),
    "dump": Command("live:dump", LOOK, {"--json": JSON}, tables=True),
    "capture": Command("live:capture", LOOK, {"--seconds": "--duration"}),
    "dissector": Command("live:dissector", LOOK),
    "p4c": Command("p4c:p4c", P4, OUTPUT_OPTION),
    "switch": SWITCH,
    "shim": Command("switch:shim", P4),
    "calibrate": Command("calibrate:calibrate", MACHINE, PLANNERS_OPTION, tables=True),
    "bench": Command("bench:bench", MACHINE, BENCHES, tables=True),
    "exactness": Command("bench:exactness", MACHINE, POLICIES_OPTION, tables=True),
    "agree": Command(
        "bench:agree",
        MACHINE,
        AGREE_OPTIONS,
        tables=True,
    ),
    "labs": LABS,
    "grade": Command("labs:grade", COURSE, tables=True),
    "validate": Command("hardware:validate", HARDWARE, tables=True),
    "hardware": HANDOVER,
}
