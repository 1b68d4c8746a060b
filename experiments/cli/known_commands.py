"""All commands of `inakit`, in the order in which its help lists them: the place and the help line of each.

A command is a function. The first paragraph of its docstring is its line here; its own `--help` also shows the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command: `place` is its file in `commands/` and its function, joined by a colon; `help` is its line in a list.

    `passes_options_on`: options that it does not know are arguments for a program that it starts.
    """

    place: str
    help: str
    passes_options_on: bool = False

    @property
    def function(self) -> str:
        """The module and the function, joined by a colon."""
        return f"inakit.experiments.cli.commands.{self.place}"


@dataclass(frozen=True)
class Group:
    """Several commands, which follow the group's name; `help` is its line in a list.

    `alone` is the command that runs if no command follows the group's name; without it the help is shown.
    """

    help: str
    commands: Mapping[str, Command]
    alone: str | None = None


LABS = {
    "list": Command("labs:list_labs", "List the labs: the files that students write, hours and points."),
    "export": Command(
        "labs:export", "Write the students' files: tasks, figures, skeletons and the tests that they see; no solutions."
    ),
    "class": Command("labs:grade_class", "Grade a whole class, several at a time, into one table."),
    "throughput": Command(
        "labs:throughput", "Measure the throughput of a program over the size of its pool, in virtual time (lab 3)."
    ),
    "leaderboard": Command(
        "labs:leaderboard",
        "Rank the planners of lab 6 on larger networks by their mean share of a bound that no plan exceeds.",
    ),
    "fabric": Command("labs:fabric", "Write fabric.yml, a student's fabric in lab 7: every name has a different one."),
    "compile": Command("labs:compile_lab", "Compile a lab's solutions and wrong solutions, for machines without p4c."),
    "mutants": Command(
        "labs:mutants",
        "Grade a lab's solutions and wrong solutions: each must lose its item and no other (exit code 1 if not).",
    ),
}

STUDY = {
    "new": Command("study_new:new", "Write a starter study file, with every key explained."),
    "run": Command(
        "study:run", "Run what has no result yet, and write the table. Exit code 1 if a run failed or is not VALID."
    ),
    "show": Command(
        "study:show",
        "Print mean, median, 95 % interval and paired differences; write them as CSV and LaTeX, and the "
        "figures as PDF.",
    ),
}

SWITCH = {
    "stf": Command(
        "stf:stf", "Play a test: PASS (exit code 0), FAIL with the differences (1), or UNSUPPORTED with the reason (3)."
    ),
    "compare": Command("switch:compare", "Send the same random packets to two targets, and compare their output."),
    "ptf": Command(
        "switch:ptf",
        "Run PTF's tests against a switch in PTF's own process, or in the kernel, without veths (exit code: PTF's).",
        passes_options_on=True,
    ),
    "replay": Command(
        "switch:replay",
        "Send the packets of pcap files to a switch, in the order of their times; keep what each port sends.",
    ),
    "network": Command(
        "switch:network",
        "Start a course's network of hosts and P4 switches with the entries of its files, and open a command line.",
    ),
}

HARDWARE = {
    "fit": Command(
        "hardware_fit:fit",
        "Check whether a plan fits its switches' chips: slots, children, recirculation, entries, groups, memory.",
    ),
    "record": Command(
        "hardware_fit:record",
        "Record the chip compiler's figures for p4/ina_hw; `inakit hardware fit` shows them without the compiler.",
    ),
    "export": Command(
        "hardware:export",
        "Write the entries for BF-Runtime and P4Runtime, with their removal, and a file for each end host.",
    ),
    "diff": Command(
        "hardware:diff",
        "Compare the entries of switches with the plan: entries and groups that are wrong, missing, or extra.",
    ),
}

PLANNERS = {
    "list": Command("planning:list_planners", "List the planners, and the schedulers of optical circuits."),
    "new": Command("planning:new", "Write a starter planner: a file, or a package."),
}

COMMANDS: Mapping[str, Command | Group] = {
    "emulate": Command(
        "emulate:emulate",
        "Plan, build the network, send real gradients through it, and compare planned with measured figures.",
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
        "Plan without running: the plan, its predicted figures, and the table entries; or compare planners.",
    ),
    "design": Command(
        "design:design",
        "Design a network: topology and routes with the highest rate for a cluster of optical links (ATRO).",
    ),
    "validate": Command(
        "validate:validate",
        "Judge a network before it is bought: plans, chips, virtual time, and every single failure.",
    ),
    "schedule": Command(
        "schedule:schedule",
        "Schedule jobs and optical circuits on a data centre of your own; compare schedulers; run them by packets.",
    ),
    "place": Command(
        "place:place",
        "Place a queue of jobs that come and go: the hosts of each, the jobs with INA, and expected completion times.",
    ),
    "topo": Command(
        "planning:topo", "Draw a fabric as PNG and SVG and, given a planner, its trees and link loads; save it as YAML."
    ),
    "jobs": Command(
        "planning:jobs",
        "Write a starter file of jobs: the single job that is run without --jobs, with every key explained.",
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
        "Run the same plans emulated and in virtual time, and print how much rates, times and bytes differ.",
    ),
    "grade": Command(
        "labs:grade",
        "Grade a submission of a lab: points for each item, and why some are missing (exit code 1 unless all "
        "are there).",
    ),
    "p4c": Command(
        "p4c:p4c",
        "Compile a P4 program to BMv2 JSON, by an installed p4c, p4c in Docker, or p4c of the virtual machine.",
    ),
    "reproduce": Command("reproduce:reproduce", "Run a figure or a claim of a paper: table, CSV and plot."),
    "dump": Command("live:dump", "Show the tables, registers and counters of a switch while it works."),
    "calibrate": Command(
        "calibrate:calibrate",
        "Find the highest link rate at which this machine carries a plan; `emulate` then warns of rates above it.",
    ),
    "capture": Command(
        "live:capture",
        "Capture the packets that arrive and leave at a port of a switch, until Ctrl-C or the end of the network.",
    ),
    "top": Command(
        "live:top", "Watch a running network: rates of links and switches, drops, processors; the busiest first."
    ),
    "dissector": Command("live:dissector", "Print a dissector of the packet format, for Wireshark's plugin folder."),
    "shim": Command(
        "shim:shim",
        "Print a folder in which `simple_switch` and `simple_switch_grpc` are the kit's: PATH=$(inakit shim):$PATH.",
    ),
    "planners": Group(
        "List the planners and schedulers (also without `list`); write a starter planner.", PLANNERS, alone="list"
    ),
    "labs": Group("The course: the students' files, grading a class, checking the grader.", LABS),
    "study": Group("Many runs by design: one table, summaries with intervals, figures.", STUDY),
    "switch": Group("A single switch: packet in, packet out, without a network.", SWITCH),
    "hardware": Group("From emulation to hardware: fit plans to chips, hand them over, compare switches.", HARDWARE),
}
