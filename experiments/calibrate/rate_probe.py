"""Link rates for a run without given rates: the highest round ones that this machine carries with room to spare.

A probe of a few seconds finds them: it runs the plan with the most packets per second on a network of its own, at
`MARGIN` times each candidate rate. One network serves the trials at all rates. The result is kept, and the next probe
of the same network begins at it.
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
from inakit.switch.running_switch import restart
from inakit.topo.errors import MachineError, PlanError, RunError
from inakit.topo.fabric.circuits import patch_panel
from inakit.topo.fabric.variations import with_scale
from inakit.topo.live.priority import endpoint_processor
from inakit.traffic.closed_loop import UPPER_HALF
from inakit.traffic.measure.contention import overload_reasons
from inakit.traffic.measure.counters import CpuTime, processor_times
from inakit.traffic.measure.verdict import OVERLOADED, VALID, Limits

MARGIN = 1.5
"""A rate is chosen if the machine carried this many times that rate: the load of other programs varies."""
PROBE_S = 1.2
"""The seconds for which one trial sends."""
ROUND = (1, 2, 5)
"""Round rates are these numbers times powers of ten."""
ROOMY = 0.7
"""The search tries the next higher rate only if the busier processors were in use for at most this share."""
FLOOR_BPS = 20e3
"""The lowest rate that is tried. On a slower link a packet takes more than 0.1 s: such an emulation shows nothing."""
FIRST_SHARE = {"bmv2": 1 / 100, "fast": 1 / 2}
"""By target, the share of the described rates at which its first probe begins; 1 for an unlisted target."""


@dataclass(frozen=True)
class Fitted:
    """The `scale` at which all rates of a network are emulated, and the rate `link_bps` of its fastest link then."""

    scale: float
    link_bps: float


FOUND: dict[tuple[str, str, int, float], tuple[float, Fitted]] = {}
"""The results of this process: the packets per second of the probed plan, and the fit.

The keys are target, fabric, hosts at work, and the fastest described rate in bit/s."""


def fit(plans: Mapping[str, Prepared], world: RealTimeWorld, console: Console, *, panel: bool) -> Fitted:
    """Probe for the scale at which this machine carries all these plans of one problem.

    With `panel` the optical links go through one circuit switch. A fit that this process has found for the same
    network is reused without a probe for plans that need at most as many packets per second.
    Raises `MachineError` if this machine does not even carry `FLOOR_BPS`.
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
    """The candidate rates in bit/s, from the highest down: `highest_bps` itself, then round ones."""
    decades = range(int(math.log10(FLOOR_BPS)), 1 + int(math.log10(highest_bps)))
    below = (float(digit * 10**decade) for decade in decades for digit in ROUND)
    return (highest_bps, *sorted((rate for rate in below if FLOOR_BPS <= rate < highest_bps), reverse=True))


def simplest(prepared: Prepared) -> Prepared:
    """Return the plan to probe: under the default slot policy, which shares no slots, and with room for results.

    Collisions and full links then do not slow it down; only the machine can keep it from its rates.
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
    """The link rate that the last probe of this network found for a target on this machine; None without a probe."""
    wanted = (target, problem.fabric.name, hosts_at_work(problem))
    return next((each.link_bps for each in load_results().fits if each.subject == wanted), None)


def climb(trial: Callable[[int], Trial], first: int, rungs: int) -> int:
    """Return the rung of the highest rate that is carried, searching from `first`; rung 0 is the highest rate.

    From a rate that is carried the search goes up only while the processors have room (`ROOMY`). A failed trial that is
    not the machine's fault counts as carried: the run itself will report its fault. Raises `MachineError` if no rate is
    carried.
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
    """Whether a trial failed because of the machine's load."""
    return found.verdict != VALID and found.by_machine


def descend(trial: Callable[[int], Trial], from_rung: int, rungs: int, found: Trial) -> int:
    """Return the first rung below `from_rung` that is carried; `found` is the failed trial of `from_rung`."""
    for rung in range(from_rung + 1, rungs):
        found = trial(rung)
        if not too_much(found):
            return rung
    raise MachineError(
        f"this machine carries the plan at no link rate down to {FLOOR_BPS / 1e3:g} kbit/s: {found.reasons[0]}. "
        "Stop other programs on this machine, or choose a smaller fabric"
    )


RUN_S = 2.5
"""The seconds that the gradients of one trial take at the planned rate."""
PATIENCE = 2.0
"""A trial that takes this many times its planned duration is ended: the machine does not carry it."""
STALLS = 5
"""The time without results after which a run counts as stalled is divided by this number for a trial."""
BUSY = 0.5
"""The machine is not the cause of a failed trial if no packet had to wait and no processor was busier than this."""
QUIET_S = 0.1
QUIET_WITHIN_S = 10.0


@dataclass(frozen=True)
class Trial:
    """One run at `scale` of the fabric's link rates: the planned load, and how busy the processors were.

    `by_machine`: for a trial that is not VALID, whether the machine can be the cause. If not, a lower rate or a faster
    machine would not help: the P4 program or the plan is at fault.
    """

    scale: float
    verdict: str
    reasons: tuple[str, ...]
    load: Load
    worker_bps: float
    busy: Use
    by_machine: bool = True


class TrialNetwork:
    """A running network with a plan's entries installed, as a context manager.

    Before each trial all registers are as at the start: what an earlier trial left in slots, or did not send, would be
    taken for losses. Sequence numbers continue, in the upper half of all, before which a register that is 0 holds none.
    """

    def __init__(
        self, problem: Problem, plan: Plan, world: RealTimeWorld, run_s: float = RUN_S, *, panel: bool = False
    ) -> None:
        """A trial sends for `run_s` seconds. With `panel` the optical links go through one circuit switch."""
        self.problem, self.plan, self.world, self.run_s, self.panel = problem, plan, world, run_s, panel
        self.next_seq = UPPER_HALF + longest_reach(plan)
        self.setup_s = 0.0

    def __enter__(self) -> Self:
        started = time.monotonic()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="inakit-")))
            fabric, self.installed = self.problem.fabric, entries(self.problem, self.plan)
            wiring = Wiring(patch_panel(fabric) if self.panel else None, folder=folder)
            self.network = stack.enter_context(self.world.up(fabric, self.installed, wiring, lambda _: None))
            self.watched = self.network.watched()
            self._exits = stack.pop_all()
        self.setup_s = time.monotonic() - started
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    def trial(self, scale: float) -> Trial:
        """Run at `scale` of the fabric's link rates. Raises `RunError` if a switch process ends."""
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
        """Return the verdict of one run, its reasons, and whether the processors were short.

        A run that stalls or exceeds its time limit is OVERLOADED; processors then count as short if any result came.
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
        """Wait until an earlier trial's packets have stopped, at most `QUIET_WITHIN_S` seconds, and empty all slots."""
        deadline, before = time.monotonic() + QUIET_WITHIN_S, -1
        while (now := self._received_packets()) != before and time.monotonic() < deadline:
            before = now
            time.sleep(QUIET_S)
        for switch in self.network.switches.values():
            restart(switch, self.installed)

    def _received_packets(self) -> int:
        return sum(interface.received_packets for interface in self.watched.links().values())


def scaled(problem: Problem, plan: Plan, scale: float, run_s: float) -> tuple[Problem, Plan]:
    """Return problem and plan with every rate times `scale`, and one iteration of all jobs at once that takes `run_s`.

    The objectives of the methods are linear in the rates, so the best trees at one scale are the best at all scales.
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
    """The sequence numbers that one iteration needs so that slots and receivers take the next ones for newer."""
    if plan.collectives:
        return max(int(foresee(problem, each).sent.max()) for each in plan.collectives)
    return max(map(len, fragment_ranges(problem, plan).values())) + longest_reach(plan)


def longest_reach(plan: Plan) -> int:
    """The most fragments in flight along a tree of the plan."""
    return max((planned.tree.reach for planned in plan.trees), default=0)


class Sampler:
    """Samples the processors at every report of progress; raises `RunError` if a run takes longer than `limit_s`."""

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
        """The busy shares between the first and the last sample; 1 for a run too short for two samples."""
        if len(self.samples) < 2:
            return Use(1.0, 1.0)
        (_, before), (_, after) = self.samples[0], self.samples[-1]
        busy = {number: 1 - now.idle_since(before[number]) for number, now in after.items()}
        endpoint = busy.pop(endpoint_processor())
        return Use(endpoint, sum(busy.values()) / len(busy) if busy else endpoint)
