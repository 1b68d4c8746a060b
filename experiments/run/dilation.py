"""Endpoints' options for links of any rate, in slowed-down time or in virtual time.

A run that is slowed down so that this machine keeps up has its rates multiplied by a scale, its times divided by it,
and the same bytes. Its figures are reported in the times of the original problem (Gupta et al., "To Infinity and
Beyond: Time-Warped Network Emulation", NSDI 2006). In virtual time the machine does not have to keep up.
"""

from __future__ import annotations

from dataclasses import replace

from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.topo.fabric.variations import with_scale
from inakit.traffic.closed_loop import ReliableOptions
from inakit.traffic.endpoints.options import Bounds
from inakit.traffic.measure.measured import Iteration, Measured
from inakit.traffic.replay import ReplayOptions


def slowed_problem(problem: Problem, scale: float) -> Problem:
    """The problem with rates multiplied by `scale`, and arrival and computing times divided by it."""

    def slowed(job: Job) -> Job:
        return replace(job, arrival_s=job.arrival_s / scale, compute_s=job.compute_s / scale)

    return replace(problem, fabric=with_scale(problem.fabric, scale), jobs=tuple(map(slowed, problem.jobs)))


TIMEOUTS = ("first_timeout_s", "min_timeout_s", "max_timeout_s", "retry_s", "direct_after_s", "credit_s")
"""The workers' options that are times of the network, not of this machine."""


def slowed_options(options: ReliableOptions | None, scale: float) -> ReliableOptions:
    """The endpoints' options with all times of the network divided by `scale`; None stands for the default options."""
    options = options or ReliableOptions()
    times = {name: getattr(options.worker, name) for name in TIMEOUTS}
    slower = {name: time_s / scale for name, time_s in times.items() if time_s is not None}
    return replace(options, worker=replace(options.worker, **slower), stall_s=options.stall_s / scale)


QUICK_BPS = 1e6
"""On links of at least this rate, a packet and its result cross the network in much less than a timeout."""


def options_for(problem: Problem) -> ReliableOptions:
    """The endpoints' options for the problem's links: below `QUICK_BPS` endpoints wait longer for results."""
    slowest_bps = min(problem.fabric.capacities_bps.values())
    return slowed_options(None, min(1.0, slowest_bps / QUICK_BPS))


def as_described(measured: Measured, scale: float) -> Measured:
    """The figures of a run at `scale`, converted to the times and rates of the original problem."""

    def quickened(one: Iteration) -> Iteration:
        return replace(
            one,
            started_s=one.started_s * scale,
            communication_time_s=one.communication_time_s * scale,
            sending_rate_bps={host: rate / scale for host, rate in one.sending_rate_bps.items()},
        )

    late_s = {host: late * scale for host, late in measured.late_s.items()}
    return replace(measured, iterations=tuple(map(quickened, measured.iterations)), late_s=late_s)


MADE_FOR_BPS = 20e6
"""The link rate for which the endpoints' times are chosen. On faster links the times are shorter in proportion."""
ROUND_TRIP_LINKS = 12
"""The maximum number of links, each with a switch, that a packet and its result cross in a network of three tiers."""


def in_own_time(options: ReliableOptions, prepared: Prepared) -> ReliableOptions:
    """The options for virtual time: without bounds against overload, and with the times of the plan's links."""
    fabric = prepared.problem.fabric
    quicker = max(1.0, min(fabric.capacities_bps.values()) / MADE_FOR_BPS)
    slowest_s = max(link.delay_s for link in fabric.links) + max(switch.latency_s for switch in fabric.switches)
    round_trip_s = ROUND_TRIP_LINKS * slowest_s
    in_flight_s = options.bounds.in_flight_s / quicker + round_trip_s
    worker, server = slowed_options(options, quicker).worker, options.server
    patient = replace(
        worker,
        first_timeout_s=worker.first_timeout_s + round_trip_s,
        min_timeout_s=worker.min_timeout_s + round_trip_s,
        max_timeout_s=worker.max_timeout_s + round_trip_s,
        retry_s=worker.retry_s + round_trip_s,
    )
    return replace(
        options,
        worker=patient,
        server=replace(server, ask_again_s=server.ask_again_s / quicker + round_trip_s),
        bounds=Bounds(in_flight_s, round_trip_s),
    )


STEPS_PER_REPLAY = 1000
"""The number of times a replay polls the network while its shortest job sends."""


def replay_in_own_time(prepared: Prepared) -> ReplayOptions:
    """The options of a replay in virtual time, with steps as fine as the plan's times need.

    An iteration that lacks packets ends when none has arrived for the time of the longest job plus the longest path.
    """
    jobs = prepared.prediction.jobs.values()
    step_s = min(ReplayOptions().tick_s, min(job.communication_time_s for job in jobs) / STEPS_PER_REPLAY)
    quiet_s = max(job.communication_time_s for job in jobs) + max(job.way_s for job in jobs)
    return ReplayOptions(quiet_s, tick_s=step_s, sample_s=step_s)
