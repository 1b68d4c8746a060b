"""Link rates for a run whose user gives none: the highest round ones that this machine carries with room to spare.

A probe of a few seconds finds them: it runs the plan with the most packets per second on a network of its own, at
`MARGIN` times each candidate rate. The result is kept, and the next probe of the same network begins at it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console

from inakit.experiments.calibrate.capacity import (
    Fit,
    hosts_at_work,
    load_results,
    planned_load,
    save_result,
)
from inakit.experiments.calibrate.trials import Trial, TrialNetwork
from inakit.experiments.run.console import working
from inakit.experiments.worlds.world import RealTimeWorld
from inakit.planner.core.policies import DEFAULT_POLICY
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.trees.under_policy import with_policy
from inakit.topo.errors import MachineError, PlanError
from inakit.traffic.measure.verdict import VALID

MARGIN = 1.5
"""A rate is taken if the machine carried so many times that rate: the load of other programs comes and goes."""
PROBE_S = 1.2
"""How many seconds one trial sends."""
ROUND = (1, 2, 5)
"""Round rates are these times powers of ten."""
ROOMY = 0.7
"""The search tries the next higher rate only if the busier processors were in use for at most this share."""
FLOOR_BPS = 20e3
"""The lowest rate that is tried. A packet takes more than 0.1 s on a slower link: such an emulation shows nothing."""
FIRST_SHARE = {"bmv2": 1 / 100, "fast": 1 / 2}
"""By target, the share of the described rates at which its first probe begins; 1 for a target that is not listed."""


@dataclass(frozen=True)
class Fitted:
    """The `scale` at which all rates of a network are emulated; its fastest link is then one of `link_bps`."""

    scale: float
    link_bps: float


FOUND: dict[tuple[str, str, int, float], tuple[float, Fitted]] = {}
"""What this process has found: the packets per second of the plan that was probed, and the fit.

The keys are target, fabric, hosts at work, and the fastest described rate in bit/s."""


def fit(plans: Mapping[str, Prepared], world: RealTimeWorld, console: Console, *, panel: bool) -> Fitted:
    """The scale at which this machine carries all these plans of one problem, found by a probe.

    With `panel` the optical links go through one circuit switch. A fit that this process has found for the same
    network is taken again, without a probe, for plans that need no more packets per second.
    Raises `MachineError` where this machine carries not even `FLOOR_BPS`.
    """
    probed = simplest(max(plans.values(), key=packets))
    problem = probed.problem
    rates = round_rates(fastest_bps(problem))
    network, asked = (world.name, problem.fabric.name, hosts_at_work(problem), rates[0]), packets(probed)
    if network in FOUND and FOUND[network][0] >= asked:
        return FOUND[network][1]
    first = first_rung(problem, world.name, rates)
    with (
        working(console, f"{problem.fabric.name}: finding the link rates that {world.name} carries here"),
        TrialNetwork(problem, probed.plan, world, PROBE_S, panel=panel) as bed,
    ):
        found = rates[climb(lambda rung: bed.trial(MARGIN * rates[rung] / rates[0]), first, len(rates))]
    save_result(Fit(world.name, problem.fabric.name, hosts_at_work(problem), found))
    FOUND[network] = asked, Fitted(found / rates[0], found)
    return FOUND[network][1]


def fastest_bps(problem: Problem) -> float:
    """The capacity of the fastest link, in bit/s."""
    return max(problem.fabric.capacities_bps.values())


def round_rates(highest_bps: float) -> tuple[float, ...]:
    """The rates that may be chosen, in bit/s, from the highest down: `highest_bps` itself, then round ones."""
    decades = range(int(math.log10(FLOOR_BPS)), 1 + int(math.log10(highest_bps)))
    below = (float(digit * 10**decade) for decade in decades for digit in ROUND)
    return (highest_bps, *sorted((rate for rate in below if FLOOR_BPS <= rate < highest_bps), reverse=True))


def simplest(prepared: Prepared) -> Prepared:
    """The plan as it is probed: under the default slot policy, which shares no slots, and with room for results.

    Then no collision and no full link slows it down: only the machine can keep it from its rates.
    """
    problem, plan = prepared.problem, prepared.plan
    with suppress(PlanError):  # a plan keeps its own policy where a switch has too few slots for the default one
        plan = with_policy(problem, plan, DEFAULT_POLICY)
    return with_headroom(problem, plan)


def packets(prepared: Prepared) -> float:
    """The packets per second that endpoints send or receive, plus those that pass through switches."""
    load = planned_load(prepared.problem, prepared.prediction)
    return load.endpoint_pps + load.switch_pps


def first_rung(problem: Problem, target: str, rates: Sequence[float]) -> int:
    """The rung where the search begins: the kept rate of this network, else `FIRST_SHARE` of the described rates."""
    kept = kept_rate(problem, target)
    begin_bps = rates[0] * FIRST_SHARE.get(target, 1.0) if kept is None else kept
    return next((rung for rung, rate in enumerate(rates) if rate <= begin_bps), len(rates) - 1)


def kept_rate(problem: Problem, target: str) -> float | None:
    """The link rate that the last probe of this network found for a target on this machine; None without one."""
    wanted = (target, problem.fabric.name, hosts_at_work(problem))
    return next((each.link_bps for each in load_results().fits if each.subject == wanted), None)


def climb(trial: Callable[[int], Trial], first: int, rungs: int) -> int:
    """The rung of the highest rate that is carried, found from `first`; rung 0 is the highest rate.

    From a rate that is carried the search goes up only as long as the processors have room (`ROOMY`). A trial that
    fails although the machine is not to blame counts as carried: the run itself will report its fault. Raises
    `MachineError` where no rate is carried.
    """
    found = trial(first)
    if too_much(found):
        return descend(trial, first, rungs, found)
    rung = first
    while rung and found.busy.most <= ROOMY:
        found = trial(rung - 1)
        if too_much(found):
            break
        rung -= 1
    return rung


def too_much(found: Trial) -> bool:
    """Whether a trial failed because the machine did not carry it."""
    return found.verdict != VALID and found.by_machine


def descend(trial: Callable[[int], Trial], from_rung: int, rungs: int, found: Trial) -> int:
    """The first rung below `from_rung` that is carried; `found` is the failed trial of `from_rung`."""
    for rung in range(from_rung + 1, rungs):
        found = trial(rung)
        if not too_much(found):
            return rung
    raise MachineError(
        f"this machine carries the plan at no link rate down to {FLOOR_BPS / 1e3:g} kbit/s: {found.reasons[0]}. "
        "Stop other programs on this machine, or take a smaller fabric"
    )
