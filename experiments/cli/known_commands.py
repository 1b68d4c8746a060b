"""All commands of `inakit`, in the order in which its help lists them: where each one is, and what it does, in a line.

A command is a function. The first paragraph of its docstring is its line here; the rest is shown by its own `--help`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command: `place` is its file in `commands/` and its function, with a colon between; `help` its line in a list.

    `passes_options_on`: options that it does not know are arguments for a program that it starts.
    """

    place: str
    help: str
    passes_options_on: bool = False

    @property
    def function(self) -> str:
        """Its module and its function, with a colon between."""
        return f"inakit.experiments.cli.commands.{self.place}"


@dataclass(frozen=True)
class Group:
    """Several commands, which follow the group's name; `help` is its line in a list.

    `alone` is the command that the group's name stands for where none follows; without it that shows the help.
    """

    help: str
    commands: Mapping[str, Command]
    alone: str | None = None


LABS = {
    "list": Command("labs:list_labs", "The labs, what students write, hours and points."),
    "export": Command(
        "labs:export", "Write what students get: tasks, figures, skeletons and the tests that they see; no solutions."
    ),
    "class": Command("labs:grade_class", "Grade a whole class, several at a time, into one table."),
    "throughput": Command(
        "labs:throughput", "Measure the throughput of a program over the size of its pool, in virtual time (lab 3)."
    ),
    "leaderboard": Command(
        "labs:leaderboard",
        "Rank the planners of lab 6 on larger networks: the mean part of a bound that no plan exceeds.",
    ),
    "fabric": Command("labs:fabric", "Write fabric.yml, the fabric of a student in lab 7: every name has another one."),
    "compile": Command("labs:compile_lab", "Compile a lab's solutions and wrong solutions, for machines without p4c."),
    "mutants": Command(
        "labs:mutants",
        "Grade a lab's solutions, and its wrong solutions: each has to lose its item and no other (exit code "
        "1 if not).",
    ),
}

STUDY = {
    "new": Command("study_new:new", "Write a study file to begin with, every key explained."),
    "run": Command(
        "study:run", "Run what is not kept yet, and write the table. Exit code 1 where a run failed or is not VALID."
    ),
    "show": Command(
        "study:show",
        "Print mean, median, 95 % interval and paired differences; write them as CSV and LaTeX, and the "
        "figures as PDF.",
    ),
}

SWITCH = {
    "stf": Command(
        "stf:stf",
        "Play a test: PASS (exit code 0), FAIL with the differences (1), or UNSUPPORTED with the reason (3).",
    ),
    "compare": Command(
        "switch:compare", "Give random packets that the program's parser knows to two targets: do they send the same?"
    ),
    "ptf": Command(
        "switch:ptf",
        "Run PTF's tests against a switch in PTF's own process, or in the kernel, without veths (exit code: PTF's).",
        passes_options_on=True,
    ),
    "replay": Command(
        "switch:replay",
        "Give a switch the packets of pcap files, in the order of their times; keep what leaves each port.",
    ),
    "network": Command(
        "switch:network",
        "Start a course's network of hosts and P4 switches, filled as its files say, and open a command line.",
    ),
}

HARDWARE = {
    "fit": Command(
        "hardware_fit:fit",
        "Whether a plan fits its switches' chips: slots, children, recirculation, entries, groups, memory.",
    ),
    "record": Command(
        "hardware_fit:record",
        "Record what the chip's compiler says that p4/ina_hw takes, for `inakit hardware fit` where it is "
        "not installed.",
    ),
    "export": Command(
        "hardware:export",
        "Write the entries for BF-Runtime and P4Runtime, with their removal, and a file for each end host.",
    ),
    "diff": Command(
        "hardware:diff",
        "Compare what switches hold with the plan: entries and groups that are wrong, missing, or extra.",
    ),
}

PLANNERS = {
    "list": Command("planning:list_planners", "List the planners, and the schedulers of optical circuits."),
    "new": Command("planning:new", "Write a planner of your own to begin with: a file, or a package of its own."),
}

COMMANDS: Mapping[str, Command | Group] = {
    "emulate": Command(
        "emulate:emulate", "Plan, build the network, send real gradients through it, and compare planned with measured."
    ),
    "train": Command(
        "train:train",
        "Train a small model through the emulated switches: time per epoch, throughput, loss and accuracy by planner.",
    ),
    "report": Command(
        "report:report",
        "Write one page that shows a run, compares several, or shows a study. Any browser opens it, without a network.",
    ),
    "plan": Command(
        "planning:plan",
        "Plan without running: what the method decides, what to expect, and the table entries; or compare planners.",
    ),
    "design": Command(
        "planning:design",
        "Design a network: topology and routes with the highest rate for a cluster of optical links (ATRO).",
    ),
    "validate": Command(
        "validate:validate",
        "Judge a network before it is bought: plans, chips, virtual time, and every single failure.",
    ),
    "place": Command(
        "place:place",
        "Place a queue of jobs that come and go: hosts for each, who has INA when, and completion times to expect.",
    ),
    "topo": Command(
        "planning:topo", "Draw a fabric as PNG and SVG and, given a planner, its trees and link loads; save it as YAML."
    ),
    "jobs": Command(
        "planning:jobs",
        "Write a file of jobs to begin with: the single job that is run without --jobs, every key explained.",
    ),
    "check": Command(
        "planning:check", "Check a plan against a fabric and jobs: every rule, with code that no planner shares."
    ),
    "bench": Command(
        "bench:bench",
        "Measure the packets per second without loss of every installed switch target, and those of virtual time.",
    ),
    "exactness": Command(
        "exactness:exactness",
        "Test whether all sums are exact: every slot policy, over levels of aggregation, under loss and other faults.",
    ),
    "agree": Command(
        "agree:agree",
        "Run the same plans emulated and in virtual time, and print how far rates, times and bytes differ.",
    ),
    "grade": Command(
        "labs:grade",
        "Grade a submission of a lab: points for each item, and why some are missing (exit code 1 unless all "
        "are there).",
    ),
    "p4c": Command(
        "p4c:p4c",
        "Compile a P4 program to BMv2 JSON, by the p4c that is installed, of Docker, or of the virtual machine.",
    ),
    "reproduce": Command("reproduce:reproduce", "Run a figure or a claim of a paper: table, CSV and plot."),
    "dump": Command("live:dump", "Show the tables, registers and counters of a switch while it works."),
    "calibrate": Command(
        "calibrate:calibrate",
        "Find the highest link rate at which this machine carries a plan; `emulate` then warns of one that it cannot.",
    ),
    "capture": Command(
        "live:capture", "Capture what arrives and leaves at a port of a switch, until Ctrl-C or the end of the network."
    ),
    "top": Command(
        "live:top", "Watch a running network: rates of links and switches, drops, processors; the busiest first."
    ),
    "dissector": Command("live:dissector", "Print a dissector of the packet format, for Wireshark's plugin folder."),
    "shim": Command(
        "shim:shim",
        "Print a folder with `simple_switch` and `simple_switch_grpc` that are the kit's: PATH=$(inakit shim):$PATH.",
    ),
    "planners": Group(
        "List the planners and schedulers (also without `list`); write a planner of your own.", PLANNERS, alone="list"
    ),
    "labs": Group("The course: what students get, grading a class, checking the grader.", LABS),
    "study": Group("Many runs by design: one table, summaries with intervals, figures.", STUDY),
    "switch": Group("One switch on its own: packet in, packet out, without a network.", SWITCH),
    "hardware": Group("From emulation to hardware: fit plans to chips, hand them over, compare switches.", HARDWARE),
}
