"""Observations of a run in virtual time: series of links and workers, and the parts of the fragments' times.

The module also chooses the resolution: the interval of the series, and the fragments that are followed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from inakit.experiments.run.pace import planned_progress
from inakit.experiments.run.record import Fragments, LinksOverTime
from inakit.experiments.run.run_folder import RunFolder
from inakit.experiments.worlds.world import Feature, Noted, Observation, World
from inakit.planner.core.plan import AggregationTree, Plan, fragment_ranges
from inakit.planner.core.problem import Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.prepared import Prepared
from inakit.topo.errors import InputError
from inakit.topo.files.quantities import duration
from inakit.topo.virtual.engine import PS_PER_S
from inakit.traffic.measure.over_time import (
    FRAGMENT_COLUMNS,
    LINK_COLUMNS,
    NO_TIMES,
    FollowedFragments,
    FragmentTimes,
    LinkSeries,
    SlotSeries,
    no_slots,
    slot_series,
    times_of,
)


@dataclass(frozen=True)
class Observed:
    """Series of all links and of slots, and times of the followed fragments, one in `every`.

    `workers`: the workers' hosts.
    """

    links: LinkSeries
    slots: SlotSeries
    fragments: FragmentTimes
    every: int
    workers: tuple[str, ...]

    @property
    def links_over_time(self) -> LinksOverTime:
        """The most loaded links and the deepest queues, for the record."""
        return LinksOverTime(**self.links.as_json())

    @property
    def fragments_record(self) -> Fragments:
        return Fragments(every=self.every, **self.fragments.as_json())

    def write(self, folder: RunFolder, planner: str) -> None:
        """Write the series of links, workers and slots, and the times of every followed fragment."""
        folder.write_rows(f"{planner}/link_series.csv.gz", LINK_COLUMNS, self.links.rows())
        names = [f"{worker}_bps" for worker in self.workers]
        folder.write_rows(f"{planner}/worker_rates.csv", ("at_s", *names), self.links.worker_rows(self.workers))
        folder.write_rows(f"{planner}/slot_series.csv", self.slots.columns, self.slots.rows())
        folder.write_rows(f"{planner}/fragments.csv.gz", FRAGMENT_COLUMNS, self.fragments.rows())


def observed(noted: Noted, problem: Problem, plan: Plan, ended_s: float) -> Observed:
    """The observations of a run that ended at `ended_s` of the network's time."""
    ended_ps, every = round(ended_s * PS_PER_S), noted.hops.following.every
    links = LinkSeries(noted.links, noted.rates_bps, noted.series.until(ended_ps))
    slots, fragments = no_slots(links.starts_s), NO_TIMES
    if plan.trees:  # fragments of collectives are summed by hosts: they wait in no switch, and no result comes back
        followed = FollowedFragments(noted.hops.found, noted.links, plan, ended_ps)
        slots = slot_series(followed, noted.links, links.starts_s, ended_ps, every)
        fragments = times_of(followed, noted.links)
    workers = dict.fromkeys(worker for job in problem.jobs for worker in job.workers)
    return Observed(links, slots, fragments, every, tuple(workers))


POINTS = 400
"""The approximate number of intervals of a run that takes its planned time."""
MOST_SAMPLES, LEAST_POINTS = 1 << 21, 64
"""The maximum number of intervals of all links together, unless each link would have fewer than `LEAST_POINTS`."""
SPARE = 2
"""The factor by which a run may exceed its planned time and packets before the series run out of room."""
MOST_HOPS = 500_000
"""The approximate number of packet hops that a run records. If fragments take more, only some are followed."""
ROUND = (1, 2, 5, 10)


@dataclass(frozen=True)
class Sampling:
    """The user's choice of observation: `asked` for, or `off`. By default every world that can observe a run does.

    With `interval_s` None, the kit chooses the interval.
    """

    asked: bool = False
    off: bool = False
    interval_s: float | None = None

    def of(self, world: World, prepared: Prepared) -> Observation | None:
        """The observation of a run of a plan; None if the run is not observed."""
        if self.off or Feature.OBSERVATION not in world.features:
            return None
        return observation(prepared, self.interval_s)


AUTO = Sampling()


def parse_sampling(text: str) -> Sampling:
    """Parse 'on', 'off', an interval such as '100us', or '' for the default. Raises `InputError`."""
    known = {"": AUTO, "off": Sampling(off=True), "on": Sampling(asked=True)}
    if text in known:
        return known[text]
    try:
        interval_s = duration(text)
    except ValueError:
        interval_s = 0.0
    if interval_s < 1e-9:
        raise InputError(f"series '{text}': expected on, off, or an interval of at least 1ns, such as 100us")
    return Sampling(asked=True, interval_s=interval_s)


def check_observation(world: World, *, asked: bool) -> None:
    """Raise `InputError` for a world whose links cannot be observed."""
    if asked and Feature.OBSERVATION not in world.features:
        raise InputError(f"switch '{world.name}' has no {Feature.OBSERVATION}: choose virtual")


def observation(prepared: Prepared, interval_s: float | None = None) -> Observation:
    """The observation of a run, with a size that is independent of the run's length."""
    problem = prepared.problem
    links = 2 * len(problem.fabric.links)
    points = max(LEAST_POINTS, min(SPARE * POINTS, MOST_SAMPLES // links))
    planned_s = max(job.arrival_s + job.duration_s for job in planned_progress(problem, prepared.prediction))
    every, hops = followed(problem, prepared.plan)
    return Observation(interval_s or round_up(planned_s * SPARE / points), points // 2 * 2, every, hops)


def round_up(seconds: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten seconds, and to at least a nanosecond."""
    power: float = 10.0 ** math.floor(math.log10(max(seconds, 1e-9)))
    return next(step * power for step in ROUND if step * power >= seconds)


def followed(problem: Problem, plan: Plan) -> tuple[int, int]:
    """The number n such that one in n fragments is followed, and the maximum number of recorded hops.

    n is odd, so that it is not in step with slots and windows, which are powers of two.
    """
    fragments, iterations = fragment_ranges(problem, plan), {job.number: job.iterations for job in problem.jobs}
    planned = sum(
        len(fragments[each.job, each.tree.number]) * iterations[each.job] * hops_of(each.tree) for each in plan.trees
    )
    every = -(-planned // MOST_HOPS) | 1
    return every, SPARE * (planned // every + MOST_HOPS // 100)


def hops_of(tree: AggregationTree) -> int:
    """The number of links that a fragment's packets and results pass; in shared slots, without any aggregation."""
    if policy_of(tree.policy).shared:
        gradients = sum(len(tree.way(label)) - 1 for label in tree.workers)
    else:
        gradients = sum(len(branch.links) for branch in tree.branches)
    return gradients + len(tree.result_parents)
