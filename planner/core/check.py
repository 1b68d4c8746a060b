"""Check that a plan keeps the rules of the fabric, the switches and the links: `check(problem, plan)`.

Written from first principles: it shares no code with the planners and derives everything anew from the
fabric's links. Every error names the rule, the tree, and the label or link that breaks it.

========== ==============================================================================================
rule       every plan keeps it
========== ==============================================================================================
fabric     the plan is for the problem's fabric
job        every job of the problem has either trees or one collective, no other job has any; tree numbers are
           unique within a job, from 0 to 65535
policy     a tree's slot policy is one of the kit's, its priority one of 0 to 255
share      shares lie in (0, 1] and those of a job sum to 1
rate       rates are finite and not negative
root       a tree ends at one of its job's PSs, or at a switch with an aggregator labelled 0
fallback   from a root in the network a path of links over switches leads to one of the job's PSs, or there is none
label      labels are unique within a tree, from 1 to 65535; each has one branch
worker     the workers of a tree are exactly its job's, each once
parent     a branch leads to the root or to an aggregator that lists it as a child, and the reverse
path       a branch follows links over switches, from its label's node to its parent's
cycle      every label reaches the root
up-down    a label's way to the root climbs, crosses, descends, in that order
forwarding a label's way passes no switch twice: one next hop per switch and label
results    where a tree says how results come back: against links of its branches, from the root to every worker
ina        aggregators are on INA switches, in a pipeline that the switch has; one per tree if slots are shared
pipeline   a child's last link arrives in its aggregator's ingress pipeline
children   an aggregator has 1 to 64 children; a slot's bitmap has one bit per summand: 64 bits, or those of
           the switch's chip
slots      slots lie within those that the switch and its chip give the pipeline
overlap    segments of one pipeline do not overlap
capacity   no link or switch's aggregators exceed their rate; in each step of a collective, a link carries
           what all connections send
passes     no pipeline sums more than its chip can recirculate for a packet's passes after the first
========== ==============================================================================================

Collectives keep these rules too; the contents of ranks are followed symbolically, step by step:

========== ==============================================================================================
rule       every collective keeps it
========== ==============================================================================================
rank       its ranks are the workers of its job, each once
chunk      there is at least one chunk, and transfers name existing chunks
connection a connection joins two different ranks; at most one joins them in each direction
rate       a connection's rate is finite and greater than 0
path       a connection's path follows links over switches, from its source's host to its destination's
up-down    a path climbs, crosses, descends, in that order, and passes no switch twice
step       a connection's transfers are in the order of their steps
place      a rank receives nothing else for a chunk in a step that replaces this chunk
sum        no rank adds a gradient to a chunk twice, and each ends with every chunk's sum over all ranks
========== ==============================================================================================
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from math import ceil, fsum, inf, isclose, isfinite

from inakit.planner.core.plan import (
    ACKNOWLEDGED_AT_ONCE,
    MOST_BITS,
    Aggregator,
    Branch,
    Collective,
    Connection,
    Plan,
    PlannedTree,
    Transfer,
)
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slot_policies import POLICIES, is_policy, policy_of
from inakit.topo.errors import PlanError
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Switch

TOLERANCE = 1e-9
MOST_LABELS = 65535
MOST_PRIORITY = 255


def check(problem: Problem, plan: Plan) -> None:
    """Raise `PlanError`, which names rule, tree and label or link, unless the plan keeps all rules."""
    if plan.fabric != problem.fabric.name:
        raise broken("fabric", "plan", f"the plan is for fabric '{plan.fabric}', not '{problem.fabric.name}'")
    check_jobs(problem, plan)
    for planned in plan.trees:
        check_sending(planned)
        TreeCheck(problem, planned).run()
    for collective in plan.collectives:
        check_collective(problem, collective)
    check_overlap(plan)
    check_capacity(problem, plan)


def broken(rule: str, where: str, why: str) -> PlanError:
    """Build the error that names the broken rule of the table above, its place in the plan, and the reason."""
    return PlanError(f"rule {rule} broken at {where}: {why}")


def check_jobs(problem: Problem, plan: Plan) -> None:
    """Check rules job and share: the plan has trees for the problem's jobs and no others, and their shares sum to 1."""
    summed, known = {planned.job for planned in plan.trees}, {job.number for job in problem.jobs}
    collective = Counter(collective.job for collective in plan.collectives)
    for number in sorted((summed | set(collective)) ^ known):
        why = "it has no tree" if number in known else f"the problem has only jobs {sorted(known)}"
        raise broken("job", f"job {number}", why)
    for number, count in collective.items():
        if count > 1 or number in summed:
            raise broken(
                "job", f"job {number}", f"{count} collectives, and {'some' if number in summed else 'no'} trees"
            )
    for number in sorted(summed):
        own = [planned for planned in plan.trees if planned.job == number]
        total = sum(planned.share for planned in own)
        if not isclose(total, 1, rel_tol=TOLERANCE):
            raise broken("share", f"job {number}", f"its shares sum to {total:g}, not 1")
        for tree, count in Counter(planned.tree.number for planned in own).items():
            if count > 1:
                raise broken("job", f"job {number}", f"{count} trees have the number {tree}")


def check_sending(planned: PlannedTree) -> None:
    """Check a tree's number and slot policy, its share in (0, 1], and its finite rate, which is not negative."""
    tree, where = planned.tree, f"job {planned.job}, tree {planned.tree.number}"
    if not 0 <= tree.number <= MOST_LABELS:
        raise broken("job", where, f"tree numbers are 0 to {MOST_LABELS}")
    if not is_policy(tree.policy) or not 0 <= tree.priority <= MOST_PRIORITY:
        why = f"slot policy '{tree.policy}', priority {tree.priority}; policies are {', '.join(POLICIES)}"
        raise broken("policy", where, f"{why}, priorities 0 to {MOST_PRIORITY}")
    if not 0 < planned.share <= 1 + TOLERANCE:
        raise broken("share", where, f"share {planned.share:g} is not in (0, 1]")
    if not (isfinite(planned.rate_bps) and planned.rate_bps >= 0):
        raise broken("rate", where, f"{planned.rate_bps:g} bit/s is not a finite rate of at least 0")


class TreeCheck:
    """Checks the rules of one tree. Each method checks one rule, and may rely on the rules checked before it."""

    def __init__(self, problem: Problem, planned: PlannedTree) -> None:
        self.fabric = problem.fabric
        self.job = next(job for job in problem.jobs if job.number == planned.job)
        self.tree = tree = planned.tree
        self.aggregators = {aggregator.label: aggregator for aggregator in tree.aggregators}
        self.branches = {branch.label: branch for branch in tree.branches}

    def run(self) -> None:
        """Check all rules of the tree. Raises `PlanError` for the first one that is broken."""
        self.check_labels()
        self.check_workers()
        self.check_root()
        for aggregator in self.tree.aggregators:
            self.check_aggregator(aggregator)
        self.check_one_per_pipeline()
        for branch in self.tree.branches:
            self.check_parent(branch)
            self.check_path(branch)
            self.check_pipeline(branch)
        for branch in self.tree.branches:
            self.check_way(branch.label)
        for aggregator in self.tree.aggregators:
            self.check_summands(aggregator)
        if self.tree.results:
            self.check_results(self.tree.results)

    def broken(self, rule: str, what: str, why: str) -> PlanError:
        """Build the error for a broken rule; it names the job and the number of the tree."""
        return broken(rule, f"job {self.job.number}, tree {self.tree.number}, {what}", why)

    def check_labels(self) -> None:
        """Check that labels are unique and in range, and that every sender has exactly one branch."""
        used = Counter([*self.tree.workers, *(a.label for a in self.tree.aggregators)])
        for label, count in used.items():
            if count > 1:
                raise self.broken("label", f"label {label}", f"it is used {count} times")
            if not (0 <= label <= MOST_LABELS) or (label == 0 and label in self.tree.workers):
                raise self.broken("label", f"label {label}", f"labels are 1 to {MOST_LABELS}; 0 is the root's")
        branches = Counter(branch.label for branch in self.tree.branches)
        for label in sorted((set(used) | set(branches)) - {0}):
            if label not in used or branches[label] != 1:
                why = f"{branches[label]} branches for {used[label]} senders; one for each is expected"
                raise self.broken("label", f"label {label}", why)
        if 0 in branches:
            raise self.broken("label", "label 0", "the root has no branch")

    def check_workers(self) -> None:
        """Check that each worker of the job has one label in the tree, and that no other host has one."""
        for host, why in wrong_hosts(self.job, self.tree.workers.values(), "labels"):
            raise self.broken("worker", f"host {host}", why)

    def check_root(self) -> None:
        """Check that the tree ends at a PS of its job, or at the switch of the aggregator labelled 0."""
        root = self.tree.root
        if 0 not in self.aggregators:
            if root not in self.job.servers:
                servers = ", ".join(self.job.servers)
                raise self.broken("root", f"node {root}", f"it is not a parameter server of the job: {servers}")
        elif self.aggregators[0].switch != root:
            raise self.broken("root", f"node {root}", f"the root's aggregator is on {self.aggregators[0].switch}")
        if self.tree.fallback:
            self.check_fallback(self.tree.fallback)

    def check_fallback(self, path: tuple[str, ...]) -> None:
        """Check that the path from a root in the network follows links of the fabric to a PS of the job."""
        what = f"fallback {'->'.join(path)}"
        if path[0] != self.tree.root or not self.tree.in_network_root:
            raise self.broken("fallback", what, f"it does not begin at the tree's root, {self.tree.root}")
        if path[-1] not in self.job.servers:
            raise self.broken("fallback", what, f"it does not end at a PS of the job: {', '.join(self.job.servers)}")
        for _, where, why in path_mistakes(self.fabric, path, (self.tree.root, path[-1])):
            raise self.broken("fallback", f"{what}{where}", why)

    def check_aggregator(self, aggregator: Aggregator) -> None:
        """Check an aggregator's switch, pipeline and slots, and that each of its children has it as parent."""
        what = f"label {aggregator.label} on {aggregator.switch}"
        switch = self.fabric.switch_by_name.get(aggregator.switch)
        if switch is None or not switch.ina:
            raise self.broken("ina", what, "this is not an INA switch of the fabric")
        if not 0 <= aggregator.pipeline < len(switch.pipelines):
            why = f"pipeline {aggregator.pipeline} of {len(switch.pipelines)}, counted from 0"
            raise self.broken("ina", what, why)
        bits = bits_of(switch)
        if not 1 <= len(aggregator.children) <= bits:
            raise self.broken("children", what, f"{len(aggregator.children)} children, not 1 to {bits}")
        least = policy_of(self.tree.policy).versions
        if aggregator.first_slot < 0 or aggregator.slots < least:
            why = f"{aggregator.slots} slots from {aggregator.first_slot}; policy '{self.tree.policy}' needs {least}"
            raise self.broken("slots", what, why)
        available = min(switch.aggregator_slots, switch.chip.slots_per_pipeline if switch.chip else inf)
        if aggregator.first_slot + aggregator.slots > available:
            end = aggregator.first_slot + aggregator.slots
            raise self.broken("slots", what, f"they end at {end}, and the pipeline has {available}")
        listed = Counter(aggregator.children)
        for child in sorted(listed):
            branch = self.branches.get(child)
            if listed[child] > 1 or branch is None or branch.parent != aggregator.label:
                why = f"is listed {listed[child]} times" if listed[child] > 1 else "does not have it as its parent"
                raise self.broken("parent", what, f"child {child} {why}")

    def check_summands(self, aggregator: Aggregator) -> None:
        """Check that a slot's bitmap has a bit for every summand that the policy distinguishes."""
        summands, bits = len(self.tree.summands(aggregator)), bits_of(self.fabric.switch_by_name[aggregator.switch])
        if summands > bits:
            why = f"under policy '{self.tree.policy}' it sums {summands} workers, and a bitmap has {bits} bits"
            raise self.broken("children", f"label {aggregator.label} on {aggregator.switch}", why)

    def check_one_per_pipeline(self) -> None:
        """Check that a tree whose slots are shared has one aggregator per pipeline.

        With two of them, a fragment would find the same slot for both.
        """
        if not policy_of(self.tree.policy).shared:
            return
        for (switch, pipeline), count in Counter(a.inp for a in self.tree.aggregators).items():
            if count > 1:
                why = f"{count} aggregators in pipeline {pipeline}; under '{self.tree.policy}' at most one is allowed"
                raise self.broken("ina", f"switch {switch}", why)

    def check_parent(self, branch: Branch) -> None:
        """Check that a branch's parent is the root, or an aggregator that lists the branch's label as a child."""
        what = f"label {branch.label}"
        parent = self.aggregators.get(branch.parent)
        if parent is None and branch.parent != 0:
            raise self.broken("parent", what, f"its parent {branch.parent} is neither the root nor an aggregator")
        if parent is not None and branch.label not in parent.children:
            raise self.broken("parent", what, f"aggregator {parent.label} does not list it as a child")

    def check_path(self, branch: Branch) -> None:
        """Check that a branch follows links of the fabric over switches, from its label's node to its parent's."""
        ends = self.node_of(branch.label), self.node_of(branch.parent)
        for rule, where, why in path_mistakes(self.fabric, branch.path, ends):
            raise self.broken(rule, f"label {branch.label}{where}", why)

    def node_of(self, label: int) -> str:
        """The node of a label: an aggregator's switch, a worker's host, or the root."""
        if label in self.aggregators:
            return self.aggregators[label].switch
        return self.tree.workers.get(label, self.tree.root)

    def check_pipeline(self, branch: Branch) -> None:
        """Check that a branch enters its aggregator's switch by the pipeline in which the aggregator sums."""
        parent = self.aggregators.get(branch.parent)
        if parent is None:
            return
        arrives = self.fabric.ingress_pipeline(branch.path[-1], branch.path[-2])
        if arrives != parent.pipeline:
            what = f"label {branch.label}, link {link_name(branch.path[-2:])}"
            why = f"it arrives in pipeline {arrives}, but aggregator {parent.label} sums in {parent.pipeline}"
            raise self.broken("pipeline", what, why)

    def check_way(self, label: int) -> None:
        """Check that a label reaches the root by up-down routing and visits no node twice."""
        way = [self.node_of(label)]
        passed: set[int] = set()
        here = label
        while here != 0:
            if here in passed:
                raise self.broken("cycle", f"label {label}", f"it returns to label {here} and never reaches the root")
            passed.add(here)
            way += self.branches[here].path[1:]
            here = self.branches[here].parent
        for where, why in up_down_mistakes(self.fabric, way):
            raise self.broken("up-down", f"label {label}{where}", why)
        for node, count in Counter(way).items():
            if count > 1:
                raise self.broken("forwarding", f"label {label}", f"its way to the root passes {node} {count} times")

    def check_results(self, above: dict[str, str]) -> None:
        """Check that results go from the root to every worker, along reversed links of the tree's branches."""
        links = {link for branch in self.tree.branches for link in pairwise(branch.path)}
        for link in above.items():
            if link not in links:
                raise self.broken("results", f"link {link_name(link)}", "no branch uses it")
        reached = set()
        for worker in self.tree.workers.values():
            node = worker
            while node != self.tree.root and node in above and node not in reached:
                reached.add(node)
                node = above[node]
            if node != self.tree.root and node not in reached:
                raise self.broken("results", f"worker {worker}", f"node {node} gets no results")
        for node in sorted({*above} - reached):
            raise self.broken("results", f"node {node}", "it gets results, but no worker behind it needs them")


def wrong_hosts(job: Job, hosts: Iterable[str], what: str) -> Iterator[tuple[str, str]]:
    """Yield each host that is not exactly one worker of the job, and why; `what` names what is counted."""
    counts = Counter(hosts)
    for host in sorted(set(counts) | set(job.workers)):
        expected = 1 if host in job.workers else 0
        if counts[host] != expected:
            yield host, f"it has {counts[host]} {what}, not {expected}"


def path_mistakes(fabric: Fabric, path: Sequence[str], ends: tuple[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield each place where a path does not follow links over switches between its ends: rule, place, reason."""
    if len(path) < 2:
        yield "path", "", "its path has no link"
    elif (path[0], path[-1]) != ends:
        yield "path", "", f"it leads from {path[0]} to {path[-1]}, not from {ends[0]} to {ends[1]}"
    for link in pairwise(path):
        if link not in fabric.capacities_bps:
            yield "path", f", link {link_name(link)}", "the fabric has no such link"
    for node in path[1:-1]:
        if node not in fabric.switch_by_name:
            yield "path", "", f"it passes host {node}"


def up_down_mistakes(fabric: Fabric, way: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each link at which a way does not climb first, then cross, then descend, and the reason."""
    tiers = fabric.tiers
    falls = [(tiers[a] > tiers[b]) - (tiers[a] < tiers[b]) for a, b in pairwise(way)]
    for position, (before, after) in enumerate(pairwise(falls)):
        if after < before:
            verb = "climbs" if after < 0 else "crosses"
            yield f", link {link_name(way[position + 1 : position + 3])}", f"it {verb} after going down or across"


def bits_of(switch: Switch) -> int:
    """The number of bits in a slot's bitmap of a switch."""
    return MOST_BITS if switch.chip is None else min(MOST_BITS, switch.chip.children_per_slot)


def link_name(link: Sequence[str]) -> str:
    """A link or a path as text, such as `h1->leaf1`."""
    return "->".join(link)


SHARING = "all trees that share slots"
"""The owner of a slot segment whose policy lets all trees share it."""


def check_overlap(plan: Plan) -> None:
    """Check that no two trees own the same slot, unless both share their slots."""
    segments: dict[tuple[str, int], list[tuple[str, Aggregator]]] = defaultdict(list)
    for planned in plan.trees:
        tree = planned.tree
        for aggregator in tree.aggregators:
            where = f"job {planned.job}, tree {tree.number}, label {aggregator.label}"
            owner = SHARING if policy_of(tree.policy).shared else where
            segments[aggregator.inp].append((owner, aggregator))
    for (switch, pipeline), owners in segments.items():
        for (first, a), (second, b) in combinations(owners, 2):
            together = a.first_slot < b.first_slot + b.slots and b.first_slot < a.first_slot + a.slots
            if together and first != second:
                raise broken("overlap", f"switch {switch}, pipeline {pipeline}", f"{first} and {second} share slots")


def check_capacity(problem: Problem, plan: Plan) -> None:
    """Check that no link, no switch's aggregators and no pipeline's recirculation get more than their rate in bit/s."""
    fabric = problem.fabric
    flows: Counter[DirectedLink] = Counter()
    links: dict[DirectedLink, float] = defaultdict(float)
    switches: dict[str, float] = defaultdict(float)
    pipelines: dict[tuple[str, int], float] = defaultdict(float)
    for planned in plan.trees:
        for link in (link for branch in planned.tree.branches for link in pairwise(branch.path)):
            links[link] += planned.rate_bps
            flows[link] += 1
        for aggregator in planned.tree.aggregators:
            taken_in = planned.rate_bps * len(aggregator.children)
            switches[aggregator.switch] += taken_in
            pipelines[aggregator.inp] += taken_in
    for collective in plan.collectives:
        for link, (count, load) in busiest_step(problem, collective).items():
            links[link] += load
            flows[link] += count
    for link, load in links.items():
        if load > fabric.capacities_bps[link] * (1 + TOLERANCE):
            why = f"{flows[link]} flows load it with {load:g} bit/s; its capacity is {fabric.capacities_bps[link]:g}"
            raise broken("capacity", f"link {link_name(link)}", why)
    for name, load in switches.items():
        limit = fabric.switch_by_name[name].aggregation_rate_bps
        if limit is not None and load > limit * (1 + TOLERANCE):
            raise broken("capacity", f"switch {name}", f"its aggregators get {load:g} bit/s, at most {limit:g} fit")
    for (name, pipeline), load in pipelines.items():
        chip = fabric.switch_by_name[name].chip
        if chip is not None and chip.recirculation_bps is not None:
            passes = ceil(problem.fragment.values / chip.values_per_pass)
            again = load * (passes - 1)
            if again > chip.recirculation_bps * (1 + TOLERANCE):
                why = f"{passes} passes of {load:g} bit/s need {again:g}; the chip has {chip.recirculation_bps:g}"
                raise broken("passes", f"switch {name}, pipeline {pipeline}", why)


Sent = list[tuple[Connection, Transfer]]
Held = list[list[int]]
"""`held[rank][chunk]`: a bit for each rank whose gradient is in the rank's sum of the chunk."""


def broken_by(rule: str, collective: Collective, what: str, why: str) -> PlanError:
    """Build the error for a broken rule; it names the job, the place and the reason."""
    return broken(rule, f"job {collective.job}, {what}", why)


def check_collective(problem: Problem, collective: Collective) -> None:
    """Raise `PlanError`, which names the rule and the place, unless a collective keeps all rules."""
    job = next(job for job in problem.jobs if job.number == collective.job)
    check_ranks(job, collective)
    check_pairs(collective)
    for connection in collective.connections:
        check_connection(problem.fabric, collective, connection)
        check_transfers(collective, connection)
    check_sums(collective)


def check_ranks(job: Job, collective: Collective) -> None:
    """Check rule rank, and that there is at least one chunk."""
    for host, why in wrong_hosts(job, collective.ranks, "ranks"):
        raise broken_by("rank", collective, f"host {host}", why)
    if collective.chunks < 1:
        raise broken_by("chunk", collective, "its gradient", f"it is divided into {collective.chunks} chunks")


def check_pairs(collective: Collective) -> None:
    known = range(len(collective.ranks))
    pairs = Counter((connection.source, connection.destination) for connection in collective.connections)
    for (source, destination), count in pairs.items():
        what = f"connection {source}->{destination}"
        if source == destination or source not in known or destination not in known:
            raise broken_by(
                "connection", collective, what, f"two different ranks of 0 to {len(known) - 1} are expected"
            )
        if count > 1:
            raise broken_by("connection", collective, what, f"there are {count} of them")


def check_connection(fabric: Fabric, collective: Collective, connection: Connection) -> None:
    what = f"connection {connection.source}->{connection.destination}"
    if not (isfinite(connection.rate_bps) and connection.rate_bps > 0):
        raise broken_by("rate", collective, what, f"{connection.rate_bps:g} bit/s is not a rate to send at")
    ends = collective.ranks[connection.source], collective.ranks[connection.destination]
    for rule, where, why in path_mistakes(fabric, connection.path, ends):
        raise broken_by(rule, collective, f"{what}{where}", why)
    for node, count in Counter(connection.path).items():
        if count > 1:
            raise broken_by("up-down", collective, what, f"it passes {node} {count} times")
    for where, why in up_down_mistakes(fabric, connection.path):
        raise broken_by("up-down", collective, f"{what}{where}", why)


def check_transfers(collective: Collective, connection: Connection) -> None:
    """Check rules chunk and step for the transfers of a connection."""
    what = f"connection {connection.source}->{connection.destination}"
    for transfer in connection.transfers:
        last = transfer.first + transfer.count
        if not (0 <= transfer.first < last <= collective.chunks):
            why = f"{transfer.count} chunks from {transfer.first}, but there are {collective.chunks}"
            raise broken_by("chunk", collective, f"{what}, step {transfer.step}", why)
    steps = [transfer.step for transfer in connection.transfers]
    if not steps or steps != sorted(steps) or steps[0] < 0:
        raise broken_by("step", collective, what, f"its steps are {steps[:8]}; ascending steps from 0 are expected")


def check_sums(collective: Collective) -> None:
    """Check that every rank ends with the sum of every chunk: execute all steps on sets of ranks instead of numbers."""
    ranks = range(len(collective.ranks))
    held: Held = [[1 << rank] * collective.chunks for rank in ranks]
    by_step: defaultdict[int, Sent] = defaultdict(list)
    for connection in collective.connections:
        for transfer in connection.transfers:
            by_step[transfer.step].append((connection, transfer))
    for step in sorted(by_step):
        do_step(collective, step, by_step[step], held)
    everyone = (1 << len(ranks)) - 1
    for rank in ranks:
        for chunk, got in enumerate(held[rank]):
            if got != everyone:
                absent = next(other for other in ranks if not got >> other & 1)
                why = f"its sum of chunk {chunk} lacks {collective.ranks[absent]} (rank {absent})"
                raise broken_by("sum", collective, f"host {collective.ranks[rank]} (rank {rank})", why)


def do_step(collective: Collective, step: int, sent: Sent, held: Held) -> None:
    """Execute all transfers of a step at once; each sends what its source held before the step."""
    carried = [held[connection.source][t.first : t.first + t.count] for connection, t in sent]
    came: set[tuple[int, int]] = set()
    placed: set[tuple[int, int]] = set()
    for (connection, transfer), values in zip(sent, carried, strict=True):
        mine, rank = held[connection.destination], connection.destination
        for chunk, value in enumerate(values, start=transfer.first):
            what = f"step {step}, connection {connection.source}->{rank}, chunk {chunk}"
            at = rank, chunk
            if at in placed or (at in came and not transfer.adds):
                raise broken_by("place", collective, what, "another transfer brings the same chunk in this step")
            (came if transfer.adds else placed).add(at)
            if transfer.adds and mine[chunk] & value:
                raise broken_by("sum", collective, what, f"it adds {overlap(collective, mine[chunk] & value)} again")
            mine[chunk] = mine[chunk] | value if transfer.adds else value


def overlap(collective: Collective, both: int) -> str:
    """The hosts whose bits are set, as text: the first one, and the number of others."""
    hosts = [host for rank, host in enumerate(collective.ranks) if both >> rank & 1]
    return hosts[0] if len(hosts) == 1 else f"{hosts[0]} and {len(hosts) - 1} more"


def busiest_step(problem: Problem, collective: Collective) -> dict[DirectedLink, tuple[int, float]]:
    """For each link, the number of connections that send in the step with the highest load, and this load in bit/s.

    Acknowledgements load the way back: one packet without values for every 32 packets with values.
    """
    header_bytes = problem.fragment.wire_bytes - 4 * problem.fragment.values
    share = header_bytes / problem.fragment.wire_bytes / ACKNOWLEDGED_AT_ONCE
    by_step: defaultdict[int, set[int]] = defaultdict(set)
    for number, connection in enumerate(collective.connections):
        for transfer in connection.transfers:
            by_step[transfer.step].add(number)
    most: dict[DirectedLink, tuple[int, float]] = {}
    for together in {frozenset(numbers) for numbers in by_step.values()}:
        loads: defaultdict[DirectedLink, list[float]] = defaultdict(list)
        for connection in (collective.connections[number] for number in together):
            for a, b in pairwise(connection.path):
                loads[a, b].append(connection.rate_bps)
                loads[b, a].append(connection.rate_bps * share)
        for link, rates in loads.items():
            most[link] = max(most.get(link, (0, 0.0)), (len(rates), fsum(rates)), key=lambda found: found[1])
    return most
