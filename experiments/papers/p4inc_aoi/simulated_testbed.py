"""P4INC-AOI's Figures 2, 6 and 7 simulated on its testbed of four units, and Figure 5 by packets on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from math import inf, log
from pathlib import Path
from tempfile import TemporaryDirectory

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, Panel, Place
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture, Quantity, SweptFigure, once
from inakit.experiments.papers.common.figure_registry import COMPARES_SCHEDULERS, Request
from inakit.experiments.papers.common.statements import Points, Statement, value_table
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
from inakit.experiments.papers.p4inc_aoi.testbed import MODELS, TESTBED, TOGETHER, TRAINED, testbed_jobs
from inakit.experiments.report.method_styles import categories
from inakit.experiments.run.circuit_schedule import Course, run_course
from inakit.experiments.worlds.registry import find_world
from inakit.planner.methods.p4inc_aoi.job_traces import UPDATE_BYTES_PER_S
from inakit.planner.methods.p4inc_aoi.optical_network import scaled
from inakit.planner.methods.p4inc_aoi.optical_system import PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import figures
from inakit.planner.registry import find_scheduler
from inakit.topo.errors import RunError
from inakit.traffic.measure.verdict import VALID

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
              "Figure 2", {kind: {part: float(str(ledger.claims[f"{part}-{kind}"].paper)) for part in PARTS}
                           for kind in kinds}, styles=categories(kinds))
    ])  # fmt: skip
    yield [ledger.judge(f"{part}-{kind}", value) for (part, kind), value in values.items()]


# -- Figure 5, by packets: the throughput of a job that is alone, with INC and without.

ALONE_ITERATIONS, ALONE_SCALE = 5, 1 / 1000
FACTOR = "speed-up"
COMPUTING: Mapping[str, float] = {"1080Ti": 1.0, "none": 0.0}
UPDATE_GB_S = (0.0, 4.0, 2.0, 1.0, UPDATE_BYTES_PER_S / 1e9, 0.5)
"""The rates at which a PS updates, in GB/s; 0 stands for an update that takes no time."""
NETWORK: Trial = {"computing": "1080Ti", "update_gb_s": 0.0}
"""The choice that is judged: nothing but the network makes a job without INC slower."""


def alone(trial: Trial) -> Result:
    """The seconds per iteration of a model's job of two workers, alone on the testbed in virtual time, and as planned.

    Both workers send packets at once, over the one link of the PS's server. Raises `RunError` for a run that is not
    VALID.
    """
    model, update_gb_s = MODELS[str(trial["model"])], float(trial["update_gb_s"])
    job = PlacedJob(
        1, {"gpu1": 2}, "cpu1", model.gradient_bytes, model.gradient_bytes / (1e9 * update_gb_s or inf),
        iterations=ALONE_ITERATIONS, compute_s=model.compute_s * COMPUTING[str(trial["computing"])],
    )  # fmt: skip
    problem = Scheduling(TESTBED, (job,))
    schedule = find_scheduler(str(trial["scheme"])).schedule(problem)
    with TemporaryDirectory() as folder:
        course = Course.of(*scaled(problem, schedule, ALONE_SCALE))
        ran = run_course(course, find_world("virtual"), Path(folder), lambda _: None)
    if ran.outcome.verdict != VALID:
        raise RunError(f"{trial}: {ran.outcome.verdict}: {'; '.join(ran.outcome.reasons)}")
    seconds = {"iteration_s": ran.jct_s[1], "planned_s": figures(problem, schedule).jct_s[1]}
    return {name: each / ALONE_ITERATIONS for name, each in seconds.items()}


def alone_cells() -> Iterator[Trial]:
    """Every model with INC, whose switch has no update to wait for, and without INC at every rate of updates."""
    for model, computing in product(MODELS, COMPUTING):
        own: Trial = {"model": model, "computing": computing}
        yield {**own, "scheme": COMPARED[1], "update_gb_s": 0.0}
        yield from ({**own, "scheme": COMPARED[0], "update_gb_s": rate} for rate in UPDATE_GB_S)


def speed_ups(found: Findings, computing: str, update_gb_s: float) -> dict[str, float]:
    """The speed-up of each model by INC, for a computing time and a rate of updates."""
    schemes = {COMPARED[0]: update_gb_s, COMPARED[1]: 0.0}
    times = {
        (name, scheme): found.mean(
            {"model": name, "scheme": scheme, "computing": computing, "update_gb_s": rate}, "iteration_s"
        )
        for name, (scheme, rate) in product(MODELS, schemes.items())
    }
    return {name: times[name, COMPARED[0]] / times[name, COMPARED[1]] for name in MODELS}


def show_speed_ups(found: Findings) -> Iterator[Part]:
    """The speed-ups beside the paper's: by the network alone, and over what else the text leaves open."""
    ledger = read_ledger(PAPER)
    paper: dict[Place, float] = {name: float(str(ledger.claims[f"fig5-{name.lower()}"].paper)) for name in MODELS}
    swept = {each: speed_ups(found, *each) for each in product(COMPUTING, UPDATE_GB_S)}
    factors = swept[str(NETWORK["computing"]), float(NETWORK["update_gb_s"])]
    rows = {"the paper": [*paper.values()]}
    for (computing, rate), own in swept.items():
        rows[f"{computing}, {f'{rate:g} GB/s' if rate else 'at once'}"] = [own[name] for name in MODELS]
    yield value_table("P4INC-AOI, Figure 5: speed-up by INC, by packets", "computing, update of a PS", [*paper], rows)
    furthest = max(abs(float(each["iteration_s"]) / float(each["planned_s"]) - 1) for each in found.results.values())
    yield f"furthest from the schedule's time of an iteration: {furthest:.2%}"
    yield f"judged: {NETWORK['computing']}, at once. {nearest_update_rate(swept, paper)}"
    yield Picture([
        Panel(BARS, list(factors), {FACTOR: [exact(each) for each in factors.values()]}, "", FACTOR, "Figure 5",
              {FACTOR: paper}, styles=categories([FACTOR]))
    ])  # fmt: skip
    said = [ledger.judge(f"fig5-{name.lower()}", factor) for name, factor in factors.items()]
    families = {family: [factor for name, factor in factors.items() if family in name] for family in ("VGG", "ResNet")}
    yield [*said, ledger.judge("fig5-vgg", {name: sorted(own) for name, own in families.items()})]


def nearest_update_rate(swept: Mapping[tuple[str, float], Mapping[str, float]], paper: Mapping[Place, float]) -> str:
    """Which rate of updates has the least squares of the logarithms, with a 1080Ti's computing."""
    squares = {
        rate: sum(log(own[str(name)] / factor) ** 2 for name, factor in paper.items())
        for (computing, rate), own in swept.items()
        if computing == NETWORK["computing"]
    }
    nearest = min(squares, key=squares.__getitem__)
    return (
        f"A PS that updates {nearest:g} GB/s is nearest to the paper; other figures have {UPDATE_BYTES_PER_S / 1e9:g}"
    )


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
    lambda _: alone_cells(), show_speed_ups,
    draws=once, leaves_out=COMPARES_SCHEDULERS,
)  # fmt: skip
FIGURES["fig2"] = SweptFigure(
    f"{PAPER}-fig2", "aoi-example-trials", example, lambda _: ({"part": part} for part in PARTS), show_example,
    draws=once, leaves_out=COMPARES_SCHEDULERS,
)  # fmt: skip
FIGURES["testbed-readings"] = SweptFigure(
    f"{PAPER}-testbed-readings", KEPT, measure, reading_cells, show_readings, SEEDS, leaves_out=COMPARES_SCHEDULERS
)
