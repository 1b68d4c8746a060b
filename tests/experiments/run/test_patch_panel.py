"""Optical links through one circuit switch: the same plan, the same sums, every packet by a circuit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inakit.experiments.emulate.emulate import Emulation
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.atro.atro import design
from inakit.planner.methods.atro.switch_cluster import SwitchCluster
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import METHODS
from inakit.topo.errors import FabricError
from inakit.topo.fabric.circuits import INTERCONNECT, patch_panel
from inakit.topo.fabric.generators import leaf_spine, units
from inakit.traffic.wire.packet_format import FRAGMENT

WORLDS = [
    pytest.param("virtual", marks=pytest.mark.compiler),
    pytest.param("fast", marks=[pytest.mark.root, pytest.mark.beside]),
    pytest.param("bmv2", marks=[pytest.mark.root, pytest.mark.bmv2]),
]
JOB = Job(1, (), (), 12_800)


@pytest.mark.parametrize("target", WORLDS)
def test_a_designed_network_runs_through_a_patch_panel(target: str, tmp_path: Path) -> None:
    """In ATRO's network hosts, too, are connected to the circuit switch."""
    designed = design(SwitchCluster(aggregators=2, common=2, ports=4, workers=4, capacity_bps=20e6), FRAGMENT, job=JOB)
    emulation = Emulation(designed.problem, ("atro",), patch_panel=True)
    assert emulation.interconnect == patch_panel(designed.fabric)
    run = Run(Prepared(designed.problem, designed.plan), folder=tmp_path, interconnect=emulation.interconnect)
    outcome = run_plan(run, find_world(target))
    assert outcome.measured.exact
    peers = {peer for ports in outcome.monitor.watched.peers.values() for peer in ports.values()}
    assert peers == {INTERCONNECT}
    fragments = FRAGMENT.count(JOB.gradient_bytes)
    assert all(sum(seen.received.values()) >= fragments for seen in outcome.monitor.after.switches.values())


@pytest.mark.compiler
def test_a_patch_panel_changes_nothing_in_virtual_time() -> None:
    """Light passes it at once, so every figure is that of the same network without it."""
    problem = Problem(units(3, servers=2), (Job(1, ("u1h1", "u1h2", "u2h1"), ("u3h1",), 128_000),), FRAGMENT)
    plan, panel = METHODS["aro"].plan(problem), patch_panel(problem.fabric)
    run = Run(with_headroom(problem, plan))
    through, without = (run_plan(each, find_world("virtual")) for each in (replace(run, interconnect=panel), run))
    assert (through.verdict, through.measured.exact) == ("VALID", True)
    assert through.measured == without.measured
    assert through.monitor.after.interfaces == without.monitor.after.interfaces
    assert through.monitor.watched.peers["u3"][3] == INTERCONNECT


def test_a_fabric_without_optical_links_has_no_use_for_one() -> None:
    problem = Problem(leaf_spine(2, 2, 2), (Job(1, ("h1",), ("h4",), 2560),), FRAGMENT)
    assert Emulation(problem, ("aro",)).interconnect is None
    with pytest.raises(FabricError, match="has no optical link: nothing would go through the circuit switch"):
        _ = Emulation(problem, ("aro",), patch_panel=True).interconnect
