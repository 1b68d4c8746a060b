"""Lab 5: trees of several levels, for several jobs, in two pipelines: a program, and Python that fills its tables.

Each item about entries takes those of some tables from the student and those of the others from the course, on the
switches of a drawn plan, and runs its jobs hop by hop. A student's entries are asked of the sandbox, switch by switch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any, Protocol

from inakit.experiments.labs.course import tree_program
from inakit.experiments.labs.course.graded_switch import SANDBOX, Bench, ProgramPart, sent
from inakit.experiments.labs.course.packets import GRADIENT, RESULT, Agg, described
from inakit.experiments.labs.course.student_worker import worker_limits
from inakit.experiments.labs.course.tree_network import (
    ADMITTED,
    CHILD_OF,
    DOWN,
    PIPELINE_OF,
    TABLES,
    UP,
    Drawn,
    Injected,
    ModelTree,
    TreeNetwork,
    drawn_plan,
    run_jobs,
    short,
)
from inakit.experiments.labs.grading.items import Finding, Item, Packets, WrongError
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed, printable
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.topo.errors import InputError


def course_entries(drawn: Drawn, switch: str, wanted: Collection[str] = tuple(TABLES)) -> SwitchEntries:
    rows = [row for row in dict.fromkeys(rows_of(drawn, switch)) if row[0] in wanted]
    tables = tuple(TableEntry(table, key, TABLES[table].action, params) for table, key, params in rows)
    return SwitchEntries(switch, tables, tuple(groups_of(drawn, switch)))


def rows_of(drawn: Drawn, switch: str) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Tables, keys and parameters."""
    pipelines = next(each.pipelines for each in drawn.fabric.switches if each.name == switch)
    for number, ports in enumerate(pipelines):
        yield from ((PIPELINE_OF, (port,), (number,)) for port in ports)
    for job, tree in drawn.trees.items():
        for branch in tree.branches:
            yield from branch_rows(drawn, switch, job, branch.label, branch.path)
        for parent in {above for below, above in links_of(tree) if below == switch}:
            yield ADMITTED, (drawn.port(switch, parent), RESULT, job, ROOT_LABEL), ()
        for aggregator in tree.aggregators:
            if aggregator.switch == switch:
                full = (1 << len(aggregator.children)) - 1
                owned = (full, aggregator.label, aggregator.first_slot, aggregator.slots)
                for bit, child in enumerate(aggregator.children):
                    yield CHILD_OF, (aggregator.pipeline, job, child), (1 << bit, *owned)
        if any(above == switch for _, above in links_of(tree)):
            yield DOWN, (job,), (job,)


def branch_rows(
    drawn: Drawn, switch: str, job: int, label: int, path: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Where a label comes in at a switch, and where it goes on."""
    for node, following in pairwise(path):
        if following == switch:
            yield ADMITTED, (drawn.port(switch, node), GRADIENT, job, label), ()
        if node == switch:
            yield UP, (job, label), (drawn.port(switch, following),)


def links_of(tree: AggregationTree) -> list[tuple[str, str]]:
    """The links that a tree uses upwards, each once."""
    return list(dict.fromkeys(link for branch in tree.branches for link in branch.links))


def groups_of(drawn: Drawn, switch: str) -> Iterator[MulticastGroup]:
    """For each job the ports of a switch by which its results go on."""
    for job, tree in drawn.trees.items():
        ports = sorted(drawn.port(switch, below) for below, above in links_of(tree) if above == switch)
        if ports:
            yield MulticastGroup(job, tuple(ports))


FILE = "entries.py"
HIGHEST_PORT = 511
NO_GROUP = MulticastGroup(0, ())


class StudentEntries:
    """The student's function, in a sandbox."""

    def __init__(self, text: str) -> None:
        self.process = Sandboxed("inakit.experiments.labs.sandbox.entries_runner", worker_limits())
        try:
            self.ask("load", text)
        except BaseException:
            self.close()
            raise

    def of(self, drawn: Drawn, switch: str, wanted: Collection[str] = tuple(TABLES)) -> SwitchEntries:
        """The entries for a switch, of the tables that are wanted; `InputError` for a mistake of the student's code.

        Multicast groups belong to table `down`.
        """
        tables: dict[tuple[str, tuple[int, ...]], TableEntry] = {}
        groups: dict[int, MulticastGroup] = {}
        for row in self.ask("entries", drawn.document(), switch):
            match row:
                case ["entry", str() as table, list() as key, str() as action, list() as params]:
                    entry = entry_of(switch, table, (numbers(key), numbers(params)), action)
                    known = tables.setdefault((table, numbers(key)), entry)
                    if known != entry and table in wanted:
                        raise InputError(f"{FILE}: {switch}: table '{table}' has two entries for key {tuple(key)}")
                case ["group", int() as number, list() as ports]:
                    groups[number] = group_of(switch, number, numbers(ports), groups) if DOWN in wanted else NO_GROUP
                case _:
                    raise EndedError("its answer is none")
        chosen = tuple(entry for entry in tables.values() if entry.table in wanted)
        return SwitchEntries(switch, chosen, tuple(groups.values()) if DOWN in wanted else ())

    def ask(self, *question: Any) -> list[Any]:
        """The rows of an answer."""
        match self.process.ask(list(question)):
            case ["ok", list() as rows]:
                return rows
            case ["mistake", str() as message]:
                told = printable(message)
                raise InputError(told if told.startswith(FILE) else f"{FILE}: {told}")
        raise EndedError("its answer is none")

    def close(self) -> None:
        """End the process."""
        self.process.close()


def numbers(found: list[Any]) -> tuple[int, ...]:
    """Whole numbers of 16 bits."""
    if not all(type(each) is int and 0 <= each < 1 << 16 for each in found):
        raise EndedError("its answer has something else than numbers")
    return tuple(found)


def entry_of(switch: str, table: str, parts: tuple[Sequence[int], Sequence[int]], action: str) -> TableEntry:
    """An entry of a known table; `InputError` for another table or action, and for numbers that do not fit."""
    where = f"{FILE}: {switch}: Entry({printable(table)[:40]!r}, ...)"
    if table not in TABLES:
        raise InputError(f"{where}: unknown table; expected one of {', '.join(TABLES)}")
    known = TABLES[table]
    if action != known.action:
        raise InputError(f"{where}: action {printable(action)[:40]!r}: expected '{known.action}'")
    for what, fields, found in (("key", known.key, parts[0]), ("parameters", known.params, parts[1])):
        if len(found) != len(fields):
            names = ", ".join(fields) or "none"
            raise InputError(f"{where}: {len(found)} numbers as {what}, expected {len(fields)} ({names})")
        for (name, bits), value in zip(fields.items(), found, strict=True):
            if value >= 1 << bits:
                raise InputError(f"{where}: {name} {value} does not fit {bits} bits")
    return TableEntry(table, tuple(parts[0]), action, tuple(parts[1]))


def group_of(switch: str, number: int, ports: tuple[int, ...], known: dict[int, MulticastGroup]) -> MulticastGroup:
    """A multicast group; `InputError` for one that is given twice, or has a port twice or beyond the last."""
    where = f"{FILE}: {switch}: Group({number}, ...)"
    if number in known and known[number].ports != ports:
        raise InputError(f"{where}: given twice, with other ports")
    if number == 0 or len(set(ports)) != len(ports) or max(ports, default=0) > HIGHEST_PORT:
        raise InputError(f"{where}: expected a number from 1, and different ports up to {HIGHEST_PORT}")
    return MulticastGroup(number, ports)


class EntriesOf(Protocol):
    """The entries of a plan for a switch, of the tables that are wanted, or of all."""

    def __call__(self, drawn: Drawn, switch: str, wanted: Collection[str] = ...) -> SwitchEntries: ...


@dataclass(frozen=True)
class EntriesBench:
    """A drawn plan, the student's entries, and the switches on which both parts are tried together.

    `program` makes the student's switches with entries; None where the program has lost points.
    """

    random: Random
    student: EntriesOf
    program: Callable[[dict[str, SwitchEntries]], Mapping[str, Injected]] | None = None


def mixed(bench: EntriesBench, drawn: Drawn, tables: tuple[str, ...]) -> dict[str, SwitchEntries]:
    return {
        name: of_tables(bench.student(drawn, name, tables), course_entries(drawn, name), tables)
        for name in drawn.switches
    }


def of_tables(student: SwitchEntries, course: SwitchEntries, tables: tuple[str, ...]) -> SwitchEntries:
    """Entries of these tables from the student, of others from the course. Groups belong to `down`."""
    others = tuple(entry for entry in course.tables if entry.table not in tables)
    return replace(course, tables=student.tables + others, groups=student.groups if DOWN in tables else course.groups)


def model_network(bench: EntriesBench, drawn: Drawn, tables: tuple[str, ...]) -> TreeNetwork:
    """The network of a plan on switches of the course."""
    switches = {name: ModelTree(entries) for name, entries in mixed(bench, drawn, tables).items()}
    return TreeNetwork(drawn, switches.__getitem__)


def check_tables(*tables: str) -> Callable[[EntriesBench], None]:
    """A check that all jobs of two drawn plans get their sums with the student's entries of these tables."""

    def check(bench: EntriesBench) -> None:
        for _ in range(2):
            drawn = drawn_plan(bench.random)
            run_jobs(model_network(bench, drawn, tables), bench.random)

    return check


check_ports, check_children = check_tables(PIPELINE_OF), check_tables(CHILD_OF)
check_up, check_down = check_tables(UP), check_tables(DOWN)
check_admitted = check_tables(ADMITTED)


def check_isolation(bench: EntriesBench) -> None:
    """No host can send what the plan does not have it send: under another label, for another job, or as a result."""
    drawn = drawn_plan(bench.random)
    if not any(bench.student(drawn, name, (ADMITTED,)).tables for name in drawn.switches):
        raise WrongError(f"there is no entry of '{ADMITTED}' yet, so that this cannot be tested")
    network = model_network(bench, drawn, (ADMITTED,))
    own = {(host, job, label) for job, tree in drawn.trees.items() for label, host in tree.workers.items()}
    labels = sorted({label for tree in drawn.trees.values() for label in (*tree.workers, *tree.aggregator_of)})
    for host in (each.name for each in drawn.fabric.hosts):
        for job in drawn.trees:
            forged = [Agg(GRADIENT, label, 0, 0, (1,) * 8, job) for label in labels if (host, job, label) not in own]
            for packet in (*forged, Agg(RESULT, ROOT_LABEL, 0, 0, (1,) * 8, job)):
                judge_dropped(network, host, packet)


def judge_dropped(network: TreeNetwork, host: str, packet: Agg) -> None:
    """Raise `WrongError` if the first switch takes a packet that its host may not send."""
    network.quiet()
    leaf, port = network.drawn.attachment(host)
    switch = network.switch_of(leaf)
    assert isinstance(switch, ModelTree)
    if (port, packet.kind, packet.job, packet.worker) in switch.tables[ADMITTED]:
        network.send(host, packet.packed())
        raise network.wrong(f"{leaf} admits at port {port} what {host} may not send: {short(packet.packed())}")


def check_both(bench: EntriesBench) -> None:
    """The student's entries on the student's program."""
    drawn = drawn_plan(bench.random)
    entries = {name: bench.student(drawn, name) for name in drawn.switches}
    if bench.program is None:
        models = {name: ModelTree(each) for name, each in entries.items()}
        run_jobs(TreeNetwork(drawn, models.__getitem__), bench.random)
        return
    network = TreeNetwork(drawn, bench.program(entries).__getitem__)
    try:
        run_jobs(network, bench.random)
    except WrongError as wrong:
        cause = f"{wrong.cause} (last at {wrong.exchanges[-1].switch})" if wrong.exchanges else wrong.cause
        raise WrongError(cause, wrong.exchanges, wrong.expected) from None


PROGRAM = "tree"

OF_PROGRAM = (
    Item("admission", "the switch: what the plan admits", 5, "Step 1", tree_program.check_admission),
    Item("sum", "the switch: the sum of the children", 10, "Step 1", tree_program.check_sum),
    Item("pass", "the switch: what is summed elsewhere", 5, "Step 2", tree_program.check_pass),
    Item("root", "the switch: the root of a tree", 5, "Step 2", tree_program.check_root),
    Item("rounds", "the switch: round after round", 5, "Step 3", tree_program.check_rounds),
    Item("jobs", "the switch: several jobs", 10, "Step 3", tree_program.check_jobs),
    Item("pipelines", "the switch: two pipelines", 5, "Step 4", tree_program.check_pipelines),
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
