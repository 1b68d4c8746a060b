"""Fragments that switches hold: from the first gradient of each to its sum's leaving."""

from __future__ import annotations

import numpy as np
import pytest

from inakit.traffic.measure.over_time import time_since

pytestmark = pytest.mark.compiler


def test_the_time_that_has_passed_since_moments_is_added_up() -> None:
    moments = np.array([4, 1])
    assert time_since(moments, np.array([0.0, 2.0, 5.0])).tolist() == [0.0, 1.0, 5.0]


def test_a_switch_holds_a_fragment_while_it_waits_for_its_slower_worker() -> None:
    """Two workers, one behind a link of a tenth of the rate: the switch holds a sum while the slow packet comes."""
    from rich.console import Console  # noqa: PLC0415

    from inakit.experiments.emulate.emulate import Emulation, make_plans  # noqa: PLC0415
    from inakit.experiments.run.observation import observation  # noqa: PLC0415
    from inakit.experiments.run.run import Run, run_plan  # noqa: PLC0415
    from inakit.experiments.worlds.registry import find_world  # noqa: PLC0415
    from inakit.planner.core.problem import Job, Problem  # noqa: PLC0415
    from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch  # noqa: PLC0415
    from inakit.traffic.wire.packet_format import FRAGMENT  # noqa: PLC0415

    slow_s = 0.002
    links = (
        Link("w1", "s1", 0, 1, 20e6, 20e6),
        Link("w2", "s1", 0, 2, 20e6, 20e6, delay_s=slow_s),
        Link("ps", "s1", 0, 3, 20e6, 20e6),
    )
    fabric = Fabric("small", tuple(map(Host, ("w1", "w2", "ps"))), (Switch("s1", 1, ((1, 2, 3),)),), links)
    problem = Problem(fabric, (Job(1, ("w1", "w2"), ("ps",), 64 * 4 * FRAGMENT.values),), FRAGMENT)
    prepared = make_plans(Emulation(problem, ("aro",), "virtual"), Console(quiet=True))["aro"]
    run = Run(prepared, observation=observation(prepared))
    observed = run_plan(run, find_world("virtual")).observed
    assert observed is not None
    held = observed.slots.held[observed.slots.switches.index("s1")]
    per_s = prepared.plan.trees[0].rate_bps / (8 * FRAGMENT.wire_bytes)
    assert held.max() == pytest.approx(slow_s * per_s, rel=0.15), "Little's law: as many as come in the delay"
