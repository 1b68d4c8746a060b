"""InArt's second phase repeated: new routes for the same split when the remaining network changes (4.1).

A PS keeps its part of the model, because moving parts would break consistency. Routes and aggregation points can change
from one iteration to the next. `Replanner` decides that by itself, from counters of links (`Reading`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from inakit.planner.core.check import check
from inakit.planner.core.evaluate import load_hops, tree_loads
from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import many_copies
from inakit.planner.methods.inart.inart import Background, plan_routes, residual
from inakit.planner.methods.inart.inart_forest import plan_trees, rate_bps
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import find_method
from inakit.planner.trees.headroom import with_policy
from inakit.planner.trees.summed_once import SplitTask, split_equally
from inakit.planner.trees.unfolding import unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import DirectedLink, Fabric

SECOND_PHASES: Mapping[str, Callable[[Problem, list[SplitTask], Any, str], Plan]] = {
    "inart": plan_routes,
    "inart-equal": plan_routes,
    "inart-forest": plan_trees,
}
"""For each method, the function that plans routes for a given split."""


def replan(problem: Problem, plan: Plan, options: Options) -> Plan:
    """The better of two plans for `problem`'s fabric: new routes for the plan's split, or the plan's own trees.

    Raises `InputError` for a plan of other PSs, or of a method that does not plan in two phases.
    """
    check_phases(plan)
    own = find_method(plan.method).own(options)
    again = SECOND_PHASES[plan.method](problem, tasks_of_plan(problem, plan), own, plan.method)
    left_bps = rate_left_bps(problem.fabric, plan)
    return again if rate_bps(again) >= left_bps else with_rate(plan, left_bps)


def check_phases(plan: Plan) -> None:
    """Raise `InputError` for a plan of a method that does not plan in two phases."""
    if plan.method not in SECOND_PHASES:
        raise InputError(f"planner '{plan.method}' has no second phase: plan with one of {', '.join(SECOND_PHASES)}")


def tasks_of_plan(problem: Problem, plan: Plan) -> list[SplitTask]:
    """A task for every PS of the plan, with its share of the gradient; routes are not set.

    Raises `InputError` for a PS that is not in the problem.
    """
    shares: Counter[tuple[int, str]] = Counter()
    for planned in sorted(plan.trees, key=lambda planned: planned.job):
        shares[planned.job, planned.tree.root] += planned.share  # type: ignore[assignment]
    jobs = {job.number: job for job in problem.jobs}
    for number, server in shares:
        if number not in jobs or server not in jobs[number].servers:
            raise InputError(f"the plan's job {number} ends at '{server}', which is not one of its PSs")
    return [
        SplitTask(jobs[job], server, share, unfold(problem.fabric, server)) for (job, server), share in shares.items()
    ]


def with_rate(plan: Plan, rate_bps: float) -> Plan:
    """The plan where every worker sends at `rate_bps`, divided over its trees by their shares."""
    return replace(plan, trees=tuple(replace(planned, rate_bps=planned.share * rate_bps) for planned in plan.trees))


def rate_left_bps(fabric: Fabric, plan: Plan) -> float:
    """The sending rate at which the fabric carries the plan's trees; 0 if it lacks one of their links or switches."""
    trees = [planned.tree for planned in plan.trees]
    links = {link for tree in trees for branch in tree.branches for link in branch.links}
    sums = {aggregator.switch for tree in trees for aggregator in tree.aggregators}
    if not (links <= fabric.capacities_bps.keys() and sums <= fabric.ina_names):
        return 0.0
    return sending_rate_bps(fabric, ((planned.tree, planned.share) for planned in plan.trees))


# -- What a controller measures in an iteration, and the traffic of others that follows from it.

FULL = 0.9
"""A link that carried this share of its capacity or more was congested."""
MOST_TAKEN = 0.95
"""The largest share of a link's capacity that other traffic is believed to take: a plan may have no other way."""


@dataclass(frozen=True)
class Reading:
    """The counters of one iteration of the only job.

    `carried`: by directed link, the bytes in `time_s` seconds, in which the job communicated for `sending_s`. `sent`:
    the bytes of each worker, `received` those of each PS, with everything that was sent again.
    """

    carried: Mapping[DirectedLink, float]
    sent: Mapping[str, float]
    received: Mapping[str, float]
    time_s: float
    sending_s: float


def other_traffic(prepared: Prepared, reading: Reading) -> Background:
    """The traffic of others in bit/s: what links carried without the job's own bytes.

    The job's own bytes are known at workers and PSs. On other links they are the plan's. What workers send again comes
    in addition, on all links of their ways, except on full links: of what is sent again because a full link drops
    packets, as much is lost there as comes in addition.
    """
    problem, plan, fabric = prepared.problem, prepared.plan, prepared.problem.fabric
    own, again = iteration_bytes(problem, plan), Counter[DirectedLink]()
    sent_once = Counter[str]()
    for load in tree_loads(problem, plan):
        for worker in load.tree.workers.values():
            sent_once[worker] += load.packets * problem.fragment.wire_bytes
    ways = ways_of(plan)
    for worker, count in reading.sent.items():
        for link in ways[worker]:
            again[link] += count - sent_once[worker]  # type: ignore[assignment]
    known = {(worker, fabric.tor_of(worker)): count for worker, count in reading.sent.items()}
    known |= {(fabric.tor_of(server), server): count for server, count in reading.received.items()}
    found = {}
    for link, carried in reading.carried.items():
        capacity, full = fabric.capacities_bps[link], FULL * fabric.capacities_bps[link] * reading.sending_s / 8
        unexplained = carried - known.get(link, own[link] if carried >= full else own[link] + again[link])
        found[link] = min(max(0.0, 8 * unexplained / reading.time_s), MOST_TAKEN * capacity)
    return Background({link: rate for link, rate in found.items() if rate > NOTICEABLE * fabric.capacities_bps[link]})


def iteration_bytes(problem: Problem, plan: Plan) -> Counter[DirectedLink]:
    """The bytes of gradients and results on every directed link in one iteration without losses."""
    found = Counter[DirectedLink]()
    for load in tree_loads(problem, plan):
        for link in load_hops(load):
            found[link] += load.packets * problem.fragment.wire_bytes
    return found


def ways_of(plan: Plan) -> dict[str, set[DirectedLink]]:
    """By worker, the links on which its gradients travel, and those in the other direction for answers."""
    found: dict[str, set[DirectedLink]] = {}
    for planned in plan.trees:
        for label, worker in planned.tree.workers.items():
            way = planned.tree.way(label)
            up = set(pairwise(way))
            found.setdefault(worker, set()).update(up, {(b, a) for a, b in up})
    return found


# -- The decision.

NOTICEABLE = 0.02
"""Other traffic on less than this share of a link counts as none."""
CHANGED = 0.1
"""Other traffic has changed if on some link it changed by more than this share of the capacity."""
SLOW = 1.1
"""An iteration is slow if it took more than this many times its planned time."""
TOLERATED = 0.05
"""A plan is congested if its iteration was slow and it sends at more than the remaining rate by this share."""
PARTS = 0.01
"""Another split must be faster than the current one by this share: parts do not move for the chance of a rounding."""
GAIN = 0.1
"""Without congestion another plan must be faster by this share."""
CALM = 2
"""Without congestion this many successive iterations must call for a change: traffic that comes and goes is not
followed.
"""
FILLED = 0.97
"""The share of the highest rate at which workers send where links would be full: their queues would never drain."""
MOST_PLANS = 100
"""The most plans with trees of their own in a run. Entries of all of them remain in the switches' tables."""


class Replanner:
    """Decides after each iteration whether the next ones follow another plan.

    `current`: the plan in use. `known`: all plans with trees of their own, the first one first. Trees of different
    plans have different numbers, so that no packet of one plan is taken for another's.
    """

    def __init__(self, first: Prepared, options: Options) -> None:
        """Raises `InputError` for another method, several jobs, shared slots, or chips that recirculate."""
        check_phases(first.plan)
        if len(first.problem.jobs) != 1:
            raise InputError(f"{len(first.problem.jobs)} jobs: routes are planned anew between iterations of one job")
        if first.plan.jobs_sharing_slots:
            raise InputError("trees share slots: collisions would be taken for other traffic; choose another policy")
        if any(switch.chip is not None and switch.chip.passes > 1 for switch in first.problem.fabric.switches):
            raise InputError("chips that recirculate are set up for the first plan's trees: leave out the profile")
        self.first, self.options = first, options
        self.known, self.current = [first], first
        self.considered = Background()
        self.calls = 0

    def decide(self, reading: Reading) -> Prepared | None:
        """The plan for the next iterations, given what links carried in the last one; None to go on as before.

        A congested plan is left at once, in other cases only after `CALM` iterations: for a faster plan, or for the
        first one when there is no other traffic any more.
        """
        background = other_traffic(self.current, reading)
        problem = replace(self.first.problem, fabric=residual(self.first.problem.fabric, background))
        own_bps = self.current.prediction.sending_rate_bps
        congested = own_bps > (1 + TOLERATED) * fitted(problem, self.current.plan).prediction.sending_rate_bps
        congested &= self.is_slow(reading.sending_s)
        over = not background.links and self.current is not self.first
        if not congested and not over and not changed(problem.fabric, background, self.considered):
            self.calls = 0
            return None
        self.calls += 1
        if not congested and self.calls < CALM:
            return None
        self.calls, self.considered = 0, background
        if over:
            self.current = self.first
            return self.current
        best = max(self.candidates(problem), key=self.worth)
        if not congested and best.prediction.sending_rate_bps < (1 + GAIN) * own_bps:
            return None
        self.current = self.adopted(best.plan)
        return self.current

    def is_slow(self, sending_s: float) -> bool:
        """Whether an iteration of the current plan took clearly longer than planned, so that queues can be full."""
        return sending_s > SLOW * self.current.prediction.communication_time_s

    def worth(self, prepared: Prepared) -> float:
        """The rate of a plan, a little less if it has another split than the current one."""
        moves = shares_of(prepared) != shares_of(self.current)
        return prepared.prediction.sending_rate_bps / (1 + PARTS * moves)

    def candidates(self, problem: Problem) -> Iterable[Prepared]:
        """Plans for what others leave: known ones, the current split with new routes, and an equal split.

        Where an equal split is faster than the current one, the first phase is repeated too.
        """
        known = [fitted(problem, each.plan) for each in (self.current, *self.known)]
        if len(self.known) >= MOST_PLANS:
            return known
        again, equal = [self.fresh(problem, replan(problem, self.current.plan, self.options))], split_equally(problem)
        if shares_of(self.current) != {task.server: round(task.share, 6) for task in equal}:
            name = self.current.plan.method
            method = find_method(name)
            again.append(self.fresh(problem, SECOND_PHASES[name](problem, equal, method.own(self.options), name)))
            if self.worth(again[-1]) > self.worth(again[0]):
                again.append(self.fresh(problem, method.plan(problem, self.options)))
        return [*known, *(each for each in again if not any(many_copies(problem.fabric, each.plan)))]

    def fresh(self, problem: Problem, plan: Plan) -> Prepared:
        """A new plan under the slot policy of the first one, at the rate that others leave."""
        return fitted(problem, with_policy(problem, plan, self.first.plan.trees[0].tree.policy))

    def adopted(self, plan: Plan) -> Prepared:
        """The plan as it runs beside other traffic. Trees of a known plan keep their numbers."""
        plan = plan.with_rates_times(FILLED)
        for each in self.known:
            if routes_of(each.plan) == routes_of(plan):
                trees = [planned.tree for planned in each.plan.trees]
                return replace(each, plan=plan.with_trees(trees))
        last = max(planned.tree.number for each in self.known for planned in each.plan.trees)
        plan = plan.with_trees([replace(own.tree, number=last + at) for at, own in enumerate(plan.trees, start=1)])
        check(self.first.problem, plan)
        new = Prepared(self.first.problem, plan, earlier=tuple(each.plan for each in self.known))
        self.known.append(new.fitted(self.first.program) if self.first.program else new)
        return self.known[-1]


def fitted(problem: Problem, plan: Plan) -> Prepared:
    """The plan's trees at the rate that the problem's fabric leaves for gradients and results."""
    return with_headroom(problem, with_rate(plan, rate_left_bps(problem.fabric, plan)))


def changed(fabric: Fabric, now: Background, before: Background) -> bool:
    """Whether other traffic has changed on some link."""
    return any(
        abs(now.links.get(link, 0.0) - before.links.get(link, 0.0)) > CHANGED * fabric.capacities_bps[link]
        for link in now.links.keys() | before.links.keys()
    )


def shares_of(prepared: Prepared) -> dict[str, float]:
    """The share of each PS of the only job, rounded to parts of a million."""
    shares = Counter[str]()
    for planned in prepared.plan.trees:
        shares[planned.tree.root] += planned.share  # type: ignore[assignment]
    return {server: round(share, 6) for server, share in shares.items()}


def routes_of(plan: Plan) -> list[tuple[float, AggregationTree]]:
    """The trees of a plan without their numbers, and their shares."""
    return [(planned.share, replace(planned.tree, number=0)) for planned in plan.trees]
