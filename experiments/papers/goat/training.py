"""GOAT's Figures 4, 5, 7, 8 and 9 by real packets: training on its testbed under GOAT, ESA, ATP and Geryon.

An epoch is one exchange of gradients for 128 samples of each worker, at a thousandth of the paper's sizes and rates, so
that times are the paper's. Computing is not emulated: its time is the difference of Figures 7 and 8. Values that the
paper does not state are derived as the note `goat.md` explains: a PS's intake rate follows from Geryon's 704 MB in 1.95
s, a worker's link has the same rate, and the worker uses the share of it that section IV-C draws.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from rich.console import Console

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import BARS, LINES, Panel, Printed, Values
from inakit.experiments.papers.common.emulated_figure import EmulatedRun, name_in_world, run_emulated
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Part, Picture, present
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement, beside_paper, value_table
from inakit.experiments.papers.common.sweep import code_of, own_code
from inakit.experiments.papers.goat.testbed import SCHEMES, Paces, compared, patient, plan_of
from inakit.experiments.report.method_styles import paper_name
from inakit.experiments.run.outcome import Outcome, measured_figures
from inakit.planner.core.models import BYTES_PER_PARAMETER, find_model
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import RunError, writing
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import goat_testbed
from inakit.topo.fabric.variations import with_aggregators
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.measure.fidelity import planned_rates
from inakit.traffic.measure.verdict import VALID
from inakit.traffic.wire.packet_format import FRAGMENT

SCALE = 1000
"""The factor by which all sizes and rates are smaller than the paper's."""
MIB = 2**20
FRAGMENT_BYTES = BYTES_PER_PARAMETER * FRAGMENT.values
SLOTS = 20 * MIB // SCALE // FRAGMENT_BYTES
"""The slots of a switch, which has 20 MB (section IV-B)."""
INTAKE_BPS = 8 * 704 * MIB / 1.95 / SCALE * FRAGMENT.wire_bytes / FRAGMENT_BYTES
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
DRAW = 0
"""The seed of the workers' rates, the same for every scheme and model."""
PACED = ("goat", "geryon")
"""The schemes whose workers never wait and never retransmit: their rates have to be the planned ones."""


@dataclass(frozen=True)
class EpochRun:
    """A run: an epoch of a model, by a number of workers, under a scheme."""

    model: str
    workers: int
    scheme: str

    @property
    def name(self) -> str:
        """The run's name in its folder."""
        return f"{self.scheme}-{self.model}-{self.workers}"

    def emulated_run(self) -> EmulatedRun:
        """The run on the testbed, with workers that send at drawn rates."""
        problem = testbed(self.model, self.workers)
        plan = plan_of(self.scheme, problem)
        drawn = Stragglers(SPREAD, MEAN_SHARE, DRAW).shares(problem)
        own = own_shares(plan, drawn)
        return EmulatedRun(
            self.name,
            problem,
            plan,
            asdict(self),
            patient(fragments(problem), INTAKE_BPS, min(drawn.values())),
            (Paces(own, fragments(problem), frozenset(own)),),
            queue_packets=self.workers * fragments(problem),
        )


def testbed(model: str, workers: int) -> Problem:
    """The testbed with a job of `workers` workers, half under each of two switches; the other hosts are idle."""
    fabric = with_aggregators(goat_testbed(MOST_WORKERS // 2, INTAKE_BPS), slots=SLOTS)
    fabric = with_wide_links(fabric, BETWEEN_SWITCHES * INTAKE_BPS)
    half = MOST_WORKERS // 2
    names = [f"w{1 + number % 2 * half + number // 2}" for number in range(workers)]
    parameters = -(-find_model(model).parameters // SCALE)
    job = Job(1, tuple(names), ("ps",), BYTES_PER_PARAMETER * parameters, model=model)
    return Problem(fabric, (job,), FRAGMENT)


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


def own_shares(plan: Plan, drawn: Mapping[str, float]) -> dict[str, float]:
    """By worker, the fraction of the planned rate at which it sends: its `drawn` share of its link, at most 1."""
    return {worker: min(1.0, drawn[worker] * INTAKE_BPS / rate) for (_, worker), rate in planned_rates(plan).items()}


@dataclass(frozen=True)
class Epoch:
    """A run's figures in the paper's sizes, whose MB are MiB. `rate_error` is the largest one of a worker."""

    communication_time_s: float
    ps_ingress_mb: float
    rate_error: float
    retransmissions: float
    verdict: str

    def trusted(self, scheme: str) -> bool:
        """Whether the run is valid and, where rates have to be the planned ones, none is off by more than 5 %."""
        return self.verdict == VALID and (scheme not in PACED or self.rate_error <= RATE_ERROR)


def epoch(run: EmulatedRun, outcome: Outcome) -> Epoch:
    """The figures of a run."""
    figures, (iteration,) = measured_figures(outcome.measured, outcome.monitor), outcome.measured.iterations
    (own,) = (each.shares for each in run.interferences if isinstance(each, Paces))
    paces = {worker: rate * own[worker] for (_, worker), rate in planned_rates(run.plan).items()}
    return Epoch(
        communication_time_s=figures.communication_time_s,
        ps_ingress_mb=figures.ps_ingress_bytes / FRAGMENT.wire_bytes * FRAGMENT_BYTES * SCALE / MIB,
        rate_error=max(abs(rate / paces[worker] - 1) for worker, rate in iteration.sending_rate_bps.items()),
        retransmissions=figures.retransmissions,
        verdict=outcome.verdict,
    )


def measured(settings: Sequence[EpochRun], request: Request, console: Console) -> dict[EpochRun, Epoch]:
    """The epochs of all runs; epochs that an earlier figure has measured are read from its file.

    A run that is not valid is repeated once. Raises `RunError` if it still is not valid.
    """
    file = request.results / f"{name_in_world('goat-testbed', request.switch)}.jsonl"
    for _ in range(ATTEMPTS):
        found = kept(file)
        missing = [setting for setting in settings if setting not in found]
        if missing:
            settings_of = {setting.name: setting for setting in missing}

            def note(run: EmulatedRun, outcome: Outcome, named: dict[str, EpochRun] = settings_of) -> None:
                keep(file, [(named[run.name], epoch(run, outcome))])

            runs = [setting.emulated_run() for setting in missing]
            run_emulated("goat-testbed", runs, request, console, note).tell(console)
    found = kept(file)
    failed = [setting.name for setting in settings if setting not in found]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(settings)} runs are not valid, such as {failed[0]}: stop other programs on this "
            "machine, and try again; the valid runs are kept"
        )
    return found


def kept(file: Path) -> dict[EpochRun, Epoch]:
    """The epochs in the file that today's code measured, by run; a line that an interruption cut off is skipped."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        with suppress(json.JSONDecodeError):
            entry = json.loads(line)
            setting = EpochRun(**entry["trial"])
            if entry.get("code") == code_behind(setting):
                found[setting] = Epoch(**entry["result"])
    return found


def code_behind(setting: EpochRun) -> list[str]:
    """The versions of the code on which the result of a run depends."""
    return [code_of(epoch), *own_code(asdict(setting))]


def keep(file: Path, runs: Iterable[tuple[EpochRun, Epoch]]) -> None:
    with writing(file), file.open("a") as lines:
        for setting, found in runs:
            if found.trusted(setting.scheme):
                entry = {"trial": asdict(setting), "code": code_behind(setting), "result": asdict(found)}
                lines.write(json.dumps(entry) + "\n")


SAMPLES = 128
"""The samples of a worker in an epoch: 931 images/s in 2.2 s are 128 for each of 16 workers (Figures 5a and 7a)."""
COMPUTING_S = 2.2 - 0.36
"""ResNet-18's computing time in an epoch: time per epoch less communication time (Figures 7a and 8a, GOAT)."""
GMACS = {
    "resnet18": 1.81, "resnet34": 3.66, "resnet50": 4.09, "densenet121": 2.83, "densenet169": 3.36, "densenet201": 4.29,
}  # fmt: skip
"""Billions of multiplications per sample, from torchvision; computing times are proportional to them."""

WORKERS, QUICK_WORKERS = (4, 8, 12, 16), (8, 16)
MODELS, QUICK_MODELS = ("resnet18", "resnet50"), ("resnet18",)
FIG4_WORKERS, QUICK_FIG4_MODELS = 8, ("resnet18", "densenet121")


Value = Callable[[EpochRun, Epoch], float]
"""A quantity of a run."""


def epoch_time_s(setting: EpochRun, found: Epoch) -> float:
    return COMPUTING_S * GMACS[setting.model] / GMACS["resnet18"] + found.communication_time_s


ModelAndWorkers = tuple[str, int]
"""A model, and the number of workers that train it."""


@dataclass(frozen=True)
class TrainingChart:
    """A figure. `paper` has the text's values of GOAT, ESA, ATP and Geryon, all at one `place`.

    A figure `by_model` has models side by side, with the same number of workers; others are over workers.
    `more_is_better` is true of throughput; `trend` is true if the text states that all schemes rise with workers.
    """

    title: str
    value: Value
    place: ModelAndWorkers
    paper: tuple[float, ...]
    by_model: bool = False
    more_is_better: bool = False
    trend: bool = False

    @property
    def printed(self) -> dict[str, float]:
        """The text's values, by scheme."""
        return dict(zip(SCHEMES, self.paper, strict=True))

    def places(self, *, quick: bool) -> list[ModelAndWorkers]:
        """The models and numbers of workers that the figure shows."""
        if self.by_model:
            return [(model, FIG4_WORKERS) for model in (QUICK_FIG4_MODELS if quick else GMACS)]
        return [*product(QUICK_MODELS if quick else MODELS, QUICK_WORKERS if quick else WORKERS)]

    def panels(self, places: Sequence[ModelAndWorkers], values: Values) -> Iterator[Panel]:
        """One panel of bars by model, or one of lines over workers for each model."""
        for model in [""] if self.by_model else dict.fromkeys(model for model, _ in places):
            at = [number for number, place in enumerate(places) if model in ("", place[0])]
            series = {paper_name(scheme): [exact(found[number]) for number in at] for scheme, found in values.items()}
            shown, where = self.printed if model in ("", self.place[0]) else {}, self.place[0 if self.by_model else 1]
            paper: Printed = {paper_name(scheme): {where: value} for scheme, value in shown.items()}
            kind, xlabel, title = (
                (BARS, "model", f"{FIG4_WORKERS} workers") if self.by_model else (LINES, "workers", model)
            )
            xs = [places[number][0 if self.by_model else 1] for number in at]
            yield Panel(kind, xs, series, xlabel, self.title, title, paper)

    def said(self, places: Sequence[ModelAndWorkers], values: Values) -> Iterator[Statement]:
        """The statements about the text's order of values, about GOAT being best everywhere, and about trends."""
        named = {paper_name(scheme): values[scheme] for scheme in SCHEMES}
        place = {name: [found[places.index(self.place)]] for name, found in named.items()}
        order = [paper_name(scheme) for scheme in sorted(self.printed, key=self.printed.__getitem__, reverse=True)]
        yield from statements.in_order("{}, {} workers".format(*self.place), order, place, [self.place])
        best, others = statements.is_highest if self.more_is_better else statements.is_lowest, [*named]
        others.remove("GOAT")
        yield best("everywhere", "GOAT", others, named, ["{}, {} workers".format(*each) for each in places])
        for model in dict.fromkeys(model for model, _ in places) if self.trend else ():
            for name, found in named.items():
                curve = [value for value, place in zip(found, places, strict=True) if place[0] == model]
                yield statements.rises(f"{model}: {name} rises with workers", curve)


def throughput(setting: EpochRun, found: Epoch) -> float:
    """The samples of all workers per second."""
    return SAMPLES * setting.workers / epoch_time_s(setting, found)


RATE, RESNET = "training throughput (images/s)", ("resnet18", 16)
CHARTS = {
    "fig4": TrainingChart(
        RATE, throughput, ("densenet121", 8), (276, 240, 219, 180), by_model=True, more_is_better=True
    ),
    "fig5": TrainingChart(RATE, throughput, RESNET, (931, 585, 512, 465), more_is_better=True),
    "fig7": TrainingChart("time per epoch (s)", epoch_time_s, RESNET, (2.2, 3.5, 4, 4.65), trend=True),
    "fig8": TrainingChart(
        "communication time (s)", lambda _, found: found.communication_time_s, RESNET, (0.36, 1.34, 1.64, 1.95)
    ),
    "fig9": TrainingChart(
        "aggregation overhead of the PS (MB)", lambda _, found: found.ps_ingress_mb, RESNET, (44, 167.2, 198, 704)
    ),
}


def run(figure: str, console: Console, request: Request) -> str:
    """Measure the figure's runs that earlier figures have not measured, and show the figure."""
    chart = CHARTS[figure]
    places = chart.places(quick=request.quick)
    found = measured([EpochRun(*place, scheme) for place in places for scheme in compared()], request, console)
    values = {
        scheme: [chart.value(own, found[own]) for own in (EpochRun(*place, scheme) for place in places)]
        for scheme in compared()
    }
    present(console, request.results / name_in_world(f"goat-{figure}", request.switch), show(figure, places, values))
    return VALID


def show(figure: str, places: Sequence[ModelAndWorkers], values: Values) -> Iterator[Part]:
    chart = CHARTS[figure]
    names = [f"{model.replace('net', '')}\n{workers}" for model, workers in places]
    yield value_table(f"GOAT, {figure}: {chart.title}, by model and workers", "", names, values)
    yield f"rates and sizes are 1/{SCALE} of the paper's, times are the paper's"
    ours = [(scheme, paper, values[scheme][places.index(chart.place)]) for scheme, paper in chart.printed.items()]
    title = "{}, values in the text: {}, {} workers".format(figure, *chart.place)
    yield beside_paper(title, ours, ("g", ".3g", ".2f"))
    yield list(chart.said(places, values))
    yield Picture(chart.panels(places, values))


FIGURES = {name: partial(run, name) for name in CHARTS}
