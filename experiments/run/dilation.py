"""A run slowed down so that this machine carries it: rates are multiplied by a scale, times divided by it, bytes stay.

The figures of such a run are reported as if nothing had been slowed down (Gupta et al., "To Infinity and Beyond:
Time-Warped Network Emulation", NSDI 2006).
"""

from __future__ import annotations

from dataclasses import replace

from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.variations import with_scale
from inakit.traffic.measure.measured import Iteration, Measured
from inakit.traffic.runs.closed_loop import ReliableOptions


def slowed_problem(problem: Problem, scale: float) -> Problem:
    """The problem with rates multiplied by `scale`, and arrival and computing times divided by it."""

    def slowed(job: Job) -> Job:
        return replace(job, arrival_s=job.arrival_s / scale, compute_s=job.compute_s / scale)

    return replace(problem, fabric=with_scale(problem.fabric, scale), jobs=tuple(map(slowed, problem.jobs)))


TIMEOUTS = ("first_timeout_s", "min_timeout_s", "max_timeout_s", "retry_s", "scan_s", "direct_after_s", "credit_s")
"""The options of workers that are times of the network, not of this machine."""


def slowed_options(options: ReliableOptions | None, scale: float) -> ReliableOptions:
    """The endpoints' options with all times of the network divided by `scale`; None stands for the default options."""
    options = options or ReliableOptions()
    times = {name: getattr(options.worker, name) for name in TIMEOUTS}
    slower = {name: time_s / scale for name, time_s in times.items() if time_s is not None}
    return replace(options, worker=replace(options.worker, **slower), stall_s=options.stall_s / scale)


QUICK_BPS = 1e6
"""On links of this rate and faster, a packet and its result cross the network in well under a timeout."""


def options_for(problem: Problem) -> ReliableOptions:
    """The endpoints' options for the problem's links: on links below `QUICK_BPS` they wait longer for results."""
    slowest_bps = min(problem.fabric.capacities_bps.values())
    return slowed_options(None, min(1.0, slowest_bps / QUICK_BPS))


def as_described(measured: Measured, scale: float) -> Measured:
    """The figures of a run at `scale`, in the times and rates of the problem before it was slowed down."""

    def quickened(one: Iteration) -> Iteration:
        return replace(
            one,
            started_s=one.started_s * scale,
            communication_time_s=one.communication_time_s * scale,
            sending_rate_bps={host: rate / scale for host, rate in one.sending_rate_bps.items()},
        )

    late_s = {host: late * scale for host, late in measured.late_s.items()}
    return replace(measured, iterations=tuple(map(quickened, measured.iterations)), late_s=late_s)
