"""The rates of ARO, its variants and the baselines on one problem, as ARO's section IV-A describes them.

ARO and ARO-ACC are planned by the kit's fast exact method. The rate of a single task is quantised afterwards (QSR),
which is exact: the best multiple of a step is the best rate of all, rounded down. Rates of several tasks are
continuous.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import floor

from inakit.experiments.papers.aro.setting import CAPACITY_BPS, AroSetting
from inakit.experiments.papers.common.own_planners import own_planners
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.solving import SolverOptions
from inakit.planner.methods.aro.accelerated import accelerated
from inakit.planner.methods.aro.variants import LiteralOptions
from inakit.planner.registry import METHODS
from inakit.topo.errors import SolverError

LEVELS = 100
ALPHA = 0.6
TIME_LIMIT_S = 30.0
GAP = 1e-3
"""The relative gap to which rates of several tasks are to be proven optimal: a tenth of QSR's step."""
ROUNDING = 1e-9

RatesBps = Mapping[int, list[float]]
"""By job number, the rates of its tasks; a task without a rate is left out."""


@dataclass(frozen=True)
class Ask:
    """The parameters of a scheme: a seed, APP's alpha, QSR's N (`levels`) and a time limit."""

    seed: int = 0
    alpha: float = ALPHA
    levels: int = LEVELS
    time_limit_s: float = TIME_LIMIT_S


@dataclass(frozen=True)
class Found:
    """Rates, the seconds that finding them took, and the proven relative gap to the best; 1 where nothing is proven."""

    rates_bps: RatesBps
    seconds: float
    gap: float = 1.0


Scheme = Callable[[Problem, Ask], Found]


def planned(name: str, problem: Problem, ask: Ask) -> Found:
    """The rates of a planner's plan, which is checked."""
    options = Options(seed=ask.seed, time_limit_s=ask.time_limit_s, gap=GAP)
    return timed(lambda: METHODS[name].plan(problem, options))


def literal(name: str, problem: Problem, ask: Ask) -> Found:
    """The rates of the published model's plan, or rates of 0 where the time was too short for any plan."""
    options = LiteralOptions(seed=ask.seed, levels=ask.levels, alpha=ask.alpha, time_limit_s=ask.time_limit_s)
    started = time.monotonic()
    try:
        return timed(lambda: METHODS[name].plan(problem, options))
    except SolverError:
        none = {job.number: [0.0] * len(job.servers) for job in problem.jobs}
        return Found(none, time.monotonic() - started)


def aro(problem: Problem, ask: Ask) -> Found:
    """The optimum: of one task in closed form, without a limit of flows at a switch; of several by planner `aro`."""
    if sum(len(job.servers) for job in problem.jobs) == 1:
        return pruned(problem, ask, sro=False, app=False)
    return planned("aro", problem, ask)


def pruned(problem: Problem, ask: Ask, *, sro: bool, app: bool) -> Found:
    """The best rates after SRO, APP or both have pruned the choices, or without them."""
    started = time.monotonic()
    options = SolverOptions(time_limit_s=ask.time_limit_s, gap=GAP, seed=ask.seed)
    found = accelerated(problem, options, sro=sro, alpha=ask.alpha if app else 1.0)
    rates: dict[int, list[float]] = defaultdict(list)
    owners = (job.number for job in problem.jobs for _ in job.servers)
    for number, rate in zip(owners, found.rates, strict=True):
        rates[number].append(rate)
    gap = max(0.0, found.bound / found.value - 1)
    return quantised(Found(rates, time.monotonic() - started, gap), ask.levels)


def timed(plan: Callable[[], Plan]) -> Found:
    """The rates of a plan, and the seconds that making it took."""
    started = time.monotonic()
    made = plan()
    rates: dict[int, list[float]] = defaultdict(list)
    for shard in made.shards:
        rates[shard.job].append(shard.rate_bps)
    gap = 1.0 if made.outcome.gap is None else made.outcome.gap
    return Found(rates, time.monotonic() - started, gap)


def quantised(found: Found, levels: int) -> Found:
    """The rate of a single task in steps of a `levels`-th of a link; several tasks are left as they are."""
    if [len(rates) for rates in found.rates_bps.values()] != [1]:
        return found
    step = CAPACITY_BPS / levels
    rates = {job: [floor(rate / step * (1 + ROUNDING)) * step for rate in own] for job, own in found.rates_bps.items()}
    return replace(found, rates_bps=rates)


EXACT = "ARO"
SCHEMES: dict[str, Scheme] = {
    EXACT: aro,
    "ARO-ACC": partial(pruned, sro=True, app=True),
    "ARO-SRO": partial(pruned, sro=True, app=False),
    "ARO-APP": partial(pruned, sro=False, app=True),
    "RANDOM": partial(planned, "random"),
    "GRID": partial(planned, "grid"),
    "GRID, capped": partial(planned, "grid-capped"),
    "AggTree": partial(planned, "aggtree"),
    "AggTree, balanced": partial(planned, "aggtree-balanced"),
    **{f"literal {name}": partial(literal, name) for name in ("aro-qsr", "aro-sro", "aro-app", "aro-acc", "aro-raw")},
}


def compared() -> tuple[str, ...]:
    """The schemes of Figures 7 to 10, and your own planners."""
    return (EXACT, "ARO-ACC", "RANDOM", "GRID", "AggTree", *own_planners())


def scheme_of(name: str) -> Scheme:
    """A scheme of the paper, or any planner by its name."""
    return SCHEMES.get(name) or partial(planned, name)


def measure(trial: Trial) -> Result:
    """Measure a trial: a scheme's rates in bit/s, seconds and gap in a setting, which `seed` draws.

    The least rate is 0 where a task has none.
    """
    setting = AroSetting(**{key: trial[key] for key in AroSetting.__dataclass_fields__})  # type: ignore[arg-type]
    ask = Ask(**{key: trial[key] for key in Ask.__dataclass_fields__ if key in trial})  # type: ignore[arg-type]
    found = scheme_of(str(trial["scheme"]))(setting.problem(ask.seed), ask)
    jobs = [sum(rates) for rates in found.rates_bps.values()]
    missing = setting.tasks * setting.jobs - sum(map(len, found.rates_bps.values()))
    return {
        "least_bps": 0.0 if missing else min(map(min, found.rates_bps.values())),
        "least_job_bps": min(jobs),
        "total_bps": sum(jobs),
        "seconds": found.seconds,
        "gap": found.gap,
    }
