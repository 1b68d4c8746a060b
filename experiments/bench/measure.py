"""Measures the highest rate of every target, chain and workload, and the seconds that it takes to set up each chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from rich.console import Console

from inakit.experiments.bench.chain import Bench
from inakit.experiments.bench.lossless_rate import LOSS_LIMITS, highest_rates
from inakit.experiments.bench.trial import WORKLOADS, Sender, Workload, run_trial
from inakit.experiments.sweeps.rows import Row, measure_rows
from inakit.planner.install.data_plane_program import PROGRAMS
from inakit.switch.program.source_hashes import check_sources
from inakit.switch.targets import TARGETS, Target

CHAIN_LENGTHS = (1, 5, 15, 45)


@dataclass(frozen=True)
class Case:
    """A workload on a chain of so many switches."""

    target: Target
    switches: int
    workload: Workload

    def rates(self, rates_pps: Sequence[float | None]) -> tuple[Measurement, ...]:
        """A measurement for each loss limit."""
        limits = zip(LOSS_LIMITS, rates_pps, strict=True)
        return tuple(
            Measurement(self.target.name, self.workload.name, self.switches, limit, rate) for limit, rate in limits
        )

    def __str__(self) -> str:
        return f"{self.target.name}, chain of {self.switches}, {self.workload.name}"


@dataclass(frozen=True)
class Measurement:
    """The highest rate of one workload at one loss limit, in packets per second into the first switch.

    None where measuring failed.
    """

    target: str
    workload: str
    switches: int
    loss_limit: float
    rate_pps: float | None


@dataclass(frozen=True)
class SetUp:
    """Seconds to bring up a chain's network with its switches, and to fill their tables."""

    target: str
    switches: int
    network_s: float
    entries_s: float


@dataclass(frozen=True)
class Measured:
    """What was found of a case: a rate for each loss limit, and the set-up of its chain."""

    rates: tuple[Measurement, ...]
    set_up: SetUp

    def __str__(self) -> str:
        words = {limit: f"loss ≤ {limit:.1%}" if limit else "no loss" for limit in LOSS_LIMITS}
        return "; ".join(f"{each.rate_pps:,.0f} packets/s ({words[each.loss_limit]})" for each in self.rates)


@dataclass(frozen=True)
class Findings:
    """The results of a bench: every highest rate, every set-up time, and the cases that failed, with the reason."""

    rates: tuple[Measurement, ...]
    set_ups: tuple[SetUp, ...]
    failed: tuple[tuple[Case, str], ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Row[Case, Measured]]) -> Findings:
        """The results of the rows that were measured. Set-up is that of the first workload."""
        nothing = [None] * len(LOSS_LIMITS)
        return cls(
            tuple(rate for row in rows for rate in (row.found.rates if row.found else row.asked.rates(nothing))),
            tuple(row.found.set_up for row in rows if row.found and row.asked.workload is WORKLOADS[0]),
            tuple((row.asked, row.error) for row in rows if row.error is not None),
        )


def targets_here() -> list[Target]:
    """The targets that this machine can run. Raises `InputError` for a stale P4 program."""
    for program in PROGRAMS.values():
        check_sources(program.path)
    return [target for target in TARGETS.values() if target.missing() is None]


def lacking() -> list[str]:
    """Why each of the other targets cannot run here, in words."""
    reasons = {target.name: target.missing() for target in TARGETS.values()}
    return [f"{name} cannot run here: {reason}" for name, reason in reasons.items() if reason is not None]


def run_bench(
    targets: Sequence[Target],
    console: Console,
    show: Callable[[Findings], None],
    lengths: Sequence[int] = CHAIN_LENGTHS,
) -> Findings:
    """Measure every workload on every chain and target, print each result, and `show` all in the end. Needs root.

    However it ends, what was measured is shown. Targets take turns, so that what they are compared by comes together.
    """
    cases = [Case(target, length, work) for length, work, target in product(lengths, WORKLOADS, targets)]

    def shown(rows: Sequence[Row[Case, Measured]]) -> Findings:
        findings = Findings.of(rows)
        show(findings)
        return findings

    return measure_rows(cases, measure_case, str, shown, console)


def measure_case(case: Case) -> Measured:
    """Set up the chain, and find the highest rate of the workload for every loss limit. Raises `InakitError`."""
    with Bench(case.target, case.switches, case.workload.program) as bench:
        rates = highest_rates(partial(run_trial, bench, case.workload, Sender(bench, case.workload)))
        set_up = SetUp(case.target.name, case.switches, bench.network_s, bench.entries_s)
        return Measured(case.rates(rates), set_up)
