"""The verdict of a validation: the unmet requirements, by failure and job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inakit.experiments.emulate.defaults import rate_words
from inakit.experiments.hardware.failures import NO_PLAN, NOTHING, Failure
from inakit.experiments.hardware.fit import ChipFit
from inakit.experiments.hardware.site_file import Margins, Site
from inakit.planner.core.evaluate import Prediction
from inakit.planner.install.ina_program import find_program
from inakit.planner.own_planners import name_of
from inakit.topo.fabric.fabric import Fabric
from inakit.traffic.measure.verdict import VALID

ROUNDING = 1e-9
HOLDS, DOES_NOT_HOLD = "HOLDS", "DOES NOT HOLD"


@dataclass(frozen=True)
class Weathered:
    """The effect of one failure on the plan of one planner.

    `plan`: the packed plan under the failure, if it changed. `unproven`: its solver stopped before it proved the plan
    optimal.
    """

    failure: Failure
    state: str
    lost: Mapping[int, str]
    rates_bps: Mapping[int, float]
    error: str | None
    plan: str | None = None
    unproven: bool = False

    def kept(self, before_bps: Mapping[int, float]) -> dict[int, float]:
        """The share of its rate that each job keeps; 0 for jobs that are lost or have no plan."""
        return {number: self.rates_bps.get(number, 0.0) / rate for number, rate in before_bps.items()}

    def severity(self, before_bps: Mapping[int, float]) -> tuple[bool, float, float]:
        """The sort key of failures, worst first: no plan, then the least share of a job that goes on, then the sum."""
        shares = self.kept(before_bps)
        going_on = [share for number, share in shares.items() if number not in self.lost]
        return self.state != NO_PLAN, min(going_on, default=1.0), sum(shares.values())


def weathered_of(failure: Failure, row: Mapping[str, Any] | None, error: str | None) -> Weathered:
    """The effect that a trial found; an error of the trial counts as no plan."""
    if row is None:
        return Weathered(failure, NO_PLAN, {}, {}, error)
    rates = {int(number): rate for number, rate in row["rates_bps"].items()}
    lost = {int(number): why for number, why in row["lost"].items()}
    unproven = row.get("unproven", False)
    return Weathered(failure, row["state"], lost, rates, row["error"], row.get("plan"), unproven)


@dataclass(frozen=True)
class PlannerResult:
    """The results of one planner. `failed`: why it has no plan at all; the other fields then have their defaults.

    `unproven`: the solver stopped before it proved the plan without failures optimal. `virtual`: the runs in virtual
    time, by the name of the failure, "" for none; `emulated`: the emulation.
    """

    planner: str
    rates_bps: Mapping[int, float] = field(default_factory=dict)
    prediction: Prediction | None = None
    said: str = ""
    fits: tuple[ChipFit, ...] = ()
    weathered: tuple[Weathered, ...] = ()
    virtual: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    emulated: Mapping[str, Any] | None = None
    failed: str | None = None
    unproven: bool = False

    @property
    def name(self) -> str:
        """The planner's name; `planner` can be the path of its file."""
        return name_of(self.planner)

    @property
    def worst(self) -> tuple[Weathered, ...]:
        """The failures, the worst first."""
        return tuple(sorted(self.weathered, key=lambda each: each.severity(self.rates_bps)))


def reasons_of(site: Site, result: PlannerResult) -> list[str]:
    """Every requirement that the planner's plans do not meet, in words; empty if the site holds."""
    if result.failed is not None:
        return [f"no plan: {result.failed}"]
    found = [*nominal_reasons(site, result)]
    for each in result.worst:
        found += failure_reasons(site, result.rates_bps, each)
    return found


def nominal_reasons(site: Site, result: PlannerResult) -> Iterator[str]:
    """Yield the unmet requirements without failures: of the plan, its fit, virtual time, and the emulation."""
    yield from program_reasons(site)
    for fit in result.fits:
        yield from fit.reasons
    yield from rate_reasons(site.margins, result.rates_bps, "while nothing fails")
    if result.prediction is not None:
        yield from load_reasons(site.problem.fabric, result.prediction, site.margins.free)
    for name, row in result.virtual.items():
        where = f"virtual time, {name} fails" if name else "virtual time"
        yield from run_reasons(row, where, site.margins.within)
    emulated = result.emulated or {}
    if emulated.get("exact") is False and not emulated["reasons"]:
        yield "emulation: sums are not exact"


def program_reasons(site: Site) -> Iterator[str]:
    """Yield the reasons why chips cannot run the site's program."""
    for chip in dict.fromkeys(switch.chip for switch in site.problem.fabric.switches if switch.chip):
        reason = find_program(site.program).unfit_for(chip)
        if reason is not None:
            yield reason


def rate_reasons(margins: Margins, rates_bps: Mapping[int, float], when: str) -> Iterator[str]:
    least = margins.least_rate or 0.0
    for number, rate in rates_bps.items():
        if rate < least * (1 - ROUNDING):
            yield f"{when}: job {number} sends at {rate_words(rate)}, at least {rate_words(least)} is required"


def load_reasons(fabric: Fabric, prediction: Prediction, free: float) -> Iterator[str]:
    """Yield the links with less free capacity than required."""
    for link, load in prediction.loads_with_results_bps.items():
        share = load / fabric.capacities_bps[link]
        if share > 1 - free + ROUNDING:
            yield f"link {'-'.join(link)}: {share:.0%} of it is used, {free:.0%} must stay free"


def run_reasons(row: Mapping[str, Any], where: str, within: float) -> Iterator[str]:
    """Yield the contradictions of a run in virtual time to the plan: an error, a verdict not VALID, other rates."""
    if row.get("error") is not None:
        yield f"{where}: {row['error']}"
        return
    if row["verdict"] != VALID:
        yield f"{where}: {row['verdict']}: {'; '.join(row['reasons'][:3]) or 'sums are not exact'}"
    for number, planned in row["planned_bps"].items():
        measured = row["measured_bps"][number]
        if abs(measured - planned) > within * planned:
            off = f"{measured / planned - 1:+.1%}"
            yield f"{where}: job {number} sends at {rate_words(measured)}, {off} of the plan (within {within:.0%})"


def failure_reasons(site: Site, before_bps: Mapping[int, float], found: Weathered) -> Iterator[str]:
    """Yield the unmet requirements under one failure."""
    when = f"{found.failure.kind} {found.failure.name} fails"
    if not site.withstand.hosts_may_be_cut_off:
        yield from (f"{when}: job {number} stops ({why})" for number, why in found.lost.items())
    if found.state == NO_PLAN:
        yield f"{when}: no plan for the other jobs ({found.error})"
        return
    if found.state == NOTHING:
        return
    yield from rate_reasons(site.margins, found.rates_bps, when)
    for number, share in found.kept(before_bps).items():
        if number not in found.lost and share < site.margins.keeps * (1 - ROUNDING):
            yield f"{when}: job {number} keeps {share:.0%} of its rate, {site.margins.keeps:.0%} is required"
