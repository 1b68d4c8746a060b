"""What a run in virtual time shows beside its figures: links and workers over time, and where fragments spent it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inakit.experiments.run.record import RunFolder
from inakit.experiments.worlds.observation import Noted
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
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

TIME_UNITS = ((1e-6, "ns", 1e9), (1e-3, "µs", 1e6), (1.0, "ms", 1e3))
"""Units of times below so many seconds, and how many of the unit a second has."""


@dataclass(frozen=True)
class Observed:
    """Series of all links and of slots, and times of fragments: one of `every` was followed.

    `workers`: the hosts that work.
    """

    links: LinkSeries
    slots: SlotSeries
    fragments: FragmentTimes
    every: int
    workers: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The part of this planner's entry in `run.json`."""
        return {"links_over_time": self.links.as_json(), "fragments": {"every": self.every} | self.fragments.as_json()}

    def write(self, folder: RunFolder, planner: str) -> None:
        """Write the series of links, workers and slots, and the times of every followed fragment."""
        folder.write_rows(f"{planner}/link_series.csv.gz", LINK_COLUMNS, self.links.rows())
        names = [f"{worker}_bps" for worker in self.workers]
        folder.write_rows(f"{planner}/worker_rates.csv", ("at_s", *names), self.links.worker_rows(self.workers))
        folder.write_rows(f"{planner}/slot_series.csv", self.slots.columns, self.slots.rows())
        folder.write_rows(f"{planner}/fragments.csv.gz", FRAGMENT_COLUMNS, self.fragments.rows())


def observed(noted: Noted, problem: Problem, plan: Plan, ended_s: float) -> Observed:
    """What was noted of a run of a plan, which ended at `ended_s` of the network's time."""
    ended_ps, every = round(ended_s * PS_PER_S), noted.hops.following.every
    links = LinkSeries(noted.links, noted.rates_bps, noted.series.until(ended_ps))
    slots, fragments = no_slots(links.starts_s), NO_TIMES
    if plan.shards:  # fragments of collectives are summed by hosts: they wait in no switch, and no result comes back
        followed = FollowedFragments(noted.hops.found, noted.links, plan, ended_ps)
        slots = slot_series(followed, noted.links, links.starts_s, ended_ps, every)
        fragments = times_of(followed, noted.links)
    workers = dict.fromkeys(worker for job in problem.jobs for worker in job.workers)
    return Observed(links, slots, fragments, every, tuple(workers))


def time_unit(longest_s: float) -> tuple[str, float]:
    """The unit that suits times up to so many seconds, and how many of it a second has."""
    return next(((unit, factor) for below, unit, factor in TIME_UNITS if longest_s < below), ("s", 1.0))
