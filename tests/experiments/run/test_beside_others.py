"""Runs beside other processes: VALID and right, or OVERLOADED by processes that are named; overload is still caught.

The long forms take about 9 minutes for each kind of other processes. Nothing else may run on the machine:

    sudo .venv/bin/pytest -m long tests/experiments/run/test_beside_others.py -s
    sudo RUNS=3 .venv/bin/pytest -m long tests/experiments/run/test_beside_others.py -s -k 'emulate and 19'

`RUNS` is how many runs they make of each kind: by default 20 emulations, and 30 trials at each multiple of the rate.
`RATE` is that of the links, by default 20M. Without other processes, runs at it must be VALID, which takes two
processors.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command import ENTRY, inakit
from hogs import hogs

RATE = os.environ.get("RATE", "20M")
NETWORK = ("--topo", "fattree", "--k", "4", "--capacity", RATE, "--switch", "fast")
RUN_TIMEOUT_S, CALIBRATE_TIMEOUT_S = 120, 1500
RATES = ("sending_rate_bps", "ps_ingress_bytes")
LOWEST, EQUAL = 19, 0
NEAR = {LOWEST: 0.02, EQUAL: 0.05}
"""How far the figures of a VALID run may be off, relative to the plan, beside processes of each nice value."""


@dataclass(frozen=True)
class Run:
    """The result of one emulation: the verdict with its reasons, and the largest errors of its figures.

    `rate_error` is that of sending rate and PS ingress, `time_error` that of the communication time, both relative to
    the planned figure.
    """

    verdict: str
    reasons: tuple[str, ...]
    rate_error: float
    time_error: float

    @property
    def named(self) -> bool:
        """Whether a reason names processes of others, these hogs or any that ran as well."""
        return any("not of this run" in reason or "cannot be seen" in reason for reason in self.reasons)

    def __str__(self) -> str:
        figures = f"rates off by {self.rate_error:.1%}, times by {self.time_error:.1%}"
        return f"{self.verdict}, {figures}" + "".join(f"\n  - {reason}" for reason in self.reasons)


def emulated(at: Path, *planners: str) -> Run:
    """Run the emulation, and read what it wrote."""
    chosen = ("--planners", ",".join(planners)) if planners else ()
    inakit("emulate", *NETWORK, "--keep-going", *chosen, at=at)
    newest = max(at.glob("results/*/run.json"), key=lambda path: path.stat().st_mtime)
    record = json.loads(newest.read_text())
    entries = record["planners"].values()
    run = Run(
        verdict=record["verdict"],
        reasons=tuple(record["reasons"]),
        rate_error=max(
            error(entry, figure) for entry in entries for figure in ("sending_rate_bps", "ps_ingress_bytes")
        ),
        time_error=max(error(entry, "communication_time_s") for entry in entries),
    )
    print(run, flush=True)
    return run


def error(entry: dict[str, Any], figure: str) -> float:
    """The error of a measured figure, relative to the planned one."""
    planned: float = entry["planned"][figure]
    return abs(float(entry["measured"][figure]) - planned) / planned


def faults(runs: list[Run], nice: int) -> Iterator[str]:
    """Each way in which these runs break the promise, in words; none if they keep it."""
    spoilt = [run for run in runs if run.verdict != "VALID"]
    if nice == LOWEST and len(spoilt) > len(runs) // 20:
        yield f"{len(spoilt)} of {len(runs)} runs were not VALID"
    if nice == EQUAL:
        yield from (f"not VALID, and nobody is named: {run}" for run in spoilt if not run.named)
    yield from (f"figures are off: {run}" for run in runs if run.verdict == "VALID" and run.rate_error > NEAR[nice])


@pytest.mark.root
def test_a_run_beside_two_hogs_is_right_or_names_them(tmp_path: Path) -> None:
    with hogs(2, EQUAL):
        runs = [emulated(tmp_path, "aro")]
    assert not list(faults(runs, EQUAL))


@pytest.mark.root
@pytest.mark.long
@pytest.mark.parametrize("nice", [LOWEST, EQUAL])
def test_emulate_beside_two_hogs(tmp_path: Path, nice: int) -> None:
    with hogs(2, nice):
        runs = [emulated(tmp_path) for _ in range(int(os.environ.get("RUNS", "20")))]
    valid = sum(run.verdict == "VALID" for run in runs)
    print(f"beside two hogs of nice value {nice}: {valid} of {len(runs)} VALID", flush=True)
    assert not list(faults(runs, nice))


@pytest.mark.root
@pytest.mark.long
@pytest.mark.parametrize("nice", [None, LOWEST, EQUAL])
def test_calibrate_beside_two_hogs_catches_every_overload(tmp_path: Path, nice: int | None) -> None:
    command = [sys.executable, "-c", ENTRY, "calibrate", *NETWORK, "--verify", os.environ.get("RUNS", "30")]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    with nullcontext() if nice is None else hogs(2, nice):
        done = subprocess.run(command, env=environment, check=False, timeout=CALIBRATE_TIMEOUT_S)
    assert done.returncode == 0
