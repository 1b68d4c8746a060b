"""ARO's evaluation (section IV-A): leaf-spines of equal links, random jobs, the schemes, and the sweep over them.

ARO is planned by `aro`, ARO-ACC by `aro-acc`. The rate of a single task of ARO is quantised afterwards (QSR), which is
exact: the best multiple of a step is the optimal rate, rounded down. ARO's rates of several tasks are continuous.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from math import floor
from typing import Any

from inakit.experiments.papers.common.drawing import Place
from inakit.experiments.papers.common.estimates import Estimate, Series
from inakit.experiments.papers.common.figure_engine import (
    Chart,
    Draws,
    Findings,
    Part,
    Quantity,
    SweptFigure,
    by_seed,
    charted,
)
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.papers.common.statements import Statement, ratio
from inakit.experiments.papers.common.sweep import Result, Trial, Value
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.aro.accelerations import PRINTED, AcceleratedOptions
from inakit.planner.registry import METHODS
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.fabric.variations import with_ina, with_pipelines
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

CAPACITY_BPS = 100e9
HOSTS_PER_LEAF = 24
ROUNDING = 1e-9


AMONG, BESIDE = "among", "beside"


@dataclass(frozen=True)
class AroSetting:
    """The parameters that the figures vary. `leaves` is also the number of spines, `share` the share of INA switches.

    Every job has `tasks` parameter servers (PSs) and `workers` workers, which no other job uses. The leaves of PSs have
    INA. `ps_leaves` tells whether the share counts them: AMONG the INA switches, or BESIDE as many others.
    """

    jobs: int = 1
    tasks: int = 1
    workers: int = 200
    leaves: int = 24
    share: float = 0.2
    pipelines: int = 4
    ps_leaves: str = AMONG

    @property
    def label(self) -> str:
        """The numbers of jobs and of tasks per job in the notation of the paper's figures, such as 2J4T."""
        return f"{self.jobs}J{self.tasks}T"

    @property
    def aggregators(self) -> int:
        """The number of switches with INA, rounded down: the paper has 9 of 48 at 20 %."""
        return floor(2 * self.leaves * self.share + ROUNDING)

    def problem(self, seed: int, gradient_bytes: int = 4 * FRAGMENT.values) -> Problem:
        """The problem with INA switches and workers drawn by `seed`.

        A gradient has one fragment unless `gradient_bytes` is given.
        """
        draw = random.Random(seed)
        bare = network(self.leaves, self.pipelines)
        servers = [f"h{HOSTS_PER_LEAF * i + 1}" for i in range(self.jobs * self.tasks)]
        homes = [bare.tor_of(server) for server in servers]
        others = [switch.name for switch in bare.switches if switch.name not in homes]
        drawn = self.aggregators - (len(homes) if self.ps_leaves == AMONG else 0)
        fabric = with_ina(bare, [*homes, *draw.sample(others, min(len(others), max(0, drawn)))])
        hosts = [host.name for host in fabric.hosts if host.name not in servers]
        workers = draw.sample(hosts, self.jobs * self.workers)
        jobs = (
            Job(
                number + 1,
                tuple(workers[number * self.workers : (number + 1) * self.workers]),
                tuple(servers[number * self.tasks : (number + 1) * self.tasks]),
                gradient_bytes,
            )
            for number in range(self.jobs)
        )
        return Problem(fabric, tuple(jobs), FRAGMENT)


@cache
def network(leaves: int, pipelines: int) -> Fabric:
    """A leaf-spine with as many spines as leaves, 24 hosts per leaf and links of 100 Gbit/s."""
    return with_pipelines(leaf_spine(leaves, leaves, HOSTS_PER_LEAF, capacity_bps=CAPACITY_BPS), pipelines)


SJST = AroSetting()
SJMT = AroSetting(workers=100)
MJMT = AroSetting(workers=100, tasks=2)


LEVELS = 100
ALPHA = 0.6
TIME_LIMIT_S = 30.0
GAP = 1e-3
"""The relative gap to which rates of several tasks have to be proven optimal: a tenth of QSR's step."""

RatesBps = Mapping[int, list[float]]
"""By job number, the rates of its tasks; a task without a rate is left out."""


@dataclass(frozen=True)
class Ask:
    """A scheme's parameters: a seed, APP's alpha, QSR's N (`levels`) and a time limit."""

    seed: int = 0
    alpha: float = ALPHA
    levels: int = LEVELS
    time_limit_s: float = TIME_LIMIT_S


@dataclass(frozen=True)
class Found:
    """Rates, the seconds of planning, the proven relative gap to the optimum (1 where nothing is proven), and the plan
    with these rates, if there is one.
    """

    rates_bps: RatesBps
    seconds: float
    gap: float = 1.0
    plan: Plan | None = None


Scheme = Callable[[Problem, Ask], Found]


def planned(name: str, problem: Problem, ask: Ask) -> Found:
    """The rates of a planner's plan, which the checker has accepted."""
    options = Options(seed=ask.seed, time_limit_s=ask.time_limit_s, gap=GAP)
    return timed(lambda: METHODS[name].plan(problem, options))


def pruned(name: str, problem: Problem, ask: Ask) -> Found:
    """The rates of the plan of `aro-acc`, `aro-sro` or `aro-app`."""
    options = AcceleratedOptions(ask.seed, time_limit_s=ask.time_limit_s, gap=GAP, levels=ask.levels, alpha=ask.alpha)
    return attempted(name, problem, options)


def literal(name: str, problem: Problem, ask: Ask) -> Found:
    options = AcceleratedOptions(
        ask.seed, time_limit_s=ask.time_limit_s, levels=ask.levels, alpha=ask.alpha, model=PRINTED
    )
    return attempted(name, problem, options)


def attempted(name: str, problem: Problem, options: AcceleratedOptions) -> Found:
    """The rates of a planner's plan, or rates of 0 where the time limit was too short to find one."""
    started = time.monotonic()
    try:
        return timed(lambda: METHODS[name].plan(problem, options))
    except SolverError:
        none = {job.number: [0.0] * len(job.servers) for job in problem.jobs}
        return Found(none, time.monotonic() - started)


def aro(problem: Problem, ask: Ask) -> Found:
    """The optimum by planner `aro`; a single task's rate is quantised."""
    return quantised(planned("aro", problem, ask), ask.levels)


def timed(plan: Callable[[], Plan]) -> Found:
    """The rates of a plan, and the planning time in seconds."""
    started = time.monotonic()
    made = plan()
    rates: dict[int, list[float]] = defaultdict(list)
    for each in made.trees:
        rates[each.job].append(each.rate_bps)
    gap = 1.0 if made.outcome.gap is None else made.outcome.gap
    return Found(rates, time.monotonic() - started, gap, made)


def quantised(found: Found, levels: int) -> Found:
    """A single task's rate, rounded down to multiples of 1 / `levels` of a link; several tasks keep their rates."""
    if [len(rates) for rates in found.rates_bps.values()] != [1]:
        return found
    ((job, (rate,)),) = found.rates_bps.items()
    step = CAPACITY_BPS / levels
    level = floor(rate / step * (1 + ROUNDING)) * step
    plan = found.plan and found.plan.with_rates_times(level / rate)
    return replace(found, rates_bps={job: [level]}, plan=plan)


EXACT = "ARO"
SCHEMES: dict[str, Scheme] = {
    EXACT: aro,
    "ARO-ACC": partial(pruned, "aro-acc"),
    "ARO-SRO": partial(pruned, "aro-sro"),
    "ARO-APP": partial(pruned, "aro-app"),
    "RANDOM": partial(planned, "random"),
    "GRID": partial(planned, "grid-aro"),
    "GRID, one link": partial(planned, "grid"),
    "AggTree": partial(planned, "aggtree"),
    "AggTree, balanced": partial(planned, "aggtree-balanced"),
    **{f"literal {name}": partial(literal, name) for name in ("aro-qsr", "aro-sro", "aro-app", "aro-acc", "aro-raw")},
}


def compared() -> tuple[str, ...]:
    """The schemes of Figures 7 to 10, and user-defined planners."""
    return (EXACT, "ARO-ACC", "RANDOM", "GRID", "AggTree", *own_planners())


def scheme_of(name: str) -> Scheme:
    """A scheme, or any planner by its name."""
    return SCHEMES.get(name) or partial(planned, name)


def measure(trial: Trial) -> Result:
    """Measure a trial: a scheme's rates in bit/s, seconds and gap in a setting, which `seed` draws."""
    setting, ask = asked(trial)
    found = scheme_of(str(trial["scheme"]))(setting.problem(ask.seed), ask)
    return {**throughputs(setting, found.rates_bps), "seconds": found.seconds, "gap": found.gap}


def asked(trial: Trial) -> tuple[AroSetting, Ask]:
    setting = AroSetting(**{key: trial[key] for key in AroSetting.__dataclass_fields__})  # type: ignore[arg-type]
    return setting, Ask(**{key: trial[key] for key in Ask.__dataclass_fields__ if key in trial})  # type: ignore[arg-type]


def throughputs(setting: AroSetting, rates_bps: RatesBps) -> dict[str, float]:
    """The least rate of a task, which is 0 where a task has none, the least of a job, and the total, in bit/s."""
    jobs = [sum(rates) for rates in rates_bps.values()]
    missing = setting.tasks * setting.jobs - sum(map(len, rates_bps.values()))
    least = 0.0 if missing else min(map(min, rates_bps.values()))
    return {"least_bps": least, "least_job_bps": min(jobs), "total_bps": sum(jobs)}


SEEDS = (30, 2)
QUICK_LIMIT_S = 10.0


def points(settings: Mapping[Any, AroSetting]) -> dict[Place, Trial]:
    return {place: asdict(setting) for place, setting in settings.items()}


def lines(request: Request, schemes: Iterable[str], **more: Value) -> dict[str, Trial]:
    """Schemes with the keys of their trials; a quick request has a different time limit."""
    limit: Trial = {"time_limit_s": QUICK_LIMIT_S} if request.quick else {}
    return {scheme: {"scheme": scheme, **more, **limit} for scheme in schemes}


def gbps(key: str, label: str) -> Quantity:
    return Quantity(key, label, 1e9)


def lost_by_acc(rates: Series) -> list[Estimate]:
    """At every place, the fraction of ARO's rate that ARO-ACC loses."""
    pairs = zip(rates["ARO-ACC"], rates[EXACT], strict=True)
    return [ratio(own, best).map(lambda kept: 1 - kept) for own, best in pairs]


def verdict(found: Findings, _: list[Statement]) -> str:
    """VALID if every result of ARO is proven optimal to within `GAP`."""
    gaps = (float(result["gap"]) for name, result in found.results.items() if f'"{EXACT}"' in name)
    return Verdict.UNPROVEN if any(gap > GAP * (1 + ROUNDING) for gap in gaps) else VALID


def aro_figure(
    name: str,
    charts: Callable[[Request], Sequence[Chart]],
    show: Callable[[Findings], Iterator[Part]],
    seeds: tuple[int, int] = SEEDS,
    draws: Draws = by_seed,
    leaves_out: str = "",
) -> SweptFigure:
    """A figure of ARO's evaluation, made from the trials of these charts."""
    kept = "aro-trials"
    return SweptFigure(
        f"aro-{name}", kept, measure, charted(charts), show, seeds, draws, verdict, leaves_out=leaves_out
    )
