"""A network that stays up while one plan is tried on it at many link rates."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from inakit.experiments.calibrate.capacity import Load, Use, planned_load
from inakit.experiments.run.dilation import options_for
from inakit.experiments.run.run import Run, carry_out
from inakit.experiments.worlds.world import RealTimeWorld, Wiring
from inakit.planner.core.collective_times import foresee
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.fragment_ranges import fragment_ranges
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.plan_entries import entries
from inakit.planner.prepared import Prepared
from inakit.topo.errors import RunError
from inakit.topo.fabric.circuits import patch_panel
from inakit.topo.fabric.variations import with_scale
from inakit.topo.live.priority import endpoint_processor
from inakit.traffic.measure.contention import overload_reasons
from inakit.traffic.measure.counters import CpuTime, processor_times
from inakit.traffic.measure.verdict import OVERLOADED, Limits

RUN_S = 2.5
"""How many seconds the gradients of one trial take at the planned rate."""
PATIENCE = 2.0
"""A trial that takes so many times its planned duration is ended: the machine does not carry it."""
STALLS = 5
"""The time without results after which a run counts as stalled is divided by this for a trial."""
BUSY = 0.5
"""The machine is not to blame for a failed trial if nothing had to wait and no processors were busier than this."""
QUIET_S = 0.1
QUIET_WITHIN_S = 10.0


@dataclass(frozen=True)
class Trial:
    """One run at `scale` of the fabric's link rates: what was planned, and how busy it kept the processors.

    `by_machine`: for a trial that is not VALID, whether the machine may be the reason. Otherwise neither a lower rate
    nor a faster machine would help: the P4 program or the plan is at fault.
    """

    scale: float
    verdict: str
    reasons: tuple[str, ...]
    load: Load
    worker_bps: float
    busy: Use
    by_machine: bool = True


class TrialNetwork:
    """A running network with a plan's entries installed. A context manager.

    Sequence numbers go on from trial to trial, so that the switches see one long run, and treat what an earlier
    trial left in a slot as old.
    """

    def __init__(
        self, problem: Problem, plan: Plan, world: RealTimeWorld, run_s: float = RUN_S, *, panel: bool = False
    ) -> None:
        """A trial sends for `run_s` seconds. With `panel` the optical links go through one circuit switch."""
        self.problem, self.plan, self.world, self.run_s, self.panel = problem, plan, world, run_s, panel
        self.next_seq = 0
        self.setup_s = 0.0

    def __enter__(self) -> Self:
        started = time.monotonic()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="inakit-")))
            fabric, installed = self.problem.fabric, entries(self.problem, self.plan)
            wiring = Wiring(patch_panel(fabric) if self.panel else None, folder=folder)
            self.network = stack.enter_context(self.world.up(fabric, installed, wiring, lambda _: None))
            self.watched = self.network.watched()
            self._exits = stack.pop_all()
        self.setup_s = time.monotonic() - started
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    def trial(self, scale: float) -> Trial:
        """Run at `scale` of the fabric's link rates. Raises `RunError` when a switch dies."""
        problem, plan = scaled(self.problem, self.plan, scale, self.run_s)
        self.network.set_capacities(problem.fabric, patch_panel(problem.fabric) if self.panel else None)
        self._settle()
        prediction, sampler = evaluate(problem, plan), Sampler(PATIENCE * self.run_s)
        verdict, reasons, waited = self._run(problem, plan, sampler)
        return Trial(
            scale=scale,
            verdict=verdict,
            reasons=reasons,
            load=planned_load(problem, prediction),
            worker_bps=prediction.sending_rate_bps,
            busy=sampler.busy(),
            by_machine=verdict == OVERLOADED and (waited or sampler.busy().most > BUSY),
        )

    def _run(self, problem: Problem, plan: Plan, sampler: Sampler) -> tuple[str, tuple[str, ...], bool]:
        """The verdict of one run, its reasons, and whether the processors were short.

        A run that stalls or takes much too long is OVERLOADED; then the processors count as short if any result
        had come back.
        """
        options = options_for(problem)
        worker = replace(options.worker, first_seq=self.next_seq)
        options = replace(options, worker=worker, stall_s=options.stall_s / STALLS)
        self.next_seq += sequence_numbers(problem, plan)
        try:
            outcome = carry_out(Run(Prepared(problem, plan), options=options), self.network, sampler)
        except RunError as error:
            for switch in self.network.switches.values():
                switch.check()
            return OVERLOADED, (str(error),), sampler.fraction > 0
        waited = any(overload_reasons(tuple(outcome.monitor.seconds), Limits()))
        return outcome.verdict, outcome.reasons, waited

    def _settle(self) -> None:
        """Wait until the packets of an earlier trial have stopped moving, for `QUIET_WITHIN_S` seconds at most."""
        deadline, before = time.monotonic() + QUIET_WITHIN_S, -1
        while (now := self._received_packets()) != before and time.monotonic() < deadline:
            before = now
            time.sleep(QUIET_S)

    def _received_packets(self) -> int:
        return sum(interface.received_packets for interface in self.watched.links().values())


def scaled(problem: Problem, plan: Plan, scale: float, run_s: float) -> tuple[Problem, Plan]:
    """The problem and plan with every rate times `scale`, and one iteration, of all jobs at once, that takes `run_s`.

    What a method optimises is linear in the rates, so the best trees at one scale are the best at all.
    """
    plan = plan.with_rates_times(scale)
    fragment_bytes = 4 * problem.fragment.values

    def lasting(job: Job, time_s: float) -> Job:
        fragments = max(1, round(job.gradient_bytes * run_s / time_s / fragment_bytes))
        return replace(job, gradient_bytes=fragments * fragment_bytes, iterations=1, arrival_s=0.0)

    times = evaluate(problem, plan).jobs
    jobs = tuple(lasting(job, times[job.number].communication_time_s) for job in problem.jobs)
    return replace(problem, fabric=with_scale(problem.fabric, scale), jobs=jobs), plan


def sequence_numbers(problem: Problem, plan: Plan) -> int:
    """How many sequence numbers one iteration needs, so that slots and receivers take the next ones for newer."""
    if plan.collectives:
        return max(int(foresee(problem, each).sent.max()) for each in plan.collectives)
    longest = max(len(fragments) for fragments in fragment_ranges(problem, plan).values())
    return longest + max(planned.tree.reach for planned in plan.trees)


class Sampler:
    """Samples the processors at every report of progress; raises `RunError` once a run takes longer than `limit_s`."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.samples: list[tuple[float, Mapping[int, CpuTime]]] = []
        self.fraction = 0.0

    def __call__(self, fraction: float) -> None:
        self.fraction = fraction
        if fraction == 1:
            return
        self.samples.append((time.monotonic(), processor_times()))
        took_s = self.samples[-1][0] - self.samples[0][0]
        if took_s > self.limit_s:
            raise RunError(f"{fraction:.0%} done in {took_s:.1f} s, {PATIENCE:g} times the planned time")

    def busy(self) -> Use:
        """The shares in use between the first and the last sample; 1 for a run too short to have two samples."""
        if len(self.samples) < 2:
            return Use(1.0, 1.0)
        (_, before), (_, after) = self.samples[0], self.samples[-1]
        busy = {number: 1 - now.idle_since(before[number]) for number, now in after.items()}
        endpoint = busy.pop(endpoint_processor())
        return Use(endpoint, sum(busy.values()) / len(busy) if busy else endpoint)
