"""Planned against measured: the figures that are compared, by the same definitions on both sides, and their limits.

Figures of a job are compared with those of that job, totals with totals. A job's planned figures hold for all jobs
sending at once. Workers are paced at the planned rate, so a job that is alone for a time, because others have not
arrived or are done, is no faster: each job meets its own plan whether or not it overlaps with others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

from inakit.planner.core.evaluate import Prediction
from inakit.traffic.measure.measured import Measured

TOTAL = "total"


@dataclass(frozen=True)
class Figures:
    """What is compared, per iteration; bytes and rates are those of whole frames.

    Of one job: the sending rate of each worker, what its PSs receive, the time from the first gradient sent to the last
    result received, and what its workers send. Measured figures are means over iterations, the rate also over workers.
    Of all jobs together ("total"): the sums over all workers, PSs and jobs; times are not added up.
    """

    sending_rate_bps: float
    ps_ingress_bytes: float
    communication_time_s: float | None
    sent_bytes: float

    @property
    def aggregation_ratio(self) -> float | None:
        """Bytes that workers send for each byte that reaches a PS; None when none does."""
        return self.sent_bytes / self.ps_ingress_bytes if self.ps_ingress_bytes else None

    def as_json(self) -> dict[str, float | None]:
        """The figures by their names in files."""
        return {name: value(self) for name, value in QUANTITIES.items()}


QUANTITIES: dict[str, Callable[[Figures], float | None]] = {
    "sending_rate_bps": lambda figures: figures.sending_rate_bps,
    "ps_ingress_bytes": lambda figures: figures.ps_ingress_bytes,
    "communication_time_s": lambda figures: figures.communication_time_s,
    "aggregation_ratio": lambda figures: figures.aggregation_ratio,
}
"""The compared figures by their names in files."""


@dataclass(frozen=True)
class Pair:
    """Planned and measured figures of a job, by its number, or of all together."""

    job: int | None
    planned: Figures
    measured: Figures

    @property
    def name(self) -> str:
        """The job's number, or "total", as tables show it."""
        return TOTAL if self.job is None else str(self.job)

    def row(self) -> dict[str, object]:
        """A row of a table: planned, measured and their relative difference, for every quantity."""
        found: dict[str, object] = {"job": self.name}
        for name, value in QUANTITIES.items():
            planned, measured = value(self.planned), value(self.measured)
            off = measured / planned - 1 if planned and measured is not None else None
            found |= {f"planned_{name}": planned, f"measured_{name}": measured, f"difference_{name}": off}
        return found


def planned_by_job(prediction: Prediction) -> dict[int | None, Figures]:
    """The planned figures of each job, and under None the totals."""
    found: dict[int | None, Figures] = {
        number: Figures(job.sending_rate_bps, job.ps_ingress_bytes, job.communication_time_s, job.sent_bytes)
        for number, job in prediction.jobs.items()
    }
    return found | {None: total(found, fsum(prediction.worker_rates_bps.values()))}


def measured_by_job(measured: Measured) -> dict[int | None, Figures]:
    """The measured figures of each job, and under None the totals."""
    jobs = {number: measured.of_job(number) for number in measured.jobs}
    found: dict[int | None, Figures] = {
        number: Figures(job.sending_rate_bps, job.ps_ingress_bytes, job.communication_time_s, job.sent_bytes)
        for number, job in jobs.items()
    }
    return found | {None: total(found, measured.total_rate_bps)}


def total(jobs: dict[int | None, Figures], rate_bps: float) -> Figures:
    """The figures of all jobs together, whose workers send at `rate_bps` in all."""
    ingress, sent = (
        sum(each) for each in zip(*((f.ps_ingress_bytes, f.sent_bytes) for f in jobs.values()), strict=True)
    )
    return Figures(rate_bps, ingress, None, sent)


def paired(prediction: Prediction, measured: Measured) -> tuple[Pair, ...]:
    """Planned and measured figures side by side: a pair for every job that was run, then one of the totals."""
    planned, found = planned_by_job(prediction), measured_by_job(measured)
    return tuple(Pair(job, planned[job], figures) for job, figures in found.items())
