"""Lab 5: trees of several levels, for several jobs, in two pipelines: a program, and Python that fills its tables.

Each item about entries takes the entries of some tables from the student and the others from the course, on the
switches of a random plan, and runs its jobs hop by hop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

from inakit.experiments.labs.course import tree_network
from inakit.experiments.labs.course.loss_network import student_limits
from inakit.experiments.labs.course.tree_network import (
    ADMITTED,
    CHILD_OF,
    DOWN,
    HOSTS,
    MOST_HOSTS,
    PIPELINE_OF,
    TABLES,
    UP,
    DrawnPlan,
    ModelTree,
    TreeNetwork,
    drawn_plan,
    entry,
    run_jobs,
    short,
)
from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.lab import Item, Lab, WrongError, scored
from inakit.experiments.labs.grading.packets import GRADIENT, RESULT, Agg
from inakit.experiments.labs.sandbox.process import Sandboxed
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.experiments.labs.sandbox.untrusted import Reader, shown
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.interpret.interpreted_switch import Packets
from inakit.topo.errors import InputError

FILE = "entries.py"
HIGHEST_PORT = 511
MOST_16_BITS = (1 << 16) - 1


class EntriesOf(Protocol):
    """A function for the entries of a plan for a switch, in the wanted tables or in all."""

    def __call__(self, drawn: DrawnPlan, switch: str, wanted: Collection[str] = ...) -> SwitchEntries:
        """The entries; multicast groups count as entries of table `down`."""
        ...


# -- the course's entries


def course_entries(drawn: DrawnPlan, switch: str, wanted: Collection[str] = tuple(TABLES)) -> SwitchEntries:
    """The course's entries of a plan for a switch, in the wanted tables."""
    rows = [row for row in dict.fromkeys(rows_of(drawn, switch)) if row[0] in wanted]
    tables = tuple(entry(*row) for row in rows)
    return SwitchEntries(switch, tables, tuple(groups_of(drawn, switch)))


def rows_of(drawn: DrawnPlan, switch: str) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
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
    drawn: DrawnPlan, switch: str, job: int, label: int, path: tuple[str, ...]
) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """The port by which a label enters a switch, and the port by which it leaves."""
    for node, following in pairwise(path):
        if following == switch:
            yield ADMITTED, (drawn.port(switch, node), GRADIENT, job, label), ()
        if node == switch:
            yield UP, (job, label), (drawn.port(switch, following),)


def links_of(tree: AggregationTree) -> list[tuple[str, str]]:
    """The links that a tree uses towards its root, each once."""
    return list(dict.fromkeys(link for branch in tree.branches for link in branch.links))


def groups_of(drawn: DrawnPlan, switch: str) -> Iterator[MulticastGroup]:
    """By job, the ports of a switch by which its results leave."""
    for job, tree in drawn.trees.items():
        ports = sorted(drawn.port(switch, below) for below, above in links_of(tree) if above == switch)
        if ports:
            yield MulticastGroup(job, tuple(ports))


# -- the student's entries


class EntriesMistakeError(InputError):
    """A mistake of the student's function."""

    def __init__(self, message: str) -> None:
        super().__init__(message if message.startswith(FILE) else f"{FILE}: {message}")


READER = Reader(EntriesMistakeError)
MOST_ROWS, MOST_NUMBERS = 2000, 64


class StudentEntries:
    """The student's function, in a sandbox of its own for each plan, so that it cannot tell for which item it is asked.

    It is asked once for each switch of a plan.
    """

    def __init__(self, text: str) -> None:
        errors = dict.fromkeys(("mistake", "refused"), EntriesMistakeError)
        module = "inakit.experiments.labs.sandbox.student_python"
        self.process = Sandboxed(module, student_limits(), errors, arguments=["entries"], load=("load", text))
        self.drawn: DrawnPlan | None = None
        self.rows: dict[str, Any] = {}

    @classmethod
    def of_bench(cls, bench: Bench) -> StudentEntries:
        """The function of a submission, loaded before the first question."""
        made = cls(bench.submission.text(FILE))
        bench.stack.callback(made.process.close)
        return made

    def __call__(self, drawn: DrawnPlan, switch: str, wanted: Collection[str] = tuple(TABLES)) -> SwitchEntries:
        """The function's entries for a switch; `InputError` for a mistake of the student's code."""
        tables: dict[tuple[str, tuple[int, ...]], TableEntry] = {}
        groups: dict[int, MulticastGroup] = {}
        if drawn is not self.drawn:
            self.process.close()
            self.drawn, self.rows = drawn, {}
        if switch not in self.rows:
            self.rows[switch] = self.process.ask("entries", drawn.document(), switch)
        for row in READER.items("what entries() returns", self.rows[switch], "entries", MOST_ROWS):
            match row:
                case ["entry", str() as table, given, str() as action, params]:
                    key = READER.wholes("the key", given, MOST_16_BITS, length=MOST_NUMBERS)
                    found = entry_of(
                        switch,
                        table,
                        key,
                        action,
                        READER.wholes("the parameters", params, MOST_16_BITS, length=MOST_NUMBERS),
                    )
                    known = tables.setdefault((table, key), found)
                    if known != found and table in wanted:
                        raise InputError(f"{FILE}: {switch}: table '{table}' has two entries for key {key}")
                case ["group", given, ports]:
                    number = READER.whole("the number of a group", given, MOST_16_BITS)
                    found_ports = READER.wholes("the ports", ports, MOST_16_BITS, length=MOST_NUMBERS)
                    if DOWN in wanted:
                        groups[number] = group_of(switch, number, found_ports, groups)
                case _:
                    raise READER.wrong("an entry", row, "Entry(table, key, action, params) or Group(number, ports)")
        return SwitchEntries(
            switch, tuple(each for each in tables.values() if each.table in wanted), tuple(groups.values())
        )


def entry_of(switch: str, table: str, key: tuple[int, ...], action: str, params: tuple[int, ...]) -> TableEntry:
    """An entry of a known table; `InputError` for an unknown table or action, and for numbers that do not fit."""
    where = f"{FILE}: {switch}: Entry({shown(table[:40])}, ...)"
    if table not in TABLES:
        raise InputError(f"{where}: unknown table; expected one of {', '.join(TABLES)}")
    known = TABLES[table]
    if action != known.action:
        raise InputError(f"{where}: action {shown(action[:40])}: expected '{known.action}'")
    for what, fields, found in (("key", known.key, key), ("parameters", known.params, params)):
        if len(found) != len(fields):
            names = ", ".join(fields) or "none"
            raise InputError(f"{where}: {len(found)} numbers as {what}, expected {len(fields)} ({names})")
        for (name, bits), value in zip(fields.items(), found, strict=True):
            if value >= 1 << bits:
                raise InputError(f"{where}: {name} {value} does not fit {bits} bits")
    return TableEntry(table, key, action, params)


def group_of(switch: str, number: int, ports: tuple[int, ...], known: dict[int, MulticastGroup]) -> MulticastGroup:
    """A multicast group; `InputError` for a group that is given twice, and for repeated or too high ports."""
    where = f"{FILE}: {switch}: Group({number}, ...)"
    if number in known and known[number].ports != ports:
        raise InputError(f"{where}: given twice, with other ports")
    if number == 0 or len(set(ports)) != len(ports) or max(ports, default=0) > HIGHEST_PORT:
        raise InputError(f"{where}: expected a number from 1, and different ports up to {HIGHEST_PORT}")
    return MulticastGroup(number, ports)


# -- entries


def model_network(student: EntriesOf, drawn: DrawnPlan, *tables: str) -> TreeNetwork:
    """The network of a plan on the course's switches, with the student's entries in these tables, else the course's."""
    switches = {}
    for name in drawn.switches:
        own, course = student(drawn, name, tables), course_entries(drawn, name)
        others = tuple(each for each in course.tables if each.table not in tables)
        groups = own.groups if DOWN in tables else course.groups
        switches[name] = ModelTree(replace(course, tables=own.tables + others, groups=groups))
    return TreeNetwork(drawn, switches.__getitem__)


def check_table(table: str, bench: Bench) -> None:
    """All jobs of two random plans, with few and many hosts, get their sums with the student's entries in a table."""
    student = bench.once(StudentEntries.of_bench)
    for hosts_per_leaf in (HOSTS, MOST_HOSTS):
        run_jobs(model_network(student, drawn_plan(bench.random, hosts_per_leaf), table), bench.random)


def check_children(bench: Bench) -> None:
    """All jobs get their sums, and each aggregator uses the slots that it owns."""
    check_table(CHILD_OF, bench)
    drawn, student = drawn_plan(bench.random), bench.once(StudentEntries.of_bench)
    for switch in drawn.switches:
        given = {row.key: row.params for row in student(drawn, switch, (CHILD_OF,)).tables}
        for row in course_entries(drawn, switch, (CHILD_OF,)).tables:
            _, job, child = row.key
            (first, slots), (wanted, owned) = given.get(row.key, row.params)[3:], row.params[3:]
            if (first, slots) != (wanted, owned):
                cause = f"{switch}: label {child} of job {job} gets {slots} slots from {first} on"
                raise WrongError(f"{cause}, where its aggregator owns {owned} from {wanted} on")


def check_isolation(bench: Bench) -> None:
    """Nothing is admitted but what the plan has come in: no other label, job or result, from a host or a switch."""
    drawn, student = drawn_plan(bench.random), bench.once(StudentEntries.of_bench)
    if not any(student(drawn, name, (ADMITTED,)).tables for name in drawn.switches):
        raise WrongError(f"there is no entry of '{ADMITTED}' yet, so that this cannot be tested")
    network = model_network(student, drawn, ADMITTED)
    for name in drawn.switches:
        admitted, planned = (
            ModelTree(each).tables[ADMITTED].keys()
            for each in (student(drawn, name, (ADMITTED,)), course_entries(drawn, name, (ADMITTED,)))
        )
        for port, kind, job, label in sorted(admitted - planned):
            peer, packet = network.far.get((name, port), "nobody"), Agg(kind, label, 0, 0, (1,) * 8, job).packed()
            if peer not in drawn.switches and (name, port) in network.far:
                network.send(peer, packet)
            raise network.wrong(f"{name} admits at port {port} what {peer} may not send: {short(packet)}")


# -- both


@dataclass(frozen=True)
class ChosenSwitch:
    """One of the switches that a process runs."""

    process: SandboxedSwitch
    name: str

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; return the packets that leave."""
        self.process.choose(self.name)
        return self.process.inject(port, packet)


def check_both(bench: Bench) -> None:
    """The student's entries on the student's program. The course's part replaces a part that has lost points."""
    if {PROGRAM, ENTRIES} <= bench.failed:
        raise WrongError("not tried: neither the program nor the entries do their part alone")
    student: EntriesOf = course_entries if ENTRIES in bench.failed else bench.once(StudentEntries.of_bench)
    drawn = drawn_plan(bench.random)
    entries = {name: student(drawn, name) for name in drawn.switches}
    if PROGRAM in bench.failed:
        models = {name: ModelTree(each) for name, each in entries.items()}
        run_jobs(TreeNetwork(drawn, models.__getitem__), bench.random)
        return
    switch = bench.sandboxed
    for name, each in entries.items():
        switch.choose(name)
        switch.fresh()
        switch.install(each)
    network = TreeNetwork(drawn, lambda name: ChosenSwitch(switch, name))
    try:
        run_jobs(network, bench.random)
    except WrongError as wrong:
        if network.exchanges:
            cause = f"{wrong.cause} (last at {network.exchanges[-1].switch})"
            wrong.finding = replace(wrong.finding, cause=cause)
        raise


PROGRAM, ENTRIES = "program", "entries"
LAB = Lab(
    name="5-tree",
    title="Trees, jobs and pipelines",
    hours="8 to 12",
    files=("tree.p4", FILE),
    items=scored(
        "5-tree",
        Item("admission", "the switch: what the plan admits", "Step 1", tree_network.check_admission, PROGRAM),
        Item("sum", "the switch: the sum of the children", "Step 1", tree_network.check_sum, PROGRAM),
        Item("pass", "the switch: what is summed elsewhere", "Step 2", tree_network.check_pass, PROGRAM),
        Item("root", "the switch: the root of a tree", "Step 2", tree_network.check_root, PROGRAM),
        Item("rounds", "the switch: round after round", "Step 3", tree_network.check_rounds, PROGRAM),
        Item("jobs", "the switch: several jobs", "Step 3", tree_network.check_jobs, PROGRAM),
        Item("pipelines", "the switch: two pipelines", "Step 4", tree_network.check_pipelines, PROGRAM),
        Item("ports", "entries: pipelines of ports", "Step 5", partial(check_table, PIPELINE_OF), ENTRIES),
        Item("ways", "entries: ways to the root", "Step 6", partial(check_table, UP), ENTRIES),
        Item("results", "entries: results for all workers", "Step 7", partial(check_table, DOWN), ENTRIES),
        Item("admitted", "entries: all that the plan admits", "Step 8", partial(check_table, ADMITTED), ENTRIES),
        Item("isolation", "entries: nothing else is admitted", "Step 8", check_isolation, ENTRIES),
        Item("children", "entries: aggregators and their slots", "Step 9", check_children, ENTRIES),
        Item("together", "your entries on your program", "Step 10", check_both),
    ),
    sandbox_only="runs a network of switches, which only the sandbox has",
)
