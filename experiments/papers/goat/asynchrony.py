"""GOAT's Figure 13 with real packets: what links carry as the workers' rates spread, by slot policy.

The paper computes it (section IV-C); here its testbed is emulated (section IV-B): three switches with 20 MB each for
the 44 MB of ResNet-18, so 116 slots for a gradient of 256 fragments. What decides is by how many fragments a worker
may be ahead of the slowest. The paper's workers send at their rates whatever has come back: here a window is the
whole gradient, and no timeout is shorter than a straggler is late. With windows of 16 and 32, far fewer than slots, ATP
and ESA stay below GOAT; at 64 ATP is above it, at 128 both. What is sent again counts: so they may exceed no
aggregation at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields

from rich.console import Console

from experiments.papers.common import statements as text
from experiments.papers.common.drawing import save
from experiments.papers.common.figure import Request
from experiments.papers.common.own_planners import own_planners
from experiments.papers.common.trials import Trial, run_trials
from experiments.papers.goat.asynchrony_report import (
    Point,
    conclusion,
    means_table,
    over_spread,
    over_window,
    panels,
    said,
)
from experiments.papers.goat.testbed import SCHEMES, Paces, at_rate, everywhere, patient, plan_of
from experiments.run.outcome import Outcome, measured_figures, switch_events
from planner.core.plan import SHARED_WINDOW, Plan
from planner.core.problem import Job, Problem
from topo.fabric.generators import goat_testbed
from topo.fabric.variations import with_aggregators
from traffic.faults.endpoint_faults import Stragglers
from traffic.measure.fidelity import Excuses
from traffic.wire.packet import FRAGMENT, Event

FRAGMENTS = SHARED_WINDOW
"""Of a gradient: as many as may be on their way where slots are shared."""
SLOTS = FRAGMENTS * 20 // 44
"""Of a switch: its memory over ResNet-18's size (section IV-B)."""
CAPACITY_BPS = 20e6
RATE_BPS = 1.3e6
"""500 fragments a second; all eight workers' fit the link to the PS unaggregated, so no queue adds to the spread."""
SPREADS, QUICK_SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), (0.0, 0.2, 0.4)
WINDOWS = (16, 32, 64, 128, FRAGMENTS)
WINDOWS_SPREAD = 0.2
"""The paper's own (section IV-C), at which windows are compared."""
DRAWS = 3
"""Of the workers' rates: each measured with every policy."""


# ---- what is run -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """Where a run stands in the figure: `spread` is the standard deviation of the rates' shares, `draw` their seed."""

    policy: str
    spread: float
    draw: int = 0
    window: int = FRAGMENTS

    def trial(self) -> Trial:
        problem = testbed()
        shares = Stragglers(self.spread, seed=self.draw).shares(problem)
        workers = frozenset(worker for job in problem.jobs for worker in job.workers)
        # Windows that shrink lower the rates, and who waits for somebody slower is behind his pace: no machine's fault.
        excuses = Excuses(hosts=workers if self.spread else frozenset(), rates=True)
        return Trial(
            f"{self.policy}-spread{self.spread:g}-window{self.window}-draw{self.draw}",
            problem,
            at_rate(plan_by(self.policy, problem), RATE_BPS),
            asdict(self),
            patient(FRAGMENTS, RATE_BPS, min(shares.values())),
            Paces(shares, self.window),
            excuses,
        )


def settings(*, quick: bool) -> Iterator[Setting]:
    """Every spread with every policy; then, unless `quick`, narrower windows. Without spread one draw is all."""
    policies = [*(policy for policy in PLANS if policy != "shadow-copy" or not quick), *own_planners()]
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


PLANS: dict[str, Callable[[Problem], Plan]] = {
    **{name: SCHEMES[name] for name in ("atp", "esa", "goat")},
    "shadow-copy": everywhere("shadow-copy"),
}
"""What is compared. Shadow copies (SwitchML's, below a PS) are not in the figure: they never let a worker be further
ahead than it has slots."""


def plan_by(policy: str, problem: Problem) -> Plan:
    """The plan of one of `PLANS`, or of a planner of your own."""
    return PLANS[policy](problem) if policy in PLANS else plan_of(policy, problem)


# ---- what comes of it --------------------------------------------------------------------------


def run(console: Console, request: Request) -> str:
    """Measure the figure, print its table, and leave `points.csv`, and the figure with its own CSV."""
    chosen = list(settings(quick=request.quick))
    done = run_trials("goat-fig13-emulated", [setting.trial() for setting in chosen], request, console)
    points = [point(*each) for each in zip(chosen, done.outcomes, strict=True)]
    names = [column.name for column in fields(Point)]
    done.folder.write_rows("points.csv", names, [list(asdict(found).values()) for found in points])
    save(done.folder.path / "figure", *panels(points, unaggregated()))
    for axis, found in (("spread", over_spread(points)), ("window", over_window(points))):
        if found:
            console.print(means_table(axis, found))
    for line in conclusion(points):
        console.print(line, highlight=False)
    console.print(text.table_of(said(points)))
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
