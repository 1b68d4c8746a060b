"""Link rates for a run whose user gives none: the highest round ones that this machine carries with room to spare.

A probe of a few seconds finds them: it runs the plan with the most packets per second on a network of its own, at
`MARGIN` times each candidate rate. The network stays up while the plan is tried on it at many link rates. The result is
kept, and the next probe of the same network begins at it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from rich.console import Console

from inakit.experiments.calibrate.capacity import Fit, Load, Use, hosts_at_work, load_results, planned_load, save_result
from inakit.experiments.run.console import working
from inakit.experiments.run.dilation import options_for
from inakit.experiments.run.run import Run, carry_out
from inakit.experiments.worlds.world import RealTimeWorld, Wiring
from inakit.planner.core.collective_times import foresee
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan, fragment_ranges
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slot_policies import DEFAULT_POLICY
from inakit.planner.install.plan_entries import entries
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.trees.headroom import with_policy
from inakit.topo.errors import MachineError, PlanError, RunError
from inakit.topo.fabric.circuits import patch_panel
from inakit.topo.fabric.variations import with_scale
from inakit.topo.live.priority import endpoint_processor
from inakit.traffic.measure.contention import overload_reasons
from inakit.traffic.measure.counters import CpuTime, processor_times
from inakit.traffic.measure.verdict import OVERLOADED, VALID, Limits

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
