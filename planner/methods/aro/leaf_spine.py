"""One task on a leaf-spine with equal links: whether its flows fit at a given t, in closed form.

Leaves differ only in the number of flows that they send: one for each pipeline of an INA leaf that has workers, one for
each worker of a common leaf. Let d flows fit a link. An INP of a spine receives d flows from each leaf in it and sends
one, so a spine has at most d INPs in use; a common spine receives d flows in total. So the flows that the INPs leave
over fit if there are at most d for each common spine. If all INA spines have the same leaves in each pipeline, the n-th
INP of a pipeline receives at most as many flows as the one before it. So the best INPs are those that receive most
flows, and n INPs of a pipeline exist at n spines. The remaining choice is that of the pipelines of the PS's leaf, whose
number the PS's link bounds: with P pipelines there are at most 2^P choices.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, cycle, islice, product
from math import inf

from inakit.planner.core.plan import MOST_BITS
from inakit.planner.core.slots import most_children
from inakit.planner.methods.aro.bisection import flows_within
from inakit.planner.methods.aro.task_graphs import Task
from inakit.topo.fabric.fabric import Fabric, Path

LeafFlow = tuple[str, ...]
"""The workers whose gradients a flow carries."""


@dataclass(frozen=True)
class Leaf:
    """A leaf other than the PS's. `pipeline` is the one by which its flows enter INA spines."""

    name: str
    pipeline: int
    flows: tuple[LeafFlow, ...]


@dataclass(frozen=True)
class Spines:
    """The spines whose flows enter certain pipelines of the PS's leaf."""

    aggregating: tuple[str, ...]
    common: tuple[str, ...]


@dataclass(frozen=True)
class SpineChoice:
    """The spines to use, the flows that a link carries, and the number of INPs to use in each pipeline of the INA
    spines.
    """

    spines: Spines
    link_flows: int
    inps: Counter[int]


@dataclass(frozen=True)
class LeafSpine:
    """The task: `gates[u]` are the spines behind pipeline u of the PS's leaf, `local[u]` the leaf's own workers there.

    A PS's leaf without INA has one gate, 0. `worker_bps`, `spine_bps` and `server_bps` are the capacities of a
    worker's, a spine's and the PS's link. An INP of a spine sums up to `most_children` flows; the paper has no such
    limit.
    """

    server: str
    tor: str
    tor_sums: bool
    leaves: tuple[Leaf, ...]
    gates: Mapping[int, Spines]
    local: Mapping[int, LeafFlow]
    worker_bps: float
    spine_bps: float
    server_bps: float
    most_children: int = MOST_BITS

    @property
    def capacities_bps(self) -> tuple[float, float, float]:
        """The capacities of a worker's, a spine's and the PS's link."""
        return self.worker_bps, self.spine_bps, self.server_bps

    @property
    def workers(self) -> int:
        flows = chain(self.local.values(), *(leaf.flows for leaf in self.leaves))
        return sum(map(len, flows))

    @cached_property
    def sizes(self) -> dict[int, tuple[int, ...]]:
        """For each pipeline of the INA spines, the numbers of flows that its leaves send."""
        found: dict[int, list[int]] = defaultdict(list)
        for leaf in self.leaves:
            found[leaf.pipeline].append(len(leaf.flows))
        return {pipeline: tuple(sizes) for pipeline, sizes in found.items()}

    @cached_property
    def most_aggregating(self) -> int:
        return sum(len(spines.aggregating) for spines in self.gates.values())

    def fits(self, t: float) -> SpineChoice | None:
        """A choice by which the flows fit at `t`, with fewest pipelines of the PS's leaf and few flows, or None."""
        link_flows = flows_within(self.spine_bps, t)
        to_server = flows_within(self.server_bps, t)
        gains = self.gains(link_flows)
        for used in self.gate_sets(to_server):
            spines = self.behind(used)
            inps = self.inps_to_use(spines, link_flows, gains, to_server)
            if inps is not None:
                return SpineChoice(spines, link_flows, inps)
        return None

    def gate_sets(self, most: int) -> Iterator[tuple[int, ...]]:
        """The usable sets of pipelines of the PS's leaf, smallest first. Each pipeline sends the PS one flow."""
        forced = tuple(self.local)
        free = [gate for gate in self.gates if gate not in self.local] if self.leaves else []
        if not self.tor_sums:
            yield tuple(self.gates)
        elif len(forced) <= most:
            for count in range(min(len(free), most - len(forced)) + 1):
                yield from ((*forced, *others) for others in combinations(free, count))

    def behind(self, used: tuple[int, ...]) -> Spines:
        gates = [self.gates[gate] for gate in used if gate in self.gates]
        return Spines(
            tuple(chain.from_iterable(gate.aggregating for gate in gates)),
            tuple(chain.from_iterable(gate.common for gate in gates)),
        )

    def gains(self, link_flows: int) -> list[tuple[int, int, int]]:
        """The flows that the n-th INP of each pipeline receives, in descending order: (flows, pipeline, n)."""
        gains = []
        for pipeline, sizes in self.sizes.items():
            before = 0
            for n in range(1, self.most_aggregating + 1):
                taken = min(sum(min(size, link_flows * n) for size in sizes), self.most_children * n)
                gains.append((taken - before, pipeline, n))
                before = taken
        return sorted(gains, reverse=True)

    def inps_to_use(
        self, spines: Spines, link_flows: int, gains: list[tuple[int, int, int]], to_server: int
    ) -> Counter[int] | None:
        """The number of INPs to use of each pipeline; None if the remaining flows do not fit.

        An INP that receives a single flow also sends one: it helps only if common spines are full.
        """
        room = link_flows * len(spines.common)
        rest = sum(sum(sizes) for sizes in self.sizes.values())
        inps: Counter[int] = Counter()
        possible = (gain for gain in gains if gain[2] <= len(spines.aggregating))
        for taken, pipeline, _ in islice(possible, link_flows * len(spines.aggregating)):
            if taken <= (rest <= room):
                break
            inps[pipeline] += 1
            rest -= taken
        if rest > room:
            return None
        if not self.tor_sums and inps.total() + rest + sum(map(len, self.local.values())) > to_server:
            return None
        return inps

    def most_children_at_tor(self, choice: SpineChoice) -> int:
        """An upper bound on the flows that enter one INP of the PS's leaf."""
        if not self.tor_sums:
            return 0
        sums = min(choice.link_flows, len(choice.inps))
        through = {
            gate: sums * len(spines.aggregating) + choice.link_flows * len(spines.common)
            for gate, spines in self.gates.items()
        }
        return max(through.get(gate, 0) + len(self.local.get(gate, ())) for gate in {*self.gates, *self.local})

    def paths(self, choice: SpineChoice) -> list[Path]:
        """A path for every worker. Flows are distributed in turn, so that all links and INPs have equal shares."""
        turn = cycle(choice.spines.aggregating)
        users = {pipeline: tuple(islice(turn, n)) for pipeline, n in choice.inps.items()}
        dealers = {pipeline: cycle(spines) for pipeline, spines in users.items()}
        room = {pipeline: self.most_children * n for pipeline, n in choice.inps.items()}
        common = cycle(choice.spines.common)
        found: list[Path] = [(worker, self.tor, self.server) for worker in chain.from_iterable(self.local.values())]
        for leaf in self.leaves:
            here = leaf.pipeline
            taken = min(len(leaf.flows), choice.link_flows * choice.inps[here], room.get(here, 0))
            if taken:
                room[here] -= taken
            for position, flow in enumerate(leaf.flows):
                spine = next(dealers[here] if position < taken else common)
                found += [(worker, leaf.name, spine, self.tor, self.server) for worker in flow]
        return found


# -- A fabric read as a leaf-spine with equal links, for a task that meets all conditions of the closed form.

Rack = dict[int, LeafFlow]
"""The workers under a leaf by the pipeline in which they arrive; without INA all are in pipeline 0."""


def leaf_spine(fabric: Fabric, task: Task) -> LeafSpine | None:
    """The task on a leaf-spine; None where the closed form does not hold.

    The closed form needs leaves that reach the PS's leaf through the same spines, links of one capacity between them,
    INA spines with the same leaves in each pipeline, bitmaps of one size, and no limit on the summed rate. A pod of a
    fat-tree that contains the whole task also qualifies.
    """
    tor = fabric.tor_of(task.server)
    racks = racks_of(fabric, task.job.workers)
    crowd = max(len(workers) for rack in racks.values() for workers in rack.values())
    local = racks.pop(tor, {})
    leaves = list(racks)
    spines = shared_spines(fabric, tor, leaves)
    if spines is None:
        return None
    known = [fabric.switch_by_name[name] for name in (tor, *leaves, *spines)]
    limited = any(s.aggregation_rate_bps is not None or s.pipeline_summing_bps < inf for s in known)
    children = {most_children(fabric, switch.name) for switch in known}
    b, summing = fabric.capacities_bps, [spine for spine in spines if fabric.switch_by_name[spine].ina]
    capacities = {b[link] for link in product(leaves, spines)} | {b[spine, tor] for spine in spines}
    pipelines = {tuple(fabric.ingress_pipeline(spine, leaf) for leaf in leaves) for spine in summing}
    if limited or len(children) > 1 or crowd > min(children) or len(capacities) > 1 or len(pipelines) > 1:
        return None
    gates: dict[int, Spines] = {}
    for gate in dict.fromkeys(gate_of(fabric, tor, spine) for spine in spines):
        behind = [spine for spine in spines if gate_of(fabric, tor, spine) == gate]
        common = tuple(spine for spine in behind if spine not in summing)
        gates[gate] = Spines(tuple(spine for spine in behind if spine in summing), common)
    flows = {  # of each pipeline, or of each worker
        leaf: tuple(rack.values()) if fabric.switch_by_name[leaf].ina else tuple((w,) for w in chain(*rack.values()))
        for leaf, rack in racks.items()
    }
    entered = pipelines.pop() if pipelines else (0,) * len(leaves)
    return LeafSpine(
        task.server,
        tor,
        fabric.switch_by_name[tor].ina,
        tuple(Leaf(leaf, pipeline, flows[leaf]) for leaf, pipeline in zip(leaves, entered, strict=True)),
        gates,
        local,
        min(b[worker, fabric.tor_of(worker)] for worker in task.job.workers),
        capacities.pop() if capacities else b[tor, task.server],
        b[tor, task.server],
        children.pop(),
    )


def racks_of(fabric: Fabric, workers: Iterable[str]) -> dict[str, Rack]:
    """For each leaf, its workers by the pipeline by which they enter."""
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for worker in workers:
        leaf = fabric.tor_of(worker)
        found[leaf][gate_of(fabric, leaf, worker)].append(worker)
    return {leaf: {pipeline: tuple(group) for pipeline, group in rack.items()} for leaf, rack in found.items()}


def gate_of(fabric: Fabric, switch: str, peer: str) -> int:
    """The pipeline by which packets from `peer` enter an INA switch; 0 for any other switch."""
    return fabric.ingress_pipeline(switch, peer) if fabric.switch_by_name[switch].ina else 0


def shared_spines(fabric: Fabric, tor: str, leaves: Sequence[str]) -> tuple[str, ...] | None:
    """The spines between every leaf and the PS's leaf; None if they differ by leaf, or there are other ways."""
    tiers = fabric.tiers
    above = {leaf: [peer for peer in fabric.neighbors[leaf] if tiers[peer] > 0] for leaf in (tor, *leaves)}
    if any(tiers[peer] <= tiers[leaf] for leaf, peers in above.items() for peer in peers):
        return None
    found = [tuple(peer for peer in above[tor] if peer in set(above[leaf])) for leaf in leaves]
    if not found:
        return ()
    return found[0] if found[0] and len(set(found)) == 1 else None
