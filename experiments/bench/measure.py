"""Measures the highest rate of every target, chain and workload, and the seconds that it takes to set up each chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from rich.console import Console
from rich.progress import Progress

from experiments.bench.chain import Bench
from experiments.bench.lossless_rate import LOSS_LIMITS, highest_rates
from experiments.bench.trial import WORKLOADS, Sender, Workload, run_trial
from planner.install.data_plane_program import INA, PROGRAMS, DataPlaneProgram
from switch.program.source_hashes import check_sources
from switch.targets import TARGETS, Target

CHAIN_LENGTHS = (1, 5, 15, 45)


@dataclass(frozen=True)
class Measurement:
    """The highest rate of one workload at one loss limit, in packets per second into the first switch."""

    target: str
    workload: str
    switches: int
    loss_limit: float
    rate_pps: float


@dataclass(frozen=True)
class SetUp:
    """Seconds to bring up a chain's network with its switches, and to fill their tables."""

    target: str
    switches: int
    network_s: float
    entries_s: float


@dataclass(frozen=True)
class Findings:
    """The results of a whole bench: every highest rate and every set-up time."""

    rates: tuple[Measurement, ...]
    set_ups: tuple[SetUp, ...]


def targets_here() -> list[Target]:
    """The targets that this machine can run. Raises `InputError` for a stale P4 program."""
    for program in PROGRAMS.values():
        check_sources(program.path)
    return [target for target in TARGETS.values() if target.missing() is None]


def lacking() -> list[str]:
    """Why each of the other targets cannot run here, in words."""
    reasons = {target.name: target.missing() for target in TARGETS.values()}
    return [f"{name} cannot run here: {reason}" for name, reason in reasons.items() if reason is not None]


def run_bench(targets: Sequence[Target], console: Console, lengths: Sequence[int] = CHAIN_LENGTHS) -> Findings:
    """Measure every workload on every chain and target. Needs root."""
    found: list[Measurement] = []
    set_ups: list[SetUp] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(targets) * len(lengths) * len(WORKLOADS) * len(LOSS_LIMITS))
        for target, length, program in product(targets, lengths, PROGRAMS.values()):
            progress.update(task, description=f"{target.name}, {length} switches, {program.name}")
            with Bench(target, length, program) as bench:
                if program is INA:
                    set_ups.append(SetUp(target.name, length, bench.network_s, bench.entries_s))
                for measurement in measure_chain(target.name, bench, of_program(program)):
                    found.append(measurement)
                    progress.advance(task)
    return Findings(tuple(found), tuple(set_ups))


def of_program(program: DataPlaneProgram) -> list[Workload]:
    """The workloads of switches that run this program."""
    return [workload for workload in WORKLOADS if workload.program is program]


def measure_chain(target: str, bench: Bench, workloads: Iterable[Workload]) -> Iterator[Measurement]:
    """The highest rate of each workload on one chain, for every loss limit."""
    for workload in workloads:
        trial = partial(run_trial, bench, workload, Sender(bench, workload))
        for limit, rate in zip(LOSS_LIMITS, highest_rates(trial), strict=True):
            yield Measurement(target, workload.name, len(bench.network.switches), limit, rate)
