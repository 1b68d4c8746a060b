"""`inakit exactness`: every slot policy, over several levels of aggregation, under every condition, on real switches.

On the switch `process` they run `p4/ina.p4` in this process, as target `fast` does in the kernel, and time is the
network's own: that needs no root, and every run is the same again. On a switch target each cell has a Mininet network
of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import psutil
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from experiments.exactness.conditions import CONDITIONS, HEAVY
from experiments.exactness.networks import case
from experiments.exactness.scales import scale_of
from experiments.run.outcome import Outcome, switch_events
from experiments.run.progress import working
from experiments.run.run import Run, run_plan
from experiments.worlds.registry import WORLDS
from planner.core.policies import POLICIES
from planner.core.problem import Problem
from topo.errors import InputError, MachineError, RunError, unknown_name
from traffic.endpoints.gradient import RandomGradients
from traffic.wire.frames import FRAGMENT
from traffic.wire.packet_format import Event

LEVELS = (1, 2, 3)
GRADIENTS = RandomGradients(1)
COMPARED = "no loss", "1 % loss"
COVERED = "every element of every sum at every worker, and in every sum the number of workers that it says it covers"
LONG = 1_000_000
"""Fragments of the long form, over all cells of a switch."""


@dataclass(frozen=True)
class Cell:
    """What is tried, and on which switch: a world of `experiments.worlds.registry`."""

    policy: str
    levels: int
    condition: str
    switch: str = "process"

    def __str__(self) -> str:
        return f"{self.switch}, {self.policy}, {self.levels} levels, {self.condition}"


@dataclass(frozen=True)
class Tried:
    """What came of it.

    `again`: gradients sent again, per gradient. `counts`: what befell packets, see `befallen`. `failure`: why
    sums are not exact, or nothing can be said of them.
    """

    cell: Cell
    fragments: int
    failure: str = ""
    time_s: float = 0.0
    again: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether the run shows that all sums are exact."""
        return not self.failure

    def __str__(self) -> str:
        return f"{short(self.time_s)}s ×{short(1 + self.again)}" if self.exact else "[bold red]FAILED[/]"


def short(number: float) -> str:
    """A number with one decimal, or with none from 10 on."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def cells(
    policies: Sequence[str], levels: Sequence[int], conditions: Sequence[str], switches: Sequence[str] = ("process",)
) -> list[Cell]:
    """All combinations. Raises `InputError` for an unknown name."""
    check_known("slot policy", policies, POLICIES)
    check_known("condition", conditions, CONDITIONS)
    return [
        Cell(policy, level, condition, switch)
        for switch, policy, level, condition in product(switches, policies, levels, conditions)
    ]


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
    """Raise `InputError` for the first name that is not known, with the nearest one that is."""
    for name in names:
        if name not in known:
            raise unknown_name(what, name, known)


# ---- how much ----------------------------------------------------------------------------------


def weight(cell: Cell) -> float:
    """The share that a cell gets of the fragments that others get."""
    return 1 / HEAVY.get(cell.condition, 1)


def shared_out(total: int, wanted: Sequence[Cell]) -> int:
    """How many fragments a cell is to be tried with, for all cells of each switch to have `total`."""
    of_one = sum(weight(cell) for cell in wanted if cell.switch == wanted[0].switch)
    return math.ceil(total / of_one)


def check_memory(problem: Problem) -> None:
    """Raise `MachineError` if the gradients and the sums of a run do not fit this machine."""
    (job,) = problem.jobs
    # Each worker has its gradient twice and its sums, and a head for each packet; there are 64-bit sums
    # of PS and of the check, which takes as much again.
    needed = job.gradient_bytes * (len(job.workers) * 3.5 + 8)
    available = psutil.virtual_memory().available
    if needed > available:
        raise MachineError(
            f"gradients of {job.gradient_bytes / 1e6:,.0f} MB at {len(job.workers)} workers take {needed / 1e9:.1f} GB "
            f"in all, and {available / 1e9:.1f} GB are free: choose fewer --fragments, or more cells to share them"
        )


# ---- trying ------------------------------------------------------------------------------------


def attempt(cell: Cell, fragments: int | None = None) -> Tried:
    """Run one cell's iteration of so many fragments, by default its world's, to its end."""
    scale = scale_of(cell.switch)
    count = max(2, math.ceil((fragments or scale.fragments) * weight(cell)))
    problem, plan = case(cell.policy, cell.levels, fragments=count, slots=scale.slots, rate_bps=scale.rate_bps)
    check_memory(problem)
    sending_s = 8 * FRAGMENT.wire_bytes * count / scale.rate_bps
    faults = CONDITIONS[cell.condition].faults(problem.fabric, sending_s)
    run = Run(problem, plan, gradients=GRADIENTS, options=scale.options, faults=faults)
    try:
        outcome = run_plan(run, WORLDS[cell.switch]())
    except RunError as error:
        return Tried(cell, count, str(error))
    (iteration,) = outcome.measured.iterations
    again = iteration.retransmissions / (count * len(problem.jobs[0].workers))
    return Tried(cell, count, failure_of(outcome), iteration.communication_time_s, again, befallen(outcome))


def failure_of(outcome: Outcome) -> str:
    """Why a run does not show that sums are exact; empty where it does."""
    if not outcome.measured.exact:
        return "; ".join(outcome.measured.wrong)
    not_reached = (outcome.faults or {}).get("not_reached")
    return f"it ended before {', '.join(not_reached)} could happen: choose more --fragments" if not_reached else ""


def befallen(outcome: Outcome) -> dict[str, int]:
    """What all switches did to packets during a run, by the P4 program's names, and what befell them at hosts."""
    counted = Counter({event.name.lower(): 0 for event in Event})
    for _, events in switch_events(outcome.monitor):
        counted.update({event.name.lower(): events[event] for event in Event})
    at_hosts = (outcome.faults or {})["counts"]
    counted["lost"] += at_hosts["lost_on_departure"]
    counted["doubled"] += at_hosts["doubled_by_hosts"]
    return dict(counted) | {"unheard": at_hosts["lost_at_silent_hosts"]}


def run_matrix(wanted: Sequence[Cell], fragments: int | None, console: Console) -> list[Tried]:
    """Try every cell, print the matrix, and return what was found."""
    found = []
    for number, cell in enumerate(wanted, start=1):
        with working(console, f"{number} of {len(wanted)}: {cell}"):
            found.append(attempt(cell, fragments))
        if not found[-1].exact:
            console.print(f"{cell}: {found[-1].failure}", highlight=False, markup=False)
    exact, carried = sum(each.exact for each in found), sum(each.fragments for each in found)
    console.print(matrix_table(found))
    console.print(f"communication time and sendings per gradient; {carried:,} fragments in all", highlight=False)
    console.print(f"{exact} of {len(found)} exact: {COVERED}", highlight=False, soft_wrap=True)
    return found


def matrix_table(found: Sequence[Tried]) -> Table:
    """Sections by switch and levels, a row per condition, a column per policy: time, and sendings per gradient."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=0)
    policies = dict.fromkeys(tried.cell.policy for tried in found)
    for heading in ("", *policies):
        table.add_column(heading, no_wrap=True)
    tried_of = {tried.cell: tried for tried in found}
    conditions = dict.fromkeys(tried.cell.condition for tried in found)
    for switch, levels in dict.fromkeys((tried.cell.switch, tried.cell.levels) for tried in found):
        table.add_row(f"[bold]{switch}, {levels} level{'s'[: levels > 1]}[/]")
        for condition in conditions:
            row = (tried_of.get(Cell(policy, levels, condition, switch)) for policy in policies)
            table.add_row(condition, *(str(tried or "") for tried in row))
        pairs = [[tried_of.get(Cell(policy, levels, name, switch)) for name in COMPARED] for policy in policies]
        if any(all(pair) for pair in pairs):
            table.add_row("rate kept at 1 %", *(kept(*pair) for pair in pairs))
        table.add_section()
    return table


def kept(lossless: Tried | None, lossy: Tried | None) -> str:
    """The rate with loss as a share of that without."""
    if not lossless or not lossy or not (lossless.exact and lossy.exact):
        return ""
    rate, kept_rate = (tried.fragments / tried.time_s for tried in (lossless, lossy))
    return f"{kept_rate / rate:.0%}"
