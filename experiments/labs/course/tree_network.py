"""Lab 5's network and the items about its switch: the program's tables, random plans, a model switch, the network.

The fabric has three levels and two pipelines in every switch. Ports have random numbers, so that only the plan tells
the topology. Packets travel hop by hop, in order of arrival, until all results have arrived.

The items about the switch test one property each. The items about jobs, pipelines and rounds compare the program with
itself: an aggregator beside others has to send the same packets as alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any, Protocol

from inakit.experiments.labs.course.aggregation import (
    GradedAggregator,
    check_every_slot,
    sent_by_all,
    total,
    twice,
)
from inakit.experiments.labs.grading.bench import Bench, Exchange
from inakit.experiments.labs.grading.lab import WrongError
from inakit.experiments.labs.grading.packets import (
    GRADIENT,
    KINDS,
    RESULT,
    Agg,
    Values,
    agg_in,
    described,
    explain_sum,
    summed,
)
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Aggregator, Branch
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.interpret.interpreted_switch import Packets
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch

PIPELINES, SLOTS = 2, 64
"""The number of pipelines of a switch, and of slots in each."""
PIPELINE_OF, ADMITTED, CHILD_OF, UP, DOWN = "pipeline_of", "admitted", "child_of", "up", "down"


@dataclass(frozen=True)
class Table:
    """A table: the fields of its key and of its action, each with its width in bits."""

    key: dict[str, int]
    action: str
    params: dict[str, int]


TABLES = {
    PIPELINE_OF: Table({"port": 9}, "in_pipeline", {"pipeline": 8}),
    ADMITTED: Table({"port": 9, "kind": 8, "job": 8, "label": 8}, "admit", {}),
    CHILD_OF: Table(
        {"pipeline": 8, "job": 8, "label": 8},
        "aggregate",
        {"bit_of": 8, "full": 8, "as_label": 8, "first": 16, "slots": 16},
    ),
    UP: Table({"job": 8, "label": 8}, "send", {"port": 9}),
    DOWN: Table({"job": 8}, "spread", {"group": 16}),
}


def entry(table: str, key: tuple[int, ...], params: tuple[int, ...] = ()) -> TableEntry:
    """An entry of a table of the task."""
    return TableEntry(table, key, TABLES[table].action, params)


CORE, SPINES, LEAVES, HOSTS, MOST_HOSTS = "core1", 2, 4, 4, 14
"""A core, spines below it, leaves below these, and hosts at each leaf, if not `MOST_HOSTS`."""
RATE_BPS = 100e6
HIGHEST_PORT = 63


@dataclass(frozen=True)
class DrawnPlan:
    """A fabric, and a tree for each job by its number."""

    fabric: Fabric
    trees: dict[int, AggregationTree]

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """The names of all switches."""
        return tuple(switch.name for switch in self.fabric.switches)

    def port(self, node: str, peer: str) -> int:
        """The port by which a node reaches a peer."""
        return self.fabric.port_numbers[node, peer]

    def attachment(self, host: str) -> tuple[str, int]:
        """The switch of a host, and the host's port there."""
        leaf = next(peer for node, peer in self.fabric.port_numbers if node == host)
        return leaf, self.port(leaf, host)

    def document(self) -> dict[str, Any]:
        """The plan in the form for students: the part of the kit's format that they need."""
        ports = self.fabric.port_numbers.items()
        switches = {
            switch.name: {
                "ports": {peer: port for (node, peer), port in ports if node == switch.name},
                "pipelines": [list(ports) for ports in switch.pipelines],
            }
            for switch in self.fabric.switches
        }
        parts = ("label", "switch", "pipeline", "children", "first_slot", "slots")
        jobs = [
            {
                "job": job,
                "root": tree.root,
                "workers": {str(label): host for label, host in tree.workers.items()},
                "aggregators": [plain(each, parts) for each in tree.aggregators],
                "branches": [plain(each, ("label", "parent", "path")) for each in tree.branches],
            }
            for job, tree in self.trees.items()
        ]
        return {"version": 1, "switches": switches, "jobs": jobs}


def plain(part: Aggregator | Branch, names: Sequence[str]) -> dict[str, Any]:
    """Some attributes of a part of a tree as JSON."""
    found = {name: getattr(part, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


# -- the fabric and the trees


def drawn_fabric(random: Random, hosts_per_leaf: int) -> Fabric:
    """A core, spines, leaves and hosts with random ports. The ports of a switch's children are in both pipelines."""
    above = {f"leaf{n + 1}": f"spine{n * SPINES // LEAVES + 1}" for n in range(LEAVES)}
    above |= {f"spine{n + 1}": CORE for n in range(SPINES)}
    above |= {f"h{n + 1}": f"leaf{n // hosts_per_leaf + 1}" for n in range(LEAVES * hosts_per_leaf)}
    names = [CORE, *(f"spine{n + 1}" for n in range(SPINES)), *(f"leaf{n + 1}" for n in range(LEAVES))]
    ports = {
        name: random.sample(range(1, HIGHEST_PORT), 1 + sum(name == up for up in above.values())) for name in names
    }
    left = {name: list(numbers) for name, numbers in ports.items()}
    links = []
    for node, up in above.items():
        own = 0 if node.startswith("h") else left[node].pop()
        links.append(Link(node, up, own, left[up].pop(0), RATE_BPS, RATE_BPS))

    def pipelines(name: str) -> tuple[tuple[int, ...], ...]:
        # The used ports of the core are in one pipeline, so that it can be a root.
        one, other = (ports[name][-1:], ports[name][:-1]) if name == CORE else (ports[name][0::2], ports[name][1::2])
        return tuple(sorted(one)), tuple(sorted(other))

    switches = tuple(Switch(name, tier_of(name), pipelines(name)) for name in names)
    hosts = tuple(Host(f"h{n + 1}") for n in range(LEAVES * hosts_per_leaf))
    return Fabric("drawn", hosts, switches, tuple(links))


def tier_of(name: str) -> int:
    """The level of a node: 0 for a host, 1 for a leaf."""
    return {"h": 0, "l": 1, "s": 2, "c": 3}[name[0]]


@dataclass
class TreeBuilder:
    """Builds a tree on a fabric. `used` has the number of slots that other trees use in each (switch, pipeline).

    `at` has the labels that come to each switch, with the previous node, and `paths` each label's path so far.
    """

    fabric: Fabric
    random: Random
    used: dict[tuple[str, int], int]
    root: str
    slots: int
    workers: dict[int, str] = field(default_factory=dict)
    at: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    paths: dict[int, list[str]] = field(default_factory=dict)
    aggregators: list[Aggregator] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)

    def tree(self, hosts: Sequence[str]) -> AggregationTree:
        """The tree from these hosts to the root; it sums wherever two labels enter the same pipeline of a switch."""
        labels = self.random.sample(range(1, len(hosts) + 1), len(hosts))
        self.workers = dict(zip(labels, hosts, strict=True))
        for label, host in self.workers.items():
            self.paths[label] = [host]
            self.at.setdefault(self.above(host), []).append((label, host))
        for tier in (1, 2, 3):
            for switch in [name for name in self.at if tier_of(name) == tier]:
                self.at_switch(switch)
        return AggregationTree(0, self.root, self.workers, tuple(self.aggregators), tuple(self.branches))

    def above(self, node: str) -> str:
        """The switch above a node."""
        peers = (peer for each, peer in self.fabric.port_numbers if each == node)
        return next(peer for peer in peers if tier_of(peer) > tier_of(node))

    def at_switch(self, switch: str) -> None:
        """Sum the labels that come to a switch, by pipeline, and forward them."""
        arrived = self.at[switch]
        for label, _ in arrived:
            self.paths[label].append(switch)
        going: list[int] = []
        for pipeline in range(2):
            here = [label for label, before in arrived if self.fabric.ingress_pipeline(switch, before) == pipeline]
            sums = bool(here) if switch == self.root else len(here) > 1
            going += [self.aggregated(switch, pipeline, here)] if sums else here
        if switch != self.root:
            self.at.setdefault(self.above(switch), []).extend((label, switch) for label in going)

    def aggregated(self, switch: str, pipeline: int, labels: list[int]) -> int:
        """Sum labels in a pipeline of a switch; return the label that leaves."""
        label = ROOT_LABEL if switch == self.root else len(self.workers) + 1 + len(self.aggregators)
        first = self.used.get((switch, pipeline), self.random.randrange(4))
        self.used[switch, pipeline] = first + self.slots
        children = tuple(self.random.sample(labels, len(labels)))
        self.aggregators.append(Aggregator(label, switch, pipeline, children, first, self.slots))
        for child in children:
            self.branches.append(Branch(child, label, tuple(self.paths[child])))
        self.paths[label] = [switch]
        return label


def drawn_plan(random: Random, hosts_per_leaf: int = HOSTS) -> DrawnPlan:
    """Three jobs: two across the whole fabric, with the core as root, and one with a leaf as root.

    The last one has half of the leaf's hosts: with `MOST_HOSTS` 7, so that one bit more still fits.
    """
    fabric = drawn_fabric(random, hosts_per_leaf)
    used: dict[tuple[str, int], int] = {}

    def tree(root: str, hosts: Sequence[str], slots: int) -> AggregationTree:
        return TreeBuilder(fabric, random, used, root, slots).tree(hosts)

    all_hosts = [host.name for host in fabric.hosts]
    left, right = all_hosts[: 2 * hosts_per_leaf], all_hosts[2 * hosts_per_leaf :]
    over_all = [*random.sample(left, 5), *random.sample(right, 3)]
    numbers = random.sample(range(1, 200), 3)
    trees = {numbers[0]: tree(CORE, over_all, 2)}
    other = [*random.sample(left[:hosts_per_leaf], 2), *random.sample(right, 4)]
    trees[numbers[1]] = tree(CORE, other, 3)
    leaf = random.choice([switch for switch in fabric.switches if switch.name.startswith("leaf")])
    near = [host for host in all_hosts if fabric.port_numbers.get((leaf.name, host), -1) in leaf.pipelines[0]]
    trees[numbers[2]] = tree(leaf.name, near, 4)
    return DrawnPlan(fabric, dict(sorted(trees.items())))


# -- switches


Found = tuple[int, ...] | None


class ModelTree:
    """A model switch with entries. `why` is the reason why it dropped the last packet; empty if it did not."""

    def __init__(self, entries: SwitchEntries) -> None:
        self.name, self.why = entries.switch, ""
        self.tables: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {name: {} for name in TABLES}
        for each in entries.tables:
            self.tables[each.table][tuple(int(str(part)) for part in each.key)] = each.params
        self.groups = {group.group: group.ports for group in entries.groups}
        self.sums: dict[tuple[int, int], dict[int, Values]] = {}

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; return the packets that leave."""
        self.why = ""
        found = agg_in(packet)
        pipeline = self.look_up(PIPELINE_OF, port)
        if found is None or self.look_up(ADMITTED, port, found.kind, found.job, found.worker) is None:
            return []
        if found.kind == RESULT:
            return self.spread(found)
        if pipeline is None:
            return self.pass_on(found, self.missing(PIPELINE_OF, port))
        child = self.tables[CHILD_OF].get((pipeline[0], found.job, found.worker))
        if child is None:
            return self.pass_on(found, self.missing(CHILD_OF, pipeline[0], found.job, found.worker))
        return self.add(pipeline[0], child, found)

    def look_up(self, table: str, *key: int) -> Found:
        """The parameters of an entry; without an entry, `why` gets the reason for the drop."""
        found = self.tables[table].get(key)
        if found is None and table != PIPELINE_OF:
            self.why = self.missing(table, *key)
        return found

    def missing(self, table: str, *key: int) -> str:
        """The message that a table has no entry for a key."""
        fields = ", ".join(f"{name} {value}" for name, value in zip(TABLES[table].key, key, strict=True))
        return f"table '{table}' of {self.name} has no entry for {fields}"

    def add(self, pipeline: int, child: tuple[int, ...], found: Agg) -> Packets:
        """Add a gradient to a sum; the sum leaves when it is complete."""
        bit, full, label, first, slots = child
        if found.slot >= slots or first + found.slot >= SLOTS:
            self.why = f"slot {found.slot} is beyond the {slots} slots of job {found.job} at {self.name}"
            return []
        cell = (pipeline, first + found.slot)
        gradients = self.sums.setdefault(cell, {})
        if bit in gradients:
            self.why = f"bit {bit} is in slot {cell[1]} of pipeline {pipeline} of {self.name} already"
            return []
        gradients[bit] = found.values
        if sum(gradients) != full:
            self.why = f"slot {cell[1]} of pipeline {pipeline} of {self.name} has bits {sum(gradients):#b} of {full:#b}"
            return []
        complete = replace(found, worker=label, values=summed(list(self.sums.pop(cell).values())))
        return self.spread(replace(complete, kind=RESULT)) if label == ROOT_LABEL else self.send_up(complete)

    def pass_on(self, found: Agg, not_summed: str) -> Packets:
        """Forward a gradient that no aggregator here sums; `not_summed` names the missing entry."""
        left = self.send_up(found)
        if self.why:
            self.why += f"; it is not summed there either: {not_summed}"
        return left

    def send_up(self, found: Agg) -> Packets:
        """Send a gradient towards the root."""
        way = self.look_up(UP, found.job, found.worker)
        return [] if way is None else [(way[0], found.packed())]

    def spread(self, found: Agg) -> Packets:
        """Send a result to all ports of its job's group."""
        group = self.look_up(DOWN, found.job)
        if group is None:
            return []
        if group[0] not in self.groups:
            self.why = f"{self.name} has no multicast group {group[0]}"
        return [(port, found.packed()) for port in self.groups.get(group[0], ())]


MOST_HOPS = 2000
"""The limit of hops that one packet causes; more hops mean that packets circulate."""
ROUNDS = 3


class Injected(Protocol):
    """A switch that processes one packet at a time."""

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; return the packets that leave."""
        ...


@dataclass
class TreeNetwork:
    """A plan's fabric. `switch_of` returns the switch of a name.

    `exchanges` and `drops` keep the events since they were last emptied, and `noted` is called for each event.
    """

    drawn: DrawnPlan
    switch_of: Callable[[str], Injected]
    exchanges: list[Exchange] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    noted: Callable[[Exchange], None] = lambda _: None

    def __post_init__(self) -> None:
        self.far = {(node, port): peer for (node, peer), port in self.drawn.fabric.port_numbers.items()}

    def send(self, host: str, packet: bytes) -> list[tuple[str, bytes]]:
        """Send a packet from a host and process all packets that follow from it; return those that reach hosts."""
        waiting = deque([(*self.drawn.attachment(host), packet)])
        arrived: list[tuple[str, bytes]] = []
        for _ in range(MOST_HOPS):
            if not waiting:
                return arrived
            switch, port, coming = waiting.popleft()
            node = self.switch_of(switch)
            got = node.inject(port, coming)
            self.exchanges.append(Exchange(port, coming, tuple(got), switch))
            self.noted(self.exchanges[-1])
            if not got and isinstance(node, ModelTree) and node.why:
                self.drops.append(f"{short(coming)}, at port {port} of {switch}: {node.why}")
            for out, left in got:
                peer = self.far.get((switch, out))
                if peer is None:
                    continue
                if peer in self.drawn.switches:
                    waiting.append((peer, self.drawn.port(peer, switch), left))
                else:
                    arrived.append((peer, left))
        raise self.wrong("packets circulate in the network forever")

    def wrong(self, cause: str, expected: Sequence[str] = ()) -> WrongError:
        """The error to raise when the last packet shows a fault, with its path hop by hop."""
        if not self.exchanges:
            return WrongError(cause)
        hops, last = [f"{each.switch} {each.sent}" for each in self.exchanges[-8:]], self.exchanges[-1]
        got = [f"{last.switch} port {port}: {described(packet)}" for port, packet in last.got]
        return WrongError(cause, sent=hops, expected=expected or ["nothing"], got=got or ["nothing"])


def short(packet: bytes) -> str:
    """The fields of a packet that switches read, in words."""
    found = agg_in(packet)
    if found is None:
        return described(packet)
    return f"{KINDS.get(found.kind, 'packet')} of job {found.job}, label {found.worker}, slot {found.slot}"


# -- packets to send


@dataclass(frozen=True)
class Round:
    """A round of a slot of a job: the gradient of each worker, by its label."""

    job: int
    slot: int
    number: int
    gradients: dict[int, Agg]

    def __str__(self) -> str:
        return f"{f'job {self.job}, ' if self.job else ''}slot {self.slot}, round {self.number}"

    @property
    def tree_result(self) -> Agg:
        """The result that the root of a tree sends."""
        return Agg(RESULT, ROOT_LABEL, self.slot, self.number, total(self.gradients.values()), self.job)


def drawn_rounds(drawn: DrawnPlan, random: Random, jobs: Sequence[int]) -> list[Round]:
    """Rounds of all slots of these jobs."""

    def gradient(job: int, label: int, slot: int, number: int) -> Agg:
        return Agg(GRADIENT, label, slot, number, tuple(random.getrandbits(32) for _ in range(8)), job)

    return [
        Round(job, slot, number, {label: gradient(job, label, slot, number) for label in tree.workers})
        for job, tree in drawn.trees.items()
        if job in jobs
        for slot in range(tree.slots or 0)
        for number in range(ROUNDS)
    ]


def interleaved(rounds: Sequence[Round], random: Random) -> Iterator[tuple[Round, Agg, bool]]:
    """All gradients in a random order, each slot's rounds in sequence; each with whether it completes its round."""
    waiting: dict[tuple[int, int], deque[tuple[Round, Agg, bool]]] = {}
    for each in rounds:
        order = random.sample(list(each.gradients.values()), len(each.gradients))
        queue = waiting.setdefault((each.job, each.slot), deque())
        queue.extend((each, gradient, number == len(order)) for number, gradient in enumerate(order, 1))
    while waiting:
        place = random.choice(list(waiting))
        yield waiting[place].popleft()
        if not waiting[place]:
            del waiting[place]


# -- expected packets

MISSING = "no result"


def run_jobs(network: TreeNetwork, random: Random, jobs: Sequence[int] = ()) -> None:
    """Run jobs of a plan (by default all) at once; raises `WrongError` unless all workers get all sums."""
    drawn = network.drawn
    network.exchanges, network.drops = [], []
    for each, gradient, complete in interleaved(drawn_rounds(drawn, random, jobs or tuple(drawn.trees)), random):
        workers = drawn.trees[each.job].workers
        arrived = network.send(workers[gradient.worker], gradient.packed())
        try:
            judge_arrived(workers, each, arrived, each.tree_result if complete else None)
            if astray := next((drop for drop in network.drops if drop.startswith(KINDS[RESULT])), ""):
                raise WrongError(f"{each}: its result also goes where it is not expected. Dropped: {astray}")
        except WrongError as wrong:
            why = f". Dropped last: {network.drops[-1]}" if network.drops and wrong.cause.endswith(MISSING) else ""
            raise network.wrong(wrong.cause + why, wrong.finding.expected) from None
        network.exchanges = []


def judge_arrived(
    workers: Mapping[int, str], each: Round, arrived: list[tuple[str, bytes]], wanted: Agg | None
) -> None:
    """Raise `WrongError` unless each worker gets the wanted result, and no worker gets one before all have sent."""
    if wanted is None:
        if arrived:
            early = f"{short(arrived[0][1])} comes to {arrived[0][0]} before all have sent"
            raise WrongError(f"{each}: {early}", expected=["nothing at any host"])
        return
    hosts = set(workers.values())
    results = {host: agg_in(packet) for host, packet in arrived}
    strangers, missing = sorted(set(results) - hosts), sorted(hosts - set(results))
    cause = ""
    if strangers:
        cause = f"its result comes to {strangers[0]}, which is no worker of it"
    elif missing:
        cause = f"all have sent, and {', '.join(missing)} get {MISSING}"
    elif len(arrived) != len(workers):
        cause = f"{len(arrived)} results come to {len(workers)} workers"
    if cause:
        raise WrongError(f"{each}: {cause}", expected=[f"a result at {', '.join(sorted(hosts))}"])
    sender = "label" if each.job else "worker"
    named = {f"{sender} {label}'s gradient": gradient.values for label, gradient in each.gradients.items()}
    for host, result in results.items():
        if result is None or result.kind != RESULT:
            cause = f"what comes to {host} is no result"
        else:
            cause = explain_sum(result.values, named)
            if not cause and result != wanted:
                cause = f"what comes to {host} is not labelled as its result"
        if cause:
            raise WrongError(f"{each}: {cause}", expected=[str(wanted)])


CHILDREN = 3
PROGRAM_ROUNDS = 3


@dataclass(frozen=True)
class TreeNode(GradedAggregator):
    """An aggregator on the tested switch: `ports[n]` leads to the node of child n.

    Results come from `parent`, and go to `ports` in multicast group `group`.
    """

    bench: Bench
    job: int
    label: int
    children: tuple[int, ...]
    ports: tuple[int, ...]
    parent: int
    pipeline: int = 0
    first: int = 0
    slots: int = 4

    who, senders, packet = "label", "children", "packet"

    @classmethod
    def drawn(cls, bench: Bench, label: int, count: int = CHILDREN, **fixed: int) -> TreeNode:
        """An aggregator with random ports, children and job."""
        ports = bench.drawn_ports(count + 1)
        children = bench.random.sample(range(1, 100), count)
        return cls(bench, bench.random.randrange(1, 200), label, tuple(children), tuple(ports[1:]), ports[0], **fixed)

    @property
    def entries(self) -> list[TableEntry]:
        """The entries that the aggregator needs."""
        full = (1 << len(self.children)) - 1
        found = [entry(PIPELINE_OF, (port,), (self.pipeline,)) for port in self.ports]
        for bit, (child, port) in enumerate(zip(self.children, self.ports, strict=True)):
            found.append(entry(ADMITTED, (port, GRADIENT, self.job, child)))
            owned = (1 << bit, full, self.label, self.first, self.slots)
            found.append(entry(CHILD_OF, (self.pipeline, self.job, child), owned))
        if self.label != ROOT_LABEL:
            found.append(entry(ADMITTED, (self.parent, RESULT, self.job, ROOT_LABEL)))
            found.append(entry(UP, (self.job, self.label), (self.parent,)))
        return [*found, entry(DOWN, (self.job,), (self.group,))]

    @property
    def group(self) -> int:
        """The multicast group of the job's results, which is no number of a job."""
        return 256 + self.job

    def begin(self) -> None:
        start([self])

    def port_of(self, gradient: Agg) -> int:
        return self.ports[self.children.index(gradient.worker)]

    def expected(self, gradient: Agg, values: Values) -> Packets:
        """The packets of a complete sum: at the root results for all below, elsewhere a gradient towards the root."""
        if self.label == ROOT_LABEL:
            result = replace(gradient, kind=RESULT, worker=ROOT_LABEL, values=values).packed()
            return [(port, result) for port in self.ports]
        return [(self.parent, replace(gradient, worker=self.label, values=values).packed())]

    def round(self, slot: int, number: int = 0) -> list[Agg]:
        """A gradient of each child, in a random order."""
        bench = self.bench
        return [
            Agg(GRADIENT, child, slot, number, bench.drawn_values(), self.job, ethernet=bench.drawn_ethernet())
            for child in bench.random.sample(self.children, len(self.children))
        ]


def start(nodes: Sequence[TreeNode]) -> None:
    """Restart the switch with these aggregators."""
    entries = tuple(dict.fromkeys(each for node in nodes for each in node.entries))
    groups = {node.group: tuple(sorted({p for n in nodes if n.job == node.job for p in n.ports})) for node in nodes}
    multicast = tuple(MulticastGroup(*group) for group in groups.items())
    nodes[0].bench.start(SwitchEntries("switch", entries, multicast))


def check_admission(bench: Bench) -> None:
    """Packets that the plan does not admit are dropped and not counted, and so are those of no aggregation."""
    for what in ("port", "label", "job", "slot", "high slot", "result"):
        node = TreeNode.drawn(bench, 120, first=3, slots=2)
        gradients = node.round(1)
        forged = [forgery(what, node, each) for each in node.round(1)]
        node.judge_forgeries(forged[0][2], [each[:2] for each in forged], gradients)
    other = gradients[0].packed()[:12] + b"\x08\x00" + gradients[0].packed()[14:]
    bench.same(bench.send(node.port_of(gradients[0]), other), [], "a packet of no aggregation is not dropped")


def forgery(what: str, node: TreeNode, each: Agg) -> tuple[Agg, int, str]:
    """A packet that is not admitted, its port, and its name in messages."""
    port, at, slots = node.port_of(each), node.children.index(each.worker), node.slots
    other = node.ports[(at + 1) % len(node.ports)]
    return {
        "port": (each, other, "a gradient from the port of another label"),
        "label": (replace(each, worker=100 + at), port, "a gradient of a label that is not admitted"),
        "job": (replace(each, job=node.job + 1), port, "a gradient of a job that is not admitted"),
        "slot": (replace(each, slot=slots), port, f"a gradient for slot {slots} of a job that has {slots}"),
        "high slot": (replace(each, slot=257), port, f"a gradient for slot 257 of a job that has {slots}"),
        "result": (replace(each, kind=RESULT, worker=ROOT_LABEL), port, "a result from below"),
    }[what]


def check_sum(bench: Bench) -> None:
    """The complete sum of the children leaves towards the root under the aggregator's label."""
    for children, last in [(count, last) for count in (8, 1, bench.random.randrange(2, 6)) for last in range(count)]:
        first, number = bench.random.randrange(1, 40), bench.random.getrandbits(16)
        node = TreeNode.drawn(bench, bench.random.randrange(100, 200), children, first=first)
        node.begin()
        gradients = node.round(bench.random.randrange(node.slots), number)
        gradients.sort(key=lambda each: each.worker == node.children[last])
        for count, gradient in enumerate(gradients, 1):
            left = node.send(gradient)
            if left and count < children:
                raise bench.wrong(f"a packet leaves when {count} of {children} children have sent")
        if not left:
            expected = node.expected(gradient, total(gradients))
            raise bench.wrong("nothing leaves, though all children have sent", expected, "drop")
        packet = left[0][1]
        node.judge_sum(packet.values, gradients)
        expected = node.expected(gradient, packet.values)
        if packet.worker != node.label:
            cause = f"the sum leaves under label {packet.worker}, where its aggregator has {node.label}"
            raise bench.wrong(cause, expected, "agg.label")
        if left != [(node.parent, replace(gradient, worker=node.label, values=packet.values))]:
            raise bench.wrong("the sum does not leave as one gradient towards the root", expected)


def check_pass(bench: Bench) -> None:
    """Packets that other switches sum are forwarded unchanged: gradients towards the root, results to all below."""
    node, up = TreeNode.drawn(bench, 120, pipeline=1), bench.random.randrange(64, 128)
    label, job = bench.random.randrange(130, 140), node.job
    below, number = bench.random.choice(node.ports), bench.random.getrandbits(16)
    entries = [*node.entries, entry(ADMITTED, (below, GRADIENT, job, label)), entry(UP, (job, label), (up,))]
    bench.start(SwitchEntries("switch", tuple(entries), (MulticastGroup(node.group, node.ports),)))
    for slot in (0, 1, node.slots + 5):
        packet = Agg(GRADIENT, label, slot, number, bench.drawn_values(), job, ethernet=bench.drawn_ethernet())
        got = bench.send(below, packet.packed())
        bench.same(got, [(up, packet.packed())], "a gradient of a label that no aggregator here sums does not go on")
    result = replace(packet, kind=RESULT, worker=ROOT_LABEL, slot=1)
    expected = [(port, result.packed()) for port in node.ports]
    bench.same(bench.send(node.parent, result.packed()), expected, "a result from above does not go on to all below")


def check_root(bench: Bench) -> None:
    """At the root the sum becomes the result, for all below."""
    for _ in range(2):
        node = TreeNode.drawn(bench, ROOT_LABEL)
        node.begin()
        gradients = node.round(bench.random.randrange(node.slots), bench.random.getrandbits(16))
        left = [node.send(gradient) for gradient in gradients][-1]
        expected = node.expected(gradients[-1], left[0][1].values if left else total(gradients))
        if not left:
            raise bench.wrong("nothing leaves the root, though all children have sent", expected, "drop")
        packet = left[0][1]
        if packet.kind != RESULT:
            raise bench.wrong(f"what leaves the root has kind {packet.kind}, not {RESULT}", expected, "agg.kind")
        if packet.worker != ROOT_LABEL:
            raise bench.wrong(f"the result has label {packet.worker}, not {ROOT_LABEL}", expected, "agg.label")
        got = [(port, each.packed()) for port, each in left]
        bench.same(got, expected, "the result does not leave once by each port of the job's group")


def check_rounds(bench: Bench) -> None:
    """Several slots and rounds in sequence, below the root and at one that works; a repeated gradient is dropped."""
    rounds_of(TreeNode.drawn(bench, 120, first=5))
    for pipeline in range(PIPELINES):
        node = TreeNode.drawn(bench, 120, pipeline=pipeline, slots=SLOTS)
        first, second = node.round(0), node.round(0, 1)
        script = sent_by_all(node, [*twice(first), *twice(second)])
        check_every_slot(
            node, SLOTS, first, script, f"rounds of which gradients are sent twice, in pipeline {pipeline}"
        )
    root = TreeNode.drawn(bench, ROOT_LABEL, first=5)
    try:
        root.alone(root.round(0))
    except WrongError:
        return  # another item tests the root
    rounds_of(root)


def rounds_of(node: TreeNode) -> None:
    """Raise `WrongError` unless an aggregator sends in each round what it sends in a restarted switch."""
    bench, slot = node.bench, node.bench.random.randrange(node.slots)
    rounds = [node.round(slot, number) for number in range(PROGRAM_ROUNDS)]
    usual = [node.alone(gradients) for gradients in rounds]
    node.begin()
    sums: dict[str, Values] = {}
    for number, gradients in enumerate(rounds):
        for count, (gradient, left) in enumerate(zip(gradients, usual[number], strict=True)):
            what = f"in round {number} of slot {slot}"
            node.judge_same(node.send(gradient), left, gradients, what, sums)
            if count == number - 1 and node.send(gradients[0]):
                again = gradients[0].worker
                raise bench.wrong(f"label {again} sends its gradient twice, and a packet leaves for the second")
        sums[f"the sum of round {number}"] = total(gradients)
    check_together([node], range(node.slots), f"all {node.slots} slots are in use")


def check_jobs(bench: Bench) -> None:
    """Jobs with the same labels and slots in one pipeline are independent of each other."""
    first = TreeNode.drawn(bench, 120, first=7, slots=3)
    first = replace(first, job=first.job % 100 + 1)
    ports = bench.random.sample(range(64, 128), CHILDREN + 1)
    # Numbers, slots and cells of the jobs also differ by powers of two: a part of their bits does not tell them apart.
    second = replace(first, job=first.job + 64, ports=tuple(ports[1:]), parent=ports[0], first=39, slots=4)
    same_ports = replace(first, job=first.job + 128, first=4, slots=3, label=121)
    check_together([first, second, same_ports], (bench.random.randrange(3),), "three jobs are on the switch")


def check_pipelines(bench: Bench) -> None:
    """Two pipelines are independent, with the same slots of one job."""
    labels, ports = bench.random.sample(range(1, 100), 2 * CHILDREN), bench.drawn_ports(2 * CHILDREN + 1)
    job, first = bench.random.randrange(1, 200), bench.random.randrange(1, 40)
    nodes = [
        TreeNode(bench, job, 120 + n, tuple(labels[n::2]), tuple(ports[1 + n :: 2]), ports[0], n, first)
        for n in range(2)
    ]
    slot = bench.random.randrange(4)
    check_together(nodes, (slot,), "two pipelines have an aggregator with the same slots")
    for distance in (8, 16, 32):
        apart = [replace(nodes[0], first=first % 8 + distance), replace(nodes[1], first=first % 8)]
        check_together(apart, (slot,), f"pipeline 0 uses slots that are {distance} beyond those of pipeline 1")


def check_together(nodes: Sequence[TreeNode], slots: Sequence[int], what: str) -> None:
    """Raise `WrongError` unless each of these slots of each aggregator sends the same packets as alone.

    Another item tests the slot in the header of what leaves.
    """
    rounds = {(at, slot): node.round(slot) for at, node in enumerate(nodes) for slot in slots}
    usual = {
        (at, slot): replace(nodes[at], first=0, pipeline=0).alone([replace(g, slot=0) for g in gradients])
        for (at, slot), gradients in rounds.items()
    }
    random, later = nodes[0].bench.random, [place for place in rounds for _ in range(CHILDREN - 1)]
    order = [*random.sample(list(rounds), len(rounds)), *random.sample(later, len(later))]  # all are in use at once
    start(nodes)
    sent = dict.fromkeys(rounds, 0)
    for at, slot in order:
        number = sent[at, slot]
        sent[at, slot] += 1
        gradients = rounds[at, slot]
        left = [(port, replace(packet, slot=slot)) for port, packet in nodes[at].send(gradients[number])]
        wanted = [(port, replace(packet, slot=slot)) for port, packet in usual[at, slot][number]]
        others = {
            f"slot {s} of aggregator {nodes[a].label} of job {nodes[a].job}, label {each.worker}": each.values
            for (a, s), found in rounds.items()
            if (a, s) != (at, slot)
            for each in found[: sent[a, s]]
        }
        where = f"{what}, and in slot {slot} of job {nodes[at].job}"
        nodes[at].judge_same(left, wanted, gradients, where, dict(list(others.items())[-4:]))
