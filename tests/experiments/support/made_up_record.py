"""Records of runs that never were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inakit.experiments.run.record import (
    RECORD_VERSION,
    Configuration,
    FabricSummary,
    PlannerRecord,
    RunRecord,
    SourceCommit,
    machine,
    now,
)
from inakit.topo.kit import this_kit

FIGURES: dict[str, Any] = {
    "sending_rate_bps": 20e6,
    "ps_ingress_bytes": 1000,
    "communication_time_s": 0.5,
    "aggregation_ratio": 14.0,
}


def figures(of_all: Mapping[str, Any] = FIGURES, jobs: int = 1) -> dict[str, Any]:
    """The planned figures of a run with this number of jobs, all alike."""
    return {
        **of_all,
        "aggregated_bytes": 13_000,
        "overhead_bytes": 28_000,
        "jobs": {str(number + 1): dict(of_all) for number in range(jobs)},
        "total": {**of_all, "communication_time_s": None},
    }


def planner(of_all: Mapping[str, Any] = FIGURES, jobs: int = 1, **results: Any) -> PlannerRecord:
    """A planner that planned these figures and, where there are `results`, measured the same."""
    planned = figures(of_all, jobs)
    if results:
        results["measured"] = planned | {"retransmissions": 0, "exact": True} | results.get("measured", {})
    return PlannerRecord(planned=planned, **results)


def made_up_record(
    planners: Mapping[str, PlannerRecord], names: Sequence[str] = ("aro",), scale: float = 1
) -> RunRecord:
    """A run on a small fabric that has not ended."""
    return RunRecord(
        version=RECORD_VERSION,
        verdict="INCOMPLETE",
        reasons=[],
        switch="fast",
        mode="reliable",
        seed=7,
        fabric=FabricSummary(name="small", switches=1, hosts=3, workers=2, scale=scale, description={"switches": {}}),
        planners=dict(planners),
        configuration=Configuration(planners=list(names)),
        command=["inakit"],
        source=SourceCommit(**this_kit().source._asdict()),
        versions={},
        machine=machine(),
        started=now(),
        finished=None,
    )
