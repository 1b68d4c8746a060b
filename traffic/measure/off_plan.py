"""Jobs that are off their plan: how far PS ingress and communication time may be from the planned ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inakit.planner.core.evaluate import JobPrediction, Prediction
from inakit.planner.core.plan import Plan
from inakit.traffic.measure.measured import Measured


@dataclass(frozen=True)
class Tolerance:
    """How far a job may be off its plan in a VALID run.

    `relative`: by which share of the planned ones time and PS ingress may be off; rates of workers have the same limit.
    `settling_s`: how much longer an iteration may last besides, beyond the last fragment's way up and its result's way
    back: endpoints act every few milliseconds, and a queue before a full link may hold what comes in 0.04 s.
    `jitter_s`: PSs may receive besides what the planned rates bring in this time, from fragments that are sent again
    because a result was late.

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
    """Reasons, in words, for which jobs' PS ingress or communication time is not the planned one.

    `fidelity.slow_senders` does the same for rates. Where trees share slots, fragments that find a slot busy go to the
    PS unaggregated or are sent again, depending on the policy. Plans do not count on that, so there ingress and time
    may be more than planned.
    """
    colliding = plan.jobs_sharing_slots
    for number in measured.jobs:
        planned, found = prediction.jobs[number], measured.of_job(number)
        if number not in colliding:
            yield from late(number, planned, found, tolerance)
        yield from other_ingress(number, planned, found, tolerance, may_be_more=number in colliding)


def late(number: int, planned: JobPrediction, measured: Measured, tolerance: Tolerance) -> Iterator[str]:
    """The reason for a job that took longer than planned. One that took less sent faster, which rates show."""
    planned_s, measured_s = planned.communication_time_s, measured.communication_time_s
    most_s = planned_s * (1 + tolerance.relative) + planned.way_s + tolerance.settling_s
    if measured_s > most_s:
        yield (
            f"job {number} took {measured_s:.3f} s an iteration, planned were {planned_s:.3f} s: "
            f"at most {most_s:.3f} s with the way of the last fragment"
        )


def other_ingress(
    number: int, planned: JobPrediction, measured: Measured, tolerance: Tolerance, *, may_be_more: bool
) -> Iterator[str]:
    """The reason for a job whose PSs received other than planned; a share of at least one gradient is tolerated."""
    share = tolerance.relative + tolerance.jitter_s / planned.communication_time_s
    one_gradient = planned.communication_time_s * planned.sending_rate_bps / 8
    allowed = share * max(planned.ps_ingress_bytes, one_gradient)
    off = measured.ps_ingress_bytes - planned.ps_ingress_bytes
    if off < -allowed or (off > allowed and not may_be_more):
        yield (
            f"the PSs of job {number} received {measured.ps_ingress_bytes / 1e3:.1f} kB an iteration, planned were "
            f"{planned.ps_ingress_bytes / 1e3:.1f} kB, give or take {allowed / 1e3:.1f} kB"
        )
