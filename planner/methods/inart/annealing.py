"""Repair of a rounding: simulated annealing, for a target rate that rises whenever it is reached.

A rounding keeps the constraints of LP-InArt only on average. The search moves one flow at a time to another way, or the
sum of one INP to another path; where the split is free, also a part of the gradient from one PS to another. It accepts
moves that lower the excess over all capacities, and by chance also moves that raise it, less and less often. When there
is no excess, every worker can send at the target.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, floor, inf

from inakit.planner.core.slots import Inp, Resource, most_children, resource_bps
from inakit.planner.methods.inart.relaxation import InartRouting
from inakit.planner.trees.summed_once import SplitTask, Way, entrance, ways
from inakit.topo.fabric.fabric import Fabric, Path

HOT, COLD = 0.1, 0.04
"""The first and the last temperature, in flows of a mean task: the added excess that is accepted with probability 1/e.
"""
TURNS = 0.1
"""The fraction of the moves that send the sum of an INP on another path."""
FOLLOWS = 0.7
"""The fraction of a flow's moves that follow another flow of its task to the INP that sums it."""
SHIFTS = 0.02
"""The fraction of the moves that change the split, where it is free. Each reads all flows of two tasks."""
MOST_SHIFTED = 0.3
"""The largest part of the gradient that moves at once, as a fraction of a mean task's."""
STEP = 1.01
"""The factor by which the target exceeds the reached rate."""
TOLERANCE = 1e-9

Loaded = tuple[int, ...]
"""The links that a path loads, as numbers of `Choices`."""


@dataclass(frozen=True)
class Option:
    """A way for a flow. `site` is the number of the INP that sums it, None for no INP."""

    way: Way
    site: int | None
    loaded: Loaded


@dataclass(frozen=True)
class OnwardPath:
    nodes: Path
    loaded: Loaded


@dataclass(frozen=True)
class SummingSite:
    """An INP that can sum flows of a task, and the paths from there to the PS.

    `summing` are the numbers of the INP's switch and of the INP, both of which the summed flows load; `children` is the
    maximum number of flows that it sums.
    """

    task: int
    inp: Inp
    summing: Loaded
    children: int
    onward: tuple[OnwardPath, ...]


@dataclass(frozen=True)
class FlowOptions:
    """A worker's flow to a PS; `by_site` has its options by their sites."""

    task: int
    options: tuple[Option, ...]
    by_site: dict[int | None, list[Option]]


class Choices:
    """All choices, by number. Flows are ordered by task, then by worker.

    `first[task]` is the number of a task's first flow. `capacities_bps` has all links, then all switches and their
    pipelines.
    """

    def __init__(self, fabric: Fabric, tasks: Sequence[SplitTask]) -> None:
        self.fabric = fabric
        names: list[Resource] = [*fabric.capacities_bps, *fabric.switch_by_name]
        names += [(s.name, pipeline) for s in fabric.switches for pipeline in range(len(s.pipelines))]
        self.number = {name: number for number, name in enumerate(names)}
        self.capacities_bps = [resource_bps(fabric, name) for name in names]
        self.sites: list[SummingSite] = []
        self.flows: list[FlowOptions] = []
        self.tasks = tasks
        self.mean = sum(task.share for task in tasks) / len(tasks)
        self.weights = [task.share / self.mean for task in tasks]
        self.first: list[int] = []
        for number, task in enumerate(tasks):
            self.first.append(len(self.flows))
            self.add_task(number, task)

    def add_task(self, number: int, task: SplitTask) -> None:
        """Add the flows of a task, and the sites that can sum them."""
        sites: dict[Inp, int] = {}
        flows: dict[Inp, FlowOptions] = {}
        for worker in task.job.workers:
            group = entrance(self.fabric, worker)
            if group not in flows:
                by_site: dict[int | None, list[Option]] = {}
                options = tuple(self.option(number, task, way, sites) for way in ways(self.fabric, task, worker))
                for option in options:
                    by_site.setdefault(option.site, []).append(option)
                flows[group] = FlowOptions(number, options, by_site)
            self.flows.append(flows[group])

    def option(self, number: int, task: SplitTask, way: Way, sites: dict[Inp, int]) -> Option:
        """A way as an option of the task with this number; a new INP becomes a site."""
        if way.inp is not None and way.inp not in sites:
            sites[way.inp] = len(self.sites)
            switch = way.inp[0]
            onward = tuple(OnwardPath(path, self.loaded(path)) for path in task.unfolded.paths(switch))
            summing = self.number[switch], self.number[way.inp]
            self.sites.append(SummingSite(number, way.inp, summing, most_children(self.fabric, switch), onward))
        return Option(way, None if way.inp is None else sites[way.inp], self.loaded(way.path))

    def loaded(self, path: Path) -> Loaded:
        return tuple(self.number[link] for link in pairwise(path))


class Annealing:
    """A routing, its loads in flows of a mean task, and its excess over the limits at the target rate.

    With `free` the search changes the split too, the tasks' `weights`; a routing is found without them.
    """

    def __init__(self, choices: Choices, routing: InartRouting, target_bps: float, *, free: bool = False) -> None:
        self.choices = choices
        self.weights = list(choices.weights)
        self.free = free
        self.limits = [inf] * len(choices.capacities_bps)
        self.loads = [0.0] * len(self.limits)
        self.counts = [0] * len(choices.sites)
        nodes = [routing.onward[site.task].get(site.inp) for site in choices.sites]
        self.onward = [  # for a site that the routing does not use, its first path
            next((path for path in site.onward if path.nodes == taken), site.onward[0])
            for site, taken in zip(choices.sites, nodes, strict=True)
        ]
        taken = (way for ways in routing.ways for way in ways)
        self.chosen = [
            next(option for option in flow.options if option.way == way)
            for way, flow in zip(taken, choices.flows, strict=True)
        ]
        for option, flow in zip(self.chosen, choices.flows, strict=True):
            self.place(option, choices.weights[flow.task], 1)
        self.aim(target_bps)

    def place(self, option: Option, weight: float, step: int) -> float:
        """Put a flow on its way (step 1) or remove it (step -1); return the added excess."""
        added = self.load(option.loaded, step * weight)
        if option.site is None:
            return added
        before = self.counts[option.site]
        after = self.counts[option.site] = before + step
        summed = (after if after > 1 else 0) - (before if before > 1 else 0)
        site = self.choices.sites[option.site]
        added += self.load(site.summing, weight * summed)
        if before == 0 or after == 0:
            added += self.load(self.onward[option.site].loaded, step * weight)
        return added + max(after - site.children, 0) - max(before - site.children, 0)

    def load(self, resources: Loaded, weight: float) -> float:
        """Add the weight to the load of each resource; return the added excess."""
        added = 0.0
        for resource in resources:
            before = self.loads[resource]
            after = self.loads[resource] = before + weight
            limit = self.limits[resource]
            if after > limit:
                added += after - (before if before > limit else limit)
            elif before > limit:
                added += limit - before
        return added

    def aim(self, target_bps: float) -> None:
        """Set the limits for the target rate: whole numbers of flows, if all flows are alike."""
        self.target_bps = target_bps
        self.limits = [
            capacity / (target_bps * self.choices.mean) + TOLERANCE for capacity in self.choices.capacities_bps
        ]
        if not self.free and len(set(self.choices.weights)) == 1:
            self.limits = [floor(limit) if limit < inf else inf for limit in self.limits]
        crowded = sum(
            max(count - site.children, 0) for count, site in zip(self.counts, self.choices.sites, strict=True)
        )
        over = (max(load - limit, 0.0) for load, limit in zip(self.loads, self.limits, strict=True))
        self.excess = sum(over, float(crowded))

    def anneal(self, draw: random.Random, moves: int, bound_bps: float) -> InartRouting | None:
        """Make a number of moves, and raise the target whenever there is no excess.

        Return the last routing without excess, None if there was none. The search ends early once the target reaches
        the bound.
        """
        flows = len(self.choices.flows)
        sites = [number for number, site in enumerate(self.choices.sites) if len(site.onward) > 1]
        temperature, cooling = HOT, (COLD / HOT) ** (1 / moves)
        kept = None
        for _ in range(moves):
            if self.excess < TOLERANCE * flows:
                kept = self.routing()
                if self.target_bps >= bound_bps:
                    break
                self.aim(min(self.rate_bps * STEP, bound_bps))
            temperature *= cooling
            if self.free and draw.random() < SHIFTS:
                self.shift(temperature, draw)
            elif sites and draw.random() < TURNS:
                self.turn(sites[int(draw.random() * len(sites))], temperature, draw)
            else:
                self.move(int(draw.random() * flows), temperature, draw)
        return kept

    def move(self, number: int, temperature: float, draw: random.Random) -> None:
        """Try another way for a flow, drawn among all, or among those with the site of another flow of the task.

        The latter favours sums of many flows, which leave most capacity free.
        """
        flow = self.choices.flows[number]
        weight = self.weights[flow.task]
        options: Sequence[Option] = flow.options
        if draw.random() < FOLLOWS:
            workers = len(self.choices.tasks[flow.task].job.workers)
            other = self.chosen[self.choices.first[flow.task] + int(draw.random() * workers)]
            options = flow.by_site.get(other.site, options)
        old, new = self.chosen[number], options[int(draw.random() * len(options))]
        if new is old:
            return
        added = self.place(old, weight, -1) + self.place(new, weight, 1)
        if accepted(added, temperature, draw):
            self.chosen[number] = new
            self.excess += added
        else:
            self.place(new, weight, -1)
            self.place(old, weight, 1)

    def turn(self, number: int, temperature: float, draw: random.Random) -> None:
        site = self.choices.sites[number]
        weight = self.weights[site.task] if self.counts[number] else 0.0
        old, new = self.onward[number], site.onward[int(draw.random() * len(site.onward))]
        added = self.load(old.loaded, -weight) + self.load(new.loaded, weight)
        if accepted(added, temperature, draw):
            self.onward[number] = new
            self.excess += added
        else:
            self.load(new.loaded, -weight)
            self.load(old.loaded, weight)

    def shift(self, temperature: float, draw: random.Random) -> None:
        """Try to move a part of a job's gradient from one of its PSs to another."""
        tasks = self.choices.tasks
        less, more = draw.sample(range(len(tasks)), 2)
        if tasks[less].job is not tasks[more].job:
            return
        step = min(self.weights[less], draw.random() * MOST_SHIFTED)
        fewer, further = self.flows_of(less), self.flows_of(more)
        added = self.shifted(fewer, -step) + self.shifted(further, step)
        if accepted(added, temperature, draw):
            self.weights[less] -= step
            self.weights[more] += step
            self.excess += added
        else:
            self.shifted(fewer, step)
            self.shifted(further, -step)

    def shifted(self, flows: Counter[int], step: float) -> float:
        """Add to the load of each resource the step times its flows; return the added excess."""
        return sum(self.load((resource,), step * count) for resource, count in flows.items())

    def flows_of(self, task: int) -> Counter[int]:
        """The number of a task's flows on each resource."""
        choices = self.choices
        found: Counter[int] = Counter()
        first = choices.first[task]
        for option in self.chosen[first : first + len(choices.tasks[task].job.workers)]:
            found.update(option.loaded)
        for number, site in enumerate(choices.sites):
            if site.task == task and (count := self.counts[number]):
                found.update(self.onward[number].loaded)
                if count > 1:
                    for resource in site.summing:
                        found[resource] += count
        return found

    @property
    def rate_bps(self) -> float:
        """The sending rate at these loads."""
        loaded = zip(self.choices.capacities_bps, self.loads, strict=True)
        return min(capacity / load for capacity, load in loaded if load > TOLERANCE) / self.choices.mean

    def routing(self) -> InartRouting:
        ways: list[list[Way]] = [[] for _ in self.choices.weights]
        onward: list[dict[Inp, Path]] = [{} for _ in self.choices.weights]
        for option, flow in zip(self.chosen, self.choices.flows, strict=True):
            ways[flow.task].append(option.way)
        for site, count, path in zip(self.choices.sites, self.counts, self.onward, strict=True):
            if count:
                onward[site.task][site.inp] = path.nodes
        return InartRouting(tuple(map(tuple, ways)), tuple(onward))


def accepted(added: float, temperature: float, draw: random.Random) -> bool:
    """Whether a move with this added excess is accepted at this temperature."""
    return added <= 0 or draw.random() < exp(-added / temperature)
