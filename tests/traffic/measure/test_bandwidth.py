"""Bandwidths by nccl-tests' definitions, and bytes by tiers of links."""

from __future__ import annotations

import pytest
from tolerance import assert_within

from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.planner.registry import METHODS
from inakit.topo.fabric.generators import leaf_spine
from inakit.traffic.measure.comparison import algorithm_bandwidth_bps, bus_bandwidth_bps, bytes_by_tier, core_bytes
from inakit.traffic.wire.packet_format import FRAGMENT


def test_bandwidths_are_those_of_nccl_tests() -> None:
    """1 GB in 0.1 s by 8 ranks: algbw 10 GB/s, busbw 17.5 GB/s."""
    assert algorithm_bandwidth_bps(10**9, 0.1) == 80e9
    assert bus_bandwidth_bps(10**9, 0.1, 8) == pytest.approx(140e9)


@pytest.mark.compiler
def test_links_of_hosts_and_of_the_core_are_counted_apart() -> None:
    """Four ranks in two racks: each sends 2 * 3 / 4 of 64 fragments, which its link and its successor's carry; of four
    connections two cross the core, up and down.
    """
    fabric = leaf_spine(2, 1, 3)
    problem = Problem(fabric, (Job(1, ("h2", "h3", "h4", "h5"), ("h1",), 64 * 256),), FRAGMENT)
    outcome = run_plan(Run(Prepared(problem, METHODS["ring"].plan(problem))), find_world("virtual"))
    tiers = bytes_by_tier(fabric, outcome.monitor)
    chunks = 2 * 3 / 4 * 64 * 326
    assert_within(tiers[1], 4 * 2 * chunks, 0.05, "bytes on links of hosts", "B")
    assert_within(tiers[2], 2 * 2 * chunks, 0.05, "bytes on links of the core", "B")
    assert core_bytes(tiers) == tiers[2]
    assert core_bytes({1: 5}) == 0
    rates = outcome.results.as_json()["bandwidth"]["jobs"]["1"]
    seconds = outcome.measured.communication_time_s
    assert rates["bus_bandwidth_bps"] == pytest.approx(8 * 64 * 256 / seconds * 6 / 4)
