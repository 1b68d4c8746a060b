"""GOAT's Figures 4, 5, 7, 8 and 9 with real packets: what GOAT, ESA, ATP and Geryon make of training on its testbed.

The paper's sizes and rates are a thousandth here, so seconds are its seconds. What it does not say is taken from what
it does (`NOTES.md`): a PS takes in what Geryon's 704 MB in 1.95 s say, and so fast is a worker's link, which the worker
fills to the share that section IV-C draws. An epoch is an exchange of gradients for 128 samples of each worker, and
computing takes what Figures 7 and 8 leave for it. No processor is emulated that computes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.papers.common import statements as text
from experiments.papers.common.drawing import save, table_of
from experiments.papers.common.estimates import exact
from experiments.papers.common.figure import Request
from experiments.papers.common.panels import BARS, LINES, Panel, Printed, Values
from experiments.papers.common.statements import Statement
from experiments.papers.common.sweep import read
from experiments.papers.common.trials import Trial, run_trials
from experiments.papers.goat.testbed import SCHEMES, Paces, compared, patient, plan_of
from experiments.run.outcome import Outcome, measured_figures
from planner.core.models import BYTES_PER_PARAMETER, find_model
from planner.core.plan import Plan
from planner.core.problem import Job, Problem
from topo.errors import RunError, writing
from topo.fabric.fabric import Fabric
from topo.fabric.generators import goat_testbed
from topo.fabric.variations import with_aggregators
from traffic.faults.endpoint_faults import Stragglers
from traffic.measure.fidelity import Excuses, planned_rates
from traffic.measure.verdict import VALID
from traffic.wire.packet import FRAGMENT

SCALE = 1000
"""How many times smaller than the paper's all sizes and rates are."""
MIB = 2**20
FRAGMENT_BYTES = BYTES_PER_PARAMETER * FRAGMENT.values
SLOTS = 20 * MIB // SCALE // FRAGMENT_BYTES
"""Of a switch: 20 MB (section IV-B)."""
INTAKE_BPS = 8 * 704 * MIB / 1.95 / SCALE * FRAGMENT.wire_bytes / FRAGMENT_BYTES
"""Of the PS: Geryon's traffic over its time (Figures 8a and 9a). Workers' links have as much."""
BETWEEN_SWITCHES = 10
"""How many times that: in the paper, hosts are far from what their 100 Gbit/s links carry."""
MEAN_SHARE, SPREAD = 0.5, 0.2
"""Of a worker's rate in that of its link: the readings of section IV-C that Figures 10 and 11 agree with."""
RATE_ERROR = 0.05

SAMPLES = 128
"""Of a worker in an epoch: 931 images/s for 2.2 s are 16 times 128 (Figures 5a and 7a)."""
COMPUTING_S = 2.2 - 0.36
"""ResNet-18's: time per epoch less communication time (Figures 7a and 8a, GOAT)."""
GMACS = {
    "resnet18": 1.81, "resnet34": 3.66, "resnet50": 4.09, "densenet121": 2.83, "densenet169": 3.36, "densenet201": 4.29,
}  # fmt: skip
"""Of a sample, as torchvision gives them: other models compute for longer in proportion."""

MOST_WORKERS = 16
WORKERS, QUICK_WORKERS = (4, 8, 12, 16), (8, 16)
MODELS, QUICK_MODELS = ("resnet18", "resnet50"), ("resnet18",)
FIG4_WORKERS, QUICK_FIG4_MODELS = 8, ("resnet18", "densenet121")
ATTEMPTS = 2
DRAW = 0
"""Of the workers' rates, the same for every scheme and model."""

PACED = ("goat", "geryon")
"""Whose workers wait for nothing and send nothing twice: their rates have to be the planned ones."""
NAMES = {"goat": "GOAT", "esa": "ESA", "atp": "ATP", "geryon": "Geryon"}
"""The schemes as the paper calls them."""


# ---- what is run -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A run: an epoch of a model, by so many workers, under a scheme."""

    model: str
    workers: int
    scheme: str

    @property
    def name(self) -> str:
        return f"{self.scheme}-{self.model}-{self.workers}"

    def trial(self) -> Trial:
        problem = testbed(self.model, self.workers)
        plan = plan_of(self.scheme, problem)
        drawn = Stragglers(SPREAD, MEAN_SHARE, DRAW).shares(problem)
        own = own_shares(plan, drawn)
        excuses = Excuses(hosts=frozenset(own), rates=True)
        return Trial(
            self.name,
            problem,
            plan,
            asdict(self),
            patient(fragments(problem), INTAKE_BPS, min(drawn.values())),
            Paces(own, fragments(problem)),
            excuses,
            queue_packets=self.workers * fragments(problem),
        )


def testbed(model: str, workers: int) -> Problem:
    """Three switches and so many workers, half of them under each of two switches; the others stand idle."""
    fabric = with_aggregators(goat_testbed(MOST_WORKERS // 2, INTAKE_BPS), slots=SLOTS)
    fabric = with_wide_links(fabric, BETWEEN_SWITCHES * INTAKE_BPS)
    half = MOST_WORKERS // 2
    names = [f"w{1 + number % 2 * half + number // 2}" for number in range(workers)]
    parameters = -(-find_model(model).parameters // SCALE)
    job = Job(1, tuple(names), ("ps",), BYTES_PER_PARAMETER * parameters, model=model)
    return Problem(fabric, (job,), FRAGMENT)


def with_wide_links(fabric: Fabric, rate_bps: float) -> Fabric:
    """The fabric with so much between switches."""
    links = (
        link
        if {link.a, link.b} & fabric.host_names
        else replace(link, capacity_ab_bps=rate_bps, capacity_ba_bps=rate_bps)
        for link in fabric.links
    )
    return replace(fabric, links=tuple(links))


def fragments(problem: Problem) -> int:
    return problem.fragment.count(problem.jobs[0].gradient_bytes)


def own_shares(plan: Plan, drawn: Mapping[str, float]) -> dict[str, float]:
    """Of the planned rate: a worker sends at its share of its link's rate, but no faster than planned."""
    return {worker: min(1.0, drawn[worker] * INTAKE_BPS / rate) for (_, worker), rate in planned_rates(plan).items()}


# ---- what comes of it --------------------------------------------------------------------------


@dataclass(frozen=True)
class Epoch:
    """What was measured, in the paper's sizes: its MB are MiB. `rate_error` is that of the worker furthest off."""

    communication_time_s: float
    ps_ingress_mb: float
    rate_error: float
    retransmissions: float
    verdict: str

    def trusted(self, scheme: str) -> bool:
        return self.verdict == VALID and (scheme not in PACED or self.rate_error <= RATE_ERROR)


def epoch(trial: Trial, outcome: Outcome) -> Epoch:
    """The figures of a run."""
    figures, (iteration,) = measured_figures(outcome.measured, outcome.monitor), outcome.measured.iterations
    assert isinstance(trial.interference, Paces)
    own = trial.interference.shares
    paces = {worker: rate * own[worker] for (_, worker), rate in planned_rates(trial.plan).items()}
    return Epoch(
        communication_time_s=figures["communication_time_s"],
        ps_ingress_mb=figures["ps_ingress_bytes"] / FRAGMENT.wire_bytes * FRAGMENT_BYTES * SCALE / MIB,
        rate_error=max(abs(rate / paces[worker] - 1) for worker, rate in iteration.sending_rate_bps.items()),
        retransmissions=figures["retransmissions"],
        verdict=outcome.verdict,
    )


def epoch_time_s(setting: Setting, found: Epoch) -> float:
    return COMPUTING_S * GMACS[setting.model] / GMACS["resnet18"] + found.communication_time_s


def throughput(setting: Setting, found: Epoch) -> float:
    """Samples per second."""
    return SAMPLES * setting.workers / epoch_time_s(setting, found)


def communication_time_s(_: Setting, found: Epoch) -> float:
    return found.communication_time_s


def ps_ingress_mb(_: Setting, found: Epoch) -> float:
    return found.ps_ingress_mb


Place = tuple[str, int]
"""A model, and how many workers train it."""


@dataclass(frozen=True)
class Chart:
    """A figure, and at its one place with numbers in the text what that says of GOAT, ESA, ATP and Geryon.

    `more_is_better`: of throughput. `trend`: whether the text says that all schemes rise with workers.
    """

    title: str
    value: Callable[[Setting, Epoch], float]
    place: Place
    paper: tuple[float, ...]
    more_is_better: bool = False
    trend: bool = False

    @property
    def printed(self) -> dict[str, float]:
        """The text's values by scheme."""
        return dict(zip(SCHEMES, self.paper, strict=True))

    def places(self, *, quick: bool) -> list[Place]:
        models = QUICK_MODELS if quick else MODELS
        return [(model, workers) for model in models for workers in (QUICK_WORKERS if quick else WORKERS)]

    def panels(self, places: Sequence[Place], values: Values) -> Iterator[Panel]:
        """One for each model, over workers."""
        for model in dict.fromkeys(model for model, _ in places):
            at = [number for number, place in enumerate(places) if place[0] == model]
            series = {name_of(scheme): [exact(found[number]) for number in at] for scheme, found in values.items()}
            shown = self.printed if model == self.place[0] else {}
            paper: Printed = {name_of(scheme): {self.place[1]: value} for scheme, value in shown.items()}
            yield Panel(LINES, [places[number][1] for number in at], series, "workers", self.title, model, paper)

    def said(self, places: Sequence[Place], values: Values) -> Iterator[Statement]:
        """The order of the values in the text; that GOAT is best everywhere; and what rises with workers."""
        named = {name_of(scheme): values[scheme] for scheme in SCHEMES}
        place = {name: [found[places.index(self.place)]] for name, found in named.items()}
        highest_first = sorted(self.printed, key=self.printed.__getitem__, reverse=True)
        yield from text.in_order(where(self.place), [name_of(scheme) for scheme in highest_first], place, [self.place])
        best = text.is_highest if self.more_is_better else text.is_lowest
        yield best("everywhere", "GOAT", [name_of(s) for s in SCHEMES if s != "goat"], named, list(map(where, places)))
        for model in dict.fromkeys(model for model, _ in places) if self.trend else ():
            for name, found in named.items():
                curve = [value for value, place in zip(found, places, strict=True) if place[0] == model]
                yield text.rises(f"{model}: {name} rises with workers", curve)


class ByModel(Chart):
    """The figure that has models side by side."""

    def places(self, *, quick: bool) -> list[Place]:
        return [(model, FIG4_WORKERS) for model in (QUICK_FIG4_MODELS if quick else GMACS)]

    def panels(self, places: Sequence[Place], values: Values) -> Iterator[Panel]:
        """One, with a bar of each scheme for each model."""
        models = [model for model, _ in places]
        series = {name_of(scheme): list(map(exact, found)) for scheme, found in values.items()}
        paper: Printed = {name_of(scheme): {self.place[0]: value} for scheme, value in self.printed.items()}
        yield Panel(BARS, models, series, "model", self.title, f"{FIG4_WORKERS} workers", paper)


def name_of(scheme: str) -> str:
    """A scheme as the paper calls it."""
    return NAMES.get(scheme, scheme)


def where(place: Place) -> str:
    model, workers = place
    return f"{model}, {workers} workers"


RATE = "training throughput (images/s)"
CHARTS = {
    "fig4": ByModel(RATE, throughput, ("densenet121", 8), (276, 240, 219, 180), more_is_better=True),
    "fig5": Chart(RATE, throughput, ("resnet18", 16), (931, 585, 512, 465), more_is_better=True),
    "fig7": Chart("time per epoch (s)", epoch_time_s, ("resnet18", 16), (2.2, 3.5, 4, 4.65), trend=True),
    "fig8": Chart("communication time (s)", communication_time_s, ("resnet18", 16), (0.36, 1.34, 1.64, 1.95)),
    "fig9": Chart("aggregation overhead of the PS (MB)", ps_ingress_mb, ("resnet18", 16), (44, 167.2, 198, 704)),
}


def run(figure: str, console: Console, request: Request) -> str:
    """Measure what of the figure is not measured yet, print its table beside the paper's, and leave its plot."""
    chart = CHARTS[figure]
    places = chart.places(quick=request.quick)
    found = measured([Setting(*place, scheme) for place in places for scheme in compared()], request, console)
    values = {
        scheme: [chart.value(own, found[own]) for own in (Setting(*place, scheme) for place in places)]
        for scheme in compared()
    }
    names = [f"{model.replace('net', '')}\n{workers}" for model, workers in places]
    console.print(table_of(f"GOAT, {figure}: {chart.title}, by model and workers", "", names, values))
    console.print(comparison(figure, {scheme: values[scheme][places.index(chart.place)] for scheme in SCHEMES}))
    console.print(text.table_of(chart.said(places, values)))
    save(request.results / f"goat-{figure}", *chart.panels(places, values))
    return VALID


def comparison(figure: str, ours: Mapping[str, float]) -> Table:
    chart = CHARTS[figure]
    model, workers = chart.place
    table = Table("", "paper", "ours", "ratio", title=f"{figure}, what the text gives: {model}, {workers} workers")
    for (scheme, own), paper in zip(ours.items(), chart.paper, strict=True):
        table.add_row(scheme, f"{paper:g}", f"{own:.3g}", f"{own / paper:.2f}")
    return table


def measured(settings: Sequence[Setting], request: Request, console: Console) -> dict[Setting, Epoch]:
    """Every run; what an earlier figure has measured is not measured again.

    What was overloaded is no result, and is tried once more. Raises `RunError` when it is again.
    """
    file = request.results / "goat-testbed.jsonl"
    for _ in range(ATTEMPTS):
        missing = [setting for setting in settings if setting not in kept(file)]
        if missing:
            trials = [setting.trial() for setting in missing]
            done = run_trials("goat-testbed", trials, request, console)
            done.tell(console)
            keep(file, zip(missing, map(epoch, trials, done.outcomes), strict=True))
    found = kept(file)
    failed = [setting.name for setting in settings if setting not in found]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(settings)} runs are no result, {failed[0]} for one: let nothing else run on this "
            "machine, and try again; the others are kept"
        )
    return found


def kept(file: Path) -> dict[Setting, Epoch]:
    return {Setting(**json.loads(name)): Epoch(**result) for name, result in read(file)}  # type: ignore[arg-type]


def keep(file: Path, runs: Iterable[tuple[Setting, Epoch]]) -> None:
    """Add the runs that can be trusted."""
    with writing(file), file.open("a") as lines:
        for setting, found in runs:
            if found.trusted(setting.scheme):
                lines.write(json.dumps({"trial": asdict(setting), "result": asdict(found)}) + "\n")
