"""What plans gain in a closed loop that know of results: planned with each headroom, and measured in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.closed_loop.networks import NETWORKS, OF_ARO, OWN, RANDOM
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.estimates import estimate
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import BARS, VIOLINS, Panel
from inakit.experiments.papers.common.planned_measured import is_near
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import AFTERWARDS, PLANNED, ROUTED, Options
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import as_run
from inakit.traffic.measure.verdict import VALID, Verdict, worst_of

SEEDS, QUICK_SEEDS = 30, 3
LARGE_SEEDS = 3
"""The draws of networks whose runs are long."""
PLANNER = "aro"
TIME_LIMIT_S, GAP = 300.0, 0.001
KNOWING = (PLANNED, ROUTED)
"""The values of `--headroom` that know of results, which are compared with `AFTERWARDS`."""
KINDS = ("planned", "measured")
AXIS = "rate with results planned / without"


def measure(trial: Trial) -> Result:
    """The closed-loop rate of a problem's slowest worker, planned and measured, under one headroom."""
    problem = NETWORKS[str(trial["network"])](int(trial["seed"]))
    options = Options(headroom=str(trial["headroom"]), time_limit_s=TIME_LIMIT_S, gap=GAP)
    plan = as_run(problem, METHODS[PLANNER].plan(problem, options)).plan
    outcome = run_plan(Run(problem, plan), find_world("virtual"))
    return {
        "planned_bps": evaluate(problem, plan).sending_rate_bps,
        "measured_bps": outcome.measured.sending_rate_bps,
        "gap": -1.0 if plan.outcome.gap is None else plan.outcome.gap,
        "exact": int(bool(outcome.measured.exact)),
        "verdict": outcome.verdict,
    }


def trials(network: str, seeds: int, headroom: str) -> list[Trial]:
    """The trials of a network under one headroom."""
    return [{"network": network, "seed": seed, "headroom": headroom} for seed in range(seeds)]


def random_fabrics(console: Console, request: Request) -> str:
    """The gain on 30 random fabrics with 2 to 5 jobs."""
    return compare(console, request, "closed-loop-random", {RANDOM: QUICK_SEEDS if request.quick else SEEDS})


def own_fabrics(console: Console, request: Request) -> str:
    """The gain on the kit's own fabrics."""
    return compare(console, request, "closed-loop-own", dict.fromkeys(OWN, 1 if request.quick else LARGE_SEEDS))


def of_aro(console: Console, request: Request) -> str:
    """The gain in the settings of ARO's Figures 9 and 10."""
    names = list(OF_ARO)[:: 3 if request.quick else 1]
    return compare(console, request, "closed-loop-aro", dict.fromkeys(names, 1))


def compare(console: Console, request: Request, name: str, seeds: dict[str, int]) -> str:
    """Measure all networks under all headrooms; print and draw what is gained, and return the verdict."""
    headrooms = (*KNOWING, AFTERWARDS)
    asked = [trial for network, count in seeds.items() for each in headrooms for trial in trials(network, count, each)]
    found = sweep(asked, measure, request.results / "closed-loop-trials", console)
    rows = {
        (network, headroom): {kind: gains(found, network, count, headroom, kind) for kind in KINDS}
        for network, count in seeds.items()
        for headroom in KNOWING
    }
    console.print(table(rows))
    lines = {kind: [estimate(rows[network, PLANNED][kind]) for network in seeds] for kind in KINDS}
    kind = VIOLINS if len(seeds) == 1 else BARS
    save(request.results / name, *(Panel(kind, list(seeds), {PLANNER: lines[k]}, "", AXIS, k) for k in KINDS))
    return worst_of(judged(found.result(trial)) for trial in asked)


def gains(found: Measured, network: str, seeds: int, headroom: str, kind: str) -> list[float]:
    """By draw, the rate under a headroom over the rate where room is made afterwards."""
    rates, others = (found.of(f"{kind}_bps", trials(network, seeds, each)) for each in (headroom, AFTERWARDS))
    return [one / other for one, other in zip(rates, others, strict=True)]


def judged(result: Result) -> str:
    """VALID where all sums were exact, and the measured rate bears out the planned one."""
    near = is_near(float(result["measured_bps"]), float(result["planned_bps"]))
    return VALID if near and result["exact"] else Verdict.DIFFERS


def table(rows: Mapping[tuple[str, str], Mapping[str, list[float]]]) -> Table:
    """A row for each network and headroom: the gain's mean and range, planned and measured, and how many draws gain."""
    headings = ("gain, planned", "range", "gain, measured", "range", "draws that gain")
    shown = Table("network", "headroom", "draws", *headings)
    for (network, headroom), found in rows.items():
        planned, measured = (found[kind] for kind in KINDS)
        winning = sum(gain > 1.001 for gain in planned)
        shown.add_row(network, headroom, str(len(planned)), *spread(planned), *spread(measured), str(winning))
    return shown


def spread(draws: Iterable[float]) -> tuple[str, str]:
    """The mean of the draws, and their range."""
    found = list(draws)
    return f"{fmean(found):.3f}", f"{min(found):.3f} to {max(found):.3f}"
