"""InArt's Figures 2 to 5 by real packets: its testbed of two switches, six workers and two PSs, at 1/1000.

Rates in Mbit/s represent the paper's Gbit/s, and kB represent MB, so that times are the paper's. A link has 6 units and
a PS 4, as in Figure 1. The unit is chosen so that LBMM has the paper's rate of 15.4; with PSs that take in the 100
Gbit/s of their links it would be 33. The text gives values for VGG19 and six workers only, from which 0.4 s of
computing per iteration follow. All figures are views of the same runs, which are kept in the folder
`inart-testbed-trials`, or in `inart-testbed-virtual-trials`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from rich.console import Console

from inakit.experiments.emulate.defaults import rate_words
from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import LINES, Panel, Printed, Values
from inakit.experiments.papers.common.emulated_figure import kind_of, name_in_world
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, SweptFigure, once
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.papers.common.statements import Statement, value_table
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.inart.emulated import conclusion, emulate_plan, gradient_bytes, in_iterations, verdict
from inakit.experiments.papers.inart.setting import MODELS
from inakit.planner.core.problem import Job, Problem
from inakit.planner.registry import find_method
from inakit.topo.fabric.generators import inart_testbed
from inakit.traffic.wire.packet_format import FRAGMENT

LBMM_BPS = 15.4e6
LINK_BPS = 6 * LBMM_BPS / (4 / 3)
NAMES = ("w1", "w5", "w2", "w6", "w3", "w4")
"""The workers in the order in which they are added, alternately from both racks."""
WORKERS = (2, 3, 4, 5, 6)
COMPUTE_S = 0.4
ITERATIONS = 3
BATCH = 32
SCHEMES = {"InArt": "inart", "R-InArt": "inart-equal", "ATP": "atp-tor", "LBMM": "lbmm"}


@dataclass(frozen=True)
class View:
    """A figure: a run's quantity over the number of workers, and the text's values for six workers, by scheme.

    `rises` is true if the text states that all schemes' values rise with workers.
    """

    what: str
    value: Callable[[Result, int], float]
    paper: tuple[float, float, float, float]
    rises: bool = False


VIEWS: Mapping[str, View] = {
    "fig2": View(
        "sending rate (Mbit/s)", lambda run, _: float(run["sending_rate_bps"]) / 1e6, (26.2, 23.1, 19.25, 15.4)
    ),
    "fig3": View(
        "training throughput (images/s)", lambda run, n: BATCH * n / float(run["iteration_s"]), (223, 206, 188, 162)
    ),
    "fig4": View(
        "time per iteration (s)", lambda run, _: float(run["iteration_s"]), (0.69, 0.78, 0.85, 0.97), rises=True
    ),
    "fig5": View("communication time (s)", lambda run, _: float(run["communication_time_s"]), (0.31, 0.38, 0.45, 0.56)),
}


def run(name: str, console: Console, request: Request) -> str:
    """Execute the missing runs, print and draw the figure; VALID if all runs are valid and have their planned rates."""
    swept = SweptFigure(
        f"inart-{name}-{kind_of(request.switch)}", name_in_world("inart-testbed", request.switch) + "-trials",
        partial(emulate, switch=request.switch, results=request.results),
        lambda asked: [trial(*each) for each in product(compared(), counts_of(asked))],
        partial(show, name), draws=once, verdict=verdict,
    )  # fmt: skip
    return swept(console, request)


def counts_of(request: Request) -> Sequence[int]:
    return WORKERS[-1:] if request.quick else WORKERS


def show(name: str, found: Findings) -> Iterator[Part]:
    view, counts = VIEWS[name], counts_of(found.request)
    values = {scheme: [view.value(found.result(trial(scheme, n)), n) for n in counts] for scheme in compared()}
    printed = dict(zip(SCHEMES, view.paper, strict=True))
    beside: dict[str, list[float | None]] = {scheme: [*own, printed.get(scheme)] for scheme, own in values.items()}
    title = f"InArt, Figure {name[3:]}, {kind_of(found.request.switch)}, VGG19: {view.what}"
    yield value_table(title, "workers", [*counts, "6, the paper"], beside)
    yield conclusion(list(found.results.values()))
    yield f"links of {rate_words(LINK_BPS)} with 1/1000 of the paper's rates and sizes"
    yield list(said(view, counts, values))
    series = {scheme: list(map(exact, own)) for scheme, own in values.items()}
    paper: Printed = {scheme: {WORKERS[-1]: value} for scheme, value in printed.items()}
    yield Picture([Panel(LINES, counts, series, "workers", view.what, "testbed, VGG19", paper)])


def compared() -> tuple[str, ...]:
    """The paper's schemes and user-defined planners."""
    return (*SCHEMES, *own_planners())


def said(view: View, counts: Sequence[int], values: Values) -> Iterator[Statement]:
    """The text's sentences: values ordered for six workers, InArt as the best scheme, times that rise with workers."""
    printed = dict(zip(SCHEMES, view.paper, strict=True))
    highest_first = sorted(printed, key=printed.__getitem__, reverse=True)
    last = {scheme: values[scheme][-1:] for scheme in SCHEMES}
    yield from statements.in_order("6 workers", highest_first, last, [counts[-1]])
    best = statements.is_highest if highest_first[0] == "InArt" else statements.is_lowest
    yield best("everywhere", "InArt", [scheme for scheme in SCHEMES if scheme != "InArt"], values, counts)
    if view.rises and len(counts) > 1:
        yield from (statements.rises(f"{scheme} rises with workers", values[scheme]) for scheme in SCHEMES)


def trial(scheme: str, workers: int) -> Trial:
    """The sweep's key of a run."""
    return {"scheme": scheme, "workers": workers}


def emulate(trial: Trial, switch: str, results: Path) -> Result:
    problem = testbed(int(trial["workers"]))
    plan = find_method(SCHEMES.get(str(trial["scheme"]), str(trial["scheme"]))).plan(problem)
    return emulate_plan("inart-testbed", problem, plan, trial, switch, results)


def testbed(workers: int) -> Problem:
    job = Job(1, NAMES[:workers], ("ps1", "ps2"), gradient_bytes(MODELS["VGG19"]))
    return in_iterations(Problem(inart_testbed(LINK_BPS), (job,), FRAGMENT), ITERATIONS, COMPUTE_S)


FIGURES = {f"{name}-emulated": partial(run, name) for name in VIEWS}
