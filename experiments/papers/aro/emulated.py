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
from inakit.experiments.papers.aro.setting import RatesBps, asked, scheme_of, throughputs, verdict
from inakit.experiments.papers.common.emulated_figure import (
    GRADIENT_BYTES,
    PLANNED,
    ByPackets,
    EmulatedRun,
    Planned,
    RateRow,
    bytes_of,
    run_alone,
    run_plans,
)
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part
from inakit.experiments.papers.common.figure_registry import Request, Run, own_planners
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Options
from inakit.planner.core.plan import fragment_ranges
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.aro import without_pipelines
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import METHODS
from inakit.topo.errors import RunError
from inakit.traffic.measure.verdict import worst_of

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

CLOSED = "closed_"
"""The prefix of rates of a closed loop, beside those of gradients alone."""


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
        return Ran(prepared, *run_alone("aro", run, switch, results))

    closed = ran(with_headroom(problem, found.plan))
    alone = closed if closed.prepared.factor == 1 else ran(with_headroom(problem, found.plan, "replay"))
    rates = {
        PLANNED: alone.planned_bps, "": alone.measured_bps,
        PLANNED + CLOSED: closed.planned_bps, CLOSED: closed.measured_bps,
    }  # fmt: skip
    return {
        **{prefix + key: rate for prefix, own in rates.items() for key, rate in throughputs(setting, own).items()},
        "gap": found.gap,
        "folder": alone.folder,
        "closed_folder": closed.folder,
        "exact": int(bool(alone.outcome.measured.exact and closed.outcome.measured.exact)),
        "verdict": worst_of((alone.outcome.verdict, closed.outcome.verdict)),
    }


def by_packets(
    figure: str, charts: Callable[[Request], Sequence[Chart]], show: Callable[[Findings], Iterator[Part]]
) -> ByPackets:
    kinds = {"": "", CLOSED: "results return, "}
    return ByPackets("aro", f"{figure}-emulated", run_trial, charts, (5, 1), kinds, show, verdict=verdict)


FIGURES: dict[str, Run] = {
    "emulated": run,
    "fig7-emulated": by_packets("fig7", fig7_charts, fig7),
    "fig8-emulated": by_packets("fig8", fig8_charts, fig8),
    "fig9-emulated": by_packets("fig9", partial(several_charts, 9), partial(several, 9)),
    "fig10-emulated": by_packets("fig10", partial(several_charts, 10), partial(several, 10)),
}
