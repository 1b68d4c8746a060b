"""The simulation of shared slots against `p4/ina.p4`, on one sequence of packets; and what is known of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from driven_network import count, driven_network, pass_on, send_from

from inakit.experiments.worlds.virtual import LiveVirtualNetwork
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.goat.shared_slots import PS, LanedGradient, Sharing, SlotTree, simulate
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.traffic.wire.packet_format import FRAGMENT, Event, Flag, Frames, Kind, new_frames

SLOTS, FRAGMENTS = 3, 11
WORKERS = {label: f"w{label}" for label in range(1, 7)}
ALL_SLOTS = LanedGradient(FRAGMENTS, SLOTS, SLOTS)
PRIORITY = 16

Shape = Callable[[str], tuple[AggregationTree, SlotTree]]


def rack(label: int) -> str:
    return "s1" if label <= 3 else "s2"


def fabric() -> Fabric:
    """Two racks of three workers, and a switch before the PS."""
    links = [Link(name, rack(label), 0, label, 1e7, 1e7) for label, name in WORKERS.items()]
    links += [Link("s1", "s3", 7, 1, 1e7, 1e7), Link("s2", "s3", 7, 2, 1e7, 1e7), Link("ps", "s3", 0, 3, 1e7, 1e7)]
    switches = tuple(
        Switch(name, 1, (tuple(range(1, 8)),), aggregator_slots=SLOTS) if name != "s3"
        else Switch(name, 2, ((1, 2, 3),), aggregator_slots=SLOTS)
        for name in ("s1", "s2", "s3")
    )  # fmt: skip
    hosts = tuple(Host(name) for name in (*WORKERS.values(), "ps"))
    return Fabric("two-racks", hosts, switches, tuple(links))


def two_levels(policy: str) -> tuple[AggregationTree, SlotTree]:
    """The slot tree where every switch sums."""
    aggregators = (
        Aggregator(7, "s1", 0, (1, 2, 3), 0, SLOTS),
        Aggregator(8, "s2", 0, (4, 5, 6), 0, SLOTS),
        Aggregator(9, "s3", 0, (7, 8), 0, SLOTS),
    )
    branches = [Branch(label, 7 if label <= 3 else 8, (WORKERS[label], rack(label))) for label in WORKERS]
    branches += [Branch(7, 9, ("s1", "s3")), Branch(8, 9, ("s2", "s3")), Branch(9, 0, ("s3", "ps"))]
    tree = AggregationTree(1, "ps", WORKERS, aggregators, tuple(branches), policy=policy, priority=PRIORITY)
    slot_tree = SlotTree(np.array([0, 0, 0, 1, 1, 1]), np.ones(6, int), np.array([2, 2, PS]), np.ones(3, int))
    return tree, slot_tree


def one_switch(policy: str) -> tuple[AggregationTree, SlotTree]:
    """The slot tree where only the switch before the PS sums."""
    branches = [Branch(label, 7, (WORKERS[label], rack(label), "s3")) for label in WORKERS]
    aggregator = Aggregator(7, "s3", 0, tuple(WORKERS), 0, SLOTS)
    branches.append(Branch(7, 0, ("s3", "ps")))
    tree = AggregationTree(1, "ps", WORKERS, (aggregator,), tuple(branches), policy=policy, priority=PRIORITY)
    return tree, SlotTree(np.zeros(6, int), np.full(6, 2), np.array([PS]), np.ones(1, int))


class Driven:
    """The switches, to which packets come one at a time, and a PS that answers a fragment when it has all of it."""

    def __init__(self, network: LiveVirtualNetwork, *, flushed: bool) -> None:
        self.network, self.flushed = network, flushed
        self.hosts = {host.name: host for host in network.hosts}
        self.sent = np.zeros(FRAGMENTS, int)
        self.received = np.zeros(FRAGMENTS, int)
        self.ingress = 0

    def frame(self, source: str, target: str, kind: Kind, label: int, fragment: int) -> Frames:
        a, b = self.hosts[source], self.hosts[target]
        frame = new_frames(1, src_mac=a.mac, dst_mac=b.mac, src_ip=a.ipv4, dst_ip=b.ipv4)
        ina = frame["ina"]
        ina["kind"], ina["job"], ina["tree"], ina["label"] = kind, 1, 1, label
        ina["seq"], ina["slot"], ina["workers"], ina["priority"] = fragment, fragment % SLOTS, 1, PRIORITY
        return frame

    def send(self, label: int, fragment: int) -> None:
        """Send a worker's fragment. The last one of all is marked as a retransmission, for which no sum waits."""
        frame = self.frame(WORKERS[label], "ps", Kind.GRADIENT, label, fragment)
        self.sent[fragment] += 1
        if self.flushed and self.sent[fragment] == len(WORKERS):
            frame["ina"]["flags"] = Flag.RETRANSMITTED
        self.pass_on(WORKERS[label], frame)
        heads = self.network.engine.take()["frame"]["ina"]
        for ina in heads[heads["kind"] == Kind.GRADIENT]:
            self.ingress += 1
            self.received[ina["seq"]] += ina["workers"]
            if self.received[ina["seq"]] == len(WORKERS):
                self.pass_on("ps", self.frame("ps", "w1", Kind.RESULT, 0, int(ina["seq"])))

    def pass_on(self, host: str, frame: Frames) -> None:
        """Let a packet of a host go as far as it goes."""
        send_from(self.network, host, frame)
        pass_on(self.network)


@contextmanager
def driven(tree: AggregationTree, *, flushed: bool) -> Iterator[Driven]:
    """The network in which a tree is installed."""
    job = Job(1, tuple(WORKERS.values()), ("ps",), FRAGMENTS * 4 * FRAGMENT.values)
    plan = Plan("by hand", "two-racks", (PlannedTree(1, 1.0, 1e5, tree),), SolverOutcome("heuristic", 0))
    with driven_network(Problem(fabric(), (job,), FRAGMENT), plan) as network:
        yield Driven(network, flushed=flushed)


def in_order(rates: np.ndarray) -> list[tuple[int, int]]:
    """The (label, fragment) pairs in the order in which they are sent."""
    sent = {(label, f): (f + 1) / rates[label - 1] for label in WORKERS for f in range(FRAGMENTS)}
    return sorted(sent, key=lambda key: sent[key])


@pytest.mark.compiler
@pytest.mark.parametrize("policy", ["atp", "esa"])
@pytest.mark.parametrize(("shape", "flushed"), [(two_levels, False), (one_switch, False), (one_switch, True)])
@pytest.mark.parametrize("spread", [0.8, 0.95])
def test_the_slots_are_those_of_the_program(policy: str, shape: Shape, flushed: bool, spread: float) -> None:
    tree, slot_tree = shape(policy)
    rates = 1 - spread * np.random.default_rng(int(100 * spread)).random(len(WORKERS))
    with driven(tree, flushed=flushed) as switches:
        for label, fragment in in_order(rates):
            switches.send(label, fragment)
    counts = simulate(slot_tree, Sharing(policy, PRIORITY, flushed), rates, ALL_SLOTS)
    left = 0 if flushed else counts.flushed
    expected = [counts.added, counts.completed, counts.collided, counts.evicted, counts.flushed - left]
    events = (Event.ADDED, Event.COMPLETED, Event.COLLISION, Event.EVICTED, Event.FLUSHED)
    assert [count(switches.network, event) for event in events] == expected
    assert switches.ingress == counts.ingress - left
    assert counts.collided + counts.evicted > 0


@pytest.mark.parametrize("policy", ["atp", "esa"])
def test_equal_rates_sum_everything(policy: str) -> None:
    _, tree = two_levels(policy)
    counts = simulate(tree, Sharing(policy), np.ones(6), ALL_SLOTS)
    assert (counts.ingress, counts.collided, counts.evicted) == (FRAGMENTS, 0, 0)
    assert counts.transfers == FRAGMENTS * (6 + 2 + 1)


@pytest.mark.parametrize("policy", ["atp", "esa"])
def test_few_lanes_stand_for_all_slots(policy: str) -> None:
    _, tree = two_levels(policy)
    rates = 1 - 0.5 * np.random.default_rng(1).random(6)
    few, fine = (simulate(tree, Sharing(policy), rates, LanedGradient(4100, 1200, lanes)) for lanes in (60, 1200))
    coarse = simulate(tree, Sharing(policy), rates, LanedGradient(410, 120, 120))
    assert few.ingress == pytest.approx(fine.ingress, rel=0.02)
    assert coarse.transfers * 10 == pytest.approx(fine.transfers, rel=0.02)


def test_what_makes_no_sense() -> None:
    with pytest.raises(InputError, match="not shared"):
        simulate(two_levels("atp")[1], Sharing("goat"), np.ones(6), ALL_SLOTS)
    with pytest.raises(InputError, match="9 lanes"):
        LanedGradient(FRAGMENTS, SLOTS, 9)
