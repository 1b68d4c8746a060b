"""The tables of collectives by packets: problems as they are described, and what a row has to hold."""

from __future__ import annotations

import pytest

from inakit.experiments.papers.collectives import all_reduce_times, by_packets
from inakit.experiments.papers.collectives.by_packets import LOSS, row_of, trial_of
from inakit.experiments.papers.common.figure_engine import Findings, once
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.sweep import Result, name_of
from inakit.traffic.measure.verdict import VALID, Verdict


def result(measured_s: float, measured_bps: float = 10e6, judged: str = VALID, exact: int = 1) -> Result:
    """A run that was planned to take 1 s at 10 Mbit/s."""
    return {
        "planned_bps": 10e6, "planned_s": 1.0, "measured_bps": measured_bps, "measured_s": measured_s,
        "judged": judged, "exact": exact,
    }  # fmt: skip


def row(clean: Result, lossy: Result) -> by_packets.Row:
    """The row of two runs."""
    trials = (trial_of("fat-tree 4", "ring", loss) for loss in (0.0, LOSS))
    results = dict(zip(map(name_of, trials), (clean, lossy), strict=True))
    return row_of(Findings(results, Request(), 1, once), network="fat-tree 4", planner="ring")


def test_a_row_holds_where_plans_are_kept_and_losses_leave_sums_exact() -> None:
    kept = row(result(1.04, 9.8e6), result(3.12))
    assert kept.time == pytest.approx(1.04)
    assert kept.slower == pytest.approx(3.0)
    assert kept.holds


@pytest.mark.parametrize(
    ("clean", "lossy"),
    [
        (result(1.06), result(3.0)),
        (result(1.0, 9.6e6), result(3.0)),
        (result(1.0, exact=0), result(3.0)),
        (result(1.0), result(3.0, exact=0)),
        (result(1.0), result(3.0, judged=Verdict.OVERLOADED)),
    ],
)
def test_a_row_does_not_hold(clean: Result, lossy: Result) -> None:
    assert not row(clean, lossy).holds


@pytest.mark.parametrize("by", ["netpack", "mina"])
def test_placed_jobs_have_hosts_of_their_own(by: str) -> None:
    jobs = by_packets.placed(by).jobs
    hosts = [host for job in jobs for host in (*job.workers, *job.servers)]
    assert [len(job.workers) for job in jobs] == [15] * 6
    assert len(set(hosts)) == len(hosts)


def test_every_direction_of_every_link_loses() -> None:
    fabric = by_packets.NETWORKS["fat-tree 4"]().fabric
    assert {faults.drop for faults in by_packets.losing(fabric, LOSS).links.values()} == {LOSS}
    assert set(by_packets.losing(fabric, LOSS).links) == set(fabric.capacities_bps)
    assert by_packets.losing(fabric, 0.0).links == {}


def test_a_thousand_workers_are_on_hosts_of_their_own_and_their_ring_is_planned_only() -> None:
    (job,) = all_reduce_times.problem_of_size(1024).jobs
    assert len({*job.workers, *job.servers}) == 1025
    assert all_reduce_times.is_planned_only("ring", 1024)
    assert not all_reduce_times.is_planned_only("double-tree", 1024)


@pytest.mark.compiler
def test_a_short_message_takes_the_time_of_its_plan() -> None:
    assert all_reduce_times.holds(all_reduce_times.measure_scale({"planner": "double-tree", "workers": 16}))


@pytest.mark.compiler
@pytest.mark.parametrize("planner", ["ring", "ps-sharded", "sharp"])
def test_losses_leave_sums_exact_and_cost_no_multiple(planner: str) -> None:
    clean, lossy = (by_packets.measure(trial_of("leaf-spine 4x2", planner, loss)) for loss in (0.0, LOSS))
    assert (lossy["exact"], lossy["judged"]) == (1, "VALID")
    assert float(lossy["measured_s"]) < 2 * float(clean["measured_s"])
