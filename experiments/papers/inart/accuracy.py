"""InArt's Figures 6 and 7 by real packets: time over iterations, and accuracy over time, on its testbed.

The paper trains VGG19 on Cifar-100. Here a convolutional net learns the digits that the kit draws, in batches of 32 by
six workers. Rates are lowered until the net's gradient takes as long as VGG19's, and computing takes VGG19's time, so
that an iteration is as long as in Figure 4. Under every plan the accuracy after an iteration is the same, bit for bit:
plans differ in time alone. Runs are kept in `inart-training-trials`, or in `inart-training-virtual-trials`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from inakit.experiments.emulate.training_run import training_problem
from inakit.experiments.papers.common.accuracy_over_time import AccuracyCurve, over_time, trained
from inakit.experiments.papers.common.claims import Evidence, read_ledger
from inakit.experiments.papers.common.drawing import LINES, Panel
from inakit.experiments.papers.common.emulated_figure import kind_of, name_in_world
from inakit.experiments.papers.common.estimates import Estimate, estimate
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, SweptFigure, worst_run
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement, beside_paper, ratio
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.inart.emulated import filled_run
from inakit.experiments.papers.inart.setting import LBMM, planned_by
from inakit.experiments.papers.inart.testbed import (
    BATCH,
    COMPUTE_S,
    READ_AS,
    SCHEMES,
    VGG19,
    WORKERS,
    cell_of,
    compared,
    draws,
    testbed,
)
from inakit.experiments.run.dilation import slowed_problem
from inakit.traffic.training.training_task import Recipe, TrainingTask

LEDGER = read_ledger("inart")
RECIPE = Recipe(hidden=(64,), filters=(8, 16), batch=BATCH, learning_rate=0.05, samples=1920)
EPOCHS = (12, 3)
"""The epochs of ten iterations, full and quick."""
TARGETS = (0.7214, 0.25)
"""The accuracy in the text, and one that the quick form's few epochs reach; a net that guesses has 0.1."""
SEEDS = (5, 1)
ITERATIONS = 2000
"""The iterations of the text's times, which follow from the measured time per iteration."""
PRINTED: Mapping[str, tuple[float, float, float, float]] = {
    "fig6": (1380, 1541, 1775, 2105),
    "fig7": (151, 181, 208, 278),
}
"""By figure, the text's values of InArt, R-InArt, ATP and LBMM, in s."""


def train(trial: Trial, switch: str, results: Path) -> Result:
    """Train under a scheme's plan; the curve of accuracy over time, and the verdict."""
    task = TrainingTask(RECIPE, WORKERS[-1])
    asked = testbed(task.workers)
    slower = slowed_problem(asked, task.gradient_bytes / asked.jobs[0].gradient_bytes)
    recipe = replace(RECIPE, epochs=int(trial["epochs"]))
    problem, task = training_problem(slower, recipe, COMPUTE_S[VGG19])
    plan = planned_by(str(trial["scheme"])).of(problem, int(trial["seed"]))
    return trained("inart-training", filled_run(problem, plan, trial), task, switch, results)


def run(name: str, console: Console, request: Request) -> str:
    """Execute the missing runs, print and draw the figure; the runs' verdict is the worst of them."""
    swept = SweptFigure(
        f"inart-{name}-{kind_of(request.switch)}", name_in_world("inart-training", request.switch) + "-trials",
        partial(train, switch=request.switch, results=request.results),
        lambda asked: [training_of(scheme, asked) for scheme in compared()],
        partial(show, name), SEEDS, draws, worst_run,
    )  # fmt: skip
    return swept(console, request)


def training_of(scheme: str, request: Request) -> Trial:
    """The keys of a scheme's trainings."""
    return {**cell_of(scheme, WORKERS[-1]), "epochs": EPOCHS[request.quick]}


def curves_of(found: Findings, scheme: str) -> list[AccuracyCurve]:
    """The curve of each draw of a scheme."""
    return [AccuracyCurve.of(found.result(trial)) for trial in found.trials(training_of(scheme, found.request))]


def time_s(name: str, curve: AccuracyCurve, target: float) -> float:
    """A figure's quantity: the time of 2,000 iterations, or that to an accuracy."""
    task = TrainingTask(RECIPE, WORKERS[-1])
    return ITERATIONS * curve.epoch_s / task.iterations_per_epoch if name == "fig6" else curve.time_to(target)


def show(name: str, found: Findings) -> Iterator[Part]:
    curves = {scheme: curves_of(found, scheme) for scheme in compared()}
    target = TARGETS[found.request.quick]
    times = {scheme: estimate([time_s(name, curve, target) for curve in own]) for scheme, own in curves.items()}
    printed = dict(zip(SCHEMES.values(), PRINTED[name], strict=True))
    what = f"{ITERATIONS} iterations" if name == "fig6" else f"accuracy {target}, of digits instead of Cifar-100"
    rows = [(scheme, printed.get(READ_AS.get(scheme, "")), found_s.value) for scheme, found_s in times.items()]
    yield beside_paper(f"InArt, Figure {name[3:]}, {kind_of(found.request.switch)}, 6 workers: s to {what}", rows)
    yield judged(name, times)
    yield f"{TrainingTask(RECIPE, WORKERS[-1]).model.name}; computing takes VGG19's {COMPUTE_S[VGG19]:g} s"
    firsts = {scheme: own[0] for scheme, own in curves.items()}
    yield Picture([over_iterations(curves) if name == "fig6" else over_time(firsts, "testbed, one rounding")])


def over_iterations(curves: Mapping[str, list[AccuracyCurve]]) -> Panel:
    """The times at the ends of epochs over the iterations so far."""
    step = TrainingTask(RECIPE, WORKERS[-1]).iterations_per_epoch
    series = {
        scheme: [estimate(ends) for ends in zip(*(curve.ended_s for curve in own), strict=True)]
        for scheme, own in curves.items()
    }
    places = [step * number for number in range(len(curves[LBMM][0].ended_s))]
    return Panel(LINES, places, series, "iterations", "training time (s)", "testbed")


def judged(name: str, times: Mapping[str, Estimate]) -> list[Statement]:
    """The figure's claims: times, others over InArt's, and that InArt's is least."""
    own = {key: times[scheme] for key, scheme in SCHEMES.items()}
    evidence: dict[str, Evidence] = {
        **own,
        **{f"over-{key}": ratio(time, own["inart"]) for key, time in own.items()},
        "best": {SCHEMES[key]: [time] for key, time in own.items()},
    }
    return LEDGER.judge_each(f"{name}-emulated", evidence)


FIGURES = {f"{name}-emulated": partial(run, name) for name in PRINTED}
