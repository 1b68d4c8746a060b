"""`inakit exactness`: every slot policy, over several levels of aggregation, under every condition, on real switches.

The switches run `p4/ina.p4` in this process, as target `fast` does in the kernel, and time is the network's own:
so it needs no root, and every run is the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import product
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from experiments.exactness.conditions import CONDITIONS, HEAVY
from experiments.exactness.networks import case
from experiments.exactness.virtual import VirtualNetwork
from planner.policies import POLICIES
from topo.errors import InputError, RunError, unknown_name
from traffic.gradient import RandomGradients
from traffic.layout import lay_out
from traffic.packet import Event
from traffic.reliable import Loop, ReliableOptions

LEVELS = (1, 2, 3)
STALL_S = 120.0
"""Of the network's own time."""


@dataclass(frozen=True)
class Cell:
    """What is tried."""

    policy: str
    levels: int
    condition: str


@dataclass(frozen=True)
class Tried:
    """What came of it. `again`: gradients sent again, per gradient. `failure`: why it did not end."""

    cell: Cell
    exact: bool
    time_s: float = 0.0
    again: float = 0.0
    summed: int = 0
    failure: str = ""

    def __str__(self) -> str:
        if self.failure:
            return "[bold red]stalled[/]"
        return f"{self.time_s:.1f} s +{self.again:.0%}" if self.exact else "[bold red]WRONG[/]"


class Inline(Executor):
    """Runs what is submitted at once, so that a run is the same every time."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*args, **named))
        return future


def cells(policies: Sequence[str], levels: Sequence[int], conditions: Sequence[str]) -> Iterator[Cell]:
    """All combinations. Raises `InputError` for an unknown name."""
    check_known("slot policy", policies, POLICIES)
    check_known("condition", conditions, CONDITIONS)
    return (Cell(*chosen) for chosen in product(policies, levels, conditions))


def parse_levels(text: str) -> list[int]:
    """ "1,2,3" as numbers. Raises `InputError`."""
    try:
        found = [int(level) for level in text.split(",")]
    except ValueError:
        found = []
    if not found or not set(found) <= set(LEVELS):
        raise InputError(f"--levels {text}: numbers from {LEVELS[0]} to {LEVELS[-1]} are expected, such as 1,2")
    return found


def check_known(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown_name(what, name, known)


def attempt(cell: Cell, fragments: int) -> Tried:
    """Run one cell's iteration of so many fragments to its end."""
    condition = CONDITIONS[cell.condition]
    problem, plan = case(cell.policy, cell.levels, fragments=max(2, fragments // HEAVY.get(cell.condition, 1)))
    network = VirtualNetwork(problem, plan, condition.faults)
    layout, options = lay_out(problem, plan, network.hosts), ReliableOptions(stall_s=STALL_S)
    loop = Loop(layout, network, RandomGradients(1), options, Inline())
    if condition.prepare:
        condition.prepare(network, loop)
    try:
        measured = loop.run(lambda _: None)
    except RunError as error:
        return Tried(cell, False, failure=str(error))
    (iteration,) = measured.iterations
    return Tried(
        cell,
        exact=bool(measured.exact),
        time_s=iteration.communication_time_s,
        again=iteration.retransmissions / int(layout.streams.count.sum()),
        summed=sum(network.events(switch)[Event.ADDED] for switch in network.switches),
    )


def run_matrix(wanted: Iterable[Cell], fragments: int, console: Console) -> list[Tried]:
    """Try every cell, print the matrix, and return what was found."""
    found = []
    for cell in wanted:
        with console.status(f"{cell.policy}, {cell.levels} levels, {cell.condition}"):
            found.append(attempt(cell, fragments))
        if not found[-1].exact:
            why = found[-1].failure or "a sum is not exact"
            console.print(f"{cell.policy}, {cell.levels} levels, {cell.condition}: {why}", highlight=False)
    console.print(matrix_table(found))
    return found


def matrix_table(found: list[Tried]) -> Table:
    """A row per policy and levels, a column per condition: the network's own time, and how much was sent again."""
    exact = sum(tried.exact for tried in found)
    conditions = list(dict.fromkeys(tried.cell.condition for tried in found))
    caption = f"{exact} of {len(found)} exact; communication time of the network, and gradients sent again"
    table = Table(caption=caption, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("policy", "levels", *conditions):
        table.add_column(heading, no_wrap=heading not in conditions)
    for policy, levels in dict.fromkeys((tried.cell.policy, tried.cell.levels) for tried in found):
        row = {t.cell.condition: str(t) for t in found if (t.cell.policy, t.cell.levels) == (policy, levels)}
        table.add_row(policy, str(levels), *(row.get(condition, "") for condition in conditions))
    return table
