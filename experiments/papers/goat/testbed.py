"""GOAT's testbed, emulated (section IV-B): the plans of its schemes, and workers that send at drawn rates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from inakit.experiments.papers.common.figure_registry import own_planners
from inakit.experiments.run.interference import Interference, Scene
from inakit.experiments.run.record import InterferenceRecord
from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.install.ina_program import AGGREGATION
from inakit.planner.methods.goat.goat import GoatOptions, KrgsPlanOptions
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import with_policy
from inakit.switch.entries import Entries, TableEntry
from inakit.traffic.closed_loop import ReliableOptions
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.faults.endpoint_faults import with_shares
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.wire.packet_format import FRAGMENT

SUB_MODELS = 16
ESA_PRIORITY = 16
"""The priority of all fragments. A refused fragment halves the priority of the slot's holder, so that the next fragment
preempts it."""
MARGIN = 1.25
"""The ratio of timeouts to the stragglers' delay."""
BACKOFFS = 4
"""The number of timeouts without a result after which a run fails."""


Planner = Callable[..., Plan]
"""A function that plans a problem, given a seed."""


def goat(problem: Problem, seed: int = 0) -> Plan:
    """The plan of KRGS and a local search: all workers send each sub-model to the switches that sum it."""
    return METHODS["goat"].plan(problem, GoatOptions(seed=seed, sub_models=SUB_MODELS))


def goat_as_published(problem: Problem, seed: int = 0) -> Plan:
    """The plan of one rounding by KRGS; sub-models that exceed a switch's memory pass it unsummed."""
    return METHODS["goat-krgs"].plan(problem, KrgsPlanOptions(seed=seed, sub_models=SUB_MODELS))


def everywhere(policy: str) -> Planner:
    """A planner of one tree for the whole gradient, which every switch sums (ATP's two levels), under a slot policy."""

    def plan(problem: Problem, seed: int = 0) -> Plan:
        found = with_policy(problem, METHODS["atp"].plan(problem, Options(seed=seed)), policy)
        return found.with_trees([replace(planned.tree, priority=ESA_PRIORITY) for planned in found.trees])

    return plan


def geryon(problem: Problem, seed: int = 0) -> Plan:
    """Geryon's plan: shortest paths without sums."""
    return METHODS["geryon"].plan(problem, Options(seed=seed))


SCHEMES: dict[str, Planner] = {
    "goat-krgs": goat_as_published,
    "goat": goat,
    "esa": everywhere("esa"),
    "atp": everywhere("atp"),
    "geryon": geryon,
}
"""The schemes that the paper compares, and `goat`, by their planners' names."""
GOAT, OURS = "GOAT, as published", "goat (ours)"
NAMES = {"goat-krgs": GOAT, "goat": OURS, "esa": "ESA", "atp": "ATP", "geryon": "Geryon"}
"""The names of schemes in legends: GOAT's is its Algorithm 1; ours is KRGS, repaired and improved by a local search."""
PAPERS = (GOAT, "ESA", "ATP", "Geryon")
"""The paper's own schemes, in the order in which its text gives their values."""


def name_of(scheme: str) -> str:
    """The name of a scheme or of a planner in legends."""
    return NAMES.get(scheme, scheme)


def compared() -> tuple[str, ...]:
    """The schemes and user-defined planners."""
    return (*SCHEMES, *own_planners())


def plan_of(scheme: str, problem: Problem, seed: int = 0) -> Plan:
    """The plan of a scheme, or of a planner by its name; random choices are drawn by the seed."""
    return SCHEMES[scheme](problem, seed) if scheme in SCHEMES else METHODS[scheme].plan(problem, Options(seed=seed))


def at_rate(plan: Plan, rate_bps: float) -> Plan:
    """The plan with every worker sending at `rate_bps` in all."""
    return replace(plan, trees=tuple(replace(planned, rate_bps=rate_bps * planned.share) for planned in plan.trees))


def patient(fragments: int, rate_bps: float, slowest: float, margin: float = MARGIN) -> ReliableOptions:
    """Options with which no timeout expires before the slowest worker's last fragment has arrived.

    A worker sends `fragments` fragments; the slowest sends at the share `slowest` of `rate_bps`. Timeouts are `margin`
    times the stragglers' delay.
    """
    usual = WorkerOptions()
    late_s = fragments * 8 * FRAGMENT.wire_bytes / rate_bps * (1 / slowest - 1)
    timeout_s = max(usual.first_timeout_s, margin * late_s)
    worker = replace(
        usual,
        first_timeout_s=timeout_s,
        min_timeout_s=timeout_s,
        max_timeout_s=max(usual.max_timeout_s, timeout_s),
        retry_s=timeout_s,
    )
    return ReliableOptions(worker, stall_s=ReliableOptions().stall_s + BACKOFFS * timeout_s)


def shares_slots(tree: AggregationTree) -> bool:
    """Whether no segment of slots limits a tree: it shares them, or has none."""
    return tree.window is None or policy_of(tree.policy).shared


@dataclass
class Paces(Interference):
    """Lets each worker send at its share of the planned rate, without waiting for results.

    At most `window` fragments of its gradient are in flight, divided among its trees and limited by each tree's own
    slots; entries of trees that share slots allow such a window. `late` are workers that can fall behind because they
    wait for a slower one. Shrinking windows lower the rates.
    """

    shares: Mapping[str, float]
    window: int
    late: frozenset[str]

    def excuses(self, scene: Scene) -> Excuses:
        """The reports of late workers and of rates that differ from the planned ones."""
        _ = scene
        return Excuses(hosts=self.late, rates=True)

    def prepare(self, layout: StreamLayout) -> StreamLayout:
        """Set the workers' rates and windows before the run."""
        streams = with_shares(layout, self.shares).streams
        total = np.bincount(streams.host, streams.count).astype(np.int64)[streams.host]
        trees = [layout.parts[tree].tree for tree in streams.tree]
        limits = [total[number] if shares_slots(tree) else tree.window for number, tree in enumerate(trees)]
        own = -(-self.window * streams.count // total)
        return replace(layout, streams=replace(streams, in_flight=np.minimum(own, limits)))

    def entries(self, prepared: Prepared, installed: Entries) -> Entries:
        """The entries with this window where trees share slots; it is at least that of the plan."""
        shared = {(each.job, each.tree.number) for each in prepared.plan.trees if shares_slots(each.tree)}
        return Entries(
            tuple(
                replace(switch, tables=tuple(self.widened(entry, shared) for entry in switch.tables))
                for switch in installed.switches
            )
        )

    def widened(self, entry: TableEntry, shared: Collection[tuple[int, ...]]) -> TableEntry:
        """The entry, with this window if it is that of an aggregator in one of the `shared` trees."""
        if entry.table != AGGREGATION or entry.exact_key[1:3] not in shared:
            return entry
        *before, window, policy = entry.params
        return replace(entry, params=(*before, max(window, self.window), policy))

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The share of its planned rate of each worker."""
        _ = monitor
        said = f"workers send at {min(self.shares.values()):.0%} to {max(self.shares.values()):.0%} of planned rates"
        details = {"rate_shares": dict(self.shares), "window": self.window}
        return InterferenceRecord(kind="paces", said=[said], details=details)
