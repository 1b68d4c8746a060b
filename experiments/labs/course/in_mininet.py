"""`inakit grade --emulate`: runs a submission of labs 2 to 5 in a Mininet network, as an item without points.

Switches run the student's program, hosts send and receive raw frames, and all workers have to get all sums.
"""

from __future__ import annotations

import select
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from inakit.experiments.labs.course.aggregation import WORKERS, job_entries, total
from inakit.experiments.labs.course.loss_network import Event, Fragments, StudentWorker, judge_results
from inakit.experiments.labs.course.tree_lab import FILE, StudentEntries
from inakit.experiments.labs.course.tree_network import Round, drawn_plan, drawn_rounds, interleaved, judge_arrived
from inakit.experiments.labs.grading.grade import Request
from inakit.experiments.labs.grading.lab import Finding, Grade, Graded, Item, WrongError
from inakit.experiments.labs.grading.packets import GRADIENT, TYPE_AGG, Agg, agg_in
from inakit.experiments.labs.grading.submission import Submission, compiled_program, read_submission
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.experiments.labs.sandbox.switch_runner import with_whole_names
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.targets import TARGETS, choose_target
from inakit.topo.errors import InakitError, InputError, MachineError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.topo.live.needs import check_machine
from inakit.topo.live.netlink import network_namespace
from inakit.topo.live.network import Network
from inakit.traffic.sockets.packet_sockets import Messages, send_all

RATE_BPS = 100e6
MOST_BYTES = 2048
PATIENCE_S = 3.0
"""The time in seconds to wait for expected packets."""
QUIET_S = 0.02
"""The time in seconds to wait for packets that must not arrive."""

Arrived = list[tuple[str, bytes]]
"""Packets with the hosts that received them."""


def star(workers: int) -> Fabric:
    """A switch with a host at each of the ports from 1 on."""
    names = [f"h{n + 1}" for n in range(workers)]
    links = tuple(Link(name, "s1", 0, n + 1, RATE_BPS, RATE_BPS) for n, name in enumerate(names))
    switch = Switch("s1", 1, (tuple(range(1, workers + 1)),))
    return Fabric("star", tuple(Host(name) for name in names), (switch,), links)


class HostFrames:
    """The hosts' sockets, which receive packets of aggregations only."""

    def __init__(self, network: Network) -> None:
        self.sockets: dict[str, socket.socket] = {}
        for name, host in network.hosts.items():
            with network_namespace(host.pid):
                self.sockets[name] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(TYPE_AGG))
                self.sockets[name].bind((host.interface, TYPE_AGG))
        self.names = {each: name for name, each in self.sockets.items()}
        self.outbox = Messages()

    def send(self, host: str, packet: bytes) -> None:
        """Send a packet from a host. Raises `RunError` if its link does not accept it."""
        self.outbox.point_at(np.frombuffer(packet, np.uint8)[np.newaxis], len(packet))
        send_all(self.sockets[host].fileno(), self.outbox.address, 1, host)

    def received(self, wait_s: float, enough: int = 1 << 30) -> Arrived:
        """Receive packets until none has arrived for `wait_s`, or `enough` have arrived."""
        found: Arrived = []
        while len(found) < enough:
            ready = select.select(list(self.names), (), (), wait_s)[0]
            if not ready:
                return found
            found += [(self.names[each], each.recv(MOST_BYTES)) for each in ready]
        return found

    def exchange(self, host: str, packet: bytes, expected: int) -> Arrived:
        """Send a packet from a host; return the packets that reach hosts, of which `expected` should arrive."""
        self.send(host, packet)
        first = self.received(PATIENCE_S, expected) if expected else []
        return first + self.received(QUIET_S)

    def close(self) -> None:
        """Close the sockets."""
        for each in self.names:
            each.close()


@contextmanager
def running(
    fabric: Fabric, text: str, name: str, entries: Mapping[str, SwitchEntries], target: str
) -> Iterator[HostFrames]:
    """A network that runs the BMv2 JSON `text` in all switches, filled with entries; needs root and Mininet.

    Raises `MachineError` if this machine cannot run it, `UnsupportedError` if the target does not accept the program.
    """
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inakit-lab-")), f"{name}.json")
        path.write_text(text)
        switch_class = choose_target(target, path).node_class()

        def node(switch: str, **params: Any) -> Any:
            return switch_class(switch, program=path, **params)

        program = read_program(path)
        network = stack.enter_context(Network(fabric, node, run_dir=path.parent))
        for switch, each in entries.items():
            network.switches[switch].install(with_whole_names(program, each))
        frames = HostFrames(network)
        stack.callback(frames.close)
        time.sleep(QUIET_S)
        yield frames


LOST = 0.1
"""The share of packets that lab 4's hosts lose, each way."""
TIMEOUT_S = 0.05
MOST_TIMEOUTS = 40


@dataclass(frozen=True)
class Emulation:
    """A submission, the random generator of its run, and the switch target."""

    submission: Submission
    random: Random
    target: str

    def program(self, stem: str) -> str:
        """The compiled program."""
        return compiled_program(self.submission, stem)[0]


def run_sums(run: Emulation, stem: str, slots: int, *, versions: bool) -> str:
    """Run labs 2 and 3: four workers, several rounds of several slots, one packet at a time. Returns a summary.

    Raises `WrongError` unless the last packet of a round, and no other, brings all workers the sum.
    """
    rounds, chosen = 4, run.random.sample(range(slots), 8)
    hosts = {worker: f"h{worker + 1}" for worker in range(WORKERS)}
    ports = list(range(1, WORKERS + 1))
    with running(star(WORKERS), run.program(stem), stem, {"s1": job_entries(ports)}, run.target) as frames:
        for number in range(rounds):
            for slot in chosen:
                version = number % 2 if versions else 0
                order = run.random.sample(range(WORKERS), WORKERS)
                gradients = {n: Agg(GRADIENT, n, slot, number, drawn(run.random), version=version) for n in order}
                each, last = Round(0, slot, number, gradients), gradients[order[-1]]
                for worker, gradient in gradients.items():
                    expected = WORKERS if gradient is last else 0
                    arrived = frames.exchange(hosts[worker], gradient.packed(), expected)
                    result = last.result(total(gradients.values()))
                    judge_arrived(hosts, each, arrived, result if gradient is last else None)
    return f"{WORKERS} workers, {rounds * len(chosen)} sums"


def drawn(random: Random) -> tuple[int, ...]:
    """Random values of a gradient."""
    return tuple(random.getrandbits(32) for _ in range(8))


def run_lossy(run: Emulation) -> str:
    """Run lab 4: three workers of the student, whose hosts lose packets both ways. Returns a summary."""
    fragments = tuple(tuple(drawn(run.random) for _ in range(40)) for _ in range(3))
    job, text = Fragments(4, fragments), run.submission.text("worker.py")
    entries = {"s1": job_entries(list(range(1, job.workers + 1)))}
    with ExitStack() as stack:
        workers = [stack.enter_context(closing(StudentWorker(job, number, text))) for number in range(job.workers)]
        frames = stack.enter_context(running(star(job.workers), run.program("loss"), "loss", entries, run.target))
        timeouts = LossyRun(job, workers, frames, run.random).go()
    return f"{job.workers} workers, {job.count} sums each, {LOST:.0%} of packets lost, {timeouts} rounds of timeouts"


class LossyRun:
    """Workers at hosts that lose packets."""

    def __init__(self, job: Fragments, workers: list[StudentWorker], frames: HostFrames, random: Random) -> None:
        self.job, self.workers, self.frames, self.random = job, workers, frames, random
        self.done = [0] * job.workers

    def go(self) -> int:
        """Run until all workers have all results; return the number of rounds of timeouts. Raises `WrongError`."""
        for worker in range(self.job.workers):
            self.of(worker, Event("start"))
        timeouts = 0
        while min(self.done) < self.job.count:
            arrived = self.frames.received(TIMEOUT_S, 1)
            for host, packet in arrived:
                found = agg_in(packet)
                if found is not None and self.random.random() >= LOST:
                    self.of(int(host[1:]) - 1, Event("receive", found))
            if not arrived:
                timeouts += 1
                if timeouts > MOST_TIMEOUTS:
                    raise WrongError(f"after {timeouts} rounds of timeouts a worker still lacks a result")
                for worker in [worker for worker, done in enumerate(self.done) if done < self.job.count]:
                    for slot in range(self.job.pool):
                        self.of(worker, Event("timeout", None, slot))
        return timeouts

    def of(self, worker: int, event: Event) -> None:
        """Apply an event to a worker, and send its packets except the lost ones."""
        step = self.workers[worker].run(event)
        judge_results(self.job, worker, step)
        self.done[worker] = len(step.results)
        for _, packet in step.sent:
            if self.random.random() >= LOST:
                self.frames.send(f"h{worker + 1}", packet.packed())


def run_tree(run: Emulation) -> str:
    """Run lab 5: all jobs of a random plan on its fabric, with the student's entries. Returns a summary."""
    plan = drawn_plan(run.random)
    student = StudentEntries(run.submission.text(FILE))
    with closing(student.process):
        entries = {name: student(plan, name) for name in plan.switches}
    rounds = drawn_rounds(plan, run.random, tuple(plan.trees))
    with running(plan.fabric, run.program("tree"), "tree", entries, run.target) as frames:
        for each, gradient, complete in interleaved(rounds, run.random):
            workers = plan.trees[each.job].workers
            arrived = frames.exchange(workers[gradient.worker], gradient.packed(), len(workers) if complete else 0)
            judge_arrived(workers, each, arrived, each.tree_result if complete else None)
    return f"{len(plan.switches)} switches, {len(plan.trees)} jobs, {len(rounds)} sums"


RUNS: dict[str, Callable[[Emulation], str]] = {
    "2-sum": partial(run_sums, stem="sum", slots=16, versions=False),
    "3-pool": partial(run_sums, stem="pool", slots=64, versions=True),
    "4-loss": run_lossy,
    "5-tree": run_tree,
}


def check_emulation(lab: str, target: str) -> None:
    """Raise `InputError` for a lab without emulation, `MachineError` where this machine cannot emulate."""
    if lab not in RUNS:
        raise InputError(f"--emulate: lab {lab} has no run in Mininet; expected one of {', '.join(RUNS)}")
    if target not in TARGETS:
        raise InputError(f"--emulate {target}: expected {' or '.join(TARGETS)}")
    reason = TARGETS[target].missing()
    if reason is not None:
        raise MachineError(f"--emulate {target} cannot run here: {reason}")
    check_machine()


def with_emulation(request: Request, graded: Grade, target: str) -> Grade:
    """The grade with one more item, without points: the run in Mininet on switches of a target."""
    title, finding = f"in Mininet, on {target}", None
    try:
        submission = read_submission(request.submission, expected=request.lab.files)
        done = RUNS[request.lab.name](Emulation(submission, request.random("emulated"), target))
        title = f"{title}: {done}"
    except MachineError:
        raise
    except WrongError as wrong:
        finding = wrong.finding
    except (InakitError, EndedError) as error:
        finding = Finding(str(error))
    emulated = Graded(Item("emulated", title, "", lambda _: None), 0, finding)
    note = "switches in Mininet are not in a sandbox: emulate only programs that you trust"
    return replace(graded, graded=(*graded.graded, emulated), notes=(*graded.notes, note))
