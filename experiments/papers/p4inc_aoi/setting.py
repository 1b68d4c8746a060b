"""The setting of P4INC-AOI's simulations: 64 units of 64 servers, jobs and their arrivals, the schemes' names."""

from __future__ import annotations

import numpy as np

from inakit.experiments.papers.common.sweep import Trial
from inakit.planner.methods.p4inc_aoi.problem.system import DataCenter, Scheduling, Unit
from inakit.planner.methods.p4inc_aoi.problem.traces import mapreduce, place, training

GIGA = 1e9
SERVERS, PORTS, PORT_BPS, STEP_BPS, INC_JOBS = 64, 24, 40 * GIGA, 10 * GIGA, 4
SWITCH_BPS = 2 * SERVERS * PORT_BPS
"""The bandwidth of a unit's switch: each server's link is as fast as an optical port, in both directions."""
RECONFIGURATION_S = 0.025
ARRIVALS_PER_S = 20.0
ARRIVALS = {ARRIVALS_PER_S: "20 jobs/s", 40.0: "40 jobs/s", 0.0: "all at once"}
"""What the text may mean by arrivals: 20 jobs a second, 20 of each kind, or a batch of concurrent jobs (0)."""
TRACES = {"training": training, "mapreduce": mapreduce}
RESULTS = "aoi-simulation-trials"
COMPARED = ("noINC-FCFS", "INC-FCFS", "noINC-TW", "INC-TW")
OURS = "pack"
DEFAULTS: Trial = {
    "kind": "training",
    "jobs": 1000,
    "units": 64,
    "inc": INC_JOBS,
    "slot_s": 1.0,
    "per_s": ARRIVALS_PER_S,
}


def center(units: int, ports: int, inc_jobs: int, slot_s: float) -> DataCenter:
    """A data centre of so many units, each with `ports` optical ports and INC for `inc_jobs` jobs."""
    return DataCenter(
        tuple(Unit(f"unit{number:02}", SERVERS, ports, SWITCH_BPS, inc_jobs) for number in range(1, units + 1)),
        PORT_BPS, RECONFIGURATION_S, slot_s, STEP_BPS,
    )  # fmt: skip


def drawn(trial: Trial) -> Scheduling:
    """The data centre and the jobs of a trial; all schemes have the same jobs for a seed."""
    draws = np.random.default_rng(int(trial["seed"]))
    found = center(int(trial["units"]), int(trial.get("ports", PORTS)), int(trial["inc"]), float(trial["slot_s"]))
    requests = TRACES[str(trial["kind"])](int(trial["jobs"]), float(trial["per_s"]) or None, draws)
    return Scheduling(found, place(requests, found, draws))
