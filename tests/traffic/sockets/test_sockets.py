"""Real sockets and real tcpreplay between two namespaces that the test makes: delivery, filter, pace, replay."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from tolerance import undisturbed
from traffic_cases import plan_of

from inakit.planner.core.plan import AggregationTree, Branch, Plan, PlannedTree
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import MachineError, RunError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.traffic.closed_loop import ReliableOptions, run_reliable
from inakit.traffic.endpoints.endpoints import Endpoints
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import lay_out
from inakit.traffic.measure.counters import interfaces, queue_drops
from inakit.traffic.measure.measured import Measured
from inakit.traffic.replay import run_replay
from inakit.traffic.sockets.packet_sockets import SEND_BUFFER_FRAMES, Messages, SocketPorts, send_batch
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAGMENT, FRAME, Frames, Kind, new_frames

pytestmark = pytest.mark.root

RATE_BPS = 4e6


def namespace(stack: ExitStack) -> int:
    """A process in a network namespace of its own, until the stack unwinds."""
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE)
    stack.callback(process.communicate)
    stack.callback(process.kill)
    assert process.stdout is not None
    process.stdout.readline()
    return process.pid


def configure(pid: int, *commands: str) -> None:
    for command in commands:
        subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *command.split()], check=True, capture_output=True)


@pytest.fixture
def pair() -> Iterator[list[HostPort]]:
    """A worker and a PS joined by one cable that is shaped to `RATE_BPS` at the worker."""
    with ExitStack() as stack:
        worker, server = namespace(stack), namespace(stack)
        ports = [
            HostPort("w0", worker, "ina-w0", "02:00:00:00:00:01", "10.77.0.1"),
            HostPort("ps0", server, "ina-ps0", "02:00:00:00:00:02", "10.77.0.2"),
        ]
        configure(worker, f"ip link add ina-w0 address {ports[0].mac} type veth peer ina-ps0 netns {server}")
        configure(server, f"ip link set ina-ps0 address {ports[1].mac}")
        for port in ports:
            configure(
                port.pid,
                f"ip address add {port.ipv4}/24 dev {port.interface}",
                # Without IPv6 addresses the hosts say nothing of their own accord.
                f"ip link set {port.interface} addrgenmode none up",
            )
        configure(
            worker,
            "tc qdisc add dev ina-w0 root handle 1: htb default 1",
            f"tc class add dev ina-w0 parent 1: classid 1:1 htb rate {RATE_BPS:.0f}bit burst 15k",
            "tc qdisc add dev ina-w0 parent 1:1 pfifo limit 500",
        )
        yield ports


def direct_problem(seconds: float, rate_bps: float, iterations: int = 1) -> tuple[Problem, Plan]:
    """One worker, one PS; the cable between them takes the switch's place."""
    switch = Switch("s", 1, contiguous_pipelines(2, 1))
    links = (Link("w0", "s", 0, 1, RATE_BPS, RATE_BPS), Link("ps0", "s", 0, 2, RATE_BPS, RATE_BPS))
    fabric = Fabric("direct", (Host("w0"), Host("ps0")), (switch,), links)
    size = int(seconds * rate_bps / 8 / FRAGMENT.wire_bytes) * 4 * FRAGMENT.values
    job = Job(1, ("w0",), ("ps0",), size, iterations=iterations)
    tree = AggregationTree(1, "ps0", {1: "w0"}, (), (Branch(1, 0, ("w0", "s", "ps0")),))
    return Problem(fabric, (job,), FRAGMENT), plan_of([PlannedTree(1, 1.0, rate_bps, tree)])


def exact(measured: Measured) -> Measured:
    assert measured.exact
    return measured


def sent_by(ports: SocketPorts, frames: Frames) -> int:
    """Send frames from the worker, without values where they are notices; returns how many were sent."""
    messages = Messages()
    bare = frames["ina"]["kind"] == Kind.NOTICE
    messages.point_at(frames, np.where(bare, BARE_FRAME.itemsize, FRAME.itemsize))
    return send_batch(ports.descriptors[0], messages.address, len(frames), "w0").packets


def listening(ports: SocketPorts, fragments: int) -> Endpoints:
    """Endpoints of one worker and its PS, which only listen."""
    problem, plan = direct_problem(1.0, 1e6)
    job = replace(problem.jobs[0], gradient_bytes=fragments * 4 * FRAGMENT.values)
    endpoints = Endpoints(lay_out(replace(problem, jobs=(job,)), plan, list(ports.hosts)), whole=True)
    ports.attach(endpoints, mute=True)
    endpoints.listen(0, 0)
    return endpoints


def test_what_is_sent_arrives_whole(pair: list[HostPort]) -> None:
    frames = new_frames(20, src_mac=pair[0].mac, dst_mac=pair[1].mac, src_ip=pair[0].ipv4, dst_ip=pair[1].ipv4)
    fields = {"kind": Kind.GRADIENT, "job": 1, "tree": 1, "label": 1, "workers": 1, "seq": np.arange(20)}
    for name, value in fields.items():
        frames["ina"][name] = value
    frames["values"] = np.random.default_rng(0).integers(-9, 9, (20, FRAGMENT.values))
    with SocketPorts(pair) as ports:
        endpoints = listening(ports, 20)
        assert sent_by(ports, frames) == 20
        ports.run(ports.now())
        for _ in range(200):
            ports.run(ports.now() + 0.005)
        sums, done = endpoints.sums_of(0)
        assert done.all()
        assert (sums == frames["values"]).all()
        assert endpoints.hosts["strangers"].tolist() == [0, 0]
        assert not ports.problems()


def test_the_filter_lets_only_whole_ina_packets_in(pair: list[HostPort]) -> None:
    frames = new_frames(5, src_mac=pair[0].mac, dst_mac=pair[1].mac, src_ip=pair[0].ipv4, dst_ip=pair[1].ipv4)
    frames["ina"]["kind"] = Kind.GRADIENT, Kind.GRADIENT, Kind.NOTICE, Kind.NOTICE, Kind.GRADIENT
    frames["udp"]["dst_port"][1] = 53
    frames["ipv4"]["protocol"][3] = 6
    frames["ipv4"]["ip_flags_fragment_offset"][4] = 1
    frames["ipv4"]["dst"][[1, 3]] += 1  # not the host's own address: its kernel ignores them
    with SocketPorts(pair) as ports:
        endpoints = listening(ports, 1)
        sent_by(ports, frames)
        for _ in range(50):
            ports.run(ports.now() + 0.005)
        assert endpoints.hosts["strangers"].tolist() == [0, 2]  # of no tree; the others did not come in
    # No host has answered that nobody listens, not even to what the filter let pass.
    assert interfaces(pair[0].pid)["ina-w0"].received_packets == 0


def test_a_full_queue_pushes_back_and_drops_nothing(pair: list[HostPort]) -> None:
    count = 4 * SEND_BUFFER_FRAMES
    frames = new_frames(count, src_mac=pair[0].mac, dst_mac=pair[1].mac, src_ip=pair[0].ipv4, dst_ip=pair[1].ipv4)
    with SocketPorts(pair) as ports:
        endpoints = listening(ports, 1)
        for row in range(count):
            endpoints.library.outbox_put(ports.outboxes.ctypes.data, 0, frames[row : row + 1].tobytes(), FRAME.itemsize)
        ports.send()
        sent = int(ports.outboxes["sent"][0])
        assert SEND_BUFFER_FRAMES / 4 < sent < count
        assert endpoints.hosts["blocked"].tolist() == [1, 0]
        while ports.outboxes["count"][0]:
            ports.run(ports.now() + 0.01)
        assert endpoints.hosts["blocked"].tolist() == [0, 0]
    assert queue_drops(pair[0].pid)["ina-w0"] == 0


def test_reliable_keeps_the_planned_rate(pair: list[HostPort]) -> None:
    problem, plan = direct_problem(0.5, 2e6, iterations=2)
    planned = pytest.approx(2e6, rel=0.05)
    measured = undisturbed(
        lambda: exact(run_reliable(pair, problem, plan)), lambda run: run.sending_rate_bps == planned
    )
    assert measured.sending_rate_bps == planned
    assert measured.ps_ingress_bytes == FRAGMENT.count(problem.jobs[0].gradient_bytes) * FRAGMENT.wire_bytes
    assert not measured.problems


def test_without_pace_the_link_limits(pair: list[HostPort]) -> None:
    problem, plan = direct_problem(1.0, RATE_BPS)
    faster = plan_of([PlannedTree(1, 1.0, 3 * RATE_BPS, plan.trees[0].tree)])
    options = ReliableOptions(worker=WorkerOptions(paced=False))
    limit = pytest.approx(RATE_BPS, rel=0.15)
    measured = undisturbed(
        lambda: exact(run_reliable(pair, problem, faster, options=options)), lambda run: run.sending_rate_bps == limit
    )
    assert measured.sending_rate_bps == limit


def test_replay_sends_at_the_planned_rate(pair: list[HostPort]) -> None:
    problem, plan = direct_problem(0.6, 2e6, iterations=2)
    rate, lasting = pytest.approx(2e6, rel=0.05), pytest.approx(0.6, rel=0.1)
    measured = undisturbed(
        lambda: exact(run_replay(pair, problem, plan)),
        lambda run: run.sending_rate_bps == rate and run.communication_time_s == lasting,
    )
    assert measured.sending_rate_bps == rate
    assert measured.communication_time_s == lasting
    assert measured.ps_ingress_bytes == FRAGMENT.count(problem.jobs[0].gradient_bytes) * FRAGMENT.wire_bytes
    (told,) = measured.replayed
    assert (told.worker, told.frames) == (pair[0].name, FRAGMENT.count(problem.jobs[0].gradient_bytes))
    assert told.command is not None
    assert told.command.startswith("tcpreplay ") and f"--pps={told.rate_fps:.6f}" in told.command.split()
    assert f"--intf1={pair[0].interface}" in told.command.split()


def test_replay_without_tcpreplay(pair: list[HostPort], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    problem, plan = direct_problem(0.1, 2e6)
    with pytest.raises(MachineError, match="install the package 'tcpreplay'"):
        run_replay(pair, problem, plan)


def test_a_host_that_is_gone(pair: list[HostPort]) -> None:
    gone = HostPort("w0", 2**22 + 1, "ina-w0", pair[0].mac, pair[0].ipv4)
    problem, plan = direct_problem(0.1, 2e6)
    with pytest.raises(RunError, match="process 4194305 is gone"):
        run_reliable([gone, pair[1]], problem, plan)


def test_an_interface_that_does_not_exist(pair: list[HostPort]) -> None:
    wrong = HostPort("w0", pair[0].pid, "eth9", pair[0].mac, pair[0].ipv4)
    problem, plan = direct_problem(0.1, 2e6)
    with pytest.raises(RunError, match="host 'w0': cannot listen at 'eth9'"):
        run_reliable([wrong, pair[1]], problem, plan)
