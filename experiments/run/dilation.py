"""A run slowed down so that this machine carries it: rates are multiplied by a scale, times divided by it, bytes stay.

The figures of such a run are reported as if nothing had been slowed down (Gupta et al., "To Infinity and Beyond:
Time-Warped Network Emulation", NSDI 2006).
"""

from __future__ import annotations

from dataclasses import replace

from planner.core.evaluate import evaluate
from planner.core.plan import Plan
from planner.core.problem import Job, Problem
from topo.fabric.variations import with_scale
from traffic.measure.measured import Iteration, Measured
from traffic.runs.closed_loop import ReliableOptions
from traffic.runs.replay import ReplayOptions


def slowed_problem(problem: Problem, scale: float) -> Problem:
    """The problem with rates multiplied by `scale`, and arrival and computing times divided by it."""

    def slowed(job: Job) -> Job:
        return replace(job, arrival_s=job.arrival_s / scale, compute_s=job.compute_s / scale)

    return replace(problem, fabric=with_scale(problem.fabric, scale), jobs=tuple(map(slowed, problem.jobs)))


TIMEOUTS = ("first_timeout_s", "min_timeout_s", "max_timeout_s", "retry_s", "direct_after_s", "credit_s")
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


PACKETS_PER_STEP = 4
"""Where time is the network's own, endpoints act once in the time of so many packets of the fastest tree."""


def in_fine_steps(options: ReliableOptions, problem: Problem, plan: Plan) -> ReliableOptions:
    """The options with steps that are as fine as the plan's rates need, where acting often costs no processor."""
    fastest_bps = max((shard.rate_bps / len(shard.trees) for shard in plan.shards if shard.trees), default=0.0)
    if not fastest_bps:
        return options
    step_s = PACKETS_PER_STEP * 8 * problem.fragment.wire_bytes / fastest_bps
    return replace(options, tick_s=min(options.tick_s, step_s))


STEPS_PER_ITERATION = 1000
"""Where time is the network's own, a replay looks so many times at the network while its shortest job sends."""


def replay_in_fine_steps(problem: Problem, plan: Plan) -> ReplayOptions:
    """The options of a replay whose steps are as fine as the plan's times need.

    An iteration that lacks packets is over when none has come for as long as the longest job and the longest way take.
    """
    jobs = evaluate(problem, plan).jobs.values()
    step_s = min(ReplayOptions().tick_s, min(job.communication_time_s for job in jobs) / STEPS_PER_ITERATION)
    quiet_s = max(job.communication_time_s for job in jobs) + max(job.way_s for job in jobs)
    return ReplayOptions(quiet_s, tick_s=step_s, sample_s=step_s)


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
