"""The endpoints' options where time is the network's own: no machine has to keep up, and links may have any rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from inakit.experiments.run.dilation import slowed_options
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.fragment_ranges import fragment_ranges
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.fabric.fabric import QUEUE_PACKETS
from inakit.traffic.endpoints.streams import Bounds, in_flight
from inakit.traffic.runs.closed_loop import ReliableOptions
from inakit.traffic.runs.replay import ReplayOptions

MADE_FOR_BPS = 20e6
"""The endpoints' times are made for links of this rate; on faster ones they are shorter in proportion."""
ROUND_TRIP_LINKS = 12
"""The most links, each with a switch, that a packet and its result cross in a network of three levels."""

STEPS = 500
"""An iteration takes at least so many steps of the endpoints, so that a step is 0.2 % of its time."""
STEPS_PER_WINDOW = 6
"""Results that wait for the next step do not close a window that lasts for so many."""
STEPS_PER_TRANSFER = 40
"""A collective's step takes so many steps of the endpoints: what comes waits for half of one."""
BURST_PACKETS = QUEUE_PACKETS // 8
"""The most packets that one step may bring to a link: its queue holds many times more."""


def in_own_time(options: ReliableOptions, problem: Problem, plan: Plan, *, piecewise: bool) -> ReliableOptions:
    """The options without the bounds that keep an emulation from overload, in steps as fine as the plan needs.

    `piecewise`: gradients may be held in pieces, because no PS can lose its sums.
    """
    fabric = problem.fabric
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
        tick_s=options.tick_s or step_s(problem, plan, in_flight_s),
    )


@dataclass(frozen=True)
class Flow:
    """What each worker sends along one tree of a job: `fragments`, of which `window` may be on the way."""

    job: int
    fragments: int
    window: int
    rate_fps: float


def flows(problem: Problem, plan: Plan, in_flight_s: float) -> Iterator[Flow]:
    """Every tree that carries something."""
    ranges = fragment_ranges(problem, plan)
    for shard in plan.shards:
        for tree in shard.trees:
            fragments = len(ranges[shard.job, tree.number])
            if fragments:
                rate_fps = shard.rate_bps / len(shard.trees) / (8 * problem.fragment.wire_bytes)
                yield Flow(shard.job, fragments, in_flight(tree, rate_fps, in_flight_s), rate_fps)


def step_s(problem: Problem, plan: Plan, in_flight_s: float) -> float:
    """How often endpoints act, in seconds: so often that halving it changes no figure by more than 0.5 %."""
    if plan.collectives:
        return min(burst_step_s(problem), collective_step_s(problem, plan))
    found = list(flows(problem, plan, in_flight_s))
    times_s: dict[int, float] = {}
    for flow in found:
        times_s[flow.job] = max(times_s.get(flow.job, 0.0), flow.fragments / flow.rate_fps)
    windows_s = (flow.window / STEPS_PER_WINDOW / flow.rate_fps for flow in found)
    return min([burst_step_s(problem), *windows_s, *(time_s / STEPS for time_s in times_s.values())])


def burst_step_s(problem: Problem) -> float:
    """The longest time between two steps of endpoints, in seconds, for the sake of the fastest links' queues."""
    fastest_bps = max(problem.fabric.capacities_bps.values())
    return BURST_PACKETS * 8 * problem.fragment.wire_bytes / fastest_bps


def collective_step_s(problem: Problem, plan: Plan) -> float:
    """The same for the sake of collectives, whose steps wait for one another: each has many steps of endpoints."""
    jobs = evaluate(problem, plan).jobs
    return min(
        jobs[each.job].communication_time_s / max(STEPS, STEPS_PER_TRANSFER * len(each.steps))
        for each in plan.collectives
    )


STEPS_PER_REPLAY = 1000
"""A replay looks so many times at the network while its shortest job sends."""


def replay_in_own_time(problem: Problem, plan: Plan) -> ReplayOptions:
    """The options of a replay whose steps are as fine as the plan's times need.

    An iteration that lacks packets is over when none has come for as long as the longest job and the longest way take.
    """
    jobs = evaluate(problem, plan).jobs.values()
    step_s = min(ReplayOptions().tick_s, min(job.communication_time_s for job in jobs) / STEPS_PER_REPLAY)
    quiet_s = max(job.communication_time_s for job in jobs) + max(job.way_s for job in jobs)
    return ReplayOptions(quiet_s, tick_s=step_s, sample_s=step_s)
