"""A plan runs in any world by one function, and a new world is a class and a line in the registry."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from inakit.experiments.bench.exactness import Cell, attempt, case, chosen_worlds
from inakit.experiments.run.faults import Event, Failures, OtherTraffic, When
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import WORLDS, find_world
from inakit.experiments.worlds.virtual import LiveVirtualNetwork, VirtualWorld
from inakit.experiments.worlds.world import Feature, Wiring
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import Flow
from inakit.planner.prepared import Prepared
from inakit.switch.entries import Entries
from inakit.topo.errors import InputError
from inakit.topo.fabric.circuits import Interconnect
from inakit.topo.fabric.fabric import Fabric
from inakit.traffic.closed_loop import ReliableOptions
from inakit.traffic.sockets.ports import Driven

pytestmark = pytest.mark.compiler


def small(fragments: int = 200) -> tuple[Problem, Plan]:
    return case("goat", levels=1, fragments=fragments, slots=32, rate_bps=2e6)


# All that a new world needs.


class ForgetfulNetwork(LiveVirtualNetwork):
    """Every twentieth packet that hosts send is lost."""

    count = 0

    def attach(self, endpoints: Driven, *, mute: bool = False) -> None:
        super().attach(endpoints, mute=mute)
        give, engine = self.engine.library.engine_give, self.engine.handle

        def give_most(_: int, link: int, frame: int, length: int) -> None:
            self.count += 1
            if self.count % 20:
                give(engine, link, frame, length)

        self.function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_uint32] * 2)(give_most)
        endpoints.all["send"] = ctypes.cast(self.function, ctypes.c_void_p).value or 0


@dataclass(frozen=True)
class ForgetfulWorld(VirtualWorld):
    name: str = "forgetful"
    features: frozenset[Feature] = frozenset()

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[LiveVirtualNetwork]:
        network = ForgetfulNetwork(fabric, installed, wiring, progress)
        with network.engine:
            yield network


def test_a_new_world_is_known_to_all_that_runs_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORLDS, "forgetful", ForgetfulWorld)
    assert chosen_worlds(["forgetful", "virtual"]) == ["forgetful", "virtual"]
    forgetful, virtual = (attempt(Cell("goat", 1, "no loss", world), 200) for world in ("forgetful", "virtual"))
    assert forgetful.exact
    assert virtual.exact
    assert forgetful.again > 0.02 > virtual.again


def test_the_outcome_is_the_same_twice() -> None:
    problem, plan = small()
    first, second = (run_plan(Run(Prepared(problem, plan)), find_world("virtual")) for _ in range(2))
    assert first.measured.exact
    assert first.measured == second.measured
    assert first.monitor.after.switches == second.monitor.after.switches


def test_every_packet_is_accounted_for_in_this_process() -> None:
    """Links and switches count the same packets; a packet that one of them misses would be a reason of the verdict."""
    problem, plan = small()
    outcome = run_plan(Run(Prepared(problem, plan)), find_world("virtual"))
    assert not [reason for reason in outcome.reasons if "packets" in reason]
    after = outcome.monitor.after
    workers = [f"{worker}-0" for worker in problem.jobs[0].workers]
    assert all(after.interfaces[name].sent_packets == 200 for name in workers)


def test_a_link_that_is_down_for_a_time_costs_packets_and_no_sum() -> None:
    problem, plan = small()
    down = Event(When(0.05), "down", ("w1", "s1"), 0.1)
    outcome = run_plan(Run(Prepared(problem, plan), interferences=(Failures((down,)),)), find_world("virtual"))
    assert outcome.measured.exact
    assert outcome.interferences[0].said == ["down w1-s1 for 100 ms at 50 ms"]
    assert outcome.measured.retransmissions > 10


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (Run(Prepared(*small(), "replay")), "no mode replay"),
        (Run(Prepared(*small()), interferences=(OtherTraffic((Flow("w1", "w2", 1e6),)),)), "no background traffic"),
        (Run(Prepared(*small()), captures=(("s1", 1),), options=ReliableOptions()), "no captures of packets"),
        (Run(Prepared(*small()), interconnect=Interconnect(())), "no circuit switches"),
    ],
)
def test_what_a_world_does_not_have_is_refused_before_it_is_made(run: Run, said: str) -> None:
    with pytest.raises(InputError, match=f"switch 'forgetful' has {said}.*: choose fast, bmv2 or virtual"):
        run_plan(run, ForgetfulWorld())
