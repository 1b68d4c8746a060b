"""Measures the highest rate of every target, chain and workload, and the seconds that it takes to set up each chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.progress import Progress

from experiments.bench.chain import Bench
from experiments.bench.lossless_rate import LOSS_LIMITS, highest_rates
from experiments.bench.trial import WORKLOADS, Sender, run_trial
from switch.program.source_hashes import check_sources
from switch.running_switch import PROGRAM
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
    check_sources(PROGRAM)
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
        for target in targets:
            for length in lengths:
                progress.update(task, description=f"{target.name}, {length} switches")
                with Bench(target, length) as bench:
                    set_ups.append(SetUp(target.name, length, bench.network_s, bench.entries_s))
                    for measurement in measure_chain(target.name, bench):
                        found.append(measurement)
                        progress.advance(task)
    return Findings(tuple(found), tuple(set_ups))


def measure_chain(target: str, bench: Bench) -> Iterator[Measurement]:
    """The highest rate of each workload on one chain, for every loss limit."""
    for workload in WORKLOADS:
        trial = partial(run_trial, bench, workload, Sender(bench, workload))
        for limit, rate in zip(LOSS_LIMITS, highest_rates(trial), strict=True):
            yield Measurement(target, workload.name, len(bench.network.switches), limit, rate)
