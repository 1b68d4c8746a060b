"""The runs behind GOAT's Figure 13 by real packets: testbed, spreads, windows, and the policies that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from inakit.experiments.papers.common.emulated_runs import EmulatedRun
from inakit.experiments.papers.common.own_planners import own_planners
from inakit.experiments.papers.goat.testbed import SCHEMES, Paces, at_rate, everywhere, patient, plan_of
from inakit.planner.core.plan import SHARED_WINDOW, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.generators import goat_testbed
from inakit.topo.fabric.variations import with_aggregators
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.wire.frames import FRAGMENT

FRAGMENTS = SHARED_WINDOW
"""The fragments of a gradient: as many as may be on their way at once where slots are shared."""
SLOTS = FRAGMENTS * 20 // 44
"""The slots of a switch: as large a part of a gradient as its 20 MB are of ResNet-18's 44 MB (section IV-B)."""
CAPACITY_BPS = 20e6
RATE_BPS = 1.3e6
"""A worker's mean rate, 500 fragments a second. Unaggregated, eight of them still fit the link to the PS, so that no
queue adds to the spread."""
SPREADS, QUICK_SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), (0.0, 0.2, 0.4)
WINDOWS = (16, 32, 64, 128, FRAGMENTS)
WINDOWS_SPREAD = 0.2
"""The paper's own spread (section IV-C), at which windows are compared."""
DRAWS = 3
"""Draws of the workers' rates, each of which is measured with every policy."""


@dataclass(frozen=True)
class AsynchronyRun:
    """A run's place in the figure: `spread` is the standard deviation of the rates' shares, `draw` their seed.

    `window` is the number of fragments that a worker may have on their way.
    """

    policy: str
    spread: float
    draw: int = 0
    window: int = FRAGMENTS

    def emulated_run(self) -> EmulatedRun:
        """The run on the testbed, with workers that send at the drawn rates."""
        problem = testbed()
        shares = Stragglers(self.spread, seed=self.draw).shares(problem)
        workers = frozenset(worker for job in problem.jobs for worker in job.workers)
        # Windows that shrink lower the rates, and workers that wait for a slower one fall behind: no machine's fault.
        excuses = Excuses(hosts=workers if self.spread else frozenset(), rates=True)
        return EmulatedRun(
            f"{self.policy}-spread{self.spread:g}-window{self.window}-draw{self.draw}",
            problem,
            at_rate(plan_by(self.policy, problem), RATE_BPS),
            asdict(self),
            patient(FRAGMENTS, RATE_BPS, min(shares.values())),
            Paces(shares, self.window),
            excuses,
        )


def settings(*, quick: bool) -> Iterator[AsynchronyRun]:
    """Every spread with every policy; then, unless `quick`, narrower windows. Equal rates are drawn only once."""
    policies = [*(policy for policy in PLANS if policy != "shadow-copy" or not quick), *own_planners()]
    for spread in QUICK_SPREADS if quick else SPREADS:
        for policy in policies:
            yield from (AsynchronyRun(policy, spread, draw) for draw in range(1 if quick or not spread else DRAWS))
    for window in () if quick else WINDOWS[:-1]:
        for policy in policies:
            yield from (AsynchronyRun(policy, WINDOWS_SPREAD, draw, window) for draw in range(DRAWS))


def testbed() -> Problem:
    """GOAT's testbed with a job of eight workers for one iteration: in a second one ATP's windows would have shrunk."""
    fabric = with_aggregators(goat_testbed(capacity_bps=CAPACITY_BPS), slots=SLOTS)
    workers = tuple(host.name for host in fabric.hosts if host.name != "ps")
    job = Job(1, workers, ("ps",), FRAGMENTS * 4 * FRAGMENT.values)
    return Problem(fabric, (job,), FRAGMENT)


PLANS: dict[str, Callable[[Problem], Plan]] = {
    **{name: SCHEMES[name] for name in ("atp", "esa", "goat")},
    "shadow-copy": everywhere("shadow-copy"),
}
"""The plans that are compared. Shadow copies (SwitchML's, here below a PS) are not in the paper's figure: they never
let a worker be ahead by more fragments than it has slots."""


def plan_by(policy: str, problem: Problem) -> Plan:
    """The plan of one of `PLANS`, or of a planner of your own."""
    return PLANS[policy](problem) if policy in PLANS else plan_of(policy, problem)
