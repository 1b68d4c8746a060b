"""Events that overlap at one switch: its links are up again when the last of them is over."""

from __future__ import annotations

from threading import Event as Signal
from threading import Thread
from typing import Any

import pytest

from experiments.exactness.networks import case
from experiments.faults.faults_file import FaultPlan
from traffic.faults.endpoint_faults import FaultyPorts

pytestmark = pytest.mark.root
"""Injection imports Mininet."""


class Stage:
    """A network of one switch; remembers what its links were told."""

    def __init__(self) -> None:
        self.switches = {"s1": None}
        self.told: list[tuple[str, bool]] = []

    def set_link(self, node: str, peer: str, *, up: bool) -> None:
        self.told.append((node if peer == "s1" else peer, up))


def injection_at(stage: Stage) -> Any:
    from experiments.faults.injection import Injection, Scene  # noqa: PLC0415

    problem, plan = case("goat", 1, fragments=2, slots=4, rate_bps=1e6)
    scene: Any = Scene(stage, [], problem, plan, None)  # type: ignore[arg-type]
    injection = Injection(scene, FaultPlan())
    injection.ports = FaultyPorts(None, ["ps", "w1", "w2"], {})  # type: ignore[arg-type]
    return injection


def test_a_link_is_down_until_its_last_event_is_over() -> None:
    stage, between = Stage(), Signal()
    injection = injection_at(stage)
    told = stage.told
    first = Thread(target=injection.without_links, args=("s1", ["ps", "w1"], None, between.set))
    first.start()
    assert between.wait(5)
    injection.without_links("s1", ["w1", "w2"], 0.0, lambda: None)
    assert told == [("ps", False), ("w1", False), ("w2", False), ("w2", True)]
    assert injection.ports.cut_off.tolist() == [True, True, False]
    injection.over.set()
    first.join()
    assert not injection.ports.cut_off.any()
    assert told[4:] == [("ps", True), ("w1", True)]


def test_one_switch_does_one_thing_at_a_time() -> None:
    stage = Stage()
    injection = injection_at(stage)
    inside: list[str] = []

    def act() -> None:
        inside.append("in")
        Signal().wait(0.02)
        inside.append("out")

    works = [Thread(target=injection.without_links, args=("s1", ["w1"], 0.0, act)) for _ in range(4)]
    for work in works:
        work.start()
    for work in works:
        work.join()
    assert inside == ["in", "out"] * 4
    assert stage.told[-1] == ("w1", True)
