"""GOAT's Figure 13 with real packets: what links carry as the workers' rates spread, by slot policy.

The paper computes it (section IV-C); here its testbed is emulated (section IV-B): three switches with 20 MB each for
the 44 MB of ResNet-18, so 116 slots for a gradient of 256 fragments. What decides is by how many fragments a worker
may be ahead of the slowest. The paper's workers send at their rates whatever has come back: here a window is the
whole gradient, and no timeout is shorter than a straggler is late. With windows of 16, far fewer than slots, ATP and
ESA stay below GOAT; at 64 they are above. What is sent again counts: so they may exceed no aggregation at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
from rich.console import Console

from experiments.outcome import Outcome, measured_figures, switch_events
from experiments.papers import Request
from experiments.papers.goat_report import Point, conclusion, draw_points, means_table, over_spread, over_window
from experiments.papers.trials import Trial, run_trials
from planner.adapt import with_policy
from planner.methods import find_method
from planner.plan import ROOT_LABEL, SHARED_WINDOW, AggregationTree, Aggregator, Branch, Plan, Shard, SolverOutcome
from planner.problem import Job, Problem
from planner.slots import assign_slots
from topo.fabric import Fabric
from topo.generators import goat_testbed
from topo.variations import with_aggregators
from traffic.faults import Stragglers, with_shares
from traffic.fidelity import Excuses
from traffic.layout import Layout
from traffic.packet import FRAGMENT, Event
from traffic.port import Ports
from traffic.reliable import Loop, ReliableOptions
from traffic.worker import WorkerOptions

FRAGMENTS = SHARED_WINDOW
"""Of a gradient: as many as may be on their way where slots are shared."""
SLOTS = FRAGMENTS * 20 // 44
"""Of a switch: its memory over ResNet-18's size (section IV-B)."""
CAPACITY_BPS = 20e6
RATE_BPS = 1.3e6
"""500 fragments a second; all eight workers' fit the link to the PS unaggregated, so no queue adds to the spread."""
TICK_S = 0.004
"""A slot waits for a tick at least: the fewer fragments in it, the nearer are equal rates to all arriving at once."""
MARGIN = 1.25
"""Of timeouts over how late stragglers are."""
BACKOFFS = 4
"""Timeouts without any result, at which a run has not yet failed."""
ESA_PRIORITY = 16
"""That of all fragments. One that is refused halves what holds the slot, so that the next one preempts it."""

SPREADS, QUICK_SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), (0.0, 0.2, 0.4)
WINDOWS = (16, 32, 64, 128, FRAGMENTS)
WINDOWS_SPREAD = 0.2
"""The paper's own (section IV-C), at which windows are compared."""
DRAWS = 3
"""Of the workers' rates: each measured with every policy."""


# ---- what is run -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asynchrony:
    """As `traffic.faults.Interference`: every worker at a share of its rate, `window` fragments of it on their way."""

    stragglers: Stragglers
    window: int = FRAGMENTS

    def prepare(self, layout: Layout, ports: Ports) -> tuple[Layout, Ports]:
        """The window is shared out over the worker's trees, and no tree has more than its slots allow."""
        streams = with_shares(layout, self.stragglers.shares(layout.problem)).streams
        limits = np.array([layout.parts[tree].tree.window or FRAGMENTS for tree in streams.tree])
        own = -(-self.window * streams.count // FRAGMENTS)
        return replace(layout, streams=replace(streams, in_flight=np.minimum(own, limits))), ports

    def act(self, loop: Loop, now: float) -> None:
        """Nothing more happens."""


@dataclass(frozen=True)
class Setting:
    """Where a run stands in the figure: `spread` is the standard deviation of the rates' shares, `draw` their seed."""

    policy: str
    spread: float
    draw: int = 0
    window: int = FRAGMENTS

    def trial(self) -> Trial:
        problem, stragglers = testbed(), Stragglers(self.spread, seed=self.draw)
        workers = frozenset(worker for job in problem.jobs for worker in job.workers)
        # Windows that shrink lower the rates, and who waits for somebody slower is behind his pace: no machine's fault.
        excuses = Excuses(hosts=workers if self.spread else frozenset(), rates=True)
        return Trial(
            f"{self.policy}-spread{self.spread:g}-window{self.window}-draw{self.draw}",
            problem,
            PLANS[self.policy](problem),
            asdict(self),
            patient(min(stragglers.shares(problem).values())),
            Asynchrony(stragglers, self.window),
            excuses,
        )


def patient(slowest: float) -> ReliableOptions:
    """Timeouts as ever, but none shorter than the slowest worker's last fragment is late behind the fastest's."""
    usual = WorkerOptions()
    late_s = FRAGMENTS * 8 * FRAGMENT.wire_bytes / RATE_BPS * (1 / slowest - 1)
    longest_s = max(usual.first_timeout_s, MARGIN * late_s)
    worker = replace(usual, first_timeout_s=longest_s, max_timeout_s=max(usual.max_timeout_s, longest_s))
    usual_stall_s = ReliableOptions().stall_s
    return ReliableOptions(worker, tick_s=TICK_S, stall_s=usual_stall_s + BACKOFFS * longest_s)


def settings(*, quick: bool) -> Iterator[Setting]:
    """Every spread with every policy; then, unless `quick`, narrower windows. Without spread one draw is all."""
    policies = [policy for policy in PLANS if policy != "shadow-copy" or not quick]
    for spread in QUICK_SPREADS if quick else SPREADS:
        for policy in policies:
            yield from (Setting(policy, spread, draw) for draw in range(1 if quick or not spread else DRAWS))
    for window in () if quick else WINDOWS[:-1]:
        for policy in policies:
            yield from (Setting(policy, WINDOWS_SPREAD, draw, window) for draw in range(DRAWS))


def testbed() -> Problem:
    """GOAT's testbed with a job of eight workers, for one iteration: in the next, ATP's windows have shrunk already."""
    fabric = with_aggregators(goat_testbed(capacity_bps=CAPACITY_BPS), slots=SLOTS)
    workers = tuple(host.name for host in fabric.hosts if host.name != "ps")
    job = Job(1, workers, ("ps",), FRAGMENTS * 4 * FRAGMENT.values)
    return Problem(fabric, (job,), FRAGMENT)


def everywhere(policy: str) -> Callable[[Problem], Plan]:
    """The gradient as one tree, all of which every switch sums (ATP's two levels), with slots by a policy."""

    def plan(problem: Problem) -> Plan:
        (shard,) = find_method("atp").plan(problem).shards
        trees = tuple(replace(tree, priority=ESA_PRIORITY) for tree in shard.trees)
        shards = (replace(shard, rate_bps=RATE_BPS, trees=trees),)
        return with_policy(problem, Plan(policy, problem.fabric.name, shards, SolverOutcome("heuristic", 0.0)), policy)

    return plan


def goat(problem: Problem) -> Plan:
    """Each sub-model summed at one switch (Fig. 2c), to which all workers send it.

    Eq. (1) by hand: a fragment takes 14 transfers by s1 or s2, 17 by s3; so s1 and s2 take what their slots hold.
    A fragment summed at both s1 and s2 takes 12, but its second slot sends another one to s3: 31 for two, not 28.
    """
    (job,) = problem.jobs
    counts = {"s1": SLOTS, "s2": SLOTS, "s3": FRAGMENTS - 2 * SLOTS}
    trees = [sub_model(problem.fabric, job, number, node) for number, node in enumerate(counts, start=1)]
    shards = tuple(
        Shard(job.number, tree.number, count / FRAGMENTS, RATE_BPS * count / FRAGMENTS, (tree,))
        for tree, count in zip(assign_slots(problem.fabric, trees), counts.values(), strict=True)
    )
    return Plan("goat", problem.fabric.name, shards, SolverOutcome("heuristic", 0.0))


def sub_model(fabric: Fabric, job: Job, number: int, node: str) -> AggregationTree:
    """The tree of a sub-model that the switch `node` sums. It has no slots yet."""
    workers = dict(enumerate(job.workers, start=1))
    label, (server,) = len(workers) + 1, job.servers
    ways = {own: tuple(dict.fromkeys((worker, fabric.tor_of(worker), node))) for own, worker in workers.items()}
    branches = [Branch(own, label, way) for own, way in ways.items()]
    branches.append(Branch(label, ROOT_LABEL, tuple(dict.fromkeys((node, fabric.tor_of(server), server)))))
    aggregator = Aggregator(label, node, 0, tuple(workers), 0, 0)
    return AggregationTree(number, server, workers, (aggregator,), tuple(branches), policy="goat")


PLANS: dict[str, Callable[[Problem], Plan]] = {
    "atp": everywhere("atp"),
    "esa": everywhere("esa"),
    "goat": goat,
    "shadow-copy": everywhere("shadow-copy"),
}
"""What is compared. Shadow copies (SwitchML's, below a PS) are not in the figure: they never let a worker be further
ahead than it has slots."""


# ---- what comes of it --------------------------------------------------------------------------


def run(console: Console, request: Request) -> str:
    """Measure the figure, print its table, and leave `points.csv` and `figure.png`."""
    chosen = list(settings(quick=request.quick))
    done = run_trials("goat-fig13-emulated", [setting.trial() for setting in chosen], request, console)
    points = [point(*each) for each in zip(chosen, done.outcomes, strict=True)]
    names = [column.name for column in fields(Point)]
    done.folder.write_rows("points.csv", names, [list(asdict(found).values()) for found in points])
    draw_points(points, unaggregated()).savefig(done.folder.path / "figure.png", dpi=150)
    for axis, found in (("spread", over_spread(points)), ("window", over_window(points))):
        if found:
            console.print(means_table(axis, found))
    for line in conclusion(points):
        console.print(line, highlight=False)
    done.tell(console)
    return done.verdict


def point(setting: Setting, outcome: Outcome) -> Point:
    """The paper's metrics (section IV-A). Its in-network aggregation amount is the models' size less the PS ingress."""
    problem, figures = testbed(), measured_figures(outcome.measured, outcome.monitor)
    busy = sum(events[Event.COLLISION] + events[Event.EVICTED] for _, events in switch_events(outcome.monitor))
    models = len(problem.jobs[0].workers) * FRAGMENTS * FRAGMENT.wire_bytes
    return Point(
        **asdict(setting),
        overhead_bytes=figures["overhead_bytes"],
        transfers=figures["overhead_bytes"] / (FRAGMENTS * FRAGMENT.wire_bytes),
        aggregated_bytes=models - figures["ps_ingress_bytes"],
        ps_ingress_bytes=figures["ps_ingress_bytes"],
        communication_time_s=figures["communication_time_s"],
        collisions=busy,
        retransmissions=figures["retransmissions"],
        exact=bool(figures["exact"]),
        verdict=outcome.verdict,
    )


def unaggregated() -> int:
    """Transfers of a fragment from all workers to the PS when nothing is summed: three links each."""
    return 3 * len(testbed().jobs[0].workers)
