"""`inakit bench` in virtual time: hops of a run that are known, and their ratio to those of chains."""

from __future__ import annotations

import pytest
from test_bench import cells_of

from inakit.experiments.bench.exactness import case
from inakit.experiments.bench.switch_rates import WORKLOADS, Measurement
from inakit.experiments.bench.virtual_time import (
    P4SIM,
    Speed,
    bench_virtual,
    datacentre,
    hops_table,
    most_hops,
    parts_table,
)
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem

SHARES = {"Python": 0.7, "calendar": 0.02, "links": 0.03, "copies": 0.05, "switches": 0.15, "endpoints": 0.05}
FORWARDING, AGGREGATION, *_ = (workload.name for workload in WORKLOADS)


@pytest.mark.compiler
def test_a_run_is_counted_and_timed() -> None:
    """10,000 fragments twice, and as many results: each crosses 3 links at workers, 2 between leaves, and the PS's."""
    fabric = FabricChoice("leafspine", leaves=2, spines=1, hosts_per_leaf=2)
    speed = bench_virtual(build_problem(fabric, JobChoice(workers=3, gradient_bytes=2_560_000, iterations=2)))
    assert speed.hops == 2 * 10_000 * 2 * (3 + 2 + 1)
    assert 0 < speed.engine_s < speed.run_s
    assert sum(speed.shares.values()) == pytest.approx(1)


def test_hops_are_the_links_that_packets_cross() -> None:
    """Ten switches: eleven links, or one link for each of two packets and ten for their sum."""
    rates = [
        Measurement("bmv2", FORWARDING, 10, 0.0, 100.0),
        Measurement("bmv2", AGGREGATION, 10, 0.0, 100.0),
        Measurement("fast", AGGREGATION, 10, 0.002, 1000.0),
        Measurement("fast", AGGREGATION, 10, 0.0, 0.0),
    ]
    assert most_hops(rates) == {"bmv2": 1100.0, "fast": 6000.0}


def test_the_table_has_ratios_to_what_targets_did() -> None:
    problem, _ = case("goat", 1, fragments=8, slots=8, rate_bps=1e9)
    speed = Speed(problem, hops=1_000_000, run_s=2.0, shares=SHARES)
    rates = [Measurement("bmv2", FORWARDING, 1, 0.0, 20_000.0), Measurement("fast", FORWARDING, 1, 0.0, 200_000.0)]
    assert cells_of(hops_table(speed, rates)) == [
        ["engine and switches", "2,000,000", "40,000", "400,000", "50.0", "5.0"],
        ["with the endpoints", "500,000", "40,000", "400,000", "12.5", "1.2"],
    ]
    assert cells_of(hops_table(speed, [])) == [["engine and switches", "2,000,000"], ["with the endpoints", "500,000"]]


def test_the_time_of_a_hop_is_that_of_its_parts() -> None:
    problem, _ = case("goat", 1, fragments=8, slots=8, rate_bps=1e9)
    assert cells_of(parts_table(Speed(problem, hops=1_000_000, run_s=2.0, shares=SHARES))) == [
        ["Python", "1400", "70.0%"],
        ["calendar", "40", "2.0%"],
        ["links", "60", "3.0%"],
        ["copies", "100", "5.0%"],
        ["switches", "300", "15.0%"],
        ["endpoints", "100", "5.0%"],
        ["all", "2000", "100.0%"],
    ]


def test_the_network_that_is_timed() -> None:
    problem = datacentre()
    assert len(problem.jobs[0].workers) == len(problem.fabric.hosts) - 1 == 127
    assert set(problem.fabric.capacities_bps.values()) == {100e9}


def test_what_others_published_is_named_as_theirs() -> None:
    """Two links: 3,749,999 packets over the first, 3,577,117 over the second, in 1,742.556 s."""
    problem, _ = case("goat", 1, fragments=8, slots=8, rate_bps=1e9)
    caption = hops_table(Speed(problem, hops=1, run_s=1.0, shares=SHARES), []).caption
    assert caption is not None and f"Not measured here: {P4SIM}" in caption
    assert str(P4SIM).endswith("4,205 packet-hops per second")
