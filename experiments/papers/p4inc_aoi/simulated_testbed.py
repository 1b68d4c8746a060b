"""P4INC-AOI's Figures 2 and 5 to 7, simulated on its testbed of four units: circuits, speed-ups and JCT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from math import log

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, Panel, Place
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture, Quantity, SweptFigure, once
from inakit.experiments.papers.common.figure_registry import COMPARES_SCHEDULERS, Request
from inakit.experiments.papers.common.statements import Points, Statement, beside_paper, value_table
from inakit.experiments.papers.common.sweep import Result, Trial, Value
from inakit.experiments.papers.p4inc_aoi.locality import COMPACT, FRAGMENTED
from inakit.experiments.papers.p4inc_aoi.setting import (
    BY_INC,
    BY_TW,
    CHOICES,
    COMPARED,
    PAPER,
    SETTING,
    Reduction,
    judged,
    reductions,
    reductions_panel,
    scheme_of,
)
from inakit.experiments.papers.p4inc_aoi.testbed import MODELS, TESTBED, TOGETHER, TRAINED, Model, testbed_jobs
from inakit.experiments.report.method_styles import categories
from inakit.planner.methods.p4inc_aoi.job_traces import UPDATE_BYTES_PER_S
from inakit.planner.methods.p4inc_aoi.optical_system import PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import figures
from inakit.planner.registry import find_scheduler

# -- Figure 2: three jobs that come one after another.

UNITS = {"u1": "gpu1", "u2": "gpu2", "u3": "cpu1", "u4": "cpu2"}
PARTS = {
    "fig2a": (FRAGMENTED, "noINC-FCFS"),
    "fig2b": (COMPACT, "noINC-FCFS"),
    "fig2c": (FRAGMENTED, "INC-FCFS"),
    "fig2d": (COMPACT, "INC-FCFS"),
}
"""Placements and schemes of the example. Jobs inside a unit use INC; job 3 of 2c, over two units, has its PS (VI-A)."""


def example(trial: Trial) -> Result:
    """The connections that the jobs of a part need together, and the slots that reconfigure the AOI for them."""
    placement, scheme = PARTS[str(trial["part"])]
    jobs = tuple(
        PlacedJob(
            number, dict(Counter(UNITS[host[:2]] for host in workers)), UNITS[server[:2]], 102_000_000, arrival=number
        )
        for number, (workers, server) in placement.items()
    )  # fmt: skip
    problem = Scheduling(TESTBED, jobs)
    schedule = find_scheduler(scheme).schedule(problem)
    connections = sum(len(list(job.flows(schedule.inc.get(job.number)))) for job in jobs)
    return {"connections": connections, "reconfigurations": figures(problem, schedule).reconfigurations}


def show_example(found: Findings) -> Iterator[Part]:
    """Connections and reconfigurations of the four parts beside the paper's."""
    ledger, kinds = read_ledger(PAPER), ("connections", "reconfigurations")
    values = {(part, kind): found.mean({"part": part}, kind) for part in PARTS for kind in kinds}
    yield value_table("P4INC-AOI, Figure 2", "", list(PARTS), {
        kind: [values[part, kind] for part in PARTS] for kind in kinds
    })  # fmt: skip
    yield Picture([
        Panel(BARS, list(PARTS), {kind: [exact(values[part, kind]) for part in PARTS] for kind in kinds}, "", "number",
              "Figure 2", styles=categories(kinds))
    ])  # fmt: skip
    yield [ledger.judge(f"{part}-{kind}", value) for (part, kind), value in values.items()]


# -- Figure 5: the throughput of a job that is alone, with INC and without.

ALONE_ITERATIONS = 20
FACTOR = "speed-up"


def alone(trial: Trial) -> Result:
    """The seconds per iteration of a model's job of two workers, alone on the testbed, from its schedule.

    Both workers send to the PS over its server's one link; with INC they have the full rate of their own.
    """
    model = MODELS[str(trial["model"])]
    job = PlacedJob(
        1, {"gpu1": 2}, "cpu1", model.gradient_bytes, model.update_s, iterations=ALONE_ITERATIONS,
        compute_s=model.compute_s,
    )  # fmt: skip
    problem = Scheduling(TESTBED, (job,))
    schedule = find_scheduler(str(trial["scheme"])).schedule(problem)
    return {"iteration_s": figures(problem, schedule).jct_s[1] / ALONE_ITERATIONS}


def speed_up(model: Model, update_bytes_per_s: float) -> float:
    """The speed-up by INC of two workers: the PS's link carries both, and its update takes time."""
    sending_s = 8 * model.gradient_bytes / 40e9
    with_inc_s = model.compute_s + sending_s
    return (with_inc_s + sending_s + model.gradient_bytes / update_bytes_per_s) / with_inc_s


def fitted_update_rate(paper: Mapping[Place, float]) -> float:
    """The rate of updates in bytes/s, in steps of 10 MB/s, with the least squares of the logarithms of speed-ups."""

    def squares(rate: float) -> float:
        return sum(log(speed_up(MODELS[str(name)], rate) / factor) ** 2 for name, factor in paper.items())

    return min((10e6 * step for step in range(10, 1000)), key=squares)


def of_paper() -> dict[Place, float]:
    """Figure 5's speed-ups by model, from the ledger."""
    claims = read_ledger(PAPER).claims
    return {name: float(str(claims[f"fig5-{name.lower()}"].paper)) for name in MODELS}


def show_speed_ups(found: Findings) -> Iterator[Part]:
    """The speed-ups beside the paper's, and the update rate that is fitted to them."""
    seconds = {
        name: [found.mean({"model": name, "scheme": scheme}, "iteration_s") for scheme in COMPARED[:2]]
        for name in MODELS
    }
    factors = {name: without / with_inc for name, (without, with_inc) in seconds.items()}
    paper = of_paper()
    rows = [(name, paper[name], factor) for name, factor in factors.items()]
    yield beside_paper("P4INC-AOI, Figure 5: speed-up by INC", rows, (".2f", ".2f", ".2f"), "model")
    yield (
        f"fitted to these six speed-ups: a PS updates {fitted_update_rate(paper) / 1e9:.2f} GB/s; all figures have "
        f"{UPDATE_BYTES_PER_S / 1e9:.2f}"
    )
    yield Picture([
        Panel(BARS, list(factors), {FACTOR: [exact(each) for each in factors.values()]}, "", FACTOR, "Figure 5",
              {FACTOR: paper}, styles=categories([FACTOR]))
    ])  # fmt: skip
    ledger = read_ledger(PAPER)
    said = [ledger.judge(f"fig5-{name.lower()}", factor) for name, factor in factors.items()]
    families = {family: [factor for name, factor in factors.items() if family in name] for family in ("VGG", "ResNet")}
    yield [*said, ledger.judge("fig5-vgg", {name: sorted(own) for name, own in families.items()})]


# -- Figures 6 and 7: concurrent jobs of one model.

TESTBED_JOBS, SEEDS = (10, 20, 40, 60), (3, 1)
QUANTITIES = {
    "fig6": Quantity("connections", "reconfigured connections"),
    "fig7": Quantity("total_jct_s", "total JCT (s)"),
}
KEPT = "aoi-testbed-trials"
CHOSEN: Trial = {"inc": SETTING["inc"], "fcfs": SETTING["fcfs"], "together": TOGETHER, "iterations": 20}
"""The choices that the text on the testbed leaves open; the first two are those of all figures."""
AOI = (Reduction("fig6-inc", "connections", BY_INC), Reduction("fig6-tw", "connections", BY_TW))
JCT = {
    model: tuple(
        Reduction(f"fig7-{model.lower()}-{name}", "total_jct_s", (pair,))
        for name, pair in zip(("inc-fcfs", "inc-tw", "tw-noinc", "tw-inc"), (*BY_INC, *BY_TW), strict=True)
    )
    for model in TRAINED
}


def measure(trial: Trial) -> Result:
    """Measure a trial: reconfigured connections, and the sum of all jobs' JCTs."""
    jobs = testbed_jobs(
        MODELS[str(trial["model"])], int(trial["jobs"]), int(trial["seed"]), float(trial["together"]),
        int(trial["iterations"]),
    )  # fmt: skip
    problem = Scheduling(replace(TESTBED, inc_across=trial["inc"] == "across"), jobs)
    found = figures(problem, scheme_of(trial).schedule(problem))
    return {"connections": found.connections, "total_jct_s": sum(found.jct_s.values())}


def points_of(model: str, chosen: Mapping[str, Value] = CHOSEN) -> dict[Place, Trial]:
    """The trials of one model, by their numbers of jobs."""
    return {jobs: {"model": model, "jobs": jobs, **chosen} for jobs in TESTBED_JOBS}


def chart_of(figure: str, model: str) -> Chart:
    """The schemes over the number of jobs, all of one model."""
    quantity = QUANTITIES[figure]
    return Chart(
        quantity, points_of(model), {scheme: {"scheme": scheme} for scheme in COMPARED}, "jobs",
        f"{figure}, {model}: {quantity.label}", model,
    )  # fmt: skip


def show(figure: str, found: Findings) -> Iterator[Part]:
    panels: list[Panel] = []
    curves: dict[str, Points] = {scheme: [] for scheme in COMPARED}
    places: list[object] = []
    for model in TRAINED:
        chart = chart_of(figure, model)
        yield found.table(chart)
        panels.append(found.panel(chart))
        curves = {scheme: [*curves[scheme], *own] for scheme, own in found.series(chart).items()}
        places += [f"{model}, {place}" for place in chart.places]
    said: list[Statement] = []
    groups = {"": AOI} if figure == "fig6" else JCT
    for model, claims in groups.items():
        points = [point for name in ((model,) if model else TRAINED) for point in points_of(name).values()]
        yield reductions(model or None, claims, found, points)
        panels.append(replace(reductions_panel(claims, found, points), title=f"{model} values in the text".strip()))
        said += judged(claims, found, points)
    ledger = read_ledger(PAPER)
    if figure == "fig6":
        best = {scheme: curves[scheme] for scheme in ("INC-TW", *COMPARED[:3])}
        said.append(ledger.judge("fig6-least", best, places))
        order = {scheme: curves[scheme] for scheme in COMPARED}
        said.append(ledger.judge("fig6-order", order, places))
    else:
        for name, claim in (("ResNet50", "abstract-resnet50"), ("VGG16", "abstract-vgg16")):
            said.append(ledger.judge(claim, JCT[name][1].estimate(found, list(points_of(name).values()))))
    yield Picture(panels)
    yield (
        f"{TOGETHER:.0%} of the jobs are inside one rack, chosen among {', '.join(map(str, SHARES))} for the "
        "abstract's two numbers (testbed-readings)"
    )
    yield said


# -- Readings of the testbed: the share of jobs inside one rack, which jobs use INC, and who passes under FCFS.

SHARES = (0.5, 0.65, 0.8, 1.0)


def testbed_readings(_: Request) -> list[Trial]:
    """All combinations of the choices."""
    return [
        {**CHOSEN, "together": share, "inc": inc, "fcfs": fcfs}
        for inc, fcfs, share in product(CHOICES["inc"], CHOICES["fcfs"], SHARES)
    ]


def reading_cells(request: Request) -> Iterator[Trial]:
    """Both models and all schemes under each reading."""
    for reading, model, scheme in product(testbed_readings(request), TRAINED, COMPARED):
        yield from ({**point, "scheme": scheme} for point in points_of(model, reading).values())


def show_readings(found: Findings) -> Iterator[Part]:
    """Figure 7's reductions under each reading, beside the paper's."""
    claims = [(model, claim) for model in TRAINED for claim in JCT[model]]
    rows: dict[str, list[float]] = {"the paper": [claim.paper for _, claim in claims]}
    for reading in testbed_readings(found.request):
        name = ", ".join(str(reading[key]) for key in ("inc", "fcfs", "together"))
        rows[name] = [
            claim.estimate(found, list(points_of(model, reading).values())).value for model, claim in claims
        ]  # fmt: skip
    columns = [claim.claim.removeprefix("fig7-").replace("-", "\n") for _, claim in claims]
    yield value_table("Figure 7: total JCT saved (%)", "INC, FCFS, share inside a rack", columns, rows)
    places, chosen = [claim.claim.removeprefix("fig7-") for _, claim in claims], list(rows)[1 : 1 + len(SHARES)]
    printed: dict[Place, float] = dict(zip(places, rows["the paper"], strict=True))
    yield Picture([
        Panel(BARS, places, {name: [exact(value) for value in rows[name]] for name in chosen}, "", "JCT saved (%)",
              "readings of the testbed", dict.fromkeys(chosen, printed), styles=categories(chosen))
    ])  # fmt: skip


FIGURES = {
    figure: SweptFigure(
        f"{PAPER}-{figure}", KEPT, measure,
        lambda _: (cell for model in TRAINED for cell in chart_of("fig6", model).cells), partial(show, figure), SEEDS,
        leaves_out=COMPARES_SCHEDULERS,
    )
    for figure in QUANTITIES
}  # fmt: skip
FIGURES["fig5"] = SweptFigure(
    f"{PAPER}-fig5", "aoi-alone-trials", alone,
    lambda _: ({"model": name, "scheme": scheme} for name in MODELS for scheme in COMPARED[:2]), show_speed_ups,
    draws=once, leaves_out=COMPARES_SCHEDULERS,
)  # fmt: skip
FIGURES["fig2"] = SweptFigure(
    f"{PAPER}-fig2", "aoi-example-trials", example, lambda _: ({"part": part} for part in PARTS), show_example,
    draws=once, leaves_out=COMPARES_SCHEDULERS,
)  # fmt: skip
FIGURES["testbed-readings"] = SweptFigure(
    f"{PAPER}-testbed-readings", KEPT, measure, reading_cells, show_readings, SEEDS, leaves_out=COMPARES_SCHEDULERS
)
