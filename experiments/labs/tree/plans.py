"""Plans for lab 5: trees of several jobs on a small fabric, drawn, in the kit's own types; and as students get them.

The fabric has three levels and two pipelines in every switch. Ports are numbered at random, so that nothing but the
plan says what is where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Aggregator, Branch
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch

CORE, SPINES, LEAVES, HOSTS = "core1", 2, 4, 4
"""A core, spines below it, leaves below these, and hosts at each leaf."""
RATE_BPS = 100e6
HIGHEST_PORT = 63


@dataclass(frozen=True)
class Drawn:
    """A fabric, and a tree for each job by its number."""

    fabric: Fabric
    trees: dict[int, AggregationTree]

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """The switches of the fabric."""
        return tuple(switch.name for switch in self.fabric.switches)

    def port(self, node: str, peer: str) -> int:
        """The port of a node that leads to a peer."""
        return self.fabric.port_numbers[node, peer]

    def attachment(self, host: str) -> tuple[str, int]:
        """The switch that a host hangs from, and its port there."""
        leaf = next(peer for node, peer in self.fabric.port_numbers if node == host)
        return leaf, self.port(leaf, host)

    def document(self) -> dict[str, Any]:
        """The plan as students get it."""
        return {
            "version": 1,
            "switches": {
                switch.name: {
                    "ports": {
                        peer: port for (node, peer), port in self.fabric.port_numbers.items() if node == switch.name
                    },
                    "pipelines": [list(ports) for ports in switch.pipelines],
                }
                for switch in self.fabric.switches
            },
            "jobs": [{"job": job, **document_of(tree)} for job, tree in self.trees.items()],
        }


def document_of(tree: AggregationTree) -> dict[str, Any]:
    """A tree as students get it: the part of the kit's own format that they need."""
    return {
        "root": tree.root,
        "workers": {str(label): host for label, host in tree.workers.items()},
        "aggregators": [
            {
                "label": each.label,
                "switch": each.switch,
                "pipeline": each.pipeline,
                "children": list(each.children),
                "first_slot": each.first_slot,
                "slots": each.slots,
            }
            for each in tree.aggregators
        ],
        "branches": [{"label": each.label, "parent": each.parent, "path": list(each.path)} for each in tree.branches],
    }


# -- the fabric


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
    switches = tuple(Switch(name, tier_of(name), halves(name, ports[name])) for name in names)
    hosts = tuple(Host(f"h{n + 1}") for n in range(LEAVES * HOSTS))
    return Fabric("drawn", hosts, switches, tuple(links))


def tier_of(name: str) -> int:
    """The level of a switch, from 1."""
    return {"l": 1, "s": 2, "c": 3}[name[0]]


def halves(name: str, ports: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The ports of both pipelines. Those of the core that are used are in one, so that it can be a root."""
    if name == CORE:
        return (tuple(sorted(ports[-1:])), tuple(sorted(ports[:-1])))
    return tuple(sorted(ports[0::2])), tuple(sorted(ports[1::2]))


# -- the trees


@dataclass
class Builder:
    """Builds trees on a fabric. `used` is how many slots of each (switch, pipeline) are taken."""

    fabric: Fabric
    random: Random
    used: dict[tuple[str, int], int] = field(default_factory=dict)

    def tree(self, number: int, root: str, hosts: Sequence[str], slots: int) -> AggregationTree:
        """The tree of these hosts to a root, which sums wherever two labels come to one pipeline of a switch."""
        labels = self.random.sample(range(1, len(hosts) + 1), len(hosts))
        work = Work(dict(zip(labels, hosts, strict=True)), root, slots)
        for label, host in work.workers.items():
            work.paths[label] = [host]
            work.at.setdefault(self.above(host), []).append((label, host))
        for tier in (1, 2, 3):
            for switch in [name for name in work.at if tier_of(name) == tier]:
                self.at_switch(work, switch)
        return AggregationTree(number, root, work.workers, tuple(work.aggregators), tuple(work.branches))

    def above(self, node: str) -> str:
        """The switch above a node."""
        own = 0 if node.startswith("h") else tier_of(node)
        peers = [peer for each, peer in self.fabric.port_numbers if each == node]
        return next(peer for peer in peers if not peer.startswith("h") and tier_of(peer) > own)

    def at_switch(self, work: Work, switch: str) -> None:
        """Sum what comes to a switch, pipeline by pipeline, and let it go on."""
        arrived = work.at[switch]
        for label, _ in arrived:
            work.paths[label].append(switch)
        going: list[int] = []
        for pipeline in range(2):
            here = [label for label, before in arrived if self.fabric.ingress_pipeline(switch, before) == pipeline]
            if switch == work.root or len(here) > 1:
                going += self.aggregated(work, switch, pipeline, here) if here else []
            else:
                going += here
        if switch != work.root:
            work.at.setdefault(self.above(switch), []).extend((label, switch) for label in going)

    def aggregated(self, work: Work, switch: str, pipeline: int, labels: list[int]) -> list[int]:
        """Sum labels in a pipeline of a switch; the label that goes on."""
        label = ROOT_LABEL if switch == work.root else work.new_label()
        first = self.used.get((switch, pipeline), self.random.randrange(4))
        self.used[switch, pipeline] = first + work.slots
        children = tuple(self.random.sample(labels, len(labels)))
        work.aggregators.append(Aggregator(label, switch, pipeline, children, first, work.slots))
        for child in children:
            work.branches.append(Branch(child, label, tuple(work.paths[child])))
        work.paths[label] = [switch]
        return [label]


@dataclass
class Work:
    """A tree that is being built: the labels that come to each switch, by the node before it, and their paths."""

    workers: dict[int, str]
    root: str
    slots: int
    at: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    paths: dict[int, list[str]] = field(default_factory=dict)
    aggregators: list[Aggregator] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)

    def new_label(self) -> int:
        """A label for an aggregator."""
        return len(self.workers) + 1 + len(self.aggregators)


def drawn_plan(random: Random) -> Drawn:
    """Three jobs: two of the whole fabric, whose root is the core, and one whose root is a leaf."""
    fabric = drawn_fabric(random)
    builder = Builder(fabric, random)
    all_hosts = [host.name for host in fabric.hosts]
    over_all = [*random.sample(all_hosts[: 2 * HOSTS], 5), *random.sample(all_hosts[2 * HOSTS :], 3)]
    trees = {}
    numbers = random.sample(range(1, 200), 3)
    trees[numbers[0]] = builder.tree(0, CORE, over_all, 2)
    other = [*random.sample(all_hosts[:HOSTS], 2), *random.sample(all_hosts[2 * HOSTS :], 4)]
    trees[numbers[1]] = builder.tree(0, CORE, other, 3)
    leaf = random.choice([switch for switch in fabric.switches if switch.name.startswith("leaf")])
    near = [host for host in all_hosts if fabric.port_numbers.get((leaf.name, host), -1) in leaf.pipelines[0]]
    trees[numbers[2]] = builder.tree(0, leaf.name, near, 4)
    return Drawn(fabric, dict(sorted(trees.items())))
