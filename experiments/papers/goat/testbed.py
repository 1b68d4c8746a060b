"""GOAT's testbed, emulated (section IV-B): the plans of its schemes, and workers that send at drawn rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from inakit.experiments.papers.common.figure_registry import own_planners
from inakit.experiments.run.interference import Interference, Scene
from inakit.experiments.run.record import InterferenceRecord
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.methods.goat.goat import GoatOptions
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import with_policy
from inakit.traffic.closed_loop import ReliableOptions
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.faults.endpoint_faults import with_shares
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.sockets.ports import Ports
from inakit.traffic.wire.packet_format import FRAGMENT

SUB_MODELS = 16
ESA_PRIORITY = 16
"""The priority of all fragments. A refused fragment halves the priority of the slot's holder, so that the next fragment
preempts it."""
MARGIN = 1.25
"""The ratio of timeouts to the stragglers' delay."""
BACKOFFS = 4
"""The number of timeouts without a result after which a run fails."""


def goat(problem: Problem) -> Plan:
    """GOAT's plan: all workers send each sub-model to the switches that KRGS chooses, which sum it."""
    return METHODS["goat"].plan(problem, GoatOptions(sub_models=SUB_MODELS))


def everywhere(policy: str) -> Callable[[Problem], Plan]:
    """A planner of one tree for the whole gradient, which every switch sums (ATP's two levels), under a slot policy."""

    def plan(problem: Problem) -> Plan:
        found = with_policy(problem, METHODS["atp"].plan(problem), policy)
        return found.with_trees([replace(planned.tree, priority=ESA_PRIORITY) for planned in found.trees])

    return plan


SCHEMES: dict[str, Callable[[Problem], Plan]] = {
    "goat": goat,
    "esa": everywhere("esa"),
    "atp": everywhere("atp"),
    "geryon": METHODS["geryon"].plan,
}
"""The schemes that the paper compares, by their planners' names."""


def compared() -> tuple[str, ...]:
    """The paper's schemes and user-defined planners."""
    return (*SCHEMES, *own_planners())


def plan_of(scheme: str, problem: Problem) -> Plan:
    """The plan of a scheme, or of a planner by its name."""
    return SCHEMES[scheme](problem) if scheme in SCHEMES else METHODS[scheme].plan(problem)


def at_rate(plan: Plan, rate_bps: float) -> Plan:
    """The plan with every worker sending at `rate_bps` in all."""
    return replace(plan, trees=tuple(replace(planned, rate_bps=rate_bps * planned.share) for planned in plan.trees))


def patient(fragments: int, rate_bps: float, slowest: float) -> ReliableOptions:
    """Options with which no timeout expires before the slowest worker's last fragment has arrived.

    A worker sends `fragments` fragments; the slowest sends at the share `slowest` of `rate_bps`.
    """
    usual = WorkerOptions()
    late_s = fragments * 8 * FRAGMENT.wire_bytes / rate_bps * (1 / slowest - 1)
    timeout_s = max(usual.first_timeout_s, MARGIN * late_s)
    worker = replace(
        usual,
        first_timeout_s=timeout_s,
        min_timeout_s=timeout_s,
        max_timeout_s=max(usual.max_timeout_s, timeout_s),
        retry_s=timeout_s,
    )
    return ReliableOptions(worker, stall_s=ReliableOptions().stall_s + BACKOFFS * timeout_s)


@dataclass
class Paces(Interference):
    """Lets each worker send at its share of the planned rate, without waiting for results.

    At most `window` fragments of its gradient are in flight, divided among its trees and limited by each tree's slots.
    `late` are workers that can fall behind because they wait for a slower one. Shrinking windows lower the rates.
    """

    shares: Mapping[str, float]
    window: int
    late: frozenset[str]

    def excuses(self, scene: Scene) -> Excuses:
        """The reports of late workers and of rates that differ from the planned ones."""
        _ = scene
        return Excuses(hosts=self.late, rates=True)

    def prepare(self, layout: StreamLayout, ports: Ports) -> tuple[StreamLayout, Ports]:
        """Set the workers' rates and windows before the run."""
        streams = with_shares(layout, self.shares).streams
        total = np.bincount(streams.host, streams.count).astype(np.int64)[streams.host]
        windows = [layout.parts[tree].tree.window for tree in streams.tree]
        limits = np.where([window is None for window in windows], total, [window or 0 for window in windows])
        own = -(-self.window * streams.count // total)
        return replace(layout, streams=replace(streams, in_flight=np.minimum(own, limits))), ports

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The share of its planned rate of each worker."""
        _ = monitor
        said = f"workers send at {min(self.shares.values()):.0%} to {max(self.shares.values()):.0%} of planned rates"
        details = {"rate_shares": dict(self.shares), "window": self.window}
        return InterferenceRecord(kind="paces", said=[said], details=details)
