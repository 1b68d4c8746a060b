"""ARO and the baselines by real packets: planned and measured rates, on small networks and in Figures 7 to 10.

The seeds of the small networks are chosen so that the planners differ. The fabric `pipelines` shows ARO's Figure 5: a
switch receives flows in several pipelines and cannot sum them, although `aro-unaware`, which ignores pipelines, plans
this sum.

Figures 7 to 10 have the networks, schemes and first draws of the simulated figures, at the paper's size. In virtual
time links have its 100 Gbit/s; an emulation is slowed down to the rates that this machine carries. The paper's
throughput is that of gradients alone. Where results of one task share links with gradients of another, the rates of a
closed loop are lower, and are shown too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from inakit.experiments.papers.aro.effectiveness import fig7, fig7_charts, fig8, fig8_charts, several, several_charts
from inakit.experiments.papers.aro.setting import RatesBps, asked, scheme_of, throughputs
from inakit.experiments.papers.aro.setting import verdict as proven
from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, LINES
from inakit.experiments.papers.common.emulated_figure import (
    GRADIENT_BYTES,
    EmulatedRun,
    Planned,
    RateRow,
    bytes_of,
    is_near,
    name_in_world,
    run_alone,
    run_plans,
)
from inakit.experiments.papers.common.estimates import means
from inakit.experiments.papers.common.figure_engine import (
    Chart,
    Findings,
    Part,
    Picture,
    SweptFigure,
    charted,
    worst_run,
)
from inakit.experiments.papers.common.figure_registry import Request, Run, own_planners
from inakit.experiments.papers.common.statements import Statement, value_table
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.registry import AUTO
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Options
from inakit.planner.core.plan import fragment_ranges
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.aro import without_pipelines
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import METHODS
from inakit.topo.errors import RunError
from inakit.traffic.measure.verdict import VALID, Verdict, worst_of

CAPACITY = "2M"

TRAP = "pipelines"
COMPARED = ("aro", "random", "grid", "aggtree", "forest")


@dataclass(frozen=True)
class ComparedNetwork:
    """A network, and the planners whose plans run on it; with `workers` None the job is the fabric's own."""

    fabric: FabricChoice
    workers: int | None
    planners: tuple[str, ...]

    def plans(self, gradient_bytes: int) -> Planned:
        """The problem with one job of this size, and the plans of all planners for it, user-defined ones included."""
        seed = self.fabric.seed
        problem = build_problem(self.fabric, JobChoice(None, self.workers, 1, gradient_bytes, 1, seed))
        planners = (*self.planners, *own_planners())
        return problem, {name: METHODS[name].plan(problem, Options(seed=seed)) for name in planners}


NETWORKS = {
    "leaf-spine": ComparedNetwork(
        FabricChoice("leafspine", None, 6, 4, 4, CAPACITY, ina="0.6", pipelines=2, seed=9), 20, COMPARED
    ),
    "fat-tree": ComparedNetwork(
        FabricChoice("fattree", 4, capacity=CAPACITY, ina="0.6", pipelines=4, seed=1), 14, COMPARED
    ),
    TRAP: ComparedNetwork(FabricChoice("pipelines", scale="1/10"), None, ("aro", "aro-unaware")),
}


def run(console: Console, request: Request) -> str:
    """Run ARO, the baselines and a forest of two trees on a leaf-spine and a fat-tree; print the cost of pipelines."""
    planned = {name: scene.plans(bytes_of(request)) for name, scene in NETWORKS.items()}
    rows, verdict = run_plans("aro-emulated", planned, console, request)
    said = about_pipelines(planned[TRAP][0], [row for row in rows if row.network == TRAP])
    console.print(said, highlight=False, soft_wrap=True)
    return verdict


def about_pipelines(problem: Problem, rows: Sequence[RateRow]) -> str:
    """Figure 5's point as a sentence: the rate that `aro-unaware` expects, and its modelled and measured rates."""
    flat = replace(problem, fabric=without_pipelines(problem.fabric))
    hoped_bps = evaluate(flat, METHODS["aro"].plan(flat)).sending_rate_bps
    aware, unaware, *_ = rows
    kept, measured = unaware.planned_bps / aware.planned_bps, unaware.measured_bps / aware.measured_bps
    return (
        f"Figure 5: a planner that ignores pipelines expects {hoped_bps / 1e3:.0f} kbit/s; it has {kept:.2f} of the "
        f"best rate by the model, {measured:.2f} as measured"
    )


# -- Figures 7 to 10.

SEEDS = (5, 1)
PLANNED, MEASURED, CLOSED_PLANNED, CLOSED = "planned_", "", "closed_planned_", "closed_"
"""The prefixes of rates: planned and measured without results, and with results on their way back."""


@dataclass(frozen=True)
class Ran:
    """A plan that ran, its outcome, and the name of its run folder."""

    prepared: Prepared
    outcome: Outcome
    folder: str

    @property
    def planned_bps(self) -> RatesBps:
        """The planned rate of each tree, by job."""
        rates: dict[int, list[float]] = {}
        for planned in self.prepared.plan.trees:
            rates.setdefault(planned.job, []).append(planned.rate_bps)
        return rates

    @property
    def measured_bps(self) -> RatesBps:
        """The measured rate of each tree, by job: a worker's rate times the tree's part of the gradient."""
        problem, rates = self.prepared.problem, dict[int, list[float]]()
        for (number, _), own in fragment_ranges(problem, self.prepared.plan).items():
            (job,) = (job for job in problem.jobs if job.number == number)
            part = len(own) / problem.fragment.count(job.gradient_bytes)
            rates.setdefault(number, []).append(part * self.outcome.measured.of_job(number).sending_rate_bps)
        return rates


def run_trial(trial: Trial, switch: str, results: Path) -> Result:
    """Run a scheme's plan in a setting, in a closed loop: planned and measured rates in bit/s.

    Where results of a task share links with gradients of another, a second run replays the gradients alone, at the
    rates of the figure.
    """
    setting, ask = asked(trial)
    problem = setting.problem(ask.seed, GRADIENT_BYTES)
    found = scheme_of(str(trial["scheme"]))(problem, ask)
    if found.plan is None:
        raise RunError(f"{trial['scheme']} has no plan after its {ask.time_limit_s:g} s")

    def ran(prepared: Prepared) -> Ran:
        run = EmulatedRun("run", problem, prepared.plan, trial, mode=prepared.mode)
        return Ran(prepared, *run_alone("aro-by-packets", run, switch, results))

    closed = ran(with_headroom(problem, found.plan))
    alone = closed if closed.prepared.factor == 1 else ran(with_headroom(problem, found.plan, "replay"))
    rates = {
        PLANNED: alone.planned_bps, MEASURED: alone.measured_bps,
        CLOSED_PLANNED: closed.planned_bps, CLOSED: closed.measured_bps,
    }  # fmt: skip
    return {
        **{prefix + key: rate for prefix, own in rates.items() for key, rate in throughputs(setting, own).items()},
        "gap": found.gap,
        "runs": 1 if alone is closed else 2,
        "folder": alone.folder,
        "closed_folder": closed.folder,
        "verdict": worst_of((alone.outcome.verdict, closed.outcome.verdict)),
    }


@dataclass(frozen=True)
class ByPackets:
    """A simulated figure by packets: the same charts and claims, of rates that are measured in a world."""

    name: str
    charts: Callable[[Request], Sequence[Chart]]
    simulated: Callable[[Findings], Iterator[Part]]

    def __call__(self, console: Console, request: Request) -> str:
        """Run the missing trials; in virtual time unless the request names a world."""
        request = replace(request, switch="virtual" if request.switch == AUTO else request.switch)
        figure = SweptFigure(
            name_in_world(f"aro-{self.name}-emulated", request.switch),
            name_in_world("aro-emulated", request.switch) + "-trials",
            partial(run_trial, switch=request.switch, results=request.results),
            charted(self.charts), self.show, SEEDS, verdict=rates_as_planned,
        )  # fmt: skip
        return figure(console, request)

    def show(self, found: Findings) -> Iterator[Part]:
        """The charts with planned rates beside the measured ones, and what the simulated figure says of its rates."""
        charts = self.charts(found.request)
        kinds = {
            PLANNED: "planned", MEASURED: "measured",
            CLOSED_PLANNED: "results return, planned", CLOSED: "results return, measured",
        }  # fmt: skip
        for chart in charts:
            curves = {kind: found.curves(with_prefix(chart, kind)) for kind in kinds}
            rows = {
                f"{line}, {text}": curves[kind][line]
                for line in chart.lines
                for kind, text in kinds.items()
                if kind in (PLANNED, MEASURED) or curves[CLOSED_PLANNED][line] != curves[PLANNED][line]
            }
            heading = (chart.heading or "ARO, default setting (Gbit/s)").replace(" (", ", by packets (")
            yield value_table(heading, chart.column or chart.axis, chart.places, rows)
        yield conclusion(found)
        yield Picture(
            replace(
                found.panel(chart),
                kind=LINES if chart.kind == LINES else BARS,
                planned=means(found.series(with_prefix(chart, PLANNED))),
            )
            for chart in charts
            if chart.title
        )
        claims = read_ledger("aro").of_figure(f"{self.name}-emulated")
        for part in self.simulated(found):
            if isinstance(part, list):
                named = [replace(one, claim=one.claim and f"{one.claim}-by-packets") for one in part]
                yield [one for one in named if not one.claim or one.claim in claims]


def with_prefix(chart: Chart, prefix: str) -> Chart:
    """The chart of other rates."""
    return replace(chart, quantity=replace(chart.quantity, key=prefix + chart.quantity.key))


def pairs(found: Findings) -> Iterator[tuple[float, float]]:
    """Every measured rate with its planned rate: totals and least rates, without and with results."""
    for result in found.results.values():
        for planned, measured in ((PLANNED, MEASURED), (CLOSED_PLANNED, CLOSED)):
            for key in ("least_bps", "total_bps"):
                yield float(result[measured + key]), float(result[planned + key])


def conclusion(found: Findings) -> str:
    """The number of runs, and the largest deviation of a measured rate from the planned one."""
    runs = sum(int(result["runs"]) for result in found.results.values())
    farthest = max((measured / planned - 1 for measured, planned in pairs(found) if planned), key=abs)
    return f"{runs} runs; the measured rate farthest from the planned one is off by {farthest:+.2%}"


def rates_as_planned(found: Findings, judged: list[Statement]) -> str:
    """The worst verdict of the runs; DIFFERS if some rate is not the planned one, UNPROVEN if ARO's is no optimum."""
    near = all(is_near(*pair) for pair in pairs(found) if pair[1])
    return worst_of((worst_run(found, judged), VALID if near else Verdict.DIFFERS, proven(found, judged)))


FIGURES: dict[str, Run] = {
    "emulated": run,
    "fig7-emulated": ByPackets("fig7", fig7_charts, fig7),
    "fig8-emulated": ByPackets("fig8", fig8_charts, fig8),
    "fig9-emulated": ByPackets("fig9", partial(several_charts, 9), partial(several, 9)),
    "fig10-emulated": ByPackets("fig10", partial(several_charts, 10), partial(several, 10)),
}
