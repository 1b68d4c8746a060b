"""The closed loop on a network in memory: exact sums whatever is lost, repeated, overtaken or overflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_model import Faults, ModelPorts
from numpy.typing import NDArray
from traffic_cases import RATE_BPS, one_job, plan_of, ports_of, tree_of, two_level_fabric

from inakit.experiments.worlds.virtual import Inline
from inakit.planner.core.plan import Plan, PlannedTree
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.headroom import with_policy
from inakit.topo.errors import PlanError, RunError
from inakit.traffic.closed_loop import ClosedLoop, ReliableOptions
from inakit.traffic.endpoints.endpoints import PS_PER_S, Endpoints
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import StreamLayout, answer_heads, lay_out
from inakit.traffic.measure.measured import Measured
from inakit.traffic.wire.packet_format import FRAGMENT, FRAME, Flag, Kind, new_frames


def run(
    problem: Problem,
    plan: Plan,
    faults: Faults = Faults(),  # noqa: B008, immutable
    *,
    magnitude: int = 1 << 20,
    first_seq: int = 0,
    accept: int = 1 << 30,
    stall_s: float = 60.0,
    wrong: Mapping[tuple[str, int, int, int], int] = MappingProxyType({}),
) -> tuple[Measured, ClosedLoop, ModelPorts]:
    layout = lay_out(problem, plan, ports_of(problem))
    ports = ModelPorts(layout, faults, accept=accept)
    ports.wrong |= wrong
    options = ReliableOptions(WorkerOptions(first_seq=first_seq), stall_s)
    loop = ClosedLoop(layout, ports, RandomGradients(faults.seed, magnitude), options, Inline())
    return loop.run(lambda _: None), loop, ports


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_without_faults_nothing_is_sent_twice(levels: int) -> None:
    problem, plan = one_job(levels=levels, iterations=2)
    measured, _, ports = run(problem, plan)
    assert measured.exact
    assert measured.retransmissions == 0
    assert len(measured.iterations) == 2
    packets_per_fragment = {0: 4, 1: 2, 2: 1}[levels]
    assert ports.counts["gradients_at_servers"] == 2 * 40 * packets_per_fragment
    assert measured.ps_ingress_bytes == 40 * packets_per_fragment * FRAGMENT.wire_bytes


class LaterThread(Executor):
    """Does a task only when asked to, from the second on: the first gradients are loaded at once."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Future[object], Callable[[], object]]] = []
        self.begun = False

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[Any]:
        task: tuple[Future[Any], Callable[[], object]] = (Future(), partial(fn, *args, **kwargs))
        self.tasks.append(task)
        if not self.begun:
            self.begun = True
            self.work()
        return task[0]

    def work(self) -> None:
        for future, task in self.tasks:
            future.set_result(task())
        self.tasks.clear()


def test_the_loop_sleeps_while_a_thread_loads() -> None:
    """It would take the processor from that thread, as it comes first."""
    problem, plan = one_job(iterations=2)
    layout, executor = lay_out(problem, plan, ports_of(problem)), LaterThread()
    waits: list[float] = []

    class Ports(ModelPorts):
        def run(self, until: float) -> None:
            if executor.tasks:
                waits.append(until - self.clock)
            super().run(until)
            if len(waits) % 3 == 0:
                executor.work()

    loop = ClosedLoop(layout, Ports(layout, Faults()), RandomGradients(0), ReliableOptions(), executor)
    assert loop.run(lambda _: None).exact
    assert len(waits) >= 3
    assert min(waits) > 0


def test_a_forged_fragment_far_ahead_takes_no_sum_from_another() -> None:
    """A PS remembers four windows of fragments: one that no worker can have sent yet finds no place."""
    problem, plan = one_job(workers=2, levels=0, fragments=2000, rate_bps=2e5)
    layout = lay_out(problem, plan, ports_of(problem))
    endpoints = Endpoints(layout)
    endpoints.listen(0, 0)
    room = int(endpoints.trees["mask"][0]) + 1
    assert room < 2000
    server = int(layout.trees.server[0])
    endpoints.hosts["blocked"] = 1
    for label, fragment in ((1, 0), (1, room), (2, 0), (1, room)):
        fields = {"kind": Kind.GRADIENT, "job": 1, "tree": 1, "label": label, "seq": fragment, "workers": 1}
        mac, ip = layout.hosts[0].mac, layout.hosts[0].ipv4
        frame = new_frames(1, src_mac=mac, dst_mac=mac, src_ip=ip, dst_ip=ip, ina=fields)
        endpoints.library.endpoints_receive(endpoints.address, server, 1, frame.tobytes())
    assert endpoints.hosts["pending_count"][server] == 1, "fragment 0 is summed"
    assert endpoints.sums["fragment"][0] == room, "which has its turn afterwards"
    endpoints.close()


def test_a_sum_that_waits_is_asked_for_though_what_it_waits_for_was_sent_before_the_gradient() -> None:
    """A new run of a tree follows another one in switches, whose losses its workers cannot mend."""
    problem, plan = one_job(workers=2, levels=1, fragments=4)
    layout = lay_out(problem, plan, ports_of(problem))
    ports, options = ModelPorts(layout, Faults()), ReliableOptions(WorkerOptions(first_seq=1000))
    loop = ClosedLoop(layout, ports, RandomGradients(0), options, Inline())
    endpoints = loop.endpoints
    ports.attach(endpoints)
    endpoints.load(0, RandomGradients(0), 0)
    endpoints.begin(0, 0, 1)
    endpoints.library.endpoints_wake(endpoints.address, 2)
    worker = int(layout.streams.host[0])
    sent = int(ports.sent[worker])
    assert sent > 0
    fields: dict[str, int] = {"kind": Kind.NOTICE, "flags": Flag.PARTIAL, "job": 1, "tree": 1}
    fields |= {"seq": 997, "workers": 3, "bitmap": 3}
    mac, ip = layout.hosts[worker].mac, layout.hosts[worker].ipv4
    frame = new_frames(1, src_mac=mac, dst_mac=mac, src_ip=ip, dst_ip=ip, ina=fields)
    endpoints.library.endpoints_receive(endpoints.address, worker, PS_PER_S // 50, frame.tobytes())
    endpoints.library.endpoints_wake(endpoints.address, PS_PER_S // 50 + 1)
    assert endpoints.streams["retransmitted"][0] == 1, "fragment 0, three after the one that is lacking"
    endpoints.close()


class Given:
    """Gradients that are held in memory, so that workers keep their results."""

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        return RandomGradients(2).of(job, worker, iteration)


def test_every_worker_holds_the_sum() -> None:
    problem, plan = one_job(workers=3, servers=2)
    layout = lay_out(problem, plan, ports_of(problem))
    loop = ClosedLoop(layout, ModelPorts(layout, Faults()), Given(), ReliableOptions(), Inline())
    assert loop.run(lambda _: None).exact
    total = sum(Given().of(problem.jobs[0], worker, 0).astype(np.int64) for worker in range(3))
    for worker in range(3):
        assert (loop.endpoints.result(problem.jobs[0], worker) == total).all()


def expected(problem: Problem, element: int) -> int:
    """The exact sum of an element of the first iteration."""
    job = problem.jobs[0]
    return sum(int(RandomGradients(0, 1 << 20).of(job, worker, 0)[element]) for worker in range(len(job.workers)))


def test_a_wrong_sum_is_seen() -> None:
    problem, plan = one_job()
    measured, _, _ = run(problem, plan, wrong={("w0", 1, 7, 3): 1})
    element = 7 * FRAGMENT.values + 3
    sum_ = expected(problem, element)
    assert measured.iterations[0].wrong == (
        "1 element in 1 fragment is wrong at 1 host (w0); the first: "
        f"element {element} (tree 1, fragment 7) at w0, expected {sum_}, got {sum_ + 1}",
    )


def test_several_wrong_sums_are_counted_once_for_each_element() -> None:
    """In the second of two trees, which has the gradient's fragments from 20 on; an element is the same for all."""
    problem, plan = one_job(servers=2)
    wrong = {(host, 2, 4, value): -5 for host in ("w1", "w2", "w3") for value in (0, 1)}
    measured, _, _ = run(problem, plan, wrong=wrong)
    element = 24 * FRAGMENT.values
    (text,) = measured.iterations[0].wrong
    assert "2 elements in 1 fragment are wrong at 3 hosts (w1, w2, w3); the first: " in text
    sum_ = expected(problem, element)
    assert f"element {element} (tree 2, fragment 4) at w1, expected {sum_}, got {sum_ - 5}" in text


def test_a_result_that_comes_before_all_have_sent_is_compared_with_the_whole_sum() -> None:
    problem, plan = one_job(workers=2, fragments=1)
    layout = lay_out(problem, plan, ports_of(problem))
    ports = ModelPorts(layout, Faults())
    loop = ClosedLoop(layout, ports, RandomGradients(), ReliableOptions(), Inline())
    ports.attach(loop.endpoints)
    loop.load(0, 0)
    loop.endpoints.begin(0, 0, 0)
    first = answer_heads(layout)[0]
    frame = np.zeros(1, FRAME)
    frame.view((np.uint8, FRAME.itemsize))[:, : first.itemsize] = first.view((np.uint8, first.itemsize))
    loop.endpoints.library.endpoints_wake(loop.endpoints.address, 0)
    loop.endpoints.streams["sent"][:] = 1
    loop.endpoints.library.endpoints_receive(loop.endpoints.address, 0, 1, frame.tobytes())
    assert "wrong at 1 host (w0)" in loop.endpoints.wrong(0)


def test_rate_is_the_planned_one() -> None:
    problem, plan = one_job(workers=2, fragments=800, rate_bps=1e6, slots=512)
    measured, _, _ = run(problem, plan)
    assert measured.sending_rate_bps == pytest.approx(1e6, rel=0.01)
    assert measured.communication_time_s == pytest.approx(800 * FRAGMENT.wire_bytes * 8 / 1e6, rel=0.01)
    assert not measured.late_s


def test_a_worker_that_waits_for_lost_packets_is_not_late() -> None:
    """Its window is closed until a time-out, so that no processor could have sent more."""
    problem, plan = one_job(workers=4, levels=2, fragments=800, rate_bps=4e6, slots=512)
    measured, _, _ = run(problem, plan, Faults(lose=0.02, seed=3))
    assert measured.retransmissions > 100
    assert not measured.late_s


EXAMPLES = st.builds(
    one_job,
    workers=st.integers(1, 5),
    servers=st.integers(1, 2),
    levels=st.integers(0, 2),
    slots=st.sampled_from([1, 3, 8, 64]),
    fragments=st.just(12),
    iterations=st.just(2),
)
FAULTS = st.builds(
    Faults,
    lose=st.sampled_from([0.0, 0.02, 0.2]),
    repeat=st.sampled_from([0.0, 0.1]),
    delay_s=st.sampled_from([0.0, 0.01, 0.2]),
    seed=st.integers(0, 1 << 16),
)


@settings(max_examples=15, deadline=None)
@given(example=EXAMPLES, faults=FAULTS, magnitude=st.sampled_from([1 << 10, 1 << 31]))
def test_exact_whatever_happens(example: tuple[Problem, Plan], faults: Faults, magnitude: int) -> None:
    measured, _, _ = run(*example, faults, magnitude=magnitude)
    assert measured.exact


@pytest.mark.parametrize("levels", [1, 2])
def test_sums_beyond_32_bits(levels: int) -> None:
    problem, plan = one_job(levels=levels)
    measured, loop, ports = run(problem, plan, magnitude=1 << 31)
    assert measured.exact
    assert ports.counts["wide"] > 0
    assert loop.endpoints.trees["notices"].sum() > 0


def test_sequence_numbers_wrap() -> None:
    problem, plan = one_job(iterations=3)
    measured, _, ports = run(problem, plan, Faults(lose=0.05, seed=4), first_seq=(1 << 32) - 60)
    assert measured.exact
    assert ports.counts["completed"] > 0


def test_a_full_queue_only_slows() -> None:
    problem, plan = one_job(slots=64, fragments=2000)
    measured, _, _ = run(problem, plan, accept=1)
    assert measured.exact
    assert measured.retransmissions == 0
    assert measured.late_s


def test_jobs_share_a_network() -> None:
    fabric = two_level_fabric(4, 2)
    size = 20 * 4 * FRAGMENT.values
    jobs = (
        Job(1, ("w0", "w1"), ("ps0",), size, iterations=2),
        Job(7, ("w1", "w2", "w3"), ("ps1", "ps0"), 2 * size, iterations=3, arrival_s=0.01, compute_s=0.05),
    )
    two_trees = [tree_of(n, jobs[1].workers, "ps0", 2, slots=16, first_slot=16 * n) for n in (2, 3)]
    planned = [
        PlannedTree(1, 1.0, 5e6, tree_of(1, jobs[0].workers, "ps0", 2, slots=16)),
        PlannedTree(7, 0.25, 2e6, tree_of(1, jobs[1].workers, "ps1", 1, slots=16, first_slot=16)),
        *(PlannedTree(7, 0.375, 3e6, tree) for tree in two_trees),
    ]
    measured, _, _ = run(Problem(fabric, jobs, FRAGMENT), plan_of(planned), Faults(lose=0.02, seed=1))
    assert measured.exact
    assert len(measured.of_job(1).iterations) == 2
    second = measured.of_job(7).iterations
    assert [i.number for i in second] == [0, 1, 2]
    assert second[0].started_s >= 0.01
    first_end = second[0].started_s + second[0].communication_time_s
    assert second[1].started_s >= first_end + 0.05 - 1e-9


def test_a_stalled_run_says_who_is_missing() -> None:
    problem, plan = one_job()
    with pytest.raises(RunError, match=r"tree 1, fragment 0: PS ps0 still lacks w0, w1, w2, w3"):
        run(problem, plan, Faults(lose=1.0), stall_s=2.0)


def test_a_root_that_is_no_server() -> None:
    problem, plan = one_job()
    tree = replace(plan.trees[0].tree, root="spine")
    elsewhere = replace(plan, trees=(replace(plan.trees[0], tree=tree),))
    with pytest.raises(PlanError, match="'spine' is not a parameter server"):
        lay_out(problem, elsewhere, ports_of(problem))


def test_a_root_in_the_network_needs_a_server_that_stands_by() -> None:
    problem, plan = one_job()
    rooted = with_policy(problem, plan, "switchml")
    tree = rooted.trees[0].tree
    alone = replace(rooted, trees=(replace(rooted.trees[0], tree=replace(tree, fallback=())),))
    with pytest.raises(PlanError, match="no PS stands by for its root 'spine'"):
        lay_out(problem, alone, ports_of(problem))


def test_a_host_that_the_network_lacks() -> None:
    problem, plan = one_job()
    with pytest.raises(PlanError, match="host 'w2'"):
        lay_out(problem, plan, [port for port in ports_of(problem) if port.name != "w2"])


def test_fragments_are_cut_by_share() -> None:
    problem, plan = one_job(servers=2, fragments=41)
    trees = (replace(plan.trees[0], share=0.3), replace(plan.trees[1], share=0.7))
    layout = lay_out(problem, replace(plan, trees=trees), ports_of(problem))
    assert [(part.start, part.count) for part in layout.parts] == [(0, 12), (12, 29)]


def test_after_a_timeout_no_more_than_a_window_is_sent_again() -> None:
    """All workers time out at once, as when an aggregator was lost: they must not flood the PS."""
    problem, plan = one_job(workers=4, levels=1, fragments=2000, rate_bps=RATE_BPS / 100)
    layout = lay_out(problem, plan, ports_of(problem))
    ports, loop = begun(layout, WorkerOptions(paced=False))
    ports.run(0.1)
    assert ports.sent.sum() == layout.streams.in_flight.sum()
    ports.run(0.26)
    again = ports.sent.sum() - layout.streams.in_flight.sum()
    assert 0 < again <= layout.streams.in_flight.sum()
    assert (loop.endpoints.streams["size"] < layout.streams.in_flight).all()


@pytest.mark.parametrize(
    ("policy", "shrinks"), [("panama-timeout", False), ("shadow-copy-timeout", True), ("goat", True)]
)
def test_a_timeout_shrinks_no_window_where_marks_tell_of_congestion(policy: str, shrinks: bool) -> None:
    """Elsewhere what is sent again makes a PS answer all workers, or goes on to it."""
    problem, plan = one_job(workers=4, levels=1, fragments=40)
    layout = lay_out(problem, with_policy(problem, plan, policy), ports_of(problem))
    ports, loop = begun(layout, WorkerOptions(first_timeout_s=0.25))
    ports.run(0.6)
    assert loop.endpoints.streams["retransmitted"].any()
    assert (loop.endpoints.streams["size"] < layout.streams.in_flight).any() == shrinks


def begun(layout: StreamLayout, options: WorkerOptions) -> tuple[ModelPorts, ClosedLoop]:
    """The first iteration of a run on a network that loses everything."""
    ports = ModelPorts(layout, Faults(lose=1.0))
    loop = ClosedLoop(layout, ports, RandomGradients(), ReliableOptions(options), Inline())
    ports.attach(loop.endpoints)
    loop.load(0, 0)
    loop.endpoints.begin(0, 0, 0)
    return ports, loop
