"""The result of every planner: the destination of each sender, and the places where sums are made.

A plan has, for each job, aggregation trees, in which switches and parameter servers sum, or a collective of end hosts.
A job's trees carry consecutive ranges of its fragments, in the order of the plan and in proportion to their shares
(`fragment_ranges`).

A tree's nodes have labels: 0 is the root, and every worker and aggregator has its own. A branch is the way of one
label's packets, from its node to the next aggregator on the way, or to the root.

A collective lists which rank sends which chunks to which other rank, and in which step; ranks, steps and chunks are
those of MPI and NCCL. All transfers of a step send the values that their ranks held before the step: a rank holds its
own gradient plus everything that earlier steps added, or the value by which an earlier step replaced it. There is no
barrier between steps: a transfer begins as soon as the steps before it have brought its own chunks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise

from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import DEFAULT_POLICY, by_timeouts, policy_of
from inakit.topo.fabric.fabric import DirectedLink

ACKNOWLEDGED_AT_ONCE = 32
"""The number of fragments that a receiver acknowledges with one packet, if they arrive without a gap."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """`count` chunks, from chunk `first` on, that are sent in one step.

    If it `adds`, the receiver adds them to what it holds; otherwise they replace what it holds.
    """

    step: int
    first: int
    count: int
    adds: bool

    @property
    def chunks(self) -> range:
        """The numbers of the chunks."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True)
class Connection:
    """Everything that one rank sends to another: transfers in the order of their steps, on one path, at one rate on the
    wire.

    `path` leads from the source's host to the destination's, both included.
    """

    source: int
    destination: int
    path: tuple[str, ...]
    rate_bps: float
    transfers: tuple[Transfer, ...]

    @property
    def links(self) -> tuple[DirectedLink, ...]:
        """The directed links of the path."""
        return tuple(pairwise(self.path))


@dataclass(frozen=True)
class Collective:
    """The way in which the workers of a job sum their gradients among themselves.

    `ranks` are their hosts, each once. The gradient is divided into `chunks` equal parts. `connections` has at most one
    for each source and destination. Connections that send in the same step share links at the same time; those of
    different steps follow one another.
    """

    job: int
    ranks: tuple[str, ...]
    chunks: int
    connections: tuple[Connection, ...]

    @cached_property
    def steps(self) -> dict[int, tuple[tuple[int, Transfer], ...]]:
        """The transfers of every step, in ascending order, with the numbers of their connections."""
        found: defaultdict[int, list[tuple[int, Transfer]]] = defaultdict(list)
        for number, connection in enumerate(self.connections):
            for transfer in connection.transfers:
                found[transfer.step].append((number, transfer))
        return {step: tuple(found[step]) for step in sorted(found)}

    @cached_property
    def concurrent(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The distinct sets of connections that send in one step, each with the number of chunks that it sends."""
        found: dict[tuple[tuple[int, int], ...], None] = {}
        for sent in self.steps.values():
            chunks: Counter[int] = Counter()
            for number, transfer in sent:
                chunks[number] += transfer.count
            found[tuple(sorted(chunks.items()))] = None
        return tuple(found)

    def chunk_fragments(self, total: int) -> list[range]:
        """The fragments of each chunk of a gradient of `total` fragments; there can be more chunks than fragments."""
        bounds = [total * chunk // self.chunks for chunk in range(self.chunks + 1)]
        return [range(low, high) for low, high in pairwise(bounds)]

    def with_rates_times(self, factor: float) -> Collective:
        """The collective with every rate times `factor`."""
        connections = (replace(each, rate_bps=each.rate_bps * factor) for each in self.connections)
        return replace(self, connections=tuple(connections))


@dataclass(frozen=True)
class SolverOutcome:
    """The origin and the proven quality of a plan. The status is optimal, feasible (with a `gap`), or heuristic.

    `gap` says by how much at most a better plan is better, relative to this plan, in the method's objective: the rate
    of one task, the weighted sum of the rates of several (ARO's Eqs. (2) and (3)).
    """

    status: str
    seconds: float
    gap: float | None = None
    solver: str | None = None


OPTIMAL, FEASIBLE, INFEASIBLE, ERROR = "optimal", "feasible", "infeasible", "error"


@dataclass(frozen=True)
class SolverOptions:
    """The solver, its time limit and its precision. `gap` is relative; 0 asks for the optimum."""

    solver: str = "highs"
    time_limit_s: float = 60.0
    gap: float = 0.0
    seed: int = 0


ROOT_LABEL = 0

MOST_BITS = 64
"""The bits of a slot's bitmap."""
SHARED_WINDOW = 256
"""The maximum number of fragments of a tree in flight if no segment of slots limits them."""


@dataclass(frozen=True)
class Branch:
    """The path of a label's packets: nodes from the sender's own to the parent's, both included."""

    label: int
    parent: int
    path: tuple[str, ...]

    @property
    def links(self) -> tuple[DirectedLink, ...]:
        """The directed links of the path."""
        return tuple(pairwise(self.path))


@dataclass(frozen=True)
class Aggregator:
    """An aggregator sums the packets that arrive in one ingress pipeline of a switch. Child i of `children` has bit i.

    It owns `slots` slots from `first_slot` on, counted within the pipeline.
    """

    label: int
    switch: str
    pipeline: int
    children: tuple[int, ...]
    first_slot: int
    slots: int

    @property
    def inp(self) -> tuple[str, int]:
        """The input pipeline in which it sums: the switch and the pipeline's number."""
        return self.switch, self.pipeline


@dataclass(frozen=True)
class AggregationTree:
    """One tree towards one root: a PS, or a switch whose aggregator has the label 0.

    `workers[label]` is the host of a worker's label. Every label but the root's has one branch. `policy` is a name of
    `inakit.planner.core.slot_policies`; where fragments may preempt each other, the one of higher `priority` does.
    `fallback` leads from a root in the network to its standby PS. `results`, where planned, maps each node to the node
    from which it gets results, over links of the branches: its `result_parents`. With `whole_children` an aggregator
    sums only complete sums of its children. With `workers_counted` sums carry the number of workers in them, if the
    data-plane program can count. A plan's file does not contain the last two.
    """

    number: int
    root: str
    workers: dict[int, str]
    aggregators: tuple[Aggregator, ...]
    branches: tuple[Branch, ...]
    policy: str = DEFAULT_POLICY
    priority: int = 0
    fallback: tuple[str, ...] = ()
    results: dict[str, str] = field(default_factory=dict)
    whole_children: bool = False
    workers_counted: bool = True

    @property
    def repairs(self) -> bool:
        """Whether aggregators ask children for what they lost, and keep results for children that miss them."""
        return policy_of(self.policy).repairs

    @cached_property
    def repairing_switches(self) -> frozenset[str]:
        """The switches that ask workers for what was lost, and answer those that miss a result."""
        return frozenset(each.switch for each in self.aggregators) if self.repairs else frozenset()

    @cached_property
    def branch_of(self) -> dict[int, Branch]:
        """The branch of every label but the root's."""
        return {branch.label: branch for branch in self.branches}

    @cached_property
    def aggregator_of(self) -> dict[int, Aggregator]:
        """The aggregator of every label that has one."""
        return {aggregator.label: aggregator for aggregator in self.aggregators}

    @cached_property
    def workers_below(self) -> dict[int, tuple[int, ...]]:
        """For each label, the labels of the workers whose gradients its packets represent. The root represents all."""
        below: dict[int, list[int]] = {label: [] for label in (*self.workers, *self.aggregator_of, ROOT_LABEL)}
        for worker in self.workers:
            label = worker
            while label != ROOT_LABEL:
                below[label].append(worker)
                label = self.branch_of[label].parent
            below[ROOT_LABEL].append(worker)
        return {label: tuple(found) for label, found in below.items()}

    def summands(self, aggregator: Aggregator) -> tuple[int, ...]:
        """The label behind each bit of an aggregator's bitmap.

        These are the aggregator's children. Where trees share slots, a sum can arrive in pieces: then they are all
        workers below the aggregator, if 64 bits are enough for them, unless only `whole_children` are summed.
        """
        workers = self.workers_below[aggregator.label]
        in_pieces = policy_of(self.policy).shared and not self.whole_children
        return workers if in_pieces and len(workers) <= MOST_BITS else aggregator.children

    def bits(self, aggregator: Aggregator) -> dict[int, int]:
        """The bits of every label whose packets can reach an aggregator; 0 for a mere part of a summand."""
        place = {label: position for position, label in enumerate(self.summands(aggregator))}
        below = list(aggregator.children)
        for label in below:  # the list grows in the loop: children's children follow, and so on
            if label in self.aggregator_of:
                below += self.aggregator_of[label].children
        return {
            label: sum(1 << place[part] for part in {label, *self.workers_below[label]} if part in place)
            for label in below
        }

    @property
    def in_network_root(self) -> bool:
        """Whether the root is a switch, which itself sends the results to the workers."""
        return ROOT_LABEL in self.aggregator_of

    @property
    def server(self) -> str | None:
        """The PS: the root itself, or the standby host of a root in the network; None without a standby."""
        if self.in_network_root:
            return self.fallback[-1] if self.fallback else None
        return self.root

    def way(self, label: int) -> tuple[str, ...]:
        """The nodes from the label's own to the root: its branch, then its parent's, and so on.

        A packet that no aggregator sums keeps its label and follows the whole way.
        """
        branch = self.branch_of[label]
        return branch.path if branch.parent == ROOT_LABEL else branch.path + self.way(branch.parent)[1:]

    @cached_property
    def heights(self) -> dict[int, int]:
        """For each label, and the root's, the number of aggregators one above the other below it."""
        found: dict[int, int] = dict.fromkeys(self.branch_of, 0) | {ROOT_LABEL: 0}
        for worker in self.workers:
            label, height = worker, 0
            while label != ROOT_LABEL:
                label = self.branch_of[label].parent
                found[label], height = max(found[label], height), height + 1
        return found

    @cached_property
    def result_parents(self) -> dict[str, str]:
        """The tree on which results return: for every node but the root, the node from which it gets them.

        Gradients can split over several links and meet again; results return on one of them, so that each worker gets
        each result once. Unless the tree specifies it, a node's parent is its next hop on a way to the root with the
        fewest hops.
        """
        if self.results:
            return self.results
        before: dict[str, list[str]] = {}
        for branch in self.branches:
            for node, following in branch.links:
                before.setdefault(following, []).append(node)
        parents: dict[str, str] = {}
        reached = [self.root]
        for following in reached:  # the list grows in the loop
            for node in before.get(following, ()):
                if node not in parents:
                    parents[node] = following
                    reached.append(node)
        kept: dict[str, str] = {}
        for worker in self.workers.values():
            node = worker
            while node != self.root:
                kept[node] = node = parents[node]
        return kept

    @property
    def slots(self) -> int | None:
        """The slots of the aggregator with the fewest slots; None for a tree without aggregators."""
        return min((aggregator.slots for aggregator in self.aggregators), default=None)

    @property
    def window(self) -> int | None:
        """The maximum number of fragments that a worker can have in flight; None where slots do not limit it."""
        policy, slots = policy_of(self.policy), self.slots
        if slots is None:
            return None
        return SHARED_WINDOW if policy.shared else max(1, slots // policy.versions)

    @property
    def reach(self) -> int:
        """The sequence distance at which a later fragment waits for the result of an earlier one.

        It is the parameter `window` of an aggregator's table entry.
        """
        return (self.window or 0) * policy_of(self.policy).versions


@dataclass(frozen=True)
class PlannedTree:
    """An aggregation tree with its part of a job's traffic.

    `share` is the fraction of the job's gradient that the tree sums. `rate_bps` is the planned sending rate of each
    worker in this tree, on the wire.
    """

    job: int
    share: float
    rate_bps: float
    tree: AggregationTree


@dataclass(frozen=True)
class Plan:
    """The decisions of a method for a problem.

    A job has either trees, whose shares of its gradient sum to 1, or a collective of its workers. A job's trees carry
    its fragments in the order of `trees`.
    """

    method: str
    fabric: str
    trees: tuple[PlannedTree, ...]
    outcome: SolverOutcome
    collectives: tuple[Collective, ...] = ()

    def __repr__(self) -> str:
        counts = f"{len(self.trees)} trees" + (f", {len(self.collectives)} collectives" if self.collectives else "")
        return f"<Plan {self.method} on {self.fabric}: {counts}; {self.outcome.status}>"

    def with_rates_times(self, factor: float) -> Plan:
        """The plan with every rate times `factor`. The best trees at one scale are the best at every scale."""
        trees = tuple(replace(planned, rate_bps=planned.rate_bps * factor) for planned in self.trees)
        return replace(self, trees=trees, collectives=tuple(c.with_rates_times(factor) for c in self.collectives))

    def with_trees(self, trees: Sequence[AggregationTree]) -> Plan:
        """The plan with its aggregation trees replaced, in the same order."""
        return replace(self, trees=tuple(replace(had, tree=tree) for had, tree in zip(self.trees, trees, strict=True)))

    def job_rate_bps(self, job: int) -> float:
        """The sending rate of each worker of a job, over all its trees; 0 for a job without trees."""
        return sum(planned.rate_bps for planned in self.trees if planned.job == job)

    @property
    def jobs_sharing_slots(self) -> frozenset[int]:
        """The numbers of the jobs whose fragments can find their slot busy, because a tree's policy shares slots."""
        return frozenset(planned.job for planned in self.trees if policy_of(planned.tree.policy).shared)


def trees_of(collective: Collective) -> tuple[AggregationTree, ...]:
    """A tree for each rank that receives, numbered by rank from 1; the labels are the ranks of the sources, from 1."""
    into: defaultdict[int, list[Connection]] = defaultdict(list)
    for connection in collective.connections:
        into[connection.destination].append(connection)
    return tuple(
        AggregationTree(
            tree_number(rank),
            collective.ranks[rank],
            {label_of(each): collective.ranks[each.source] for each in into[rank]},
            (),
            tuple(Branch(label_of(each), ROOT_LABEL, each.path) for each in into[rank]),
            policy=by_timeouts(DEFAULT_POLICY),  # ranks answer no questions
        )
        for rank in sorted(into)
    )


def tree_number(destination: int) -> int:
    """The number of the tree towards a rank."""
    return destination + 1


def label_of(connection: Connection) -> int:
    """The label of a connection's packets."""
    return connection.source + 1


def fragment_ranges(problem: Problem, plan: Plan) -> dict[tuple[int, int], range]:
    """By (job, tree number), the fragments of one iteration's gradient that the tree carries.

    A job's trees follow one another in the plan's order; the length of each is its share, rounded to whole fragments.
    """
    ranges: dict[tuple[int, int], range] = {}
    for job in problem.jobs:
        own = [planned for planned in plan.trees if planned.job == job.number]
        parts = split(problem.fragment.count(job.gradient_bytes), [planned.share for planned in own])
        ranges |= {(job.number, planned.tree.number): part for planned, part in zip(own, parts, strict=True)}
    return ranges


def split(total: int, shares: Sequence[float]) -> list[range]:
    """Cut the integers from 0 to `total` into consecutive ranges with these shares, each within one of its exact
    length.

    The shares sum to 1.
    """
    bounds = [0, *(round(total * end) for end in accumulate(shares))]
    return [range(low, high) for low, high in pairwise(bounds)]
