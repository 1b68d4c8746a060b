"""The solutions of labs 1 to 5 do the same on every switch: what the grader sends in its sandbox is sent again."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random

import pytest

from inakit.experiments.labs.course.aggregation import job_entries
from inakit.experiments.labs.course.loss_network import Fragments, LongRun, ModelWorker, StudentSwitch
from inakit.experiments.labs.course.tree_lab import ChosenSwitch, course_entries
from inakit.experiments.labs.course.tree_network import TreeNetwork, drawn_plan, run_jobs
from inakit.experiments.labs.grading.bench import Bench, Exchange
from inakit.experiments.labs.grading.graded_switch import LAB_PORTS, SANDBOX, GradedSwitch, open_switch
from inakit.experiments.labs.grading.p4c import read_archive
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.grading.teacher import program_in
from inakit.experiments.labs.registry import LABS, TEACHER
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.switch.entries import SwitchEntries
from inakit.switch.interpret.interpreted_switch import Packets


@dataclass
class Session:
    """What was exchanged with a switch from its start on: ports, packets, and what left in any order of ports."""

    item: str
    entries: SwitchEntries
    exchanges: list[tuple[int, bytes, Packets]] = field(default_factory=list)

    @property
    def ports(self) -> list[int]:
        """All ports that are used, and two that are not."""
        left = {out for _, _, got in self.exchanges for out, _ in got}
        return sorted({port for port, _, _ in self.exchanges} | left | {126, 127})

    def add(self, port: int, packet: bytes, got: Packets) -> Packets:
        self.exchanges.append((port, packet, sorted(got)))
        return got


class Recorded(Bench):
    """A bench that keeps all sessions."""

    def __init__(self, lab: str) -> None:
        text, name = program_of(lab)
        super().__init__(Submission(TEACHER / lab, {f"{name}.json": text}))
        self.load(name)
        self.sessions: list[Session] = []
        self.item = ""

    def start(self, entries: SwitchEntries) -> None:
        super().start(entries)
        self.sessions.append(Session(self.item, entries))

    def send(self, port: int, packet: bytes) -> Packets:
        return self.sessions[-1].add(port, packet, super().send(port, packet))


def program_of(lab: str) -> tuple[str, str]:
    """The compiled solution of a lab, and its name."""
    path = next((TEACHER / lab / "solutions").glob("*.p4"))
    return program_in(read_archive(TEACHER / lab), path.read_text(), path.name), path.stem


def of_items(lab: str) -> list[Session]:
    """What the items of a lab about one switch send."""
    bench = Recorded(lab)
    with bench.stack:
        for item in LABS[lab].items:
            if item.part in ("", "program") and item.name != "together":
                bench.begin(Random(f"0/{lab}/{item.name}"))
                bench.item = item.name
                item.check(bench)
    return bench.sessions


def of_lossy_run() -> list[Session]:
    """What comes to the switch of lab 4 in a long run with faults."""
    random = Random("targets")
    fragments = tuple(tuple(tuple(random.getrandbits(32) for _ in range(8)) for _ in range(20)) for _ in range(3))
    job, ports = Fragments(4, fragments), [3, 5, 4]
    with open_switch(SANDBOX, *program_of("4-loss")) as switch:
        assert isinstance(switch, SandboxedSwitch)
        student = StudentSwitch(switch, ports)
        run = LongRun(job, student, [ModelWorker(job, n) for n in range(3)], random, share=0.15).go()
        assert run.found is None
        session = Session("long run", job_entries(ports))
        switch.fresh()
        switch.install(session.entries)
        for worker, packet in run.arrivals:
            session.add(ports[worker], packet.packed(), switch.inject(ports[worker], packet.packed()))
    return [session]


def of_network() -> list[Session]:
    """What comes to the switches of a plan of lab 5."""
    drawn = drawn_plan(Random("targets"))
    sessions = {name: Session(name, course_entries(drawn, name)) for name in drawn.switches}
    with open_switch(SANDBOX, *program_of("5-tree")) as switch:
        assert isinstance(switch, SandboxedSwitch)
        for name, session in sessions.items():
            switch.choose(name)
            switch.install(session.entries)
        network = TreeNetwork(drawn, lambda name: ChosenSwitch(switch, name))
        exchanged: list[Exchange] = []
        network.noted = exchanged.append
        run_jobs(network, Random("gradients"))
    for each in exchanged:
        sessions[each.switch].add(each.port, each.packet, list(each.got))
    return [session for session in sessions.values() if session.exchanges]


@cache
def sessions_of(lab: str) -> list[Session]:
    """What a lab's solution is sent in the sandbox, and what it sends."""
    if lab == "4-loss":
        return of_lossy_run()
    return [*of_items(lab), *(of_network() if lab == "5-tree" else ())]


def longest(sessions: list[Session]) -> list[Session]:
    """The session with most packets of each item: a `simple_switch` takes a second to start."""
    by_size = sorted(sessions, key=lambda each: len(each.exchanges))
    return list({each.item: each for each in by_size}.values())


LABS_WITH_P4 = ("1-forward", "2-sum", "3-pool", "4-loss", "5-tree")
TARGETS = [
    pytest.param("fast", marks=pytest.mark.compiler),
    pytest.param("virtual", marks=[pytest.mark.compiler, pytest.mark.long]),
    "interpreted",
    pytest.param("bmv2", marks=[pytest.mark.bmv2, pytest.mark.root, pytest.mark.long]),
]


@pytest.mark.parametrize("lab", LABS_WITH_P4)
@pytest.mark.parametrize("target", TARGETS)
def test_solutions_do_the_same_on_other_targets(lab: str, target: str) -> None:
    if target == "bmv2":
        for session in longest(sessions_of(lab)):
            with open_switch(target, *program_of(lab), session.ports) as switch:
                repeat(switch, session)
        return
    with open_switch(target, *program_of(lab)) as switch:
        for session in sessions_of(lab):
            repeat(switch, session)


@pytest.mark.parametrize("lab", LABS_WITH_P4)
def test_targets_have_all_ports_that_the_labs_use(lab: str) -> None:
    assert {port for session in sessions_of(lab) for port in session.ports} <= set(LAB_PORTS)


def repeat(switch: GradedSwitch, session: Session) -> None:
    """Send all packets of a session again: the same has to leave."""
    switch.fresh()
    switch.install(session.entries)
    for number, (port, packet, expected) in enumerate(session.exchanges):
        assert sorted(switch.inject(port, packet)) == expected, f"{session.item}: packet {number} at port {port}"
