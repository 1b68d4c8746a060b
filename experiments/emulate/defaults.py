"""What a run does with what nobody has asked for: link rates that this machine carries, and gradients to match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rich.console import Console

from experiments.calibrate.capacity import rounded_down
from experiments.calibrate.fit import fastest_bps, fit, kept_rate
from experiments.faults.faults_file import FaultPlan
from experiments.worlds.emulated import EmulatedWorld
from planner.core.plan import Plan
from planner.core.problem import Job, Problem
from switch.targets import TARGETS
from topo.fabric.variations import with_scale

LEAST_FRAGMENTS = 20
"""A gradient is not made shorter: of a few packets the way through the network, not the rate, decides the time."""
TO_SPARE = 0.6
"""Of the rate that an overloaded machine carried, what it is advised to try: it was busy with nothing else."""
BMV2_SLOWER = "the reference, is 32 to 105 times slower (`inakit bench`)"


@dataclass(frozen=True)
class Free:
    """What a run may choose: the `rates` of links, the sizes of `gradients`.

    `described`: the rates are somebody's all the same, a paper's for instance, so that figures are given at both.
    """

    rates: bool = False
    gradients: bool = False
    described: bool = False


NOTHING_FREE = Free()


def choose_rates(
    problem: Problem, plans: Mapping[str, Plan], switch: str, world: EmulatedWorld, console: Console, *, panel: bool
) -> float:
    """What to multiply all rates with so that this machine carries every plan in `world`; says what it chose.

    `switch` is what the person asked for: with "auto" it is also said what the other target carries.
    """
    found = fit(problem, plans, world, console, panel=panel)
    beside = other_target(problem, plans, world.name, console, panel=panel) if switch == "auto" else ""
    line = f"{why(switch, world.name)}links of {rate_words(found.link_bps)}: what {world.name} carries here{beside}"
    console.print(line, highlight=False, soft_wrap=True)
    return found.scale


def tell_choice(console: Console, switch: str, target: str) -> None:
    """Say which target "auto" took, and why; nothing where a person named one."""
    if switch == "auto":
        console.print(why(switch, target) + other_words(target), highlight=False, soft_wrap=True)


def why(switch: str, target: str) -> str:
    """Why this target runs; "" where a person named it."""
    if switch != "auto":
        return ""
    reason = "which is installed" if target == "bmv2" else f"as bmv2 cannot run ({TARGETS['bmv2'].missing()})"
    return f"switch auto took {target}, {reason}; "


def other_words(target: str) -> str:
    """What the target that was not taken would give, without figures of this machine."""
    if target == "bmv2":
        return "--switch fast gives the same packets, 32 to 105 times as many a second (`inakit bench`)"
    return f"bmv2, {BMV2_SLOWER}"


def other_target(problem: Problem, plans: Mapping[str, Plan], target: str, console: Console, *, panel: bool) -> str:
    """What the target that "auto" did not take carries: as it was found before, or found now."""
    if target != "bmv2":
        return f"; bmv2, {BMV2_SLOWER}"
    if TARGETS["fast"].missing() is not None:
        return f"; fast cannot run ({TARGETS['fast'].missing()})"
    rate = kept_rate(problem, "fast") or fit(problem, plans, EmulatedWorld("fast"), console, panel=panel).link_bps
    return f"; --switch fast carries {rate_words(rate)}"


def rate_words(rate_bps: float) -> str:
    """20e6 as "20 Mbit/s"."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if rate_bps >= factor:
            return f"{rate_bps / factor:.4g} {unit}"
    return f"{rate_bps:.4g} bit/s"


def problem_at(problem: Problem, scale: float, *, gradients: bool) -> Problem:
    """The problem with every rate times `scale` and, if wanted, `gradients` that take as long as before."""
    fragment_bytes = 4 * problem.fragment.values

    def sized(job: Job) -> Job:
        fragments = -(-job.gradient_bytes // fragment_bytes)
        fewer = max(min(fragments, LEAST_FRAGMENTS), round(fragments * scale))
        return replace(job, gradient_bytes=fewer * fragment_bytes) if fewer < fragments else job

    jobs = tuple(map(sized, problem.jobs)) if gradients else problem.jobs
    return replace(problem, fabric=with_scale(problem.fabric, scale), jobs=jobs)


def faults_at(faults: FaultPlan | None, scale: float) -> FaultPlan | None:
    """The faults with the rates of other traffic times `scale`."""
    if faults is None:
        return None
    background = tuple(replace(flow, rate_bps=flow.rate_bps * scale) for flow in faults.background)
    hostile = tuple(replace(attack, rate_bps=attack.rate_bps * scale) for attack in faults.hostile)
    return replace(faults, background=background, hostile=hostile)


def rate_to_try(problem: Problem, scale: float, share: float) -> str:
    """What to do about a run that did only `share` of what was planned, in words."""
    lower = rounded_down(max(share, 0.01) * TO_SPARE)
    fastest = fastest_bps(problem) * lower
    return f"try links of {rate_words(fastest)} (--scale {lower * scale:.2g}), or give no rates: they are made to fit"
