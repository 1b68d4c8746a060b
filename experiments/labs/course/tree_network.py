"""The network of lab 5: the tables of its program, drawn plans, the switch of the task as a model, and switches joined.

The fabric has three levels and two pipelines in every switch. Ports are numbered at random, so that nothing but the
plan says what is where. Packets go from workers to results hop by hop, in order of arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any, Protocol

from inakit.experiments.labs.course.aggregation import total
from inakit.experiments.labs.grading.bench import Exchange
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
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.interpret.interpreted_switch import Packets
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch

PIPELINES, SLOTS = 2, 64
"""The pipelines of a switch, and the slots in each."""
PIPELINE_OF, ADMITTED, CHILD_OF, UP, DOWN = "pipeline_of", "admitted", "child_of", "up", "down"


@dataclass(frozen=True)
class Table:
    """A table: the fields of its key and of its action, each with its bits."""

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


CORE, SPINES, LEAVES, HOSTS = "core1", 2, 4, 4
"""A core, spines below it, leaves below these, and hosts at each leaf."""
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
        """The port of a node that leads to a peer."""
        return self.fabric.port_numbers[node, peer]

    def attachment(self, host: str) -> tuple[str, int]:
        """The switch that a host hangs from, and its port there."""
        leaf = next(peer for node, peer in self.fabric.port_numbers if node == host)
        return leaf, self.port(leaf, host)

    def document(self) -> dict[str, Any]:
        """The plan as students get it: of the kit's own format the part that they need."""
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


def drawn_fabric(random: Random) -> Fabric:
    """A core, spines, leaves and hosts, whose ports are drawn. A switch has its ports to below in both pipelines."""
    above = {f"leaf{n + 1}": f"spine{n * SPINES // LEAVES + 1}" for n in range(LEAVES)}
    above |= {f"spine{n + 1}": CORE for n in range(SPINES)}
    above |= {f"h{n + 1}": f"leaf{n // HOSTS + 1}" for n in range(LEAVES * HOSTS)}
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
        # Those ports of the core that are used are in one pipeline, so that it can be a root.
        one, other = (ports[name][-1:], ports[name][:-1]) if name == CORE else (ports[name][0::2], ports[name][1::2])
        return tuple(sorted(one)), tuple(sorted(other))

    switches = tuple(Switch(name, tier_of(name), pipelines(name)) for name in names)
    hosts = tuple(Host(f"h{n + 1}") for n in range(LEAVES * HOSTS))
    return Fabric("drawn", hosts, switches, tuple(links))


def tier_of(name: str) -> int:
    """The level of a node: 0 for a host, 1 for a leaf."""
    return {"h": 0, "l": 1, "s": 2, "c": 3}[name[0]]


@dataclass
class TreeBuilder:
    """Builds a tree on a fabric. `used` is how many slots of each (switch, pipeline) other trees have taken.

    `at` has the labels that come to each switch, with the node before it, and `paths` the way of each label so far.
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
        """The tree of these hosts to the root, which sums wherever two labels come to one pipeline of a switch."""
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
        """Sum the labels that come to a switch, pipeline by pipeline, and let them go on."""
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
        """Sum labels in a pipeline of a switch; the label that goes on."""
        label = ROOT_LABEL if switch == self.root else len(self.workers) + 1 + len(self.aggregators)
        first = self.used.get((switch, pipeline), self.random.randrange(4))
        self.used[switch, pipeline] = first + self.slots
        children = tuple(self.random.sample(labels, len(labels)))
        self.aggregators.append(Aggregator(label, switch, pipeline, children, first, self.slots))
        for child in children:
            self.branches.append(Branch(child, label, tuple(self.paths[child])))
        self.paths[label] = [switch]
        return label


def drawn_plan(random: Random) -> DrawnPlan:
    """Three jobs: two of the whole fabric, whose root is the core, and one whose root is a leaf."""
    fabric = drawn_fabric(random)
    used: dict[tuple[str, int], int] = {}

    def tree(root: str, hosts: Sequence[str], slots: int) -> AggregationTree:
        return TreeBuilder(fabric, random, used, root, slots).tree(hosts)

    all_hosts = [host.name for host in fabric.hosts]
    over_all = [*random.sample(all_hosts[: 2 * HOSTS], 5), *random.sample(all_hosts[2 * HOSTS :], 3)]
    numbers = random.sample(range(1, 200), 3)
    trees = {numbers[0]: tree(CORE, over_all, 2)}
    other = [*random.sample(all_hosts[:HOSTS], 2), *random.sample(all_hosts[2 * HOSTS :], 4)]
    trees[numbers[1]] = tree(CORE, other, 3)
    leaf = random.choice([switch for switch in fabric.switches if switch.name.startswith("leaf")])
    near = [host for host in all_hosts if fabric.port_numbers.get((leaf.name, host), -1) in leaf.pipelines[0]]
    trees[numbers[2]] = tree(leaf.name, near, 4)
    return DrawnPlan(fabric, dict(sorted(trees.items())))


# -- switches


Found = tuple[int, ...] | None


class ModelTree:
    """A switch that runs entries. `why` is the reason for which it dropped the last packet, empty if it did not."""

    def __init__(self, entries: SwitchEntries) -> None:
        self.name, self.why = entries.switch, ""
        self.tables: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {name: {} for name in TABLES}
        for each in entries.tables:
            self.tables[each.table][tuple(int(str(part)) for part in each.key)] = each.params
        self.groups = {group.group: group.ports for group in entries.groups}
        self.sums: dict[tuple[int, int], dict[int, Values]] = {}

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; the packets that leave."""
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
        """The parameters of an entry; where there is none, why the packet is dropped."""
        found = self.tables[table].get(key)
        if found is None and table != PIPELINE_OF:
            self.why = self.missing(table, *key)
        return found

    def missing(self, table: str, *key: int) -> str:
        """In words, that a table has no entry for a key."""
        fields = ", ".join(f"{name} {value}" for name, value in zip(TABLES[table].key, key, strict=True))
        return f"table '{table}' of {self.name} has no entry for {fields}"

    def add(self, pipeline: int, child: tuple[int, ...], found: Agg) -> Packets:
        """Add a gradient to a sum, which leaves when it is complete."""
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
        """Forward a gradient that no aggregator here sums; `not_summed` says which entry is missing for that."""
        left = self.send_up(found)
        if self.why:
            self.why += f"; it is not summed there either: {not_summed}"
        return left

    def send_up(self, found: Agg) -> Packets:
        """Send a gradient towards the root."""
        way = self.look_up(UP, found.job, found.worker)
        return [] if way is None else [(way[0], found.packed())]

    def spread(self, found: Agg) -> Packets:
        """Send a result to all below."""
        group = self.look_up(DOWN, found.job)
        if group is None:
            return []
        if group[0] not in self.groups:
            self.why = f"{self.name} has no multicast group {group[0]}"
        return [(port, found.packed()) for port in self.groups.get(group[0], ())]


MOST_HOPS = 2000
"""The most hops that one packet may cause. A network in which packets circulate causes more."""
ROUNDS = 3


class Injected(Protocol):
    """A switch that is asked packet by packet."""

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; the packets that leave."""
        ...


@dataclass
class TreeNetwork:
    """A plan's fabric. `switch_of` gives the switch of a name.

    `exchanges` and `drops` keep what has happened since they were last emptied, and `noted` hears of all of it.
    """

    drawn: DrawnPlan
    switch_of: Callable[[str], Injected]
    exchanges: list[Exchange] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)
    noted: Callable[[Exchange], None] = lambda _: None

    def __post_init__(self) -> None:
        self.far = {(node, port): peer for (node, peer), port in self.drawn.fabric.port_numbers.items()}

    def send(self, host: str, packet: bytes) -> list[tuple[str, bytes]]:
        """Let a host send a packet, and everything happen that it causes; the packets that come to hosts."""
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
        raise self.wrong("packets circulate in the network without end")

    def wrong(self, cause: str, expected: Sequence[str] = ()) -> WrongError:
        """The error to raise when the last packet shows that something is wrong, with its way hop by hop."""
        if not self.exchanges:
            return WrongError(cause)
        hops, last = [f"{each.switch} {each.sent}" for each in self.exchanges[-8:]], self.exchanges[-1]
        got = [f"{last.switch} port {port}: {described(packet)}" for port, packet in last.got]
        return WrongError(cause, sent=hops, expected=expected or ["nothing"], got=got or ["nothing"])


def short(packet: bytes) -> str:
    """The fields of a packet that switches look at."""
    found = agg_in(packet)
    if found is None:
        return described(packet)
    return f"{KINDS.get(found.kind, 'packet')} of job {found.job}, label {found.worker}, slot {found.slot}"


# -- what is sent


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
    """All gradients in a drawn order, a slot's rounds one after the other; each with whether it completes its round."""
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


# -- what has to come

MISSING = "no result"


def run_jobs(network: TreeNetwork, random: Random, jobs: Sequence[int] = ()) -> None:
    """Run jobs of a plan (all, unless some are named) at once; raises `WrongError` unless all workers get all sums."""
    drawn = network.drawn
    network.exchanges, network.drops = [], []
    for each, gradient, complete in interleaved(drawn_rounds(drawn, random, jobs or tuple(drawn.trees)), random):
        workers = drawn.trees[each.job].workers
        arrived = network.send(workers[gradient.worker], gradient.packed())
        try:
            judge_arrived(workers, each, arrived, each.tree_result if complete else None)
        except WrongError as wrong:
            why = f". Dropped last: {network.drops[-1]}" if network.drops and wrong.cause.endswith(MISSING) else ""
            raise network.wrong(wrong.cause + why, wrong.finding.expected) from None
        network.exchanges = []


def judge_arrived(
    workers: Mapping[int, str], each: Round, arrived: list[tuple[str, bytes]], wanted: Agg | None
) -> None:
    """Raise `WrongError` unless each worker has got the result that is wanted; nobody gets any before all have sent."""
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
