"""GOAT's Figures 4 to 9 by real packets: training on its testbed under GOAT, ESA, ATP and Geryon.

An epoch is one exchange of gradients for 128 samples of each worker, by default at a thousandth of the paper's sizes
and rates, so that times are the paper's; `--scale 1` has its own. Computing is not emulated: its time is the difference
of Figures 7 and 8. Values that the paper does not state are derived as the note `goat.md` explains: a PS's intake rate
follows from Geryon's 704 MB in 1.95 s, a worker's link has the same rate, and the worker uses the share of it that
section IV-C draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from math import ceil
from operator import mul
from pathlib import Path

from rich.console import Console

from inakit.experiments.emulate.training_run import training_problem
from inakit.experiments.papers.common.accuracy_over_time import AccuracyCurve, over_time, trained
from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, LINES, Panel, Printed
from inakit.experiments.papers.common.emulated_figure import EmulatedRun, kind_of, name_in_world, run_alone
from inakit.experiments.papers.common.estimates import Estimate, Series, estimate, means
from inakit.experiments.papers.common.figure_engine import (
    Findings,
    Part,
    Picture,
    Quantity,
    SweptFigure,
    by_seed,
    once,
    worst_run,
)
from inakit.experiments.papers.common.figure_registry import Request, Run
from inakit.experiments.papers.common.statements import Statement, beside_paper, ratio, value_table
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.goat.testbed import (
    GOAT,
    MARGIN,
    NAMES,
    PAPERS,
    Paces,
    compared,
    name_of,
    patient,
    plan_of,
)
from inakit.experiments.run.dilation import MADE_FOR_BPS
from inakit.experiments.run.outcome import Outcome, measured_figures
from inakit.experiments.worlds.registry import is_virtual
from inakit.planner.core.models import BYTES_PER_PARAMETER, find_model
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.ina_program import INA, SLOTS_PER_PIPELINE, DataPlaneProgram, with_slots
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import goat_testbed
from inakit.topo.fabric.variations import with_aggregators
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.measure.fidelity import planned_rates
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.training.training_task import Recipe
from inakit.traffic.wire.packet_format import FRAGMENT

LEDGER = read_ledger("goat")
SCALE = 1 / 1000
"""The scale of all sizes and rates unless a request gives another."""
MIB = 2**20
FRAGMENT_BYTES = BYTES_PER_PARAMETER * FRAGMENT.values
MEMORY_BYTES = 20 * MIB
"""A switch's memory (section IV-B)."""
INTAKE_BPS = 8 * 704 * MIB / 1.95 * FRAGMENT.wire_bytes / FRAGMENT_BYTES
"""The rate at which the PS takes in frames: Geryon's traffic over its time (Figures 8a and 9a). Workers' links have the
same rate."""
BETWEEN_SWITCHES = 10
"""The factor by which links between switches are faster; the paper's hosts do not nearly fill 100 Gbit/s."""
MEAN_SHARE, SPREAD = 0.5, 0.2
"""The mean and spread of a worker's share of its link's rate: the reading of section IV-C that agrees with Figures 10
and 11."""
RATE_ERROR = 0.05
MOST_WORKERS = 16
ATTEMPTS = 2
DRAWS = (5, 1)
"""The numbers of draws of the workers' rates, full and quick; a draw is the same for every scheme and model."""
PACED = ("goat-krgs", "goat", "geryon")
"""The schemes whose workers never wait and never retransmit: their rates have to be the planned ones."""


@dataclass(frozen=True)
class Reading:
    """What the text leaves open: the mean and the spread of workers' shares of their links' rate, and the timeouts,
    relative to the stragglers' delay.
    """

    mean: float = MEAN_SHARE
    spread: float = SPREAD
    margin: float = MARGIN


TEXT = "as in Figures 4 to 9"
READINGS = {
    TEXT: Reading(),
    "equal rates": Reading(mean=1.0, spread=0.0),
    "rates N(1, 0.2)": Reading(mean=1.0),
    "rates N(0.5, 0.1)": Reading(spread=0.1),
    "rates N(0.3, 0.2)": Reading(mean=0.3),
    "timeouts half as long": Reading(margin=MARGIN / 2),
    "timeouts four times as long": Reading(margin=4 * MARGIN),
}
"""The readings that are compared."""


@dataclass(frozen=True)
class EpochRun:
    """A run: an epoch of a model, by a number of workers, under a scheme; `seed` draws the workers' rates."""

    model: str
    workers: int
    scheme: str
    scale: float = SCALE
    seed: int = 0
    reading: str = TEXT

    @classmethod
    def of(cls, trial: Trial) -> EpochRun:
        """The run of a trial, which can have other keys as well."""
        own = {name: value for name, value in trial.items() if name in cls.__dataclass_fields__}
        return cls(**own)  # type: ignore[arg-type]

    @property
    def link_bps(self) -> float:
        """The rate of a host's link."""
        return INTAKE_BPS * self.scale

    @property
    def program(self) -> DataPlaneProgram:
        """The switches' program, with all the slots that their memory has."""
        return with_slots(INA, slots(self.scale))

    def problem(self) -> Problem:
        """The testbed with a job of the workers, half under each of two switches; the other hosts are idle."""
        half = MOST_WORKERS // 2
        fabric = with_aggregators(goat_testbed(half, self.link_bps), slots=slots(self.scale))
        names = [f"w{1 + number % 2 * half + number // 2}" for number in range(self.workers)]
        parameters = ceil(round(find_model(self.model).parameters * self.scale, 6))
        job = Job(1, tuple(names), ("ps",), BYTES_PER_PARAMETER * parameters, model=self.model)
        return Problem(with_wide_links(fabric, BETWEEN_SWITCHES * self.link_bps), (job,), FRAGMENT)

    def emulated_run(self, problem: Problem, switch: str) -> EmulatedRun:
        """The run on the testbed, with workers that send at drawn rates."""
        plan = plan_of(self.scheme, problem, self.seed)
        reading = READINGS[self.reading]
        drawn = Stragglers(reading.spread, reading.mean, self.seed).shares(problem)
        own = own_shares(plan, drawn, self.link_bps)
        quicker = max(1.0, self.link_bps / MADE_FOR_BPS) if is_virtual(switch) else 1.0
        return EmulatedRun(
            f"{self.scheme}-{self.model}-{self.workers}",
            problem,
            plan,
            asdict(self),
            patient(fragments(problem), self.link_bps, min(drawn.values()), reading.margin * quicker),
            (Paces(own, fragments(problem), frozenset(own)),),
            queue_packets=self.workers * fragments(problem),
        )


def slots(scale: float) -> int:
    """The slots of a switch."""
    return int(MEMORY_BYTES * scale) // FRAGMENT_BYTES


def with_wide_links(fabric: Fabric, rate_bps: float) -> Fabric:
    """The fabric with this rate on links between switches."""
    links = (
        link
        if {link.a, link.b} & fabric.host_names
        else replace(link, capacity_ab_bps=rate_bps, capacity_ba_bps=rate_bps)
        for link in fabric.links
    )
    return replace(fabric, links=tuple(links))


def fragments(problem: Problem) -> int:
    """The fragments of a worker's gradient."""
    return problem.fragment.count(problem.jobs[0].gradient_bytes)


def own_shares(plan: Plan, drawn: Mapping[str, float], link_bps: float) -> dict[str, float]:
    """By worker, the fraction of the planned rate at which it sends: its `drawn` share of its link, at most 1."""
    return {worker: min(1.0, drawn[worker] * link_bps / rate) for (_, worker), rate in planned_rates(plan).items()}


def epoch(setting: EpochRun, run: EmulatedRun, outcome: Outcome) -> Result:
    """The figures of a run in the paper's sizes, whose MB are MiB; the verdict is DIFFERS if a paced rate is off.

    `apart_s` is the time between the ends of the first and the last worker's sending; `first_mb` is the PS ingress less
    all retransmissions, and so the least that arrives the first time: some retransmissions are summed on their way.
    """
    figures, (iteration,) = measured_figures(outcome.measured, outcome.monitor), outcome.measured.iterations
    (own,) = (each.shares for each in run.interferences if isinstance(each, Paces))
    paces = {worker: rate * own[worker] for (_, worker), rate in planned_rates(run.plan).items()}
    error = max(abs(rate / paces[worker] - 1) for worker, rate in iteration.sending_rate_bps.items())
    packets = figures.ps_ingress_bytes / FRAGMENT.wire_bytes
    mb = FRAGMENT_BYTES / setting.scale / MIB
    sending_s = [
        8 * FRAGMENT.wire_bytes * fragments(run.problem) / rate for rate in iteration.sending_rate_bps.values()
    ]
    off = setting.scheme in PACED and error > RATE_ERROR
    return {
        "communication_time_s": figures.communication_time_s,
        "ps_ingress_mb": packets * mb,
        "first_mb": (packets - figures.retransmissions) * mb,
        "retransmissions": figures.retransmissions,
        "apart_s": max(sending_s) - min(sending_s),
        "verdict": Verdict.DIFFERS if off and outcome.verdict == VALID else outcome.verdict,
    }


def measure(trial: Trial, switch: str, results: Path) -> Result:
    """Run a trial, once more if it is not valid. Raises `InputError` for a scale that the world does not carry."""
    setting = EpochRun.of(trial)
    check_scale(setting.scale, switch)
    for _ in range(ATTEMPTS):
        run = setting.emulated_run(setting.problem(), switch)
        outcome, folder = run_alone(f"goat-testbed-{run.name}", run, switch, results, setting.program)
        found = {**epoch(setting, run, outcome), "folder": folder}
        if found["verdict"] == VALID:
            break
    return found


def check_scale(scale: float, switch: str) -> None:
    """Raise `InputError` if switches need more slots than the program has, and are not in virtual time."""
    if slots(scale) > SLOTS_PER_PIPELINE and not is_virtual(switch):
        raise InputError(
            f"--scale {scale:g}: a switch's 20 MB are {slots(scale)} slots, and the P4 program has "
            f"{SLOTS_PER_PIPELINE}; only virtual time has more: choose --switch virtual"
        )


SAMPLES = 128
"""The samples of a worker in an epoch: 931 images/s in 2.2 s are 128 for each of 16 workers (Figures 5a and 7a)."""
COMPUTING_S = 2.2 - 0.36
"""ResNet-18's computing time in an epoch: time per epoch less communication time (Figures 7a and 8a, GOAT)."""
GMACS = {
    "resnet18": 1.81, "resnet34": 3.66, "resnet50": 4.09, "densenet121": 2.83, "densenet169": 3.36, "densenet201": 4.29,
}  # fmt: skip
"""Billions of multiplications per sample, from torchvision; computing times are proportional to them."""
FITTED = (
    f"fitted: computing takes {COMPUTING_S:.2f} s, the paper's Figure 7a less Figure 8a for GOAT (ResNet-18, 16 "
    "workers; other models by their multiplications); links and the PS carry 361 MB/s, Geryon's in Figures 8a and 9a; "
    f"workers send at N({MEAN_SHARE:g}, {SPREAD:g}) of a link's rate"
)
"""The fitted constants behind all figures, and what they were fitted to."""

WORKERS, QUICK_WORKERS = (4, 8, 12, 16), (8, 16)
MODELS, QUICK_MODELS = ("resnet18", "resnet50"), ("resnet18",)
FIG4_WORKERS, QUICK_FIG4_MODELS = 8, ("resnet18", "densenet121")


def computing_s(model: str) -> float:
    """A model's computing time in an epoch."""
    return COMPUTING_S * GMACS[model] / GMACS["resnet18"]


def epoch_time_s(setting: EpochRun, found: Result) -> float:
    return computing_s(setting.model) + float(found["communication_time_s"])


def throughput(setting: EpochRun, found: Result) -> float:
    """The samples of all workers per second."""
    return SAMPLES * setting.workers / epoch_time_s(setting, found)


ModelAndWorkers = tuple[str, int]
"""A model, and the number of workers that train it."""
Value = Callable[[EpochRun, Result], float]
"""A quantity of a run."""


@dataclass(frozen=True)
class TrainingChart:
    """A figure. `paper` has the text's values of GOAT, ESA, ATP and Geryon, all at one `place`.

    A figure `by_model` has models side by side, with the same number of workers; others are over workers. `best` is the
    claim that GOAT is best everywhere, `rises` that every curve rises with workers, `apart` about the longest time
    between the first and the last worker in any draw. `less` are the claims that GOAT has less by a share, by the other
    scheme.
    """

    title: str
    value: Value
    place: ModelAndWorkers
    paper: tuple[float, ...]
    by_model: bool = False
    best: str = ""
    rises: str = ""
    less: Mapping[str, str] = field(default_factory=dict)
    apart: str = ""

    def places(self, request: Request) -> list[ModelAndWorkers]:
        """The models and numbers of workers that the figure shows."""
        if self.by_model:
            return [(model, FIG4_WORKERS) for model in (QUICK_FIG4_MODELS if request.quick else GMACS)]
        return [*product(QUICK_MODELS if request.quick else MODELS, QUICK_WORKERS if request.quick else WORKERS)]

    def cell(self, scheme: str, place: ModelAndWorkers, scale: float) -> Trial:
        """The trials of a scheme at a place; the kept ones at the default scale do not name it."""
        found: Trial = {"model": place[0], "workers": place[1], "scheme": scheme}
        return found if scale == SCALE else {**found, "scale": scale}

    def cells(self, request: Request) -> Iterator[Trial]:
        """The cells of all schemes and places."""
        scale = asked_scale(request)
        return (self.cell(scheme, place, scale) for place in self.places(request) for scheme in compared())

    def values(self, found: Findings, value: Value) -> dict[str, list[Estimate]]:
        """A quantity of all schemes by their names, at each place."""

        def at(scheme: str, place: ModelAndWorkers) -> Estimate:
            trials = found.trials(self.cell(scheme, place, asked_scale(found.request)))
            return estimate([value(EpochRun.of(trial), found.result(trial)) for trial in trials])

        return {name_of(scheme): [at(scheme, place) for place in self.places(found.request)] for scheme in compared()}

    def panels(self, places: Sequence[ModelAndWorkers], values: Series) -> Iterator[Panel]:
        """One panel of bars by model, or one of lines over workers for each model."""
        for model in [""] if self.by_model else dict.fromkeys(model for model, _ in places):
            at = [number for number, place in enumerate(places) if model in ("", place[0])]
            series = {name: [found[number] for number in at] for name, found in values.items()}
            where, printed = self.place[0 if self.by_model else 1], zip(PAPERS, self.paper, strict=True)
            paper: Printed = {name: {where: value} for name, value in printed} if model in ("", self.place[0]) else {}
            kind, xlabel, title = (
                (BARS, "model", f"{FIG4_WORKERS} workers") if self.by_model else (LINES, "workers", model)
            )
            xs = [places[number][0 if self.by_model else 1] for number in at]
            yield Panel(kind, xs, series, xlabel, self.title, title, paper)

    def claims(self, figure: str, places: Sequence[ModelAndWorkers], values: Series) -> Iterator[Statement]:
        """The claims about the text's values, about GOAT being best, and about trends."""
        at = {name: values[name][places.index(self.place)] for name in PAPERS}
        for scheme in (scheme for scheme, name in NAMES.items() if name in PAPERS):
            yield LEDGER.judge(f"{figure}-{scheme.removesuffix('-krgs')}", at[name_of(scheme)])
        for scheme, claim in self.less.items():
            yield LEDGER.judge(claim, ratio(at[GOAT], at[name_of(scheme)]).map(lambda share: 1 - share))
        named = {name: values[name] for name in PAPERS}
        if self.best:
            yield LEDGER.judge(self.best, named, ["{}, {} workers".format(*each) for each in places])
        if self.rises:
            models = dict.fromkeys(model for model, _ in places)
            curves = {
                f"{model}, {name}": [point for point, place in zip(found, places, strict=True) if place[0] == model]
                for model in models for name, found in named.items()
            }  # fmt: skip
            yield LEDGER.judge(self.rises, curves)


RATE, RESNET = "training throughput (images/s)", ("resnet18", 16)
CHARTS = {
    "fig4": TrainingChart(
        RATE, throughput, ("densenet121", 8), (276, 240, 219, 180), by_model=True, best="fig4-highest"
    ),
    "fig5": TrainingChart(RATE, throughput, RESNET, (931, 585, 512, 465), best="fig5-highest"),
    "fig7": TrainingChart(
        "time per epoch (s)", epoch_time_s, RESNET, (2.2, 3.5, 4, 4.65), best="fig7-lowest", rises="fig7-rises",
        less={"esa": "exp2-esa", "atp": "exp2-atp", "geryon": "exp2-geryon"},
    ),
    "fig8": TrainingChart(
        "communication time (s)", lambda _, found: float(found["communication_time_s"]), RESNET,
        (0.36, 1.34, 1.64, 1.95), less={"geryon": "intro-overhead"}, apart="exp3-asynchrony",
    ),
    "fig9": TrainingChart(
        "aggregation overhead of the PS (MB)", lambda _, found: float(found["ps_ingress_mb"]), RESNET,
        (44, 167.2, 198, 704), best="fig9-lowest",
        less={"esa": "exp3-esa", "atp": "exp3-atp", "geryon": "exp3-geryon"},
    ),
}  # fmt: skip


def asked_scale(request: Request) -> float:
    """The scale of rates and sizes."""
    return SCALE if request.scale is None else request.scale


def figure_of(name: str, request: Request, measured: Callable[..., Result]) -> Callable[..., SweptFigure]:
    """The figures of this name in the request's world; a call gives their cells and what they show."""
    kind = kind_of(request.switch)
    measuring = partial(measured, switch=request.switch, results=request.results)
    files = name_in_world(f"goat-{name}", request.switch)
    return partial(SweptFigure, files, f"goat-{kind}-trials", measuring, verdict=worst_run)


def of_reading(reading: str, scheme: str) -> Trial:
    """The trials of ResNet-18 with 16 workers in a reading; the kept ones of the figures do not name theirs."""
    found: Trial = {"model": RESNET[0], "workers": RESNET[1], "scheme": scheme}
    return found if reading == TEXT else {**found, "reading": reading}


def of_densenet(scheme: str) -> Trial:
    """The trials of the model of Figure 4."""
    model, workers = CHARTS["fig4"].place
    return {"model": model, "workers": workers, "scheme": scheme}


def readings(_: Request) -> Iterator[Trial]:
    """ResNet-18 with 16 workers in every reading, and Figure 4's model."""
    yield from (of_reading(reading, scheme) for reading, scheme in product(READINGS, NAMES))
    yield from map(of_densenet, NAMES)


def show_readings(found: Findings) -> Iterator[Part]:
    """Communication time and PS ingress in every reading, and what the computing time decides."""
    panels = []
    for figure, key in (("fig8", "communication_time_s"), ("fig9", "ps_ingress_mb"), ("fig9", "first_mb")):
        values = {
            NAMES[scheme]: [found.estimate(of_reading(reading, scheme), Quantity(key, "")) for reading in READINGS]
            for scheme in NAMES
        }
        title = f"{CHARTS[figure].title}{', less all retransmissions' if key == 'first_mb' else ''}"
        printed = dict(zip(PAPERS, CHARTS[figure].paper, strict=True))
        rows: dict[str, list[float | None]] = {"the paper's": [printed.get(name) for name in values]}
        rows |= {reading: [own[number].value for own in values.values()] for number, reading in enumerate(READINGS)}
        yield value_table(f"{title}, ResNet-18, 16 workers", "reading", list(values), rows)
        ratios = {name: [point.map(partial(mul, 1 / printed[name])) for point in values[name]] for name in printed}
        panels.append(Panel(BARS, list(READINGS), ratios, "reading", f"{title},\nover the paper's", log="y"))
    apart = {reading: [max(found.of(of_reading(reading, "goat-krgs"), "apart_s"))] for reading in READINGS}
    yield value_table("the longest time between the first and the last worker", "reading", ["s (paper 1.83)"], apart)
    yield value_table("what computing decides", "", list(NAMES.values()), dict(computing_decides(found)))
    yield Picture(panels)


def computing_decides(found: Findings) -> Iterator[tuple[str, list[float | None]]]:
    """The time per epoch if each scheme computes for its own Figure 7a less Figure 8a, as if its PS's work took time;
    and the throughput of Figure 4 if computing is fitted to GOAT's there.
    """

    def printed(figure: str) -> dict[str, float]:
        return dict(zip(PAPERS, CHARTS[figure].paper, strict=True))

    def communication_s(cell: Trial) -> float:
        return found.mean(cell, "communication_time_s")

    whole, part, rate = map(printed, ("fig7", "fig8", "fig4"))
    yield "Figure 7a (s)", [whole.get(name) for name in NAMES.values()]
    yield (
        "with its own computing (s)",
        [
            whole[name] - part[name] + communication_s(of_reading(TEXT, scheme)) if name in whole else None
            for scheme, name in NAMES.items()
        ],
    )
    samples = SAMPLES * FIG4_WORKERS
    fitted_s = samples / rate[GOAT] - communication_s(of_densenet("goat-krgs"))
    yield "Figure 4 (images/s)", [rate.get(name) for name in NAMES.values()]
    yield (
        "computing fitted there (images/s)",
        [samples / (fitted_s + communication_s(of_densenet(scheme))) for scheme in NAMES],
    )


def run_readings(console: Console, request: Request) -> str:
    """Measure the readings of the testbed and show them."""
    swept = figure_of("testbed-readings", request, measure)
    compares = "it compares readings of the paper's text"
    return swept(readings, show_readings, DRAWS, by_seed, leaves_out=compares)(console, request)


def run(figure: str, console: Console, request: Request) -> str:
    """Measure the figure's runs that earlier figures have not measured, and show the figure."""
    chart = CHARTS[figure]
    swept = figure_of(figure, request, measure)
    return swept(chart.cells, partial(show, figure), DRAWS, by_seed)(console, request)


def show(figure: str, found: Findings) -> Iterator[Part]:
    chart, places = CHARTS[figure], CHARTS[figure].places(found.request)
    values = chart.values(found, chart.value)
    names = [f"{model.replace('net', '')}\n{workers}" for model, workers in places]
    yield value_table(f"GOAT, {figure}: {chart.title}, by model and workers", "", names, means(values))
    scale = asked_scale(found.request)
    yield f"rates and sizes are {scale:g} of the paper's, times are the paper's; {FITTED}"
    at = places.index(chart.place)
    rows = [(name, paper, values[name][at].value) for name, paper in zip(PAPERS, chart.paper, strict=True)]
    yield beside_paper("{}, values in the text: {}, {} workers".format(figure, *chart.place), rows, ("g", ".3g", ".2f"))
    if figure == "fig9":
        first = chart.values(found, lambda _, result: float(result["first_mb"]))
        yield value_table("less all retransmissions (MB)", "", names, means(first))
    judged = list(chart.claims(figure, places, values))
    if chart.apart:
        apart = chart.values(found, lambda _, result: float(result["apart_s"]))
        judged.append(LEDGER.judge(chart.apart, max(apart[GOAT][at].draws)))
    yield judged
    yield Picture(chart.panels(places, values))


EPOCHS, QUICK_EPOCHS = 200, 10
"""The epochs of a training; the paper has 200 (section IV-B)."""
REACHED, QUICK_REACHED = 0.7896, 0.2
"""The accuracy to which times are compared: that of Figure 6b, which GOAT reaches first after 802.4 s, and in the quick
form one that its few epochs reach; a net that guesses has 0.1."""
FILTERS = (8, 16)
RECIPES = {"resnet18": 67, "resnet50": 157}
"""The units of the hidden layer with which the convolutional net has a thousandth of a model's parameters, or nearly:
11,643 for ResNet-18's 11,690, and 25,593 for ResNet-50's 25,557."""
LEARNING_RATE = 0.05
TRAINED = ("resnet50", 16)


def train(trial: Trial, switch: str, results: Path) -> Result:
    """Train a net of a model's size through the testbed, an exchange of gradients in each epoch."""
    setting = EpochRun.of(trial)
    recipe = Recipe(
        (RECIPES[setting.model],),
        int(trial["epochs"]),
        SAMPLES,
        LEARNING_RATE,
        samples=SAMPLES * setting.workers,
        filters=FILTERS,
    )
    problem, task = training_problem(setting.problem(), recipe, computing_s(setting.model))
    run = setting.emulated_run(problem, switch)
    return trained(f"goat-training-{run.name}", run, task, switch, results)


def trainings(request: Request) -> Iterator[Trial]:
    """The trainings of Figure 6."""
    epochs = QUICK_EPOCHS if request.quick else EPOCHS
    for model, scheme in product([TRAINED[0]] if request.quick else MODELS, compared()):
        yield {"model": model, "workers": TRAINED[1], "scheme": scheme, "epochs": epochs}


def show_accuracy(found: Findings) -> Iterator[Part]:
    """Accuracy over time by model, and the claims about the times of ResNet-50."""
    by_model: dict[str, dict[str, AccuracyCurve]] = {}
    target = QUICK_REACHED if found.request.quick else REACHED
    for trial in trainings(found.request):
        curve = AccuracyCurve.of(found.result(trial))
        by_model.setdefault(str(trial["model"]), {})[name_of(str(trial["scheme"]))] = curve
    for model, curves in by_model.items():
        reached = max(curves[GOAT].accuracy)
        rows = {name: [curve.epoch_s, curve.time_to(target), curve.time_to(reached)] for name, curve in curves.items()}
        places = ("s per epoch", f"s to {target:.1%}", f"s to {reached:.1%}")
        yield value_table(f"GOAT, fig6: a net of {model}'s size, {TRAINED[1]} workers", "", places, rows)
    yield f"accuracy is that of digits, by a convolutional net; {FITTED}"
    curves = by_model[TRAINED[0]]
    yield list(claims_of_accuracy(curves, target))
    yield Picture(over_time(found, model) for model, found in by_model.items())


def claims_of_accuracy(curves: Mapping[str, AccuracyCurve], target: float) -> Iterator[Statement]:
    """The claims about Figure 6b: the time of 200 epochs, and the time to the same accuracy relative to GOAT's."""
    for scheme, name in NAMES.items():
        if name in PAPERS:
            curve = curves[name]
            yield LEDGER.judge(
                f"fig6-{scheme.removesuffix('-krgs')}", EPOCHS * curve.ended_s[-1] / (len(curve.ended_s) - 1)
            )
    faster = {name: curve.time_to(target) / curves[GOAT].time_to(target) for name, curve in curves.items()}
    for scheme in ("esa", "atp", "geryon"):
        for claim in ("fig6-over", "exp1-over"):
            yield LEDGER.judge(f"{claim}-{scheme}", faster[name_of(scheme)])
    yield LEDGER.judge("intro-speedup", faster["ESA"])
    yield LEDGER.judge("fig6-fastest", {name: [curves[name].time_to(target)] for name in PAPERS})
    ends = [curves[name].accuracy[-1] for name in PAPERS]
    yield LEDGER.judge("fig6-similar", ends)


def run_accuracy(console: Console, request: Request) -> str:
    """Train with every scheme, unless the trainings are kept, and show Figure 6."""
    return figure_of("fig6", request, train)(trainings, show_accuracy, draws=once)(console, request)


FIGURES: dict[str, Run] = {
    **{name: partial(run, name) for name in CHARTS},
    "fig6": run_accuracy,
    "testbed-readings": run_readings,
}
