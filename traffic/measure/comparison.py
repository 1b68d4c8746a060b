"""Planned against measured: the figures that are compared, by the same definitions on both sides, and their limits.

Figures of a job are compared with those of that job, totals with totals. A job's planned figures hold for all jobs
sending at once. Workers are paced at the planned rate, so a job that is alone for a time, because others have not
arrived or are done, is no faster: each job meets its own plan whether or not it overlaps with others. This module has
the limits for a job's PS ingress and communication time.

Bandwidths of a collective are those of nccl-tests (its PERFORMANCE.md), with its bytes on each tier of links.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum

from inakit.planner.core.evaluate import JobPrediction, Prediction
from inakit.planner.core.plan import Plan
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.files.quantities import in_words
from inakit.traffic.measure.measured import Measured
from inakit.traffic.measure.monitor import Monitor


def algorithm_bandwidth_bps(gradient_bytes: int, seconds: float) -> float:
    """algbw: the gradient's size over the time of an all-reduce, in bit/s."""
    return 8 * gradient_bytes / seconds


def bus_bandwidth_bps(gradient_bytes: int, seconds: float, workers: int) -> float:
    """busbw: algbw times 2 (n - 1) / n, in bit/s.

    With end hosts only it is the load of each host's link and cannot exceed its capacity; with sums in switches it can.
    """
    return algorithm_bandwidth_bps(gradient_bytes, seconds) * 2 * (workers - 1) / workers


def bytes_by_tier(fabric: Fabric, monitor: Monitor) -> dict[int, int]:
    """Bytes that links carried during a run, both ways, by tier: 1 for links of hosts, one more for each level.

    Circuits go through an interconnect that is not a switch of the fabric; they are one level above the switches they
    join.
    """
    found: defaultdict[int, int] = defaultdict(int)
    for switch, ports in monitor.watched.ports.items():
        for port, interface in ports.items():
            peer = monitor.watched.peers[switch][port]
            before, after = (seen.interfaces[interface] for seen in (monitor.before, monitor.after))
            tier = 1 + min(fabric.tiers[switch], fabric.tiers.get(peer, fabric.tiers[switch]))
            found[tier] += after.sent_bytes - before.sent_bytes
            if peer in fabric.host_names:
                found[tier] += after.received_bytes - before.received_bytes
    return dict(found)


def core_bytes(by_tier: Mapping[int, int]) -> int:
    """Bytes on the links of the highest tier, the core; 0 if hosts have the only links."""
    highest = max(by_tier, default=1)
    return by_tier.get(highest, 0) if highest > 1 else 0


TOTAL = "total"


@dataclass(frozen=True)
class Figures:
    """The compared figures, per iteration; bytes and rates are those of whole frames.

    For one job: the sending rate of each worker, the bytes that its PSs receive, the time from the first gradient sent
    to the last result received, and the bytes that its workers send. Measured figures are means over iterations, the
    rate also over workers. For all jobs together ("total"): the sums over all workers, PSs and jobs; times are not
    added up.
    """

    sending_rate_bps: float
    ps_ingress_bytes: float
    communication_time_s: float | None
    sent_bytes: float

    @property
    def aggregation_ratio(self) -> float | None:
        """Bytes that workers send for each byte that reaches a PS; None if no byte does."""
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


@dataclass(frozen=True)
class Tolerance:
    """The largest deviations of a job from its plan in a VALID run.

    `relative`: for time and PS ingress, as a share of the planned ones; rates of workers have the same limit.
    `settling_s`: the additional time of an iteration, beyond the last fragment's way up and its result's way back:
    endpoints act every few milliseconds, and a queue before a full link can hold the packets of 0.04 s. `jitter_s`: the
    additional PS ingress, in time at the planned rates, of fragments that are sent again because a result was late.

    How they were chosen: on target fast, two processors, links of 0.25 to 5 Mbit/s, iterations of 0.13 to 1.4 s were 0
    to 10 ms longer than planned, and PSs received what was planned to the frame. With hardly a processor free
    (OVERLOADED) the ingress was up to 0.3 % more and the time of a slowed job 8 to 101 % longer, which these limits
    catch.
    """

    relative: float = 0.05
    settling_s: float = 0.05
    jitter_s: float = 0.02


TOLERANCE = Tolerance()


def off_plan(prediction: Prediction, measured: Measured, plan: Plan, tolerance: Tolerance = TOLERANCE) -> Iterator[str]:
    """Yield reasons for jobs whose PS ingress or communication time is not as planned.

    `fidelity.slow_senders` does the same for rates. Where trees share slots, fragments that find a slot busy go to the
    PS unaggregated or are sent again, depending on the policy. Plans do not account for that, so ingress and time can
    be more than planned.
    """
    colliding = plan.jobs_sharing_slots
    for number in measured.jobs:
        planned, found = prediction.jobs[number], measured.of_job(number)
        if number not in colliding:
            yield from late(number, planned, found, tolerance)
        yield from other_ingress(number, planned, found, tolerance, may_be_more=number in colliding)


def late(number: int, planned: JobPrediction, measured: Measured, tolerance: Tolerance) -> Iterator[str]:
    """Yield the reason for a job that took longer than planned. A job that took less sent faster, which rates show."""
    planned_s, measured_s = planned.communication_time_s, measured.communication_time_s
    most_s = planned_s * (1 + tolerance.relative) + planned.way_s + tolerance.settling_s
    if measured_s > most_s:
        yield (
            f"job {number} took {in_words(measured_s, 's', 3)} an iteration, planned were "
            f"{in_words(planned_s, 's', 3)}: at most {in_words(most_s, 's', 3)} with the way of the last fragment"
        )


def other_ingress(
    number: int, planned: JobPrediction, measured: Measured, tolerance: Tolerance, *, may_be_more: bool
) -> Iterator[str]:
    """Yield the reason for a job with an unplanned PS ingress; a share of at least one gradient is tolerated."""
    share = tolerance.relative + tolerance.jitter_s / planned.communication_time_s
    one_gradient = planned.communication_time_s * planned.sending_rate_bps / 8
    allowed = share * max(planned.ps_ingress_bytes, one_gradient)
    off = measured.ps_ingress_bytes - planned.ps_ingress_bytes
    if off < -allowed or (off > allowed and not may_be_more):
        yield (
            f"the PSs of job {number} received {in_words(measured.ps_ingress_bytes, 'bytes')} an iteration, planned "
            f"were {in_words(planned.ps_ingress_bytes, 'bytes')}, give or take {in_words(allowed, 'bytes', 3)}"
        )
