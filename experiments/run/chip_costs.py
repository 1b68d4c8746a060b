"""What the chips of a fabric cost a plan, and which limit binds where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rich.console import Console

from inakit.planner.core.method import AFTERWARDS, Options
from inakit.planner.core.used_limits import CHILDREN, LINK, WINDOW, UsedLimit, used_limits
from inakit.planner.prepared import Prepared, prepare
from inakit.planner.registry import find_method
from inakit.planner.trees.headroom import RESULTS_RETURN
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_chip_as_wired
from inakit.topo.files.fabric_records import GENERIC, find_chip

NAMED = 3
"""How many places of each kind are named."""
SAME = 1e-6
"""A relative difference of rates that is none."""


@dataclass(frozen=True)
class ChipCost:
    """The sending rate of a plan with the chips, and of the same planner's plan with generic ones, both in bit/s.

    `chips`: how many switches have each. `binding`: limits of which the plan leaves nothing. For several jobs a rate is
    that of the slowest.
    """

    chips: dict[str, int]
    sending_rate_bps: float
    generic_sending_rate_bps: float
    binding: tuple[UsedLimit, ...]


def chip_cost(prepared: Prepared, planner: str, *, seed: int = 0, headroom: str = AFTERWARDS) -> ChipCost | None:
    """What the chips cost the plan of a planner as it runs; None for a fabric without chips."""
    problem, plan, mode = prepared.problem, prepared.plan, prepared.mode
    chips = chips_of(problem.fabric)
    if not chips:
        return None
    generic = replace(problem, fabric=with_chip_as_wired(problem.fabric, find_chip(GENERIC)))
    free = find_method(planner).plan(generic, Options(seed=seed, headroom=headroom))
    limits = used_limits(problem, plan, with_results=RESULTS_RETURN[mode])
    return ChipCost(
        chips=chips,
        sending_rate_bps=prepared.prediction.sending_rate_bps,
        generic_sending_rate_bps=prepare(generic, free, mode).prediction.sending_rate_bps,
        binding=tuple(limit for limit in limits if limit.binds),
    )


def chips_of(fabric: Fabric) -> dict[str, int]:
    """The names of the chips of a fabric's INA switches, and how many switches have each."""
    found: dict[str, int] = {}
    for switch in fabric.switches:
        if switch.ina and switch.chip is not None:
            found[switch.chip.name] = found.get(switch.chip.name, 0) + 1
    return found


def chip_lines(planner: str, cost: ChipCost) -> Iterator[str]:
    """Lines that say what chips cost a planner's plan and which limits bind."""
    chips = ", ".join(f"{name} in {count} switch{'es' * (count > 1)}" for name, count in cost.chips.items())
    rate, generic = cost.sending_rate_bps, cost.generic_sending_rate_bps
    lost = 1 - rate / generic
    compared = "as much as" if abs(lost) < SAME else f"{lost:.1%} less than" if lost > 0 else f"{-lost:.1%} more than"
    yield f"{planner}: with {chips} {rate / 1e6:.3f} Mbit/s, {compared} with generic ({generic / 1e6:.3f})"
    for kind in dict.fromkeys(limit.kind for limit in cost.binding):
        places = [limit for limit in cost.binding if limit.kind == kind]
        more = f", and {len(places) - NAMED} more" if len(places) > NAMED else ""
        yield f"  binds: {kind} at {'; '.join(limit_text(limit) for limit in places[:NAMED])}{more}"
    if not cost.binding:
        yield "  no limit of links or chips binds"


def limit_text(limit: UsedLimit) -> str:
    """A place and its limit in words."""
    if limit.kind in {CHILDREN, WINDOW}:
        return f"{limit.where} ({limit.used:.0f} of {limit.limit:.0f})"
    unit = "Mbit/s of gradients and results" if limit.kind == LINK else "Mbit/s"
    return f"{limit.where} ({limit.used / 1e6:.3f} of {limit.limit / 1e6:.3f} {unit})"


def print_chip_costs(
    console: Console,
    runs: Mapping[str, Prepared],
    planners: Mapping[str, str],
    *,
    seed: int,
    headroom: str = AFTERWARDS,
) -> None:
    """Print what the chips of a fabric cost each planner's plan; nothing for a fabric without chips.

    `planners`: what was given as planner, by the name of the run.
    """
    for name, run in runs.items():
        cost = chip_cost(run, planners[name], seed=seed, headroom=headroom)
        for line in () if cost is None else chip_lines(name, cost):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
