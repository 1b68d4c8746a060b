"""Defaults for values that the user left open: link rates that this machine carries, and matching gradient sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rich.console import Console

from inakit.experiments.calibrate.capacity import rounded_down
from inakit.experiments.calibrate.rate_probe import fastest_bps, fit, kept_rate
from inakit.experiments.run.faults import OtherTraffic
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.registry import AUTO
from inakit.experiments.worlds.world import RealTimeWorld
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
from inakit.switch.targets import TARGETS
from inakit.topo.fabric.variations import with_scale
from inakit.topo.files.quantities import in_words, rate_text

LEAST_FRAGMENTS = 20
"""The minimum fragments of a shortened gradient: with fewer, latency instead of the rate determines the time."""
TO_SPARE = 0.6
"""The rate to try next, as a share of the rate that an overloaded machine carried; it leaves processor time unused."""


@dataclass(frozen=True)
class Free:
    """The values that the kit can choose, because the user did not: link `rates`, sizes of `gradients`.

    `described`: the fabric also has described rates, such as a paper's; figures are then reported at both rates.
    """

    rates: bool = False
    gradients: bool = False
    described: bool = False


NOTHING_FREE = Free()


def choose_rates(
    problem: Problem, plans: Mapping[str, Prepared], switch: str, world: RealTimeWorld, console: Console, *, panel: bool
) -> float:
    """Return the factor for all rates at which this machine carries every plan in `world`. Print the chosen link rate.

    `switch` is the world that the user asked for; if "auto" selected bmv2, the line also gives the rate of `fast`.
    """
    found = fit(plans, world, console, panel=panel)
    beside = beside_bmv2(problem, plans, console, panel=panel) if (switch, world.name) == (AUTO, "bmv2") else ""
    line = f"links of {in_words(found.link_bps, 'bit/s')}, which {world.name} carries on this machine{beside}"
    console.print(line, highlight=False, soft_wrap=True)
    return found.scale


def beside_bmv2(problem: Problem, plans: Mapping[str, Prepared], console: Console, *, panel: bool) -> str:
    """The rate that `fast` carries, in words, if "auto" selected bmv2: a stored rate, or the result of a new probe."""
    if TARGETS["fast"].missing() is not None:
        return f"; fast cannot run ({TARGETS['fast'].missing()})"
    rate = kept_rate(problem, "fast") or fit(plans, EmulatedWorld("fast"), console, panel=panel).link_bps
    return f"; --switch fast carries {in_words(rate, 'bit/s')}"


def problem_at(problem: Problem, scale: float, *, gradients: bool) -> Problem:
    """The problem with every rate times `scale`.

    With `gradients`, gradients are shortened in proportion, so that they take as long as before. They never grow, and
    are never shortened below `LEAST_FRAGMENTS`.
    """
    fragment_bytes = 4 * problem.fragment.values

    def sized(job: Job) -> Job:
        fragments = -(-job.gradient_bytes // fragment_bytes)
        fewer = max(min(fragments, LEAST_FRAGMENTS), round(fragments * scale))
        return replace(job, gradient_bytes=fewer * fragment_bytes) if fewer < fragments else job

    jobs = tuple(map(sized, problem.jobs)) if gradients else problem.jobs
    return replace(problem, fabric=with_scale(problem.fabric, scale), jobs=jobs)


def faults_at(faults: FaultPlan | None, scale: float) -> FaultPlan | None:
    """The faults with the rates of background traffic and hostile hosts times `scale`; None for None."""
    if faults is None:
        return None
    traffic = OtherTraffic(faults.background, faults.hostile).slowed(scale)
    return replace(faults, background=traffic.background, hostile=traffic.hostile)


def rate_to_try(problem: Problem, scale: float, share: float, free: Free = NOTHING_FREE) -> str:
    """Advice for a run at `scale` that did only `share` of its planned work.

    Rates that the kit chose are carried by a machine that does nothing else.
    """
    lower = rounded_down(max(share, 0.01) * TO_SPARE)
    fastest = fastest_bps(problem) * lower
    chosen = free.rates and not free.described
    option = f"--capacity {rate_text(float(round(fastest)))}" if chosen else f"--scale {lower * scale:.2g}"
    tried = f"try links of {in_words(fastest, 'bit/s')} ({option})"
    if free.rates:
        return f"{tried}, or run again when nothing else runs on this machine, which then carries the chosen rates"
    return f"{tried}, or omit the rates: inakit then chooses rates that this machine carries"
