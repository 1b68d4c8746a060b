"""What InArt's two algorithms do as published, beyond its figures: overloads of Algorithm 2, and PSs that differ.

- `overloads`: Algorithm 2 keeps LP-InArt's rate, and its rounded flows then exceed capacities. The paper states
  approximation factors (4.3); here are the loads over the capacities of switches, PSs and links.
- `unequal`: in all experiments of the paper PSs are alike, so that L-InArt gives equal parts. In this experiment, which
  is the kit's, other jobs leave PSs intake rates that differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from rich.table import Table

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import Place
from inakit.experiments.papers.common.estimates import estimate
from inakit.experiments.papers.common.figure_engine import (
    Chart,
    Findings,
    Part,
    Picture,
    Quantity,
    SweptFigure,
    charted,
)
from inakit.experiments.papers.common.figure_registry import COMPARES_VARIANTS, Request, own_planners
from inakit.experiments.papers.common.statements import beside_paper, mean, number, ratio
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.inart.setting import (
    ATP,
    EQUAL,
    INART,
    LBMM,
    LP,
    ONE,
    R_INART,
    SETTINGS,
    SPREADS,
    drawn_problem,
    measure,
)
from inakit.experiments.papers.inart.simulated import HETEROGENEOUS, HOMOGENEOUS, PROCESSES, workers_of
from inakit.experiments.report.method_styles import categories
from inakit.planner.core.method import Options
from inakit.planner.methods.inart.inart_raw import LINKS, SERVERS, SWITCHES, raw_overloads

LEDGER = read_ledger("inart")
SEEDS, UNEQUAL_SEEDS = (10, 3), (5, 1)

# -- Overloads of Algorithm 2.

KINDS = (SWITCHES, SERVERS, LINKS)
MOST_WORKERS = 50
"""The number of workers at which φ is nearest to the paper's 10: φ falls as f rises."""
PRINTED = {SWITCHES: 2.78, SERVERS: 2.73, LINKS: 2.27}
"""The factors that section 4.3 states for φ = 10."""


def overloads(trial: Trial) -> Result:
    """The largest load over its capacity of each kind at LP-InArt's rate, φ, and the paper's factors for this φ."""
    seed = int(trial["seed"])
    problem = drawn_problem(SETTINGS[str(trial["setting"])], int(trial["workers"]), seed)
    found = raw_overloads(problem, Options(seed=seed))
    return {**found.most, "phi": found.phi, **{f"{kind}, factor": bound for kind, bound in found.bounds.items()}}


def overload_charts(request: Request) -> list[Chart]:
    points: dict[Place, Trial] = {workers: {"workers": workers} for workers in workers_of(request)}
    return [
        Chart(
            Quantity(kind, f"most loaded of the {kind} (load over capacity)"),
            points, {setting: {"setting": setting} for setting in (HOMOGENEOUS, HETEROGENEOUS)}, "workers",
            f"InArt, Algorithm 2 at LP-InArt's rate: largest load over capacity, {kind}", kind,
            styles=categories((HOMOGENEOUS, HETEROGENEOUS)),
        )
        for kind in KINDS
    ]  # fmt: skip


def show_overloads(found: Findings) -> Iterator[Part]:
    charts = overload_charts(found.request)
    yield from map(found.table, charts)
    table = Table(
        "load over capacity", "paper's factor, φ = 10", "mean", "most", "factor for our φ", "draws above it",
        title=f"{MOST_WORKERS} workers: the largest of each draw",
    )  # fmt: skip
    cells: list[Trial] = [{"setting": name, "workers": MOST_WORKERS} for name in (HOMOGENEOUS, HETEROGENEOUS)]
    every: dict[str, list[float]] = {}
    for cell, kind in product(cells, KINDS):
        loads, bounds = found.of(cell, kind), found.of(cell, f"{kind}, factor")
        above = sum(load > bound for load, bound in zip(loads, bounds, strict=True))
        bound = found.mean(cell, f"{kind}, factor")
        row = number(PRINTED[kind]), number(found.mean(cell, kind)), number(max(loads)), number(bound)
        table.add_row(f"{cell['setting']}, {kind}", *row, f"{above} of {len(loads)}")
        every.setdefault(kind, []).extend(loads)
    yield table
    phi = estimate([value for cell in cells for value in found.of(cell, "phi")])
    yield [*(LEDGER.judge(f"factor-{kind}", loads) for kind, loads in every.items()), LEDGER.judge("factor-phi", phi)]
    yield Picture([found.panel(chart) for chart in charts])


# -- PSs that differ.

WORKERS = 40
UNEQUAL = (LP, INART, R_INART, ONE, EQUAL, ATP, LBMM)


def unequal_chart(_: Request) -> Chart:
    return Chart(
        Quantity("rate_bps", "sending rate (Mbit/s)", 1e6),
        {spread: {"setting": f"PSs 1 to {spread}", "workers": WORKERS} for spread in SPREADS},
        {scheme: {"scheme": scheme} for scheme in (*UNEQUAL, *own_planners())},
        "intake of the fastest PS over the slowest",
        f"InArt's network, {WORKERS} workers, PSs that differ (our experiment): sending rate (Mbit/s)",
    )


PAIRS = ((INART, R_INART), (ONE, EQUAL))
"""L-InArt's split over equal parts, as published and with our repair."""


def show_unequal(found: Findings) -> Iterator[Part]:
    chart = unequal_chart(found.request)
    yield found.table(chart)
    rates = found.series(chart)
    rows = [
        (f"{upper} / {lower}, 1 to {spread}", PRINTED_GAIN, mean(ratio(above, below)))
        for upper, lower in PAIRS
        for spread, above, below in zip(SPREADS, rates[upper], rates[lower], strict=True)
    ]
    yield beside_paper("L-InArt's split over equal parts; the paper's value is that of its testbed", rows)
    yield Picture([found.panel(chart)])


PRINTED_GAIN = 1.134
"""InArt over R-InArt on the testbed (5.2.2)."""


FIGURES = {
    "overloads": SweptFigure(
        "inart-overloads", "inart-overloads-trials", overloads, charted(overload_charts), show_overloads, SEEDS,
        processes=PROCESSES, leaves_out=COMPARES_VARIANTS,
    ),
    "unequal": SweptFigure(
        "inart-unequal", "inart-trials", measure, charted(lambda request: [unequal_chart(request)]), show_unequal,
        UNEQUAL_SEEDS, processes=PROCESSES,
    ),
}  # fmt: skip
