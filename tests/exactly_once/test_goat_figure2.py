"""GOAT's Figure 2: four workers, three switches with a slot each, and fragments in the figure's order.

With ATP the PS receives 7 fragments and switches send 17, with GOAT 3 and 13. That takes two things which the paper
does not say: a slot is taken until the result has come back (after A is summed, S1 still passes B2 and C2 on), and
S3 sums what comes to it unaggregated (B1 to B4).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest
from driven_network import count, driven_network, pass_on, send_from

from inakit.experiments.worlds.virtual import host_ports_of
from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.ina_program import SENT
from inakit.planner.install.plan_entries import entries
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import FRAGMENT, Event, Frames, Kind, new_frames

WORKERS = {1: "w1", 2: "w2", 3: "w3", 4: "w4"}
SWITCHES = ("s1", "s2", "s3")
ORDER = [(label, fragment) for pair in ((1, 3), (2, 4)) for fragment in range(3) for label in pair]
"""(worker, fragment): A1 A3 B1 B3 C1 C3 A2 A4 B2 B4 C2 C4, which gives S1 and S2 the sequences of the figure."""

Transfers = tuple[int, int]
"""Fragments that the PS receives, and that switches send in all."""


def fabric(slots: int) -> Fabric:
    cables = [
        ("w1", "s1", 0, 1), ("w2", "s1", 0, 2), ("w3", "s2", 0, 1), ("w4", "s2", 0, 2),
        ("s1", "s2", 3, 3), ("s1", "s3", 4, 1), ("s2", "s3", 4, 2), ("ps", "s3", 0, 3),
    ]  # fmt: skip
    switches = tuple(Switch(name, 1, (tuple(range(1, ports + 1)),), aggregator_slots=slots)
                     for name, ports in zip(SWITCHES, (4, 4, 3), strict=True))  # fmt: skip
    hosts = tuple(Host(name) for name in (*WORKERS.values(), "ps"))
    return Fabric("goat-figure2", hosts, switches, tuple(Link(a, b, i, j, 1e7, 1e7) for a, b, i, j in cables))


def home(label: int) -> str:
    return "s1" if label <= 2 else "s2"


def atp_tree() -> AggregationTree:
    """All fragments, summed wherever a slot is free."""
    aggregators = (
        Aggregator(5, "s1", 0, (1, 2), 0, 1),
        Aggregator(6, "s2", 0, (3, 4), 0, 1),
        Aggregator(7, "s3", 0, (5, 6), 0, 1),
    )
    branches = [Branch(label, 4 + int(home(label)[1]), (WORKERS[label], home(label))) for label in WORKERS]
    branches += [Branch(5, 7, ("s1", "s3")), Branch(6, 7, ("s2", "s3")), Branch(7, 0, ("s3", "ps"))]
    return AggregationTree(1, "ps", WORKERS, aggregators, tuple(branches), policy="atp")


def goat_tree(number: int, node: str) -> AggregationTree:
    """The tree of one fragment, which is summed only at switch `node`; the other switches pass it on to there."""
    branches = [
        Branch(label, 5, (WORKERS[label], home(label)) if home(label) == node else (WORKERS[label], home(label), node))
        for label in WORKERS
    ]
    branches.append(Branch(5, 0, (node, "ps") if node == "s3" else (node, "s3", "ps")))
    aggregator = Aggregator(5, node, 0, tuple(WORKERS), 0, 1)
    return AggregationTree(number, "ps", WORKERS, (aggregator,), tuple(branches), policy="goat")


def atp() -> tuple[Problem, Plan, Mapping[int, tuple[int, int]]]:
    return *problem_and_plan([atp_tree()]), {fragment: (1, fragment) for fragment in range(3)}


def goat() -> tuple[Problem, Plan, Mapping[int, tuple[int, int]]]:
    trees = [goat_tree(number, node) for number, node in enumerate(SWITCHES, start=1)]
    return *problem_and_plan(trees), {fragment: (fragment + 1, 0) for fragment in range(3)}


def problem_and_plan(trees: list[AggregationTree]) -> tuple[Problem, Plan]:
    job = Job(1, tuple(WORKERS.values()), ("ps",), 3 * 4 * FRAGMENT.values)
    planned = tuple(PlannedTree(1, 1 / len(trees), 1e6 / len(trees), tree) for tree in trees)
    return Problem(fabric(1), (job,), FRAGMENT), Plan("by hand", "goat-figure2", planned, SolverOutcome("heuristic", 0))


def packets(problem: Problem, place: Mapping[int, tuple[int, int]]) -> Iterator[tuple[str, Frames]]:
    """The sender and the frame of each fragment, in order; `place[fragment]` is its tree and sequence number there."""
    hosts = {host.name: host for host in host_ports_of(problem.fabric)}
    for label, fragment in ORDER:
        source, server, (tree, seq) = hosts[WORKERS[label]], hosts["ps"], place[fragment]
        ina = {"kind": Kind.GRADIENT, "job": 1, "tree": tree, "label": label, "seq": seq, "workers": 1}
        frame = new_frames(1, src_mac=source.mac, dst_mac=server.mac, src_ip=source.ipv4, dst_ip=server.ipv4, ina=ina)
        frame["values"] = np.int32(1) << 4 * label
        yield WORKERS[label], frame


def in_virtual_time(problem: Problem, plan: Plan, place: Mapping[int, tuple[int, int]]) -> Transfers:
    with driven_network(problem, plan) as network:
        for number, (worker, frame) in enumerate(packets(problem, place), start=1):
            send_from(network, worker, frame)
            if number % 2 == 0:  # the workers of S1 and S2 send side by side
                pass_on(network)
        return len(network.engine.take()), count(network, Event.SENT_UNICAST)


def in_kernel(problem: Problem, plan: Plan, place: Mapping[int, tuple[int, int]]) -> Transfers:
    from inakit.switch.targets import choose_target  # noqa: PLC0415
    from inakit.topo.live.netlink import network_namespace  # noqa: PLC0415
    from inakit.topo.live.network import Network  # noqa: PLC0415
    from inakit.traffic.sockets.packet_sockets import open_sink  # noqa: PLC0415
    from inakit.traffic.sockets.ports import host_ports  # noqa: PLC0415

    with Network(problem.fabric, choose_target("fast").node_class()) as network:
        for name, switch in network.switches.items():
            switch.install(entries(problem, plan).of(name))
        sockets, sinks = {}, []
        for host in host_ports(network.hosts.values()):
            with network_namespace(host.pid):
                sockets[host.name] = packet_socket(host)
                sinks.append(open_sink())
        for worker, frame in packets(problem, place):
            sockets[worker].send(frame.tobytes())
            time.sleep(0.02)
        counters = {name: switch.read_counter(SENT)[0] for name, switch in network.switches.items()}
        for opened in (*sockets.values(), *sinks):
            opened.close()
    return int(counters["s3"][3]), int(sum(counted.sum() for counted in counters.values()))


def packet_socket(host: HostPort) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    opened.bind((host.interface, 0))
    return opened


@pytest.mark.parametrize(("scheme", "expected"), [(atp, (7, 17)), (goat, (3, 13))], ids=["ATP", "GOAT"])
@pytest.mark.parametrize(
    "run", [in_virtual_time, pytest.param(in_kernel, marks=[pytest.mark.root, pytest.mark.beside])]
)
def test_figure_2(
    run: Callable[..., Transfers],
    scheme: Callable[[], tuple[Problem, Plan, Mapping[int, tuple[int, int]]]],
    expected: Transfers,
) -> None:
    assert run(*scheme()) == expected


def test_the_figures_sequences() -> None:
    """Figure 2b: A1 B1 C1 A2 B2 C2 come to S1, A3 B3 C3 A4 B4 C4 to S2."""
    arrivals = {switch: [sent for sent in ORDER if home(sent[0]) == switch] for switch in ("s1", "s2")}
    assert arrivals == {
        "s1": [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)],
        "s2": [(3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2)],
    }
