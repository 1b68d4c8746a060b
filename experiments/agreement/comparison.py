"""One combination in two worlds: the same plan at the same rates, and what came of both runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.console import Console

from inakit.experiments.agreement.combinations import Combination
from inakit.experiments.agreement.differences import Differences
from inakit.experiments.calibrate.rate_probe import fastest_bps
from inakit.experiments.calibrate.trials import scaled
from inakit.experiments.emulate.emulate import Emulation, make_plans, measure, settled
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.pace import TooSlowError
from inakit.experiments.run.run import Run, check_features
from inakit.experiments.worlds.world import World
from inakit.topo.errors import InakitError, RunError
from inakit.traffic.measure.verdict import Verdict

NOT_RUN = "not run"
"""What stands in the place of a verdict where no run was made."""
COUNTED = (Verdict.VALID, Verdict.DIFFERS)
"""The verdicts of combinations whose first run is VALID, so that the second one has to agree with it."""
SILENT = Console(quiet=True)
"""Takes what planning and runs print about themselves."""


@dataclass(frozen=True)
class Compared:
    """A combination and what came of it.

    `verdict`: VALID if both runs are and differ by no more than they may, DIFFERS if only the first is or they differ
    by more; the first run's verdict if that is not VALID; `NOT_RUN` if a world cannot run the combination. `reasons`:
    why it is not VALID. `outcomes`: those of the two runs that were made. `link_bps`: the rate of the fastest link.
    """

    combination: Combination
    verdict: str
    reasons: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    differences: Differences | None = None
    link_bps: float | None = None

    @property
    def counts(self) -> bool:
        """Whether the first run is VALID, so that the second one has to agree with it."""
        return self.verdict in COUNTED


@dataclass(frozen=True)
class Attempt:
    """A run that was made or that failed: its verdict, its reasons and, if it has ended, its outcome."""

    verdict: str
    reasons: tuple[str, ...]
    outcome: Outcome | None = None

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome, if there is one."""
        return () if self.outcome is None else (self.outcome,)


@dataclass(frozen=True)
class Extent:
    """How long a combination is run: `iteration_s`, the planned time of its one iteration.

    `tries`: how often a run in real time is tried as long as it is OVERLOADED, as other work on the machine makes it.
    """

    iteration_s: float = 3.0
    tries: int = 2


def compare(combination: Combination, worlds: tuple[World, World], extent: Extent) -> Compared:
    """Run a combination in both worlds, at rates that the first one carries on this machine."""
    try:
        emulation, run = prepare(combination, worlds, extent.iteration_s)
    except InakitError as error:
        return Compared(combination, NOT_RUN, (str(error),))
    first, second = worlds
    link_bps = fastest_bps(emulation.problem)

    def attempt_in(world: World) -> Attempt:
        return attempt(world, extent.tries, lambda: measure(emulation, str(combination), run, world, SILENT))

    one = attempt_in(first)
    if one.verdict != Verdict.VALID:
        return Compared(combination, one.verdict, one.reasons, one.outcomes, link_bps=link_bps)
    other = attempt_in(second)
    outcomes = (*one.outcomes, *other.outcomes)
    if second.real_time and other.verdict == Verdict.OVERLOADED:
        return Compared(combination, other.verdict, other.reasons, outcomes, link_bps=link_bps)
    differences = Differences.of(*outcomes) if len(outcomes) == 2 else None
    reasons = (*(f"{second.name}: {reason}" for reason in other.reasons), *(differences.beyond if differences else ()))
    verdict = Verdict.DIFFERS if reasons else Verdict.VALID
    return Compared(combination, verdict, reasons, outcomes, differences, link_bps)


def prepare(combination: Combination, worlds: tuple[World, World], iteration_s: float) -> tuple[Emulation, Run]:
    """The combination's emulation at rates that the first world carries, and its run of one iteration.

    The gradient is so large that the iteration takes `iteration_s` by the plan: the same share of every run is then the
    latency of its last packets, whatever its rate.
    Raises `InakitError` for what a world or this machine cannot run.
    """
    emulation = combination.emulation(worlds[0].name)
    for world in worlds:
        check_features(world, emulation.problem.fabric, emulation.mode, (), None, emulation.interconnect)
    emulation, plans = settled(emulation, make_plans(emulation, SILENT), worlds[0], SILENT)
    (plan,) = plans.values()
    problem, plan = scaled(emulation.problem, plan, 1.0, iteration_s)
    emulation = replace(emulation, problem=problem)
    return emulation, Run(problem, plan, emulation.mode, interconnect=emulation.interconnect)


def attempt(world: World, tries: int, run: Callable[[], Outcome]) -> Attempt:
    """The outcome of a run, or why there is none; a run that is OVERLOADED in real time is tried again."""
    for _ in range(tries):
        found = attempt_once(run)
        if not (world.real_time and found.verdict == Verdict.OVERLOADED):
            break
    return found


def attempt_once(run: Callable[[], Outcome]) -> Attempt:
    """The outcome of a run, or why there is none."""
    try:
        outcome = run()
    except TooSlowError as slow:
        return Attempt(Verdict.OVERLOADED, (str(slow), *slow.causes))
    except RunError as error:
        return Attempt(Verdict.FAILED, (str(error),))
    return Attempt(outcome.verdict, outcome.reasons, outcome)
