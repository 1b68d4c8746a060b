"""InArt's Figures 2 to 5 by real packets: its testbed of two switches, six workers and two PSs, at 1/1000.

Rates in Mbit/s represent the paper's Gbit/s, and kB represent MB, so that times are the paper's. A link has 6 units and
a PS 4, as in Figure 1. The unit is chosen so that LBMM has the paper's rate of 15.4; with PSs that take in the 100
Gbit/s of their links it would be 33. The text gives values for VGG19 and six workers only, from which 0.4 s of
computing per iteration follow; for ResNet-50 they are as much shorter as its multiplications are fewer. The paper runs
its testbed 30 times, and so do schemes that round at random. All figures are views of the same runs, which are kept in
the folder `inart-testbed-trials`, or in `inart-testbed-virtual-trials`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from rich.console import Console

from inakit.experiments.papers.common.claims import Evidence, read_ledger
from inakit.experiments.papers.common.drawing import LINES, Panel, Printed
from inakit.experiments.papers.common.emulated_figure import conclusion, kind_of, name_in_world, rates_as_planned
from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, Quantity, SweptFigure, by_seed
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.papers.common.statements import Statement, beside_paper, ratio, value_table
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.inart.emulated import emulate_plan, gradient_bytes, in_iterations
from inakit.experiments.papers.inart.setting import ATP, FITTED, INART, LBMM, MODELS, ONE, R_INART, planned_by
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.generators import inart_testbed
from inakit.topo.files.quantities import in_words
from inakit.traffic.wire.packet_format import FRAGMENT

LEDGER = read_ledger("inart")
LBMM_BPS = 15.4e6
LINK_BPS = 6 * LBMM_BPS / (4 / 3)
NAMES = ("w1", "w5", "w2", "w6", "w3", "w4")
"""The workers in the order in which they are added, alternately from both racks."""
WORKERS = (2, 3, 4, 5, 6)
VGG19, RESNET = "VGG19", "ResNet-50"
COMPUTE_S = {VGG19: 0.4, RESNET: 0.4 * 4.09 / 19.63}
"""The computing time of an iteration. Fitted for VGG19: Figure 4's times less those of Figure 5. For ResNet-50, of
which the text has no value, it is in proportion to the multiplications per sample (torchvision's numbers)."""
ITERATIONS = 3
BATCH = 32
SEEDS, FEWER = (30, 5), 5
"""The roundings of a scheme that rounds at random: for six workers with VGG19 in the full and the quick form, and the
most elsewhere."""
ROUNDED = (INART, R_INART, FITTED)
"""The schemes that round at random."""
SCHEMES = {"inart": INART, "rinart": R_INART, "atp": ATP, "lbmm": LBMM}
"""The paper's schemes, by their names in the ledger."""
READ_AS = {INART: INART, R_INART: R_INART, FITTED: INART, ONE: INART, ATP: ATP, LBMM: LBMM}
"""The schemes that are run, and the paper's with which each is compared."""


@dataclass(frozen=True)
class View:
    """A figure: a quantity of a run over the number of workers, and the text's values for six workers, by scheme.

    `afterwards` gives the quantity of an iteration in which results follow gradients, from its `TestbedTimes`.
    """

    quantity: Quantity
    paper: tuple[float, float, float, float]
    afterwards: Callable[[TestbedTimes], float] | None = None


@dataclass(frozen=True)
class TestbedTimes:
    """An iteration's computing time, and its communication time if results follow the last gradient, in s."""

    compute_s: float
    communication_s: float

    @property
    def iteration_s(self) -> float:
        return self.compute_s + self.communication_s


COUNTED_WORKERS = 5
"""The workers whose images the paper's throughput counts: 223 images/s in 0.69 s are 154, about five batches of 32."""
VIEWS: Mapping[str, View] = {
    "fig2": View(Quantity("sending_rate_bps", "sending rate (Mbit/s)", 1e6), (26.2, 23.1, 19.25, 15.4)),
    "fig3": View(
        Quantity(
            "iteration_s", "training throughput (images/s)", of_mean=lambda mean, n: BATCH * int(n["workers"]) / mean
        ),
        (223, 206, 188, 162), lambda times: BATCH * COUNTED_WORKERS / times.iteration_s,
    ),
    "fig4": View(
        Quantity("iteration_s", "time per iteration (s)"), (0.69, 0.78, 0.85, 0.97), lambda times: times.iteration_s
    ),
    "fig5": View(
        Quantity("communication_time_s", "communication time (s)"), (0.31, 0.38, 0.45, 0.56),
        lambda times: times.communication_s,
    ),
}  # fmt: skip


def run(name: str, console: Console, request: Request) -> str:
    """Execute the missing runs, print and draw the figure; VALID if all runs are valid and have their planned rates."""
    swept = SweptFigure(
        f"inart-{name}-{kind_of(request.switch)}", name_in_world("inart-testbed", request.switch) + "-trials",
        partial(emulate, switch=request.switch, results=request.results),
        lambda asked: [cell_of(*each) for each in product(compared(), counts_of(asked), models_of(asked))],
        partial(show, name), SEEDS, draws, rates_as_planned,
    )  # fmt: skip
    return swept(console, request)


def counts_of(request: Request) -> Sequence[int]:
    return WORKERS[-1:] if request.quick else WORKERS


def models_of(request: Request) -> Sequence[str]:
    return (VGG19,) if request.quick else tuple(COMPUTE_S)


def draws(cell: Trial, seeds: int) -> list[Trial]:
    """A trial for each rounding of a scheme that rounds at random, or a single trial; most at the text's place."""
    at_text = cell["workers"] == WORKERS[-1] and cell["model"] == VGG19
    return by_seed(cell, 1 if cell["scheme"] not in ROUNDED else seeds if at_text else min(seeds, FEWER))


def show(name: str, found: Findings) -> Iterator[Part]:
    view, counts, panels = VIEWS[name], counts_of(found.request), []
    printed = {scheme: dict(zip(SCHEMES.values(), view.paper, strict=True)).get(READ_AS[scheme]) for scheme in READ_AS}
    for model in models_of(found.request):
        series = {
            scheme: [found.estimate(cell_of(scheme, n, model), view.quantity) for n in counts] for scheme in compared()
        }
        paper: Printed = {scheme: {WORKERS[-1]: value} for scheme, value in printed.items() if value and model == VGG19}
        title = f"InArt, Figure {name[3:]}, {kind_of(found.request.switch)}, {model}: {view.quantity.label}"
        beside = {scheme: [*(point.value for point in own), None] for scheme, own in series.items()}
        headings: list[object] = [*counts]
        if paper:
            beside = {scheme: [*own[:-1], printed.get(scheme)] for scheme, own in beside.items()}
            headings.append("6, the paper")
        yield value_table(title, "workers", headings, beside)
        panels.append(Panel(LINES, counts, series, "workers", view.quantity.label, f"testbed, {model}", paper))
        if model == VGG19:
            yield judged(name, counts, series)
    yield from afterwards(view, found, printed)
    yield conclusion(list(found.results.values()))
    yield f"links of {in_words(LINK_BPS, 'bit/s')} with 1/1000 of the paper's rates and sizes"
    yield Picture(panels)


def afterwards(view: View, found: Findings, printed: Mapping[str, float | None]) -> Iterator[Part]:
    """The figure's values if results follow the last gradient: a measured time, and as long again for results."""
    if view.afterwards is None:
        return
    rows = []
    for scheme in compared():
        time_s = found.mean(cell_of(scheme, WORKERS[-1]), "communication_time_s")
        times = TestbedTimes(COMPUTE_S[VGG19], 2 * time_s)
        rows.append((scheme, printed.get(scheme), view.afterwards(times)))
    counted = f"; images of {COUNTED_WORKERS} workers" if "images" in view.quantity.label else ""
    yield beside_paper(f"6 workers, VGG19, if results follow the last gradient{counted}", rows, heading="scheme")


def compared() -> tuple[str, ...]:
    """The schemes that are run, and user-defined planners."""
    return (*READ_AS, *own_planners())


def judged(name: str, counts: Sequence[int], series: Mapping[str, Sequence[Estimate]]) -> list[Statement]:
    """The figure's claims: values and ratios for six workers, the best scheme, and times that rise with workers."""
    own = {key: series[scheme] for key, scheme in SCHEMES.items()}
    evidence: dict[str, Evidence] = {
        **{key: points[-1] for key, points in own.items()},
        **{f"over-{key}": ratio(own["inart"][-1], points[-1]) for key, points in own.items()},
        "best": {SCHEMES[key]: points for key, points in own.items()},
    }
    if len(counts) > 1:
        evidence["trend"] = {SCHEMES[key]: points for key, points in own.items()}
    return LEDGER.judge_each(f"{name}-emulated", evidence, counts)


def cell_of(scheme: str, workers: int, model: str = VGG19) -> Trial:
    """The keys of a scheme's runs."""
    return {"scheme": scheme, "workers": workers, "model": model}


def emulate(trial: Trial, switch: str, results: Path) -> Result:
    problem = testbed(int(trial["workers"]), str(trial["model"]))
    plan = planned_by(str(trial["scheme"])).of(problem, int(trial["seed"]))
    return emulate_plan("inart-testbed", problem, plan, trial, switch, results)


def testbed(workers: int, model: str = VGG19) -> Problem:
    job = Job(1, NAMES[:workers], ("ps1", "ps2"), gradient_bytes(MODELS[model]))
    return in_iterations(Problem(inart_testbed(LINK_BPS), (job,), FRAGMENT), ITERATIONS, COMPUTE_S[model])


FIGURES = {f"{name}-emulated": partial(run, name) for name in VIEWS}
