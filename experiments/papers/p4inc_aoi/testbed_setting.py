"""The setting of P4INC-AOI's testbed: two GPU units, two CPU units, two models, random jobs, four policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from inakit.experiments.papers.p4inc_aoi.setting import GIGA
from inakit.planner.methods.p4inc_aoi.online.slot_by_slot import Policy
from inakit.planner.methods.p4inc_aoi.online.tw_fcfs import FirstCome, TimeWindow
from inakit.planner.methods.p4inc_aoi.problem.system import DataCenter, PlacedJob, Unit
from inakit.planner.methods.p4inc_aoi.problem.traces import arrivals


@dataclass(frozen=True)
class Model:
    """A model on the testbed: its size, a worker's computing time, and the time of an update without INC.

    The updates are chosen so that INC makes an iteration as much faster as Figure 5 says, 1.56 and 3.7 times.
    """

    gradient_bytes: int
    compute_s: float
    update_s: float


MODELS = {"ResNet50": Model(102_000_000, 0.16, 0.10), "VGG16": Model(528_000_000, 0.25, 0.96)}
ITERATIONS = 20
NIC_BPS = 40 * GIGA
TESTBED = DataCenter(
    tuple(Unit(name, 4, 8, 2 * 4 * NIC_BPS, 4) for name in ("gpu1", "gpu2", "cpu1", "cpu2")),
    port_bps=40 * GIGA, reconfiguration_s=0.025, slot_s=1.0, step_bps=10 * GIGA,
)  # fmt: skip
POLICIES: Mapping[str, Policy] = {
    "noINC-FCFS": FirstCome(inc=False, limit_bps=NIC_BPS),
    "INC-FCFS": FirstCome(limit_bps=NIC_BPS),
    "noINC-TW": TimeWindow(inc=False, limit_bps=NIC_BPS),
    "INC-TW": TimeWindow(limit_bps=NIC_BPS),
}


def testbed_jobs(model: Model, count: int, seed: int) -> tuple[PlacedJob, ...]:
    """Random jobs, one per second: two or four workers in one GPU unit or half in each, and the PS in a CPU unit."""
    draws = np.random.default_rng(seed)
    found = []
    for number, arrival in enumerate(arrivals(count, 1.0, draws), start=1):
        workers, first = int(draws.choice((2, 4))), int(draws.integers(2))
        units = ("gpu1", "gpu2")
        together = bool(draws.integers(2))
        placed = {units[first]: workers} if together else dict.fromkeys(units, workers // 2)
        found.append(
            PlacedJob(
                number, placed, f"cpu{draws.integers(1, 3)}", model.gradient_bytes, model.update_s, int(arrival),
                ITERATIONS, model.compute_s,
            )
        )  # fmt: skip
    return tuple(found)
