"""`inakit design`: the network of a cluster is written as files for the other commands, and reaches its rate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import inakit, nothing_left
from tolerance import assert_within

CLUSTER = ("--aggregators", "2", "--common", "4", "--ports", "4", "--workers", "9", "--capacity", "4M")
RATE_BPS = 4e6 / 2
TRIES = 3


def design(at: Path, *arguments: str) -> Path:
    folder = at / "designed"
    answer = inakit("design", *CLUSTER, "--gradient-bytes", "51200", "--output", str(folder), *arguments, at=at)
    assert answer.code == 0, answer
    assert "optimal" in answer.output
    assert "such links carry 5 workers at most" in " ".join(answer.output.split())
    return folder


def test_what_is_designed_is_checked_and_drawn(tmp_path: Path) -> None:
    folder = design(tmp_path)
    answer = inakit("check", *(str(folder / name) for name in ("plan.json", "fabric.yml", "jobs.yml")), at=tmp_path)
    assert answer.code == 0, answer
    plan = json.loads((folder / "plan.json").read_text())["plan"]
    assert plan["method"] == "atro"
    assert plan["trees"][0]["rate_bps"] == RATE_BPS
    assert {"fabric.png", "fabric.svg", "entries"} <= {path.name for path in folder.iterdir()}


def test_a_cluster_that_cannot_be_wired_leaves_nothing(tmp_path: Path) -> None:
    answer = inakit("design", *CLUSTER, "--layers", "1", "--output", str(tmp_path / "designed"), at=tmp_path)
    assert answer.code == 2
    assert "9 workers and a PS cannot be wired" in answer.error
    assert not (tmp_path / "designed").exists()


@pytest.mark.root
def test_aro_on_the_designed_network_is_measured_as_designed(tmp_path: Path) -> None:
    folder = design(tmp_path)
    files = ("--topo", str(folder / "fabric.yml"), "--jobs", str(folder / "jobs.yml"), "--results", str(tmp_path))
    for _ in range(TRIES):
        with nothing_left():
            inakit("emulate", *files, "--planners", "aro", "--switch", "fast", at=tmp_path)
        run = json.loads((tmp_path / "latest" / "run.json").read_text())
        assert run["planners"]["aro"]["measured"]["exact"]
        if run["verdict"] == "VALID":
            rate = run["planners"]["aro"]["measured"]["sending_rate_bps"]
            assert_within(rate, RATE_BPS, 0.05, "ATRO", "bit/s")
            return
    pytest.skip(f"this machine is too busy for a valid run: {run['reasons'][:3]}")
