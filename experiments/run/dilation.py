"""Endpoints' options for links of any rate, in slowed-down time or in virtual time.

A run that is slowed down so that this machine keeps up has its rates multiplied by a scale, its times divided by it,
and the same bytes. Its figures are reported in the times of the original problem (Gupta et al., "To Infinity and
Beyond: Time-Warped Network Emulation", NSDI 2006). In virtual time the machine does not have to keep up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from inakit.planner.core.plan import Plan, fragment_ranges
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.topo.fabric.fabric import QUEUE_PACKETS
from inakit.topo.fabric.variations import with_scale
from inakit.traffic.closed_loop import ReliableOptions
from inakit.traffic.endpoints.options import Bounds
from inakit.traffic.endpoints.streams import in_flight
from inakit.traffic.measure.measured import Iteration, Measured
from inakit.traffic.replay import ReplayOptions


def slowed_problem(problem: Problem, scale: float) -> Problem:
    """The problem with rates multiplied by `scale`, and arrival and computing times divided by it."""

    def slowed(job: Job) -> Job:
        return replace(job, arrival_s=job.arrival_s / scale, compute_s=job.compute_s / scale)

    return replace(problem, fabric=with_scale(problem.fabric, scale), jobs=tuple(map(slowed, problem.jobs)))


TIMEOUTS = ("first_timeout_s", "min_timeout_s", "max_timeout_s", "retry_s", "scan_s", "direct_after_s", "credit_s")
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

STEPS = 500
"""The minimum number of endpoint steps in an iteration: a step is at most 0.2 % of the iteration's time."""
STEPS_PER_WINDOW = 6
"""The number of endpoint steps that a window lasts: results that wait for the next step do not close it."""
STEPS_PER_TRANSFER = 40
"""The number of endpoint steps in a step of a collective. An arriving packet waits for half an endpoint step."""
BURST_PACKETS = QUEUE_PACKETS // 8
"""The maximum number of packets that one step sends to a link. The link's queue holds many times more."""


def in_own_time(options: ReliableOptions, prepared: Prepared, *, piecewise: bool) -> ReliableOptions:
    """The options for virtual time: without bounds against overload, and with steps as fine as the plan needs.

    Options that name a step are obeyed: one that is coarse for the plan changes its figures.
    `piecewise`: endpoints hold gradients in pieces, which is safe because no PS loses its sums.
    """
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
        server=replace(server, copies_at_once=None, ask_again_s=server.ask_again_s / quicker + round_trip_s),
        bounds=Bounds(in_flight_s, round_trip_s, piecewise),
        tick_s=options.tick_s or step_s(prepared, in_flight_s),
    )


def as_fine(options: ReliableOptions, prepared: Prepared) -> ReliableOptions:
    """The options with a step, if they name one, that is as fine as another plan of the run needs."""
    if options.tick_s is None:
        return options
    return replace(options, tick_s=min(options.tick_s, step_s(prepared, options.bounds.in_flight_s)))


@dataclass(frozen=True)
class Flow:
    """The stream of each worker along one tree of a job: `fragments`, of which at most `window` are in flight."""

    job: int
    fragments: int
    window: int
    rate_fps: float


def flows(problem: Problem, plan: Plan, in_flight_s: float) -> Iterator[Flow]:
    """Yield the flow of every tree that carries fragments."""
    ranges = fragment_ranges(problem, plan)
    for planned in plan.trees:
        fragments = len(ranges[planned.job, planned.tree.number])
        if fragments:
            rate_fps = planned.rate_bps / (8 * problem.fragment.wire_bytes)
            yield Flow(planned.job, fragments, in_flight(planned.tree, rate_fps, in_flight_s), rate_fps)


def step_s(prepared: Prepared, in_flight_s: float) -> float:
    """The endpoints' step in seconds, so short that halving it changes figures by less than 0.5 %.

    Collisions in shared slots are the exception: see `docs/virtual-time.md`.
    """
    problem, plan = prepared.problem, prepared.plan
    if plan.collectives:
        return min(burst_step_s(problem), collective_step_s(prepared))
    found = list(flows(problem, plan, in_flight_s))
    times_s: dict[int, float] = {}
    for flow in found:
        times_s[flow.job] = max(times_s.get(flow.job, 0.0), flow.fragments / flow.rate_fps)
    windows_s = (flow.window / STEPS_PER_WINDOW / flow.rate_fps for flow in found)
    return min([burst_step_s(problem), *windows_s, *(time_s / STEPS for time_s in times_s.values())])


def burst_step_s(problem: Problem) -> float:
    """The longest step of the endpoints, in seconds, at which bursts fit into the fastest links' queues."""
    fastest_bps = max(problem.fabric.capacities_bps.values())
    return BURST_PACKETS * 8 * problem.fragment.wire_bytes / fastest_bps


def collective_step_s(prepared: Prepared) -> float:
    """The longest step of the endpoints, in seconds, for collectives, whose steps wait for one another."""
    jobs = prepared.prediction.jobs
    return min(
        jobs[each.job].communication_time_s / max(STEPS, STEPS_PER_TRANSFER * len(each.steps))
        for each in prepared.plan.collectives
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
