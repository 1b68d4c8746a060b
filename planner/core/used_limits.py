"""The limits of a fabric that a plan uses, and the used part of each: links, switches, and the chips of switches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from inakit.planner.core.evaluate import Prediction, evaluate, tree_loads, tree_ways_s
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import most_children, resource_bps
from inakit.topo.fabric.fabric import Fabric

ROUNDING = 1e-6
LINK, SWITCH, RECIRCULATION = "link", "aggregation rate", "recirculation"
CHILDREN, WINDOW = "children per slot", "slots"


@dataclass(frozen=True)
class UsedLimit:
    """A limit of which a plan uses `used` of `limit`, in bit/s. `where` names the place.

    For `CHILDREN` both count the children of a slot, for `WINDOW` the fragments that a tree has in flight at its rate.
    """

    kind: str
    where: str
    used: float
    limit: float

    @property
    def share(self) -> float:
        return self.used / self.limit

    @property
    def binds(self) -> bool:
        return self.share >= 1 - ROUNDING


def used_limits(problem: Problem, plan: Plan, *, with_results: bool = True) -> list[UsedLimit]:
    """All limits that a plan uses, in descending order of use; links carry gradients and, `with_results`, results."""
    fabric, prediction = problem.fabric, evaluate(problem, plan)
    loads = prediction.loads_with_results_bps if with_results else prediction.link_loads_bps
    found = [UsedLimit(LINK, " → ".join(link), load, fabric.capacities_bps[link]) for link, load in loads.items()]
    found += used_summing(fabric, prediction)
    found += [*used_bitmaps(problem, plan), *(used_windows(problem, plan) if with_results else ())]
    return sorted(found, key=lambda each: (-each.share, each.kind, each.where))


def used_summing(fabric: Fabric, prediction: Prediction) -> Iterator[UsedLimit]:
    """The limits on the rates that switches sum, and on recirculation: one copy for each pass after the first."""
    summed = prediction.summed_bps
    for switch in dict.fromkeys(name for name, _ in summed):
        load, limit = sum(bps for inp, bps in summed.items() if inp[0] == switch), resource_bps(fabric, switch)
        if limit < inf:
            yield UsedLimit(SWITCH, switch, load, limit)
    for (switch, pipeline), load in summed.items():
        chip = fabric.switch_by_name[switch].chip
        if chip is not None and chip.passes > 1 and chip.recirculation_bps is not None:
            where = f"{switch}, pipeline {pipeline}"
            yield UsedLimit(RECIRCULATION, where, load * (chip.passes - 1), chip.recirculation_bps)


def used_bitmaps(problem: Problem, plan: Plan) -> Iterator[UsedLimit]:
    """The bits that the largest aggregator in each pipeline of a chip needs for its children."""
    most: dict[tuple[str, int], int] = {}
    for planned in plan.trees:
        for aggregator in planned.tree.aggregators:
            most[aggregator.inp] = max(most.get(aggregator.inp, 0), len(planned.tree.summands(aggregator)))
    for (switch, pipeline), children in most.items():
        if problem.fabric.switch_by_name[switch].chip is not None:
            limit = most_children(problem.fabric, switch)
            yield UsedLimit(CHILDREN, f"{switch}, pipeline {pipeline}", children, limit)


def used_windows(problem: Problem, plan: Plan) -> Iterator[UsedLimit]:
    """For each tree over chips, the fragments in flight (rate times round trip) and those that its slots hold."""
    loads, bits = list(tree_loads(problem, plan)), 8 * problem.fragment.wire_bytes
    ways_s = tree_ways_s(problem, loads)
    for load in loads:
        window, least = load.tree.window, min(load.tree.aggregators, key=lambda a: a.slots, default=None)
        if window is None or least is None or problem.fabric.switch_by_name[least.switch].chip is None:
            continue
        where = f"{least.switch}, pipeline {least.pipeline}: job {load.job}, tree {load.tree.number}"
        yield UsedLimit(WINDOW, where, load.rate_bps * ways_s[load.job, load.tree.number] / bits, window)
