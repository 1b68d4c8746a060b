"""Placement: hosts of few fragments or quiet racks, INA over time, rates, and the time of long queues."""

from __future__ import annotations

import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placement_cases import drawn_queue, queued

from inakit.planner.core.problem import Problem
from inakit.planner.placement import (
    ALPHA,
    POLICIES,
    Block,
    Cluster,
    InaOptions,
    PlacedJob,
    QueuedJob,
    find_policy,
    load_queue,
    place_mina,
    place_netpack,
    place_queue,
)
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_capacity
from inakit.traffic.wire.packet_format import FRAGMENT


def place(fabric: Fabric, jobs: tuple[QueuedJob, ...], by: str, **options: float) -> dict[int, PlacedJob]:
    found = place_queue(fabric, jobs, POLICIES[by], FRAGMENT, InaOptions(**options))  # type: ignore[arg-type]
    return {placed.job.number: placed for placed in found}


def score(free: set[str], taken: set[str], block: Block) -> float:
    """MINA's score from its definition: 1 for each largest block that the job fills, ALPHA for each that stays free."""
    if set(block.hosts) <= taken:
        return 1.0
    if set(block.hosts) <= free - taken:
        return ALPHA
    if block.parts:
        return sum(score(free, taken, part) for part in block.parts)
    return sum(1.0 if host in taken else ALPHA if host in free else 0.0 for host in block.hosts)


def test_blocks_are_racks_pods_and_all() -> None:
    blocks = Cluster(fat_tree(4)).blocks
    assert len(blocks.hosts) == 16
    assert [len(pod.hosts) for pod in blocks.parts] == [4, 4, 4, 4]
    assert [len(rack.hosts) for rack in blocks.racks] == [2] * 8


@given(st.sets(st.integers(0, 7)), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_mina_leaves_the_fewest_fragments(taken: set[int], workers: int) -> None:
    cluster = Cluster(fat_tree(4, hosts_per_edge=1))
    hosts = [host.name for host in cluster.fabric.hosts]
    cluster.take(hosts[place] for place in taken)
    job = queued(1, workers)
    if job.hosts > len(cluster.free):
        return
    found = place_mina(cluster, job, np.zeros(0))
    assert len(set(found)) == job.hosts
    assert set(found) <= cluster.free
    best = min(score(cluster.free, set(some), cluster.blocks) for some in combinations(sorted(cluster.free), job.hosts))
    assert score(cluster.free, set(found), cluster.blocks) == pytest.approx(best)


def test_netpack_takes_few_racks_and_those_whose_uplinks_are_quiet() -> None:
    cluster = Cluster(leaf_spine(4, 1, 4))
    busy = np.zeros(len(cluster.places))
    busy[cluster.places["leaf1", "spine1"]], busy[cluster.places["leaf3", "spine1"]] = 0.9, 0.5
    found = place_netpack(cluster, queued(1, 7), busy)
    assert {cluster.fabric.tor_of(host) for host in found} == {"leaf2", "leaf4"}
    cluster.take(["h5", "h6", "h13"])
    found = place_netpack(cluster, queued(2, 1), np.zeros(len(cluster.places)))
    assert set(found) == {"h7", "h8"}, "the rack with as few free hosts as the job needs"


@pytest.mark.parametrize("arrival_s", [100.1, 1506638472.0])
def test_time_that_the_clock_does_not_resolve_passes(arrival_s: float) -> None:
    """A job's last iterations, or all of them, take less time than the clock's next value is away."""
    jobs = tuple(QueuedJob(number, 3, 4096, iterations=3, arrival_s=arrival_s) for number in (1, 2))
    found = place(with_capacity(leaf_spine(2, 1, 4), 400e9), jobs, "netpack")
    assert all(job.start_s >= arrival_s and job.end_s >= job.start_s for job in found.values())


def test_a_job_alone_takes_its_compute_and_transfer_times() -> None:
    """Two workers in one rack at 20 Mbit/s: 3,907 fragments of 326 bytes each."""
    (placed,) = place(leaf_spine(2, 1, 4), (queued(1, 2),), "mina").values()
    assert placed.end_s == pytest.approx(10 * 3907 * 326 * 8 / 20e6)
    assert placed.ina_s == pytest.approx(placed.end_s)


def test_a_job_waits_for_hosts_and_those_behind_it_wait_too() -> None:
    fabric = leaf_spine(1, 1, 4)
    found = place(fabric, (queued(1, 2), queued(2, 3), queued(3, 0 + 1)), "first")
    assert found[2].start_s == pytest.approx(found[1].end_s)
    assert found[3].start_s >= found[2].start_s


def test_exclusive_ina_goes_to_the_next_job_when_one_ends() -> None:
    """Two jobs of two workers and a PS share the only rack's switch: the second has INA when the first is done."""
    fabric = leaf_spine(1, 1, 6)
    found = place(fabric, (queued(1, 2), queued(2, 2, iterations=40)), "first", quota=1)
    assert found[1].ina_s == pytest.approx(found[1].end_s)
    assert found[2].ina_s == pytest.approx(found[2].end_s - found[1].end_s)
    both = place(fabric, (queued(1, 2), queued(2, 2, iterations=40)), "first", quota=2)
    assert both[2].end_s < found[2].end_s


def test_statistical_ina_sums_less_when_slots_are_held_longer() -> None:
    """Without a free slot in time both gradients come to the PS, and the job takes twice as long."""
    fabric, jobs = leaf_spine(1, 1, 3), (queued(1, 2),)
    quick = place(fabric, jobs, "netpack", round_trip_s=1e-3)[1].end_s
    slow = place(fabric, jobs, "netpack", round_trip_s=1e3)[1].end_s
    assert slow == pytest.approx(2 * quick, rel=0.01)


@pytest.mark.parametrize("by", ["netpack", "mina"])
def test_a_hundred_jobs_in_a_second(by: str) -> None:
    """So that 1,000 jobs take less than 10 s, on 128 hosts."""
    started = time.process_time()
    found = place(fat_tree(8, capacity_bps=100e9), drawn_queue(100, mean_gap_s=3.0), by, round_trip_s=20e-6)
    assert time.process_time() - started < 1
    assert len(found) == 100


def test_both_policies_beat_the_first_free_hosts() -> None:
    fabric, jobs = fat_tree(8, capacity_bps=100e9), drawn_queue(60, mean_gap_s=0.1)
    mean = {
        by: sum(placed.completion_s for placed in place(fabric, jobs, by, round_trip_s=20e-6).values())
        for by in POLICIES
    }
    assert max(mean["netpack"], mean["mina"]) < 0.95 * mean["first"]


def test_no_host_has_two_jobs_at_a_time_and_planners_take_the_jobs_that_run() -> None:
    fabric = fat_tree(4)
    found = place(fabric, tuple(queued(n, 3, arrival_s=n / 10) for n in range(1, 9)), "mina").values()
    for one, two in combinations(found, 2):
        if one.start_s < two.end_s and two.start_s < one.end_s:
            assert not set(one.hosts) & set(two.hosts)
    running = tuple(placed.planned for placed in found if placed.start_s <= 1.0 < placed.end_s)
    assert len(running) > 1
    METHODS["inarouting"].plan(Problem(fabric, running, FRAGMENT))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\njobs: []", "no job"),
        ("version: 1\njobs:\n  - {workers: 0, gradient_bytes: 4}", "workers 0"),
        ("version: 1\njobs:\n  - {workers: 1, gradient_bytes: 5}", "5 bytes"),
        ("version: 1\njobs:\n  - {workers: [h1], gradient_bytes: 4}", "workers"),
        ("version: 1\njobs: [{workers: 1, gradient_bytes: 4, number: 2}, {workers: 1, gradient_bytes: 4}]", "2 times"),
        ("version: 1\njobs:\n  - {workers: 1, gradient_bytes: 4, arrival_s: -1}", "arrival_s: expected a time"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_queue_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "queue.yml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_queue(path)


def test_a_job_that_never_fits_and_an_unknown_policy_are_refused() -> None:
    with pytest.raises(InputError, match="needs 17 hosts, fabric 'fattree-4' has 16"):
        place(fat_tree(4), (queued(1, 16),), "mina")
    with pytest.raises(InputError, match="did you mean 'mina'"):
        find_policy("minna")
    with pytest.raises(InputError, match="quota 0"):
        InaOptions(quota=0)
