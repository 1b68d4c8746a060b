"""InArt's Figures 8 to 13 by real packets, planned and measured beside the paper's; and new routes (section 4.1).

All figures are views of the same runs, one for each scheme at each place, which are kept in the folder
`inart-emulated-trials`: a figure runs only the missing ones. The paper emulates a thousandth of its rates and sizes,
and so does the kit unless the request says `--scale 1`; tables and pictures have the values at a thousandth. Where this
machine does not carry the rates, the network is slowed down; in virtual time it never is, and the runs are kept in
`inart-virtual-trials`. Sizes and rates count whole frames, as tcpreplay does in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, permutations, product
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import LINES, Panel
from inakit.experiments.papers.common.emulated_figure import (
    PLANNED,
    EmulatedFigure,
    EmulatedRun,
    EmulatedRuns,
    conclusion,
    is_near,
    kind_of,
    rates_as_planned,
    run_alone,
)
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, SweptFigure, once
from inakit.experiments.papers.common.figure_registry import Request, Run, own_planners
from inakit.experiments.papers.common.statements import Statement, number
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.inart.setting import (
    ATP,
    FOREST,
    HIGH_BPS,
    INART,
    LBMM,
    LINK_BPS,
    LOW_BPS,
    MODELS,
    ONE,
    SETTINGS,
    drawn_problem,
    planned_by,
)
from inakit.experiments.papers.inart.simulated import (
    CHARTS,
    HETEROGENEOUS,
    HOMOGENEOUS,
    WORKERS,
    FigurePoint,
    InartFigure,
    Seen,
    labels,
    panel,
)
from inakit.experiments.report.method_styles import categories
from inakit.experiments.run.console import figures
from inakit.experiments.run.dilation import slowed_problem
from inakit.experiments.run.faults import OtherTraffic, Span, When
from inakit.experiments.run.outcome import measured_figures, planned_figures
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import Flow
from inakit.planner.methods.inart.inart import background_of_flows, residual
from inakit.planner.methods.inart.inart_forest import rate_bps
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import find_method
from inakit.planner.replan import FILLED, SLOW, fitted, rate_left_bps, replan, with_rate
from inakit.topo.files.quantities import in_words
from inakit.traffic.measure.measured import Iteration
from inakit.traffic.measure.verdict import VALID, Verdict, worst_of
from inakit.traffic.wire.packet_format import FRAGMENT

LEDGER = read_ledger("inart")
QUANTITIES = ("sending_rate_bps", "communication_time_s", "ps_ingress_bytes")


def gradient_bytes(frame_bytes: float) -> int:
    """The size of a gradient whose frames have `frame_bytes` bytes in total."""
    return round(frame_bytes / FRAGMENT.wire_bytes) * 4 * FRAGMENT.values


def filled_run(problem: Problem, plan: Plan, trial: Trial) -> EmulatedRun:
    """The run of a plan, with headroom for results and rates that fill no link wholly."""
    plan = with_headroom(problem, plan).plan
    return EmulatedRun("run", problem, with_rate(plan, FILLED * rate_bps(plan)), trial)


def emulate_plan(name: str, problem: Problem, plan: Plan, trial: Trial, switch: str, results: Path) -> Result:
    """Run a plan, with headroom for results, in a separate run folder; return planned and measured quantities."""
    run = filled_run(problem, plan, trial)
    outcome, folder = run_alone(name, run, switch, results)
    planned = planned_figures(run.prepared.prediction)
    measured = measured_figures(outcome.measured, outcome.monitor)
    return {
        **{PLANNED + quantity: getattr(planned, quantity) for quantity in QUANTITIES},
        **{quantity: getattr(measured, quantity) for quantity in QUANTITIES},
        "iteration_s": iteration_s(outcome.measured.iterations),
        "exact": int(bool(measured.exact)),
        "verdict": outcome.verdict,
        "folder": folder,
    }


def iteration_s(iterations: Sequence[Iteration]) -> float:
    """The mean time between the starts of successive iterations; 0 if there is only one."""
    starts = [iteration.started_s for iteration in iterations]
    return fmean(later - earlier for earlier, later in pairwise(starts)) if len(starts) > 1 else 0.0


def in_iterations(problem: Problem, number: int, compute_s: float = 0.0) -> Problem:
    """The problem with `number` iterations of its jobs; each iteration begins with `compute_s` of computing."""
    jobs = (replace(job, iterations=number, compute_s=compute_s) for job in problem.jobs)
    return replace(problem, jobs=tuple(jobs))


EMULATED = (INART, FOREST, ONE, ATP, LBMM)
EMULATED_SCALE = 1 / 1000
"""The scale of the paper's emulation and of the values in its figures."""
LEAST_BYTES = 1e6
"""A run has enough iterations that each worker sends at least this many bytes of gradients."""


def run(figure: InartFigure, console: Console, request: Request) -> str:
    """Execute the missing runs, print and draw the figure; VALID if all runs are valid and have their planned rates."""
    kind = kind_of(request.switch)
    swept = SweptFigure(
        f"inart-{figure.name}-{kind}", f"inart-{kind}-trials",
        partial(emulate, switch=request.switch, results=request.results),
        partial(cells, figure), partial(show, figure), draws=once, verdict=rates_as_planned,
    )  # fmt: skip
    return swept(console, request)


def cells(figure: InartFigure, request: Request) -> list[Trial]:
    scale = asked_scale(request)
    return [
        trial(scheme, point, scale) for own in places(figure, request) for point, scheme in product(own, emulated())
    ]


def show(figure: InartFigure, found: Findings) -> Iterator[Part]:
    every, planned = places(figure, found.request), partial(value_of, figure, found, PLANNED)
    measured = partial(value_of, figure, found, "")
    for own in every:
        yield runs_table(figure, found, own)
    yield conclusion(list(found.results.values()))
    yield packets_in_words(asked_scale(found.request))
    yield Picture(
        replace(
            panel(figure, lambda scheme, point: exact(measured(scheme, point)), emulated(), own),
            planned={scheme: [planned(scheme, point) for point in own] for scheme in emulated()},
        )
        for own in every
    )


def emulated() -> tuple[str, ...]:
    """The schemes that are run, and user-defined planners."""
    return (*EMULATED, *own_planners())


def places(figure: InartFigure, request: Request) -> list[list[FigurePoint]]:
    """The figure's places in each setting; a quick request has only the place for which the text gives values."""
    every = (figure.points(setting, WORKERS) for setting in (HOMOGENEOUS, HETEROGENEOUS))
    found = ([point for point in own if point == figure.at or not request.quick] for own in every)
    return [own for own in found if own]


def asked_scale(request: Request) -> float:
    """The scale of rates and sizes; by default that of the paper's emulation."""
    return EMULATED_SCALE if request.scale is None else request.scale


def packets_in_words(scale: float) -> str:
    times = scale / EMULATED_SCALE
    links, low, high = (in_words(rate * times, "bit/s") for rate in (LINK_BPS, LOW_BPS, HIGH_BPS))
    sizes = ", ".join(f"{name} {size * times / 1e6:g}" for name, size in MODELS.items())
    shown = "" if times == 1 else f"; rates and sizes above are divided by {times:g}"
    return f"links of {links} (heterogeneous: {low} to {high}), gradients in MB: {sizes}{shown}"


def trial(scheme: str, point: FigurePoint, scale: float) -> Trial:
    """The sweep's key of a run."""
    place: Trial = {"scheme": scheme, "setting": point.setting, "workers": point.workers, "model": point.model}
    return place if scale == EMULATED_SCALE else {**place, "scale": scale}


def emulate(trial: Trial, switch: str, results: Path) -> Result:
    """Run a scheme at a place on the network that seed 0 draws."""
    times = float(trial.get("scale", EMULATED_SCALE)) / EMULATED_SCALE
    setting, size = SETTINGS[str(trial["setting"])], times * MODELS[str(trial["model"])]
    scheme = planned_by(str(trial["scheme"]))
    problem, plan = scheme.plan(setting, int(trial["workers"]), 0, gradient_bytes(size))
    problem = in_iterations(slowed_problem(problem, times), ceil(LEAST_BYTES / size))
    plan = plan.with_rates_times(times)
    return emulate_plan(f"inart-{kind_of(switch)}", problem, plan, trial, switch, results)


def value_of(figure: InartFigure, found: Findings, prefix: str, scheme: str, point: FigurePoint) -> float:
    """The figure's quantity as measured, or, with the prefix `PLANNED`, as planned."""
    scale = asked_scale(found.request)
    result = found.result(trial(scheme, point, scale))
    seen = Seen(*(float(result[prefix + quantity]) for quantity in QUANTITIES))
    return figure.quantity(seen.times(EMULATED_SCALE / scale), point)


def runs_table(figure: InartFigure, found: Findings, points: Sequence[FigurePoint]) -> Table:
    """A row for each run of a setting."""
    kind = kind_of(found.request.switch)
    title = f"InArt, Figure {figure.name[3:]}, {kind}, {points[0].setting} ({figure.unit})"
    columns = ("model" if figure.by_model else "workers", "scheme", *figures("paper", "planned", "measured", "of plan"))
    table = Table(*columns, "verdict", title=title)
    for (point, label), scheme in product(zip(points, labels(figure, points), strict=True), emulated()):
        paper = figure.paper.get(scheme) if point == figure.at else None
        planned, measured = (value_of(figure, found, prefix, scheme, point) for prefix in (PLANNED, ""))
        judged = str(found.result(trial(scheme, point, asked_scale(found.request)))["verdict"])
        cells = number(paper), number(planned), number(measured), f"{measured / planned:.1%}", judged
        table.add_row(label, scheme, *cells, end_section=scheme == emulated()[-1])
    return table


PLANNER = "inart-forest"
BACKGROUND_BPS = 15e6
"""The rate of the background traffic, on links of 20 Mbit/s."""
ITERATIONS, BEGINS, ENDS = 14, 2, 9
"""The iterations of a run, and those at whose beginning background traffic begins and ends."""
SETTLES = 3
"""The iterations after a change of traffic that are not judged: traffic can begin or end within the first, and the
controller goes back after two."""
KEPT, LIVE = "routes kept", "planned anew"


def replan_runs(request: Request) -> list[EmulatedRun]:
    """The same plan beside the same traffic, without and with a controller that plans anew."""
    _ = request
    problem = in_iterations(drawn_problem(SETTINGS["homogeneous"], 10, 0), ITERATIONS)
    plan = find_method(PLANNER).plan(problem)
    traffic = OtherTraffic((worst_flow(problem, plan),), spans=(Span(When(None, BEGINS), When(None, ENDS)),))
    kept = EmulatedRun(KEPT, problem, with_headroom(problem, plan).plan, interferences=(traffic,))
    return [kept, replace(kept, name=LIVE, replans=Options())]


def planned_times_s(run: EmulatedRun) -> list[float]:
    """The time of each iteration by a plan that knows the traffic: the first plan, or new routes for the same split."""
    (flow,) = (flow for each in run.interferences if isinstance(each, OtherTraffic) for flow in each.background)
    left = replace(run.problem, fabric=residual(run.problem.fabric, background_of_flows(run.problem, run.plan, [flow])))
    beside_s = fitted(left, replan(left, run.plan, Options())).prediction.communication_time_s
    alone_s = run.prepared.prediction.communication_time_s
    return [beside_s if BEGINS <= number < ENDS else alone_s for number in range(ITERATIONS)]


def times_s(done: EmulatedRuns, name: str) -> list[float]:
    """The measured time of each iteration of a run."""
    outcome = done.outcomes[[run.name for run in done.runs].index(name)]
    return [iteration.communication_time_s for iteration in outcome.measured.iterations]


def changes_of(done: EmulatedRuns) -> list[dict[str, Any]]:
    """The changes of plan of the run with a controller."""
    return [change for done in done.outcomes[-1].interferences for change in done.details.get("changes", ())]


def show_replanned(request: Request, done: EmulatedRuns) -> Iterator[Part]:
    """The times of iterations of both runs, beside those of a plan that knows the traffic."""
    _ = request
    (flow,) = (
        flow for each in done.runs[0].interferences if isinstance(each, OtherTraffic) for flow in each.background
    )
    yield (
        f"background traffic: {flow.rate_bps / 1e6:g} Mbit/s from {flow.source} to {flow.destination}, "
        f"iterations {BEGINS} to {ENDS - 1}"
    )
    planned = planned_times_s(done.runs[0])
    table = Table(*figures("iteration", KEPT, LIVE, "by a plan that knows the traffic"), title="s per iteration")
    for at, cells in enumerate(zip(times_s(done, KEPT), times_s(done, LIVE), planned, strict=True)):
        table.add_row(str(at), *(f"{cell:.3f}" for cell in cells))
    yield table
    changed = [int(change["iteration"]) for change in changes_of(done)]
    yield f"the controller changes the plan before iterations {', '.join(map(str, changed)) or 'none'}"
    yield [
        LEDGER.judge("second-phase-trigger", changed[:1] == [congested(times_s(done, LIVE), planned[0]) + 1]),
        LEDGER.judge("second-phase-split", not any(change["split"] for change in changes_of(done))),
    ]
    yield Picture([times_panel({name: times_s(done, name) for name in (KEPT, LIVE)}, planned)])


def times_panel(times: Mapping[str, Sequence[float]], planned: Sequence[float]) -> Panel:
    """The time of each iteration of both runs, in seconds, and of the plan that knows the traffic."""
    lines = {name: [exact(time_s) for time_s in found] for name, found in times.items()}
    labels = "iteration", "communication time (s)"
    places = list(range(len(planned)))
    return Panel(LINES, places, lines, *labels, planned={LIVE: list(planned)}, styles=categories(lines))


def congested(times_s: Sequence[float], alone_s: float) -> int:
    """The first iteration that takes clearly longer than without other traffic; the last one if there is none."""
    return next((at for at, time_s in enumerate(times_s) if time_s > SLOW * alone_s), ITERATIONS - 1)


def replan_verdict(done: EmulatedRuns, judged: list[Statement]) -> str:
    """DIFFERS unless the controller's iterations take as long as planned, and less than with the first routes."""
    _ = judged
    live, kept, planned = times_s(done, LIVE), times_s(done, KEPT), planned_times_s(done.runs[0])
    beside = range(congested(live, planned[0]) + SETTLES, ENDS)
    near = all(is_near(live[at], planned[at]) for at in (*range(BEGINS), *beside, *range(ENDS + SETTLES, ITERATIONS)))
    faster = len(beside) > 0 and all(live[at] < kept[at] for at in beside)
    return worst_of((done.verdict, VALID if near and faster else Verdict.DIFFERS))


def worst_flow(problem: Problem, plan: Plan) -> Flow:
    """The background flow that lowers the plan's rate most; its ends are hosts without a job, one in each rack."""
    busy = {host for job in problem.jobs for host in (*job.workers, *job.servers)}
    idle = {problem.fabric.tor_of(host.name): host.name for host in problem.fabric.hosts if host.name not in busy}
    flows = [Flow(source, destination, BACKGROUND_BPS) for source, destination in permutations(idle.values(), 2)]
    left = {flow: residual(problem.fabric, background_of_flows(problem, plan, [flow])) for flow in flows}
    return min(flows, key=lambda flow: rate_left_bps(left[flow], plan))


FIGURES: dict[str, Run] = {
    **{f"{figure.name}-emulated": partial(run, figure) for figure in CHARTS},
    "replan": EmulatedFigure(
        "inart-replan",
        replan_runs,
        show_replanned,
        replan_verdict,
        "they have no second phase, which plans routes anew",
    ),
}
