"""Lab 5, the entries: what is graded of the student's Python, on switches of the course, and both parts together.

Each item takes the entries of some tables from the student and those of the others from the course, on the switches of
a drawn plan, and runs its jobs hop by hop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from inakit.experiments.labs.course.packets import GRADIENT, RESULT, Agg
from inakit.experiments.labs.grading.finding import WrongError
from inakit.experiments.labs.tree.course_entries import course_entries
from inakit.experiments.labs.tree.model import ModelTree
from inakit.experiments.labs.tree.network import Injected, TreeNetwork, run_jobs, short
from inakit.experiments.labs.tree.plans import Drawn, drawn_plan
from inakit.experiments.labs.tree.tables import ADMITTED, CHILD_OF, DOWN, PIPELINE_OF, UP
from inakit.planner.core.plan import ROOT_LABEL
from inakit.switch.entries import SwitchEntries


class EntriesOf(Protocol):
    """The entries of a plan for a switch, of the tables that are wanted, or of all."""

    def __call__(self, drawn: Drawn, switch: str, wanted: Collection[str] = ...) -> SwitchEntries:
        """The entries."""
        ...


@dataclass(frozen=True)
class EntriesBench:
    """A drawn plan, the student's entries, and the switches on which both parts are tried together.

    `program` makes the student's switches with entries; None where the program has lost points.
    """

    random: Random
    student: EntriesOf
    program: Callable[[dict[str, SwitchEntries]], Mapping[str, Injected]] | None = None


def mixed(bench: EntriesBench, drawn: Drawn, tables: tuple[str, ...]) -> dict[str, SwitchEntries]:
    """For each switch the student's entries of these tables, and the course's of all others."""
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
