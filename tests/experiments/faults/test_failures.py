"""Events at links, switches and hosts: that overlap, that cost a worker time, that no tree meets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event as Signal
from typing import Any

import pytest

from inakit.experiments.bench.exactness import case
from inakit.experiments.calibrate.rate_probe import scaled
from inakit.experiments.run.faults import Event, Failures, LossyLinks, When
from inakit.experiments.run.interference import Scene
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.emulated import Threads
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.planner.core.evaluate import evaluate
from inakit.planner.install.fault_entries import LinkFaults
from inakit.planner.prepared import Prepared
from inakit.topo.errors import RunError
from inakit.traffic.closed_loop import ClosedLoop, ReliableOptions
from inakit.traffic.endpoints.streams import lay_out
from inakit.traffic.measure.verdict import Verdict
from inakit.traffic.sockets.ports import HostPort


class Stage:
    """Stands for a network of one switch, and records which of its links were taken up or down."""

    def __init__(self) -> None:
        self.switches = {"s1": None}
        self.told: list[tuple[str, bool]] = []

    def set_link(self, node: str, peer: str, *, up: bool) -> None:
        self.told.append((node if peer == "s1" else peer, up))


@contextmanager
def failures_at(stage: Any) -> Iterator[Failures]:
    """Failures on the stage. All are over when the block ends."""
    problem, plan = case("goat", 1, fragments=2, slots=4, rate_bps=1e6)
    nothing: Any = None
    failures = Failures(())
    failures.initialise(Scene(stage, Prepared(problem, plan), nothing))
    hosts = [HostPort(name, 0, "eth0", "02:00:00:00:00:01", "10.0.0.1") for name in ("ps", "w1", "w2")]
    failures.begin(ClosedLoop(lay_out(problem, plan, hosts), nothing, nothing, ReliableOptions(), nothing))
    with Threads.running() as failures.beside:
        yield failures


def test_a_link_is_down_until_its_last_event_is_over() -> None:
    stage, between = Stage(), Signal()
    with failures_at(stage) as failures:
        failures.without_links("s1", ["ps", "w1"], None, between.set)
        assert between.wait(5)
        failures.without_links("s1", ["w1", "w2"], 0.0, lambda: None)
        failures._work[-1].result(5)
        assert stage.told == [("ps", False), ("w1", False), ("w2", False), ("w2", True)]
        assert failures.hosts.records["cut_off"].tolist() == [1, 1, 0]
    assert not failures.hosts.records["cut_off"].any()
    assert stage.told[4:] == [("ps", True), ("w1", True)]


def test_one_switch_does_one_thing_at_a_time() -> None:
    stage = Stage()
    inside: list[str] = []

    def act() -> None:
        inside.append("in")
        Signal().wait(0.02)
        inside.append("out")

    with failures_at(stage) as failures:
        for _ in range(4):
            failures.without_links("s1", ["w1"], 0.0, act)
    assert inside == ["in", "out"] * 4
    assert stage.told[-1] == ("w1", True)


@pytest.mark.compiler
@pytest.mark.parametrize("planner", ["lbmm", "grid", "atp"])
def test_a_worker_that_pauses_costs_about_its_pause(planner: str) -> None:
    """Links that a plan has filled must not go on being full of questions about what waited, and of copies for them."""
    problem = build_problem(FabricChoice(k=4), JobChoice(workers=12, servers=4))
    problem, plan = scaled(problem, plan_to_run(problem, planner, 0).plan, 1.0, 2.0)
    pause = Failures((Event(When(seconds=0.5), "pause", (problem.jobs[0].workers[4],), 0.1),))
    outcome = run_plan(Run(Prepared(problem, plan), interferences=(pause,)), VirtualWorld())
    assert outcome.measured.exact
    planned_s = evaluate(problem, plan).jobs[problem.jobs[0].number].communication_time_s
    assert outcome.measured.communication_time_s < 1.1 * planned_s


@pytest.mark.compiler
@pytest.mark.parametrize(
    "event",
    [
        Event(When(seconds=0.01), "restart", ("core4",), 0.05),
        Event(When(seconds=0.01), "down", ("edge1_1", "h1"), 0.2),
        Event(When(seconds=0.01), "restart", ("edge1_1",), 0.2),
    ],
    ids=str,
)
def test_a_run_is_valid_where_an_event_meets_no_tree_or_makes_a_worker_late(event: Event) -> None:
    problem = build_problem(FabricChoice(k=4), JobChoice(workers=12, gradient_bytes=100_000))
    outcome = run_plan(Run(plan_to_run(problem, "aro", 0), interferences=(Failures((event,)),)), VirtualWorld())
    assert outcome.measured.exact
    assert outcome.verdict is Verdict.VALID, outcome.reasons


@pytest.mark.compiler
def test_a_run_that_stalls_is_told_what_its_links_lose() -> None:
    problem = build_problem(FabricChoice(k=4), JobChoice(workers=4, gradient_bytes=2000))
    lossy = LossyLinks(dict.fromkeys(problem.fabric.capacities_bps, LinkFaults(drop=0.5)))
    with pytest.raises(RunError, match="links lose up to 50 % of their packets"):
        run_plan(Run(plan_to_run(problem, "aro", 0), interferences=(lossy,)), VirtualWorld())
