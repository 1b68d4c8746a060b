"""What plans gain that know of results, and the frontier: bounds by hand, problems as they are described."""

from __future__ import annotations

import pytest

from inakit.experiments.papers import closed_loop, frontier
from inakit.experiments.papers.closed_loop import random_problem
from inakit.experiments.papers.common.emulated_figure import compared_rates, is_near
from inakit.experiments.papers.frontier import FRONTIER, host_bound_bps, jobs_on
from inakit.planner.methods.forest import least_bound
from inakit.topo.fabric.generators import leaf_spine

MBPS = 1e6


@pytest.mark.parametrize("seed", range(30))
def test_random_problems_have_two_to_five_jobs_on_hosts_of_their_own(seed: int) -> None:
    jobs = random_problem(seed).jobs
    hosts = [host for job in jobs for host in (*job.workers, *job.servers)]
    assert 2 <= len(jobs) <= 5
    assert len(set(hosts)) == len(hosts)


def test_hosts_that_sum_receive_twice_what_they_keep() -> None:
    """Eight hosts, one of them a PS: 8 links of 20 Mbit/s into hosts carry 2 x 6 gradients."""
    assert host_bound_bps(jobs_on(leaf_spine(2, 2, 4), 1)) == pytest.approx(8 * 20 * MBPS / 12)


def test_racks_share_their_uplinks_among_jobs() -> None:
    """At 4:1, four leaves with 8 hosts have 40 Mbit/s of uplinks each, and each of 4 jobs is in all racks."""
    assert host_bound_bps(FRONTIER["leaf-spine 4:1, 4 jobs"]()) == pytest.approx(40 * MBPS / 4)


def test_sums_in_switches_make_a_link_the_bound_of_one_job() -> None:
    assert least_bound(jobs_on(leaf_spine(2, 2, 4), 1)) == pytest.approx(20 * MBPS)


def test_rails_allow_eight_times_the_rate_of_a_nic() -> None:
    """The PS's server has eight NICs of 20 Mbit/s; its NVLink carries nine."""
    assert least_bound(FRONTIER["rails 2x2x8"]()) == pytest.approx(8 * 20 * MBPS)


def test_any_number_of_trees_is_at_the_frontier_of_rails_where_one_tree_has_an_eighth() -> None:
    rates = {
        method: frontier.measure({"network": "rails 2x2x8", "method": method})["rate_bps"]
        for method in ("aro", "forest-any")
    }
    assert rates == pytest.approx({"aro": 20 * MBPS, "forest-any": 160 * MBPS}, rel=0.01)


def test_a_large_fabric_is_left_to_quick_planners() -> None:
    assert {"aro", "goat", "ps-sharded", "ring"} <= set(frontier.methods_on("fat-tree 8"))
    assert {"aro", "goat", "ps-sharded", "ring"} & set(frontier.methods_on("fat-tree 16")) == {"aro", "ring"}


def test_results_that_are_planned_gain_on_a_random_fabric() -> None:
    rates = [closed_loop.measure({"network": "random", "seed": 2, "headroom": h}) for h in ("planned", "afterwards")]
    assert [rate["verdict"] for rate in rates] == ["VALID", "VALID"]
    assert all(is_near(*pair) for pair in compared_rates(rates))
    assert float(rates[0]["rate_bps"]) > 1.5 * float(rates[1]["rate_bps"])
