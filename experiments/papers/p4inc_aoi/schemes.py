"""The schemes of P4INC-AOI's simulations, also under other readings of the text, and what one of them does."""

from __future__ import annotations

from collections.abc import Mapping

from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.p4inc_aoi.setting import PORT_BPS, drawn
from inakit.planner.methods.p4inc_aoi.method import Scheduler, slot_by_slot
from inakit.planner.methods.p4inc_aoi.online.slot_by_slot import Policy
from inakit.planner.methods.p4inc_aoi.online.tw_fcfs import FirstCome, TimeWindow
from inakit.planner.methods.p4inc_aoi.problem.schedule import figures
from inakit.planner.registry import find_scheduler


def measure(trial: Trial) -> Result:
    """Measure a trial: CT-BTI, reconfigured connections, mean JCT, and the seconds that scheduling took."""
    problem = drawn(trial)
    schedule = scheme_of(trial).schedule(problem)
    found = figures(problem, schedule)
    return {
        "ct_bti_s": found.ct_bti_s,
        "connections": found.connections,
        "mean_jct_s": sum(found.jct_s.values()) / len(found.jct_s),
        "seconds": schedule.outcome.seconds,
    }


READINGS: dict[str, Mapping[str, Policy]] = {
    "a job takes all, nobody passes": {},
    "a job takes all, others pass": {
        "noINC-FCFS": FirstCome(inc=False, strict=False), "INC-FCFS": FirstCome(strict=False),
    },
    "40 Gbit/s per worker, nobody passes": {
        "noINC-FCFS": FirstCome(inc=False, limit_bps=PORT_BPS), "INC-FCFS": FirstCome(limit_bps=PORT_BPS),
    },
    "what a slot needs, nobody passes": {
        "noINC-FCFS": FirstCome(inc=False, fill=False), "INC-FCFS": FirstCome(fill=False),
    },
    "TW deals all there is": {"noINC-TW": TimeWindow(inc=False, fill=True), "INC-TW": TimeWindow(fill=True)},
}  # fmt: skip
"""Readings of what FCFS, or TW, may mean, each with the policies that it changes."""


def scheme_of(trial: Trial) -> Scheduler:
    """The scheme of a trial, with the policy that the trial's reading gives it."""
    name = str(trial["scheme"])
    policies = READINGS[str(trial["reading"])] if "reading" in trial else {}
    if name in policies:
        return Scheduler(str(trial["reading"]), slot_by_slot(name, policies[name]))
    return find_scheduler(name)
