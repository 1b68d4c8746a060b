"""P4INC-AOI's jobs: the published distributions, their placement, and traces in CSV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from p4inc_aoi_cases import center

from inakit.planner.methods.p4inc_aoi.job_traces import (
    FACEBOOK,
    MOST_UNITS,
    PHILLY_WORKERS,
    JobRequest,
    mapreduce,
    place,
    read_trace,
    training,
)
from inakit.planner.methods.p4inc_aoi.optical_system import MAPREDUCE, Scheduling
from inakit.topo.errors import InputError

WIDE = center(units=6, servers=64)


def test_training_jobs_have_the_papers_distributions() -> None:
    found = training(4000, 20.0, np.random.default_rng(0))
    assert {request.workers for request in found} == set(PHILLY_WORKERS)
    assert min(request.gradient_bytes for request in found) >= 102e6 - 4
    assert np.mean([request.gradient_bytes for request in found]) == pytest.approx(325e6, rel=0.02)
    assert found[0].arrival_s == 0.0
    assert found[-1].arrival_s == pytest.approx(4000 / 20, rel=0.1)


def test_mapreduce_jobs_have_the_shape_of_facebooks() -> None:
    """By Varys's table 52, 16, 15 and 17 % of the shuffles are of each class, and nearly all bytes of the last."""
    found = mapreduce(4000, None, np.random.default_rng(0))
    total = np.array([request.workers * request.gradient_bytes for request in found])
    large = np.array([request.workers >= 8 and request.gradient_bytes >= 250e6 - 4 for request in found])
    assert large.mean() == pytest.approx(FACEBOOK[3].share, abs=0.02)
    assert total[large].sum() / total.sum() > 0.95
    assert {request.kind for request in found} == {MAPREDUCE}
    assert {request.arrival_s for request in found} == {0.0}


def test_workers_are_placed_in_few_units_with_servers_for_them() -> None:
    draws = np.random.default_rng(1)
    requests = training(200, 20.0, draws)
    jobs = place(requests, WIDE, draws, free_servers=8)
    Scheduling(WIDE, jobs)  # checks that they fit
    assert [sum(job.workers.values()) for job in jobs] == [request.workers for request in requests]
    assert max(len(job.workers) for job in jobs) == MOST_UNITS
    assert [job.arrival for job in jobs] == [int(request.arrival_s) for request in requests]


def test_a_job_larger_than_the_data_centre_is_refused() -> None:
    with pytest.raises(InputError, match="constraint 'servers'"):
        place([JobRequest(0.0, 1000, 4)], WIDE, np.random.default_rng(0))


def test_a_trace_is_read_in_the_order_of_arrival(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,workers,gradient_bytes,kind\n2.5,4,1000,training\n0.5,2,2000,mapreduce\n")
    assert read_trace(path) == [JobRequest(0.5, 2, 2000, kind=MAPREDUCE), JobRequest(2.5, 4, 1000)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arrival_s,workers\n1,2\n", "columns arrival_s, workers: arrival_s, .* are expected"),
        ("arrival_s,workers,gradient_bytes,colour\n1,2,3,4\n", "colour"),
        ("arrival_s,workers,gradient_bytes\n0,2,4\n0,two,4\n", "line 3"),
        ("arrival_s,workers,gradient_bytes\n0,0,4\n", "line 2: at least one worker"),
        ("arrival_s,workers,gradient_bytes\n0,2\n", "line 2"),
        ("arrival_s,workers,gradient_bytes\n0,2,4,5\n", "line 2"),
        ("arrival_s,workers,gradient_bytes\n", "no job"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_trace(path)


def test_a_missing_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trace\.csv"):
        read_trace(tmp_path / "trace.csv")
