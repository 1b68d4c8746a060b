"""Whether a plan fits the chips of its switches: slots, children, recirculation, table entries, groups, memory.

Whether the P4 program fits them is for the chip's compiler to say: its figures are shown where there are any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from inakit.experiments.hardware.compiled.recorded import Recorded
from inakit.experiments.hardware.compiled.resources import Resources
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.limits.used_limits import RECIRCULATION, UsedLimit, used_bitmaps, used_summing
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import entries
from inakit.switch.entries import SwitchEntries
from inakit.topo.errors import InputError
from inakit.topo.fabric.chips import VALUES_PER_PACKET, Chip
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_chip_as_wired

SLOTS, ENTRIES, GROUPS, MEMORY = "slots", "table entries", "multicast groups", "memory of the sums"
TOLERANCE = 1e-9
UNITS = {RECIRCULATION: (1e-9, "Gbit/s"), MEMORY: (1 / 1024, "KiB")}
"""By kind of limit, the factor and the name of the unit in which it is shown; others are counts."""


@dataclass(frozen=True)
class ChipFit:
    """What a plan needs of a chip that `switches` of its fabric have: of each limit, the most that a switch needs."""

    chip: Chip
    switches: int
    needs: tuple[UsedLimit, ...]

    @property
    def fits(self) -> bool:
        """Whether no limit is exceeded."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the plan does not fit: a line for each limit that is exceeded."""
        return tuple(
            f"chip {self.chip.name}: {need.kind} at {need.where}: {amount(need.kind, need.used)} needed, "
            f"it has {amount(need.kind, need.limit)}"
            for need in self.needs
            if need.share > 1 + TOLERANCE
        )


def chips_fit(problem: Problem, plan: Plan, chip: Chip | None = None) -> list[ChipFit]:
    """Whether a plan fits the chips of its fabric or, if one is given, that chip in every switch.

    Raises `InputError` where neither names a chip, and `FabricError` for a chip that has too few ports.
    """
    fabric = problem.fabric if chip is None else with_chip_as_wired(problem.fabric, chip)
    installed = {each.switch: each for each in entries(problem, plan).switches}
    needs = list(needs_of(replace(problem, fabric=fabric), plan, installed))
    found = {switch.chip.name: switch.chip for switch in fabric.switches if switch.chip}
    if not found:
        raise InputError(f"no switch of fabric '{fabric.name}' names a chip: give one, such as --chip tofino1")
    return [fit_of(fabric, each, needs) for each in found.values()]


def fit_of(fabric: Fabric, chip: Chip, needs: Iterable[UsedLimit]) -> ChipFit:
    """The greatest need of each kind among the switches with a chip."""
    names = {switch.name for switch in fabric.switches if switch.chip == chip}
    own = [need for need in needs if switch_of(need) in names]
    most = {need.kind: need for need in sorted(own, key=lambda need: need.share)}
    return ChipFit(chip, len(names), tuple(most[kind] for kind in dict.fromkeys(need.kind for need in own)))


def switch_of(need: UsedLimit) -> str:
    """The switch of a limit's place, which begins with its name."""
    return need.where.partition(",")[0]


def needs_of(problem: Problem, plan: Plan, installed: dict[str, SwitchEntries]) -> Iterator[UsedLimit]:
    """What a plan and its entries need of every limit of every switch that has a chip."""
    chips = {switch.name: switch.chip for switch in problem.fabric.switches if switch.chip}
    yield from used_slots(plan, chips)
    yield from used_bitmaps(problem, plan)
    summed = used_summing(problem.fabric, evaluate(problem, plan))
    yield from (limit for limit in summed if limit.kind == RECIRCULATION)
    for name, chip in chips.items():
        own = installed.get(name, SwitchEntries(name))
        for table, count in Counter(entry.table for entry in own.tables).items():
            yield UsedLimit(ENTRIES, f"{name}, {table}", count, chip.table_entries)
        yield UsedLimit(GROUPS, name, len(own.groups), chip.multicast_groups)


def used_slots(plan: Plan, chips: dict[str, Chip]) -> Iterator[UsedLimit]:
    """The slots of each pipeline up to the last one that a tree owns, and the memory of their sums."""
    ends: dict[tuple[str, int], int] = {}
    for aggregator in (a for shard in plan.shards for tree in shard.trees for a in tree.aggregators):
        inp = aggregator.switch, aggregator.pipeline
        ends[inp] = max(ends.get(inp, 0), aggregator.first_slot + aggregator.slots)
    for (switch, pipeline), end in ends.items():
        chip, where = chips.get(switch), f"{switch}, pipeline {pipeline}"
        if chip is not None:
            yield UsedLimit(SLOTS, where, end, chip.slots_per_pipeline)
            if chip.register_bytes is not None:
                yield UsedLimit(MEMORY, where, 4 * VALUES_PER_PACKET * end, chip.register_bytes)


def print_fit(console: Console, found: Iterable[ChipFit]) -> None:
    """Print a table for each chip, and whether the plan fits it."""
    for fit in found:
        table = Table(title=f"{fit.chip.name} in {fit.switches} switch{'es' * (fit.switches > 1)}")
        table.add_column("most needed", no_wrap=True)
        for heading in ("at", "needed", "has", "share"):
            table.add_column(heading, justify="left" if heading == "at" else "right")
        for need in fit.needs:
            needed, has = (amount(need.kind, value) for value in (need.used, need.limit))
            table.add_row(need.kind, need.where, needed, has, share(need))
        console.print(table)
        console.print(f"the plan {verdict(fit)}", highlight=False, soft_wrap=True)


def print_recorded(console: Console, chip: Chip, found: Iterable[Recorded]) -> None:
    """Print what is recorded of `ina_hw` for a chip, or that nothing is."""
    for each in found:
        print_program(console, each.resources)
        console.print(provenance(each), highlight=False, soft_wrap=True)
    if not any(each.values == chip.values_per_pass for each in found):
        line = f"no figures are recorded of ina_hw for {chip.name} with {chip.values_per_pass} values a pass"
        console.print(line, highlight=False, soft_wrap=True)


def provenance(found: Recorded) -> str:
    """Of which program recorded figures are, and whether it is still the same."""
    stale = "; THE SOURCES HAVE CHANGED SINCE: compile again" if found.is_stale else ""
    return f"recorded, for ina_hw with {found.values} values a pass, sources {found.source_sha256[:12]}{stale}"


def print_program(console: Console, found: Resources) -> None:
    """Print what the chip's compiler says that the P4 program takes."""
    table = Table(title=f"{found.program} on {found.chip}, by its compiler {found.compiler}")
    for heading in ("of a pipeline", "takes", "has", "share"):
        table.add_column(heading, justify="left" if heading == "of a pipeline" else "right")
    for name, each in found.amounts.items():
        table.add_row(name, f"{each.used:,}", f"{each.has:,}", f"{each.used / each.has:.1%}")
    console.print(table)
    console.print(f"the P4 program {'fits' if found.fits else 'does not fit'} {found.chip}", highlight=False)


def verdict(fit: ChipFit) -> str:
    """Whether a plan fits, and how often a packet passes a pipeline."""
    word = "fits" if fit.fits else "does not fit"
    passes = f"{fit.chip.passes} passes" if fit.chip.passes > 1 else "one pass"
    return f"{word} {fit.chip.name}, where a packet of {VALUES_PER_PACKET} values takes {passes}"


def amount(kind: str, value: float) -> str:
    """A value of a kind of limit with its unit."""
    factor, unit = UNITS.get(kind, (1, ""))
    return f"{value * factor:,.6g} {unit}".rstrip()


def share(need: UsedLimit) -> str:
    """The part of a limit that is needed, in colour where it is too much."""
    return f"{need.share:.1%}" if need.share <= 1 + TOLERANCE else f"[bold red]{need.share:.1%}[/]"
