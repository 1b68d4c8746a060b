"""`inakit exactness`: every slot policy under every condition, over several levels of aggregation, on real switches.

Networks are binary trees of switches, with two workers at each leaf and a PS on top. Conditions are faults on all links
and events such as a restart of the PS. On the switch `virtual`, switches run `p4/ina.p4` in this process as target
`fast` runs it in the kernel, and time is simulated. That needs no root, and every run gives the same result.
On a switch target each cell has a Mininet network of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

import psutil
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from inakit.experiments.run.faults import Event, When
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.run.outcome import Outcome, switch_events
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.sweeps.run_trials import Row, measure_rows
from inakit.experiments.worlds.registry import AUTO, WORLDS, find_world, worlds_here
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slot_policies import POLICIES, TIMEOUT
from inakit.planner.install.fault_entries import LinkFaults
from inakit.planner.install.ina_program import INA, DataPlaneProgram
from inakit.planner.prepared import Prepared
from inakit.planner.trees.headroom import with_policy
from inakit.topo.errors import InputError, MachineError, RunError, unknown_name
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.traffic.closed_loop import ReliableOptions
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.faults.attacks import Attack
from inakit.traffic.wire.packet_format import FRAGMENT
from inakit.traffic.wire.packet_format import Event as SlotEvent

FANOUT, SERVER, OUTSIDER = 2, "ps", "x1"
CAPACITY = 10
"""The capacity of every link, as a multiple of a worker's sending rate."""
UP, FIRST_CHILD = 1, 2
"""The port of every switch towards the PS, and its first port towards the workers."""
PIPELINES = ((UP,), tuple(range(FIRST_CHILD, FIRST_CHILD + FANOUT)))
SUMS = 1
"""The pipelines of every switch, and the aggregating one: not the first, so that a confusion of the two shows."""
WITH_OUTSIDER = (PIPELINES[0], (*PIPELINES[SUMS], FIRST_CHILD + FANOUT))
"""The pipelines of the switch that has `OUTSIDER` as well."""


def fabric_of(levels: int, slots: int, capacity_bps: float, outsider: bool = False) -> Fabric:
    """`levels` tiers of switches: s1 and the PS on top, FANOUT switches below each, FANOUT workers at the last.

    With `outsider`, a host without a job is at the last switch as well.
    """
    names = switch_names(levels)
    last, more = names[-1][-1], (OUTSIDER,) if outsider else ()
    switches = tuple(
        Switch(name, levels - level, WITH_OUTSIDER if outsider and name == last else PIPELINES, aggregator_slots=slots)
        for level, tier in enumerate(names)
        for name in tier
    )
    hosts = (Host(SERVER), *(Host(name) for name in (*worker_names(levels), *more)))
    links = [Link(SERVER, "s1", 0, UP, capacity_bps, capacity_bps)]
    links += [Link(name, last, 0, FIRST_CHILD + FANOUT, capacity_bps, capacity_bps) for name in more]
    for upper, lower in zip(names, [*names[1:], worker_names(levels)], strict=True):
        for number, name in enumerate(lower):
            up = 0 if name.startswith("w") else UP
            links.append(
                Link(name, upper[number // FANOUT], up, FIRST_CHILD + number % FANOUT, capacity_bps, capacity_bps)
            )
    return Fabric(f"exactness-{levels}", hosts, switches, tuple(links))


def switch_names(levels: int) -> list[list[str]]:
    """The switches of each tier, from the top. Below position i of a tier are FANOUT positions, from FANOUT * i on."""
    return [[f"s{FANOUT**level + number}" for number in range(FANOUT**level)] for level in range(levels)]


def worker_names(levels: int) -> list[str]:
    """The workers w1, w2 and so on, `FANOUT` below each of the last switches."""
    return [f"w{number + 1}" for number in range(FANOUT**levels)]


def tree_of(levels: int, number: int, priority: int) -> AggregationTree:
    """The aggregation tree in which every switch is an aggregator. No slots are assigned yet."""
    workers = worker_names(levels)
    labels = {name: label for label, name in enumerate(workers, start=1)}
    for tier in switch_names(levels):
        labels |= {name: 100 + int(name[1:]) for name in tier}
    tiers = [[SERVER], *switch_names(levels), workers]
    aggregators, branches = [], []
    for upper, lower in pairwise(tiers):
        for position, name in enumerate(lower):
            above = upper[position // FANOUT]
            branches.append(Branch(labels[name], labels.get(above, 0), (name, above)))
    for upper, lower in pairwise(tiers[1:]):
        for position, name in enumerate(upper):
            children = tuple(labels[child] for child in lower[FANOUT * position : FANOUT * (position + 1)])
            aggregators.append(Aggregator(labels[name], name, SUMS, children, 0, 1))
    by_label = {labels[name]: name for name in workers}
    return AggregationTree(number, SERVER, by_label, tuple(aggregators), tuple(branches), priority=priority)


def case(
    policy: str, levels: int, *, fragments: int, slots: int, rate_bps: float, trees: int = 2, outsider: bool = False
) -> tuple[Problem, Plan]:
    """Return a job whose `fragments` fragments are shared by `trees` trees of different priorities, and its plan.

    Every link can carry the traffic of all workers at `rate_bps` each, even without aggregation.
    """
    fabric = fabric_of(levels, slots, CAPACITY * rate_bps, outsider)
    job = Job(1, tuple(worker_names(levels)), (SERVER,), fragments * 4 * FRAGMENT.values)
    planned = tuple(
        PlannedTree(1, 1 / trees, rate_bps / trees, tree_of(levels, number, number)) for number in range(1, trees + 1)
    )
    problem = Problem(fabric, (job,), FRAGMENT)
    return problem, with_policy(
        problem, Plan("exactness", fabric.name, planned, SolverOutcome("heuristic", 0.0)), policy
    )


Events = Callable[[Fabric, float], tuple[Event, ...]]
"""A function that returns the events for a fabric whose workers, without faults, send for this many seconds."""

WIPED_AT, PAUSED_AT, RESTARTED_AT = (0.3, 0.5), 0.4, 0.4
"""The times of these events, as shares of the time for which workers send without faults."""
PAUSED, PAUSED_S = "w1", 5.0
NO_FAULTS = LinkFaults()


def switches_wiped(fabric: Fabric, sending_s: float) -> tuple[Event, ...]:
    """The top switch, and later one of the lowest tier, lose all registers while fragments are in flight.

    In virtual time all workers send at the same moments, so a slot waits for other workers only where packets are lost.
    """
    ends = (fabric.switches[0], fabric.switches[-1])
    return tuple(
        Event(When(at * sending_s), "restart", (switch.name,)) for at, switch in zip(WIPED_AT, ends, strict=True)
    )


def worker_paused(_: Fabric, sending_s: float) -> tuple[Event, ...]:
    """One worker neither sends nor receives anything for `PAUSED_S` seconds."""
    return (Event(When(PAUSED_AT * sending_s), "pause", (PAUSED,), PAUSED_S),)


def server_restarted(_: Fabric, sending_s: float) -> tuple[Event, ...]:
    """The PS loses all its sums."""
    return (Event(When(RESTARTED_AT * sending_s), "restart", (SERVER,)),)


@dataclass(frozen=True)
class Condition:
    """The faults of a run: `links`, for each direction of every link; `events`, a function that returns events.

    `attacks`: what `OUTSIDER` sends, as many bits per second as a worker.
    """

    links: LinkFaults = NO_FAULTS
    events: Events = lambda _fabric, _sending_s: ()
    attacks: tuple[str, ...] = ()

    def faults(self, fabric: Fabric, sending_s: float, rate_bps: float) -> FaultPlan:
        """Return the fault plan of a fabric. Links to hosts do not reorder packets; only switches do."""
        to_hosts = replace(self.links, reorder=0.0)
        links = {
            (node, peer): to_hosts if peer in fabric.host_names else self.links for node, peer in fabric.capacities_bps
        }
        hostile = (Attack(OUTSIDER, 1, self.attacks, rate_bps),) if self.attacks else ()
        return FaultPlan(links=links, events=self.events(fabric, sending_s), hostile=hostile)


CONDITIONS = {
    "no loss": Condition(),
    "1 % loss": Condition(LinkFaults(drop=0.01)),
    "10 % loss": Condition(LinkFaults(drop=0.1)),
    "30 % loss": Condition(LinkFaults(drop=0.3)),
    "duplicates": Condition(LinkFaults(duplicate=0.1)),
    "reordering": Condition(LinkFaults(reorder=0.1)),
    "switches wiped": Condition(LinkFaults(drop=0.01), switches_wiped),
    "worker paused": Condition(events=worker_paused),
    "PS restarted": Condition(LinkFaults(drop=0.01), server_restarted),
    "forged questions": Condition(LinkFaults(drop=0.01), attacks=("ask", "spoof", "forge")),
    "all at once": Condition(LinkFaults(drop=0.05, duplicate=0.05, reorder=0.05), server_restarted),
}
HEAVY = {"10 % loss": 10, "30 % loss": 50, "all at once": 5}
"""Divisors of the number of fragments under a condition whose losses make runs slow: with 30 % loss per link, 6 % of
the packets pass eight links, and windows stay small."""


STALL_S = 120.0
"""A run without a result for this many seconds fails. A pause of 5 s or heavy loss takes less."""


@dataclass(frozen=True)
class Scale:
    """The size of a cell in one world.

    `rate_bps`: the sending rate of each worker. `slots`: per switch, few enough for fragments to collide. `fragments`:
    per gradient. `timeouts`: a worker's shortest timeout and its first one, in seconds. Short timeouts suit short round
    trips, and end a run sooner in which most packets are lost.
    """

    rate_bps: float
    slots: int
    fragments: int
    timeouts: tuple[float, float]

    @property
    def options(self) -> ReliableOptions:
        shortest, longest = self.timeouts
        worker = WorkerOptions(min_timeout_s=shortest, first_timeout_s=longest)
        return ReliableOptions(worker, stall_s=STALL_S)


SLOW = Scale(rate_bps=0.5e6, slots=32, fragments=200, timeouts=(0.08, 0.25))
SCALES = {
    "fast": Scale(rate_bps=16e6, slots=256, fragments=2000, timeouts=(0.04, 0.08)),
    "virtual": Scale(rate_bps=2e6, slots=32, fragments=400, timeouts=(0.08, 0.25)),
    "bmv2": SLOW,
}


def chosen_worlds(names: Iterable[str]) -> list[str]:
    """Return the worlds of these names; `auto` is every world that this machine can emulate, or virtual time.

    Raises `InakitError`.
    """
    found = dict.fromkeys(each for name in names for each in (worlds_here() if name == AUTO else [name]))
    return [find_world(name).name for name in found]


GRADIENTS = RandomGradients(1)


@dataclass(frozen=True)
class Cell:
    """One combination to test. `switch` is the name of a world of `inakit.experiments.worlds.registry`."""

    policy: str
    levels: int
    condition: str
    switch: str = "virtual"

    def __str__(self) -> str:
        return f"{self.switch}, {self.policy}, {self.levels} levels, {self.condition}"


@dataclass(frozen=True)
class Tried:
    """The result of one cell, tested with this number of `fragments`.

    `failure`: why sums are not exact, or why the run does not show it; empty if they are exact. `time_s`: the
    communication time. `again`: retransmissions per fragment of each worker. `counts`: the number of packets by event,
    see `event_counts`.
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
    """Format a number with one decimal, or with none from 10 on."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def weight(cell: Cell) -> float:
    """The number of fragments of a cell, relative to that of a cell whose condition is not in `HEAVY`."""
    return 1 / HEAVY.get(cell.condition, 1)


def check_memory(problem: Problem) -> None:
    """Raise `MachineError` if the gradients and sums of a run do not fit this machine's memory."""
    (job,) = problem.jobs
    # In gradients: each worker takes 3.5, for its gradient twice, its sums, and a header per packet. The PS and the
    # check take 8 in all: 64-bit sums of both, and the same again for the computation of the check.
    needed = job.gradient_bytes * (len(job.workers) * 3.5 + 8)
    available = psutil.virtual_memory().available
    if needed > available:
        raise MachineError(
            f"gradients of {job.gradient_bytes / 1e6:,.0f} MB at {len(job.workers)} workers take {needed / 1e9:.1f} GB "
            f"in all, and {available / 1e9:.1f} GB are free: choose fewer --fragments, or more cells to share them"
        )


def attempt(cell: Cell, fragments: int | None = None, program: DataPlaneProgram = INA) -> Tried:
    """Run one iteration of a cell on switches of this program.

    The iteration has `fragments` (by default those of its world) times the cell's weight.
    """
    scale = SCALES.get(cell.switch, SLOW)
    count = max(2, math.ceil((fragments or scale.fragments) * weight(cell)))
    condition = CONDITIONS[cell.condition]
    problem, plan = case(
        cell.policy,
        cell.levels,
        fragments=count,
        slots=scale.slots,
        rate_bps=scale.rate_bps,
        outsider=bool(condition.attacks),
    )
    check_memory(problem)
    sending_s = 8 * FRAGMENT.wire_bytes * count / scale.rate_bps
    faults = condition.faults(problem.fabric, sending_s, scale.rate_bps)
    run = Run(Prepared(problem, plan), gradients=GRADIENTS, options=scale.options, interferences=faults.interferences)
    try:
        outcome = run_plan(run, WORLDS[cell.switch](program=program))
    except RunError as error:
        return Tried(cell, count, str(error))
    (iteration,) = outcome.measured.iterations
    again = iteration.retransmissions / (count * len(problem.jobs[0].workers))
    return Tried(cell, count, failure_of(outcome), iteration.communication_time_s, again, event_counts(outcome))


def failure_of(outcome: Outcome) -> str:
    """The reason why a run does not show that sums are exact; empty if it does."""
    if not outcome.measured.exact:
        return "; ".join(outcome.measured.wrong)
    not_reached = [event for each in outcome.interferences for event in each.details.get("not_reached", ())]
    return f"the run ended before {', '.join(not_reached)} could happen: choose more --fragments" if not_reached else ""


def event_counts(outcome: Outcome) -> dict[str, int]:
    """Count the packets of a run by event of the P4 program, over all switches, and by fault at hosts."""
    counted = Counter({event.name.lower(): 0 for event in SlotEvent})
    for _, events in switch_events(outcome.monitor):
        counted.update({event.name.lower(): events[event] for event in SlotEvent})
    faults = sum((Counter(each.counts) for each in outcome.interferences), Counter[str]())
    counted["lost"] += faults["lost_on_departure"]
    counted["doubled"] += faults["doubled_by_hosts"]
    return dict(counted) | {"unheard": faults["lost_at_silent_hosts"]}


LEVELS = (1, 2, 3)
COMPARED = "no loss", "1 % loss"
COVERED = "every element of every sum at every worker"
COUNTED, NOT_COUNTED = ", and the number of workers that each sum says it covers", "; sums do not count their workers"
LONG = 1_000_000
"""The number of fragments of the long form on each switch, over all its cells."""


def cells(
    policies: Sequence[str], levels: Sequence[int], conditions: Sequence[str], switches: Sequence[str] = ("virtual",)
) -> list[Cell]:
    """The cells of all combinations. Raises `InputError` for an unknown policy or condition."""
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


def shared_out(total: int, wanted: Sequence[Cell]) -> int:
    """The number of fragments for a cell of weight 1, such that the cells of each switch have `total` in all."""
    of_one = sum(weight(cell) for cell in wanted if cell.switch == wanted[0].switch)
    return math.ceil(total / of_one)


def run_matrix(
    wanted: Sequence[Cell], fragments: int | None, console: Console, program: DataPlaneProgram = INA
) -> list[Tried]:
    """Try every cell, print each result and then the matrix, and return the results.

    After an error or an interrupt the matrix has the cells so far. A cell that cannot be run has failed.
    """

    def show(rows: Sequence[Row[Cell, Tried]]) -> list[Tried]:
        found = [row.found or Tried(row.asked, 0, row.error or "") for row in rows]
        if found:
            print_matrix(found, console, program)
        return found

    return measure_rows(wanted, lambda cell: attempt(cell, fragments, program), told, show, console)


def told(tried: Tried) -> str:
    """A line about a finished cell, with the reason if it failed."""
    return f"{tried}" if tried.exact else f"{tried}: {escape(tried.failure)}"


def print_matrix(found: Sequence[Tried], console: Console, program: DataPlaneProgram) -> None:
    exact, carried = sum(each.exact for each in found), sum(each.fragments for each in found)
    for table in matrix_tables(found):
        console.print(table)
    console.print(
        f"in each cell: communication time, transmissions per gradient; {carried:,} fragments in all", highlight=False
    )
    counts = COUNTED if program.counts_workers else NOT_COUNTED
    console.print(f"{exact} of {len(found)} exact: {COVERED}{counts}", highlight=False, soft_wrap=True)


def matrix_tables(found: Sequence[Tried]) -> Iterator[Table]:
    """Times and transmissions per gradient; policies whose workers alone recover losses have a table of their own."""
    policies = list(dict.fromkeys(tried.cell.policy for tried in found))
    for by_timeouts in (False, True):
        if chosen := [policy for policy in policies if policy.endswith(TIMEOUT) == by_timeouts]:
            yield matrix_table(found, chosen)


def matrix_table(found: Sequence[Tried], policies: Sequence[str]) -> Table:
    """Sections by switch and levels, rows by condition, columns by policy."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column(no_wrap=True)
    for heading in policies:
        # With more than seven in 80 characters, cells have two lines.
        table.add_column(heading.replace("-", "\n-"), min_width=max(map(len, heading.split("-"))))
    tried_of = {tried.cell: tried for tried in found}
    conditions = dict.fromkeys(tried.cell.condition for tried in found)
    for switch, levels in dict.fromkeys((tried.cell.switch, tried.cell.levels) for tried in found):
        table.add_row(f"[bold]{switch}, {levels} level{'s'[: levels > 1]}[/]")
        for condition in conditions:
            row = (tried_of.get(Cell(policy, levels, condition, switch)) for policy in policies)
            table.add_row(condition, *(str(tried or "") for tried in row))
        pairs = [[tried_of.get(Cell(policy, levels, name, switch)) for name in COMPARED] for policy in policies]
        if any(all(pair) for pair in pairs):
            table.add_row("rate at 1 %", *(kept(*pair) for pair in pairs))
        table.add_section()
    return table


def kept(lossless: Tried | None, lossy: Tried | None) -> str:
    """The rate with loss as a share of that without, in percent; empty unless the sums of both runs are exact."""
    if not lossless or not lossy or not (lossless.exact and lossy.exact):
        return ""
    rate, kept_rate = (tried.fragments / tried.time_s for tried in (lossless, lossy))
    return f"{kept_rate / rate:.0%}"
