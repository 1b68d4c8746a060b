"""Lab 5: trees of several levels, for several jobs, in two pipelines: a program, and Python that fills its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

from inakit.experiments.labs.course.bench import Bench
from inakit.experiments.labs.course.packets import described
from inakit.experiments.labs.course.switch_lab import ProgramPart, sent
from inakit.experiments.labs.course.targets import SANDBOX
from inakit.experiments.labs.grading.finding import Finding, Packets, WrongError
from inakit.experiments.labs.grading.item import Item
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.runners.sandboxed_switch import SandboxedSwitch
from inakit.experiments.labs.tree import switch_items
from inakit.experiments.labs.tree.course_entries import course_entries
from inakit.experiments.labs.tree.entry_items import EntriesBench, EntriesOf, check_admitted, check_both, check_children, check_down, check_isolation, check_ports, check_up
from inakit.experiments.labs.tree.network import Injected
from inakit.experiments.labs.tree.student_entries import FILE, StudentEntries
from inakit.switch.entries import SwitchEntries
from inakit.topo.errors import InputError

PROGRAM = "tree"

OF_PROGRAM = (
    Item("admission", "the switch: what the plan admits", 5, "Step 1", switch_items.check_admission),
    Item("sum", "the switch: the sum of the children", 10, "Step 1", switch_items.check_sum),
    Item("pass", "the switch: what is summed elsewhere", 5, "Step 2", switch_items.check_pass),
    Item("root", "the switch: the root of a tree", 5, "Step 2", switch_items.check_root),
    Item("rounds", "the switch: round after round", 5, "Step 3", switch_items.check_rounds),
    Item("jobs", "the switch: several jobs", 10, "Step 3", switch_items.check_jobs),
    Item("pipelines", "the switch: two pipelines", 5, "Step 4", switch_items.check_pipelines),
)
OF_ENTRIES = (
    Item("ports", "entries: pipelines of ports", 5, "Step 5", check_ports),
    Item("ways", "entries: ways to the root", 10, "Step 6", check_up),
    Item("results", "entries: results for all workers", 10, "Step 7", check_down),
    Item("admitted", "entries: all that the plan admits", 5, "Step 8", check_admitted),
    Item("isolation", "entries: nothing else is admitted", 5, "Step 8", check_isolation),
    Item("children", "entries: aggregators and their slots", 10, "Step 9", check_children),
)
TOGETHER = Item("together", "your entries on your program", 10, "Step 10", check_both)
NAMES_OF_PROGRAM = {item.name for item in OF_PROGRAM}
NAMES_OF_ENTRIES = {item.name for item in OF_ENTRIES}


@dataclass(frozen=True)
class Chosen:
    """One of the switches that a process runs."""

    process: SandboxedSwitch
    name: str

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves for a packet."""
        self.process.choose(self.name)
        return self.process.inject(port, packet)


class OpenedTree:
    """A submission's program and entries. What is wrong with one of them is told at the items that need it."""

    def __init__(self, submission: Submission, stack: ExitStack) -> None:
        self.submission, self.stack, self.failed = submission, stack, set[str]()
        self.program = ProgramPart(submission, PROGRAM, SANDBOX, stack)
        self.student: StudentEntries | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was graded, and what of the sandbox is not enforced here."""
        return self.program.notes

    def bench(self, item: Item, random: Random) -> Bench | EntriesBench:
        """The bench of an item; `InputError` if there is no program, or no entries, for it."""
        if item.name in NAMES_OF_PROGRAM:
            self.program.sandboxed.choose("")
            return self.program.needed.bench(item, random)
        if item.name in NAMES_OF_ENTRIES:
            return EntriesBench(random, self.entries())
        return self.both(random)

    def entries(self) -> EntriesOf:
        """The student's entries."""
        if self.student is None or self.student.process.process.poll() is not None:
            self.student = StudentEntries(self.submission.text(FILE))
            self.stack.callback(self.student.close)
        return self.student.of

    def both(self, random: Random) -> EntriesBench:
        """Both parts; the course's stands for one that has lost points."""
        if self.failed & NAMES_OF_PROGRAM and self.failed & NAMES_OF_ENTRIES:
            raise WrongError("not tried: neither the program nor the entries do their part alone")
        student = course_entries if self.failed & NAMES_OF_ENTRIES else self.entries()
        return EntriesBench(random, student, None if self.failed & NAMES_OF_PROGRAM else self.switches)

    def switches(self, entries: dict[str, SwitchEntries]) -> dict[str, Injected]:
        """The student's program with entries, as many times as there are switches."""
        switch = self.program.sandboxed
        for name, each in entries.items():
            switch.choose(name)
            switch.fresh()
            switch.install(each)
        return {name: Chosen(switch, name) for name in entries}

    def after(self, item: Item, *, passed: bool) -> None:
        """Hear whether an item has its points."""
        if not passed:
            self.failed.add(item.name)

    def finding(self, wrong: WrongError) -> Finding:
        """The packets that show what is wrong: of one switch with the trace, of a network hop by hop."""
        if not wrong.exchanges:
            return Finding(wrong.cause)
        if self.program.opened is not None and not wrong.exchanges[-1].switch:
            return self.program.opened.finding(wrong)
        last = wrong.exchanges[-1]
        hops = tuple(f"{each.switch} {line}" for each in wrong.exchanges for line in sent((each,)))
        got = tuple(f"{last.switch} port {port}: {described(packet)}" for port, packet in last.got)
        return Finding(wrong.cause, hops[-8:], tuple(map(str, wrong.expected)) or ("nothing",), got or ("nothing",))


@dataclass(frozen=True)
class TreeLab:
    """Lab 5."""

    name: str = "5-tree"
    title: str = "Trees, jobs and pipelines"
    hours: str = "8 to 12"
    files: tuple[str, ...] = (f"{PROGRAM}.p4", FILE)
    items: tuple[Item, ...] = (*OF_PROGRAM, *OF_ENTRIES, TOGETHER)

    @contextmanager
    def open(self, submission: Submission, target: str) -> Iterator[OpenedTree]:
        """Open a submission."""
        if target != SANDBOX:
            raise InputError(f"--target {target}: {self.name} runs a network of switches, which only the sandbox has")
        with ExitStack() as stack:
            yield OpenedTree(submission, stack)
