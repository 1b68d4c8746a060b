"""GOAT's Figures 10 to 13: GOAT, ESA, ATP and Geryon on a leaf-spine and a fat-tree, under asynchronous arrival.

What the paper leaves open is chosen, or shown both ways, as `NOTES.md` explains: workers' rates have a mean of half a
link's; ESA and ATP sum on the shortest path to the PS, or go by the nearest programmable switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from rich.console import Console
from rich.table import Table

from experiments.papers import statements
from experiments.papers.goat_networks import NETWORKS, Drawn, draw
from experiments.papers.statements import Statement
from experiments.papers.sweep import Measured, Request, Result, Trial, sweep
from experiments.report import VALID
from planner.goat.arrival import FloatArray, Gradient, Sharing, simulate
from planner.goat.gina import value
from planner.goat.krgs import KrgsOptions, schedule
from topo.errors import writing

MODEL_BYTES, MEMORY_BYTES, SHARE = 221e6, 64e6, 0.2
SUB_MODELS = 14
"""Of equal size: four fit into a switch."""
MEAN_RATE, SLOWEST, SPREAD = 0.5, 0.01, 0.2
"""Of a link's rate, of which a ratio in [0, 1] is drawn; the spread is the paper's."""
GRADIENT = Gradient(fragments=2210, slots=640, lanes=64)
"""221 to 64, in fragments of 100 kB: of finer ones the same share is aggregated."""

WORKERS = (20, 30, 35, 40, 45)
SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
SEEDS, QUICK_SEEDS, ROUNDINGS = 30, 3, 3
PROCESSES = 2

Scheme = Callable[[Drawn, FloatArray], Result]


def goat(objective: str, drawn: Drawn, _rates: FloatArray) -> Result:
    """A sum that a switch makes and a gradient sent to the PS come to it once each."""
    gina = drawn.gina(np.full(SUB_MODELS, MODEL_BYTES / SUB_MODELS), MEMORY_BYTES)
    found, _ = schedule(gina, KrgsOptions(drawn.seed, ROUNDINGS, objective))
    raw = int((found.y == gina.server).sum())
    ingress = (found.x[:, : gina.server].sum() + raw) * MODEL_BYTES / SUB_MODELS
    return metrics(drawn, value(gina, found), ingress) | {"unaggregated_gb": raw * MODEL_BYTES / SUB_MODELS / 1e9}


def shared(policy: str, routing: str, drawn: Drawn, rates: FloatArray) -> Result:
    counts = simulate(drawn.slot_tree(routing), Sharing(policy), rates, GRADIENT)
    size = MODEL_BYTES / GRADIENT.fragments
    return metrics(drawn, counts.transfers * size, counts.ingress * size)


def geryon(drawn: Drawn, _rates: FloatArray) -> Result:
    """Shortest paths, and no sums."""
    return metrics(drawn, drawn.links * MODEL_BYTES, len(drawn.workers) * MODEL_BYTES)


def metrics(drawn: Drawn, overhead_bytes: float, ingress_bytes: float) -> dict[str, float]:
    """The paper's (section IV-A); the in-network aggregation amount is all gradients less what comes to the PS."""
    aggregated = len(drawn.workers) * MODEL_BYTES - ingress_bytes
    return {"overhead": overhead_bytes / 1e9, "ingress": ingress_bytes / 1e9, "aggregated": aggregated / 1e9}


SCHEMES: dict[str, Scheme] = {
    "GOAT": partial(goat, "traffic"),
    "GOAT, Eq. (4)": partial(goat, "saved"),
    "ESA, on the path": partial(shared, "esa", "path"),
    "ESA, by the nearest": partial(shared, "esa", "nearest"),
    "ATP, on the path": partial(shared, "atp", "path"),
    "ATP, by the nearest": partial(shared, "atp", "nearest"),
    "Geryon": geryon,
}
STYLES = {
    "GOAT": ("#B3261E", "-"),
    "GOAT, Eq. (4)": ("#B3261E", ":"),
    "ESA, on the path": ("#0072B2", "-"),
    "ESA, by the nearest": ("#0072B2", "--"),
    "ATP, on the path": ("#009E73", "-"),
    "ATP, by the nearest": ("#009E73", "--"),
    "Geryon": ("#7A7A7A", "-"),
}
ASYNCHRONOUS = {name for name in SCHEMES if name.startswith(("ESA", "ATP"))}


@dataclass(frozen=True)
class Chart:
    """A figure: its metric over an axis, and what the text says of it: [network, value of the axis], by scheme."""

    name: str
    metric: str
    title: str
    axis: str
    paper: dict[tuple[str, float], dict[str, float]]

    @property
    def points(self) -> Sequence[float]:
        return SPREADS if self.axis == "spread" else WORKERS

    def trial(self, scheme: str, network: str, at: float, seed: int) -> Trial:
        """Rates matter only to ESA and ATP."""
        workers = int(at) if self.axis == "workers" else 35
        spread = at if self.axis == "spread" and scheme in ASYNCHRONOUS else SPREAD
        return {"scheme": scheme, "network": network, "workers": workers, "spread": spread, "seed": seed}


LEAF_SPINE_35, FAT_TREE_40 = ("leaf-spine", 35.0), ("fat-tree", 40.0)
CHARTS = {
    chart.name: chart
    for chart in (
        Chart("fig10", "ingress", "aggregation overhead of the PS", "workers",
              {LEAF_SPINE_35: {"GOAT": 0.06, "ESA": 5.7, "ATP": 6.7, "Geryon": 8.4}}),
        Chart("fig11", "aggregated", "in-network aggregation amount", "workers",
              {FAT_TREE_40: {"GOAT": 9.6, "ESA": 3.2, "ATP": 1.9}}),
        Chart("fig12", "overhead", "communication overhead", "workers",
              {LEAF_SPINE_35: {"GOAT": 13.7, "ESA": 19.8, "ATP": 20.9, "Geryon": 37.1}}),
        Chart("fig13", "overhead", "communication overhead, 35 workers", "spread", {}),
    )
}  # fmt: skip


def measure(trial: Trial) -> Result:
    """One scheme for one draw of hosts, programmable switches and rates."""
    workers, seed = int(trial["workers"]), int(trial["seed"])
    drawn = draw(str(trial["network"]), workers, seed, SHARE)
    return SCHEMES[str(trial["scheme"])](drawn, drawn_rates(workers, float(trial["spread"]), seed))


def drawn_rates(workers: int, spread: float, seed: int) -> FloatArray:
    """Shares of a link's rate, cut off at 1 and just above 0."""
    drawn: FloatArray = np.random.default_rng(seed).normal(MEAN_RATE, spread, workers).clip(SLOWEST, 1)
    return drawn


def run(figure: str, console: Console, request: Request) -> str:
    """Measure a figure, print its tables, and leave its plot. The same seed has the same draws for all schemes."""
    chart, seeds = CHARTS[figure], range(QUICK_SEEDS if request.quick else SEEDS)
    trials = [
        chart.trial(scheme, network, at, seed)
        for scheme in SCHEMES for network in NETWORKS for at in chart.points for seed in seeds
    ]  # fmt: skip
    measured = sweep(trials, measure, request.results / "goat-simulation.jsonl", console, processes=PROCESSES)
    for network in NETWORKS:
        console.print(table(chart, measured, network, seeds))
    if chart.paper:
        console.print(comparison(chart, measured, seeds))
    if chart.axis == "spread":
        console.print(statements.table_of(crossings(chart, measured, seeds)))
    plot(chart, measured, seeds, request)
    return VALID


def mean(chart: Chart, measured: Measured, scheme: str, network: str, at: float, seeds: range) -> float:
    return measured.mean(chart.metric, [chart.trial(scheme, network, at, seed) for seed in seeds])


def table(chart: Chart, measured: Measured, network: str, seeds: range) -> Table:
    title = f"GOAT, {chart.name}: {chart.title} (GB), {network}"
    found = Table(chart.axis, *(f"{at:g}" for at in chart.points), title=title)
    for scheme in SCHEMES:
        found.add_row(scheme, *(f"{mean(chart, measured, scheme, network, at, seeds):.2f}" for at in chart.points))
    return found


def comparison(chart: Chart, measured: Measured, seeds: range) -> Table:
    """Every value that the text gives, beside each reading of it."""
    found = Table("", "paper", "ours", "ratio", title=f"{chart.name}, what the text gives")
    for (network, at), values in chart.paper.items():
        for scheme in SCHEMES:
            paper = values.get(scheme.split(",")[0])
            if paper:
                ours = mean(chart, measured, scheme, network, at, seeds)
                name = f"{scheme}, {network}, {at:g} {chart.axis}"
                found.add_row(name, f"{paper:.2f}", f"{ours:.2f}", f"{ours / paper:.2f}")
    return found


def crossings(chart: Chart, measured: Measured, seeds: range) -> Iterator[Statement]:
    """Whether ESA and ATP are below GOAT at equal rates, and above it in the end."""
    for network in NETWORKS:
        for scheme in [name for name in SCHEMES if name in ASYNCHRONOUS]:
            (first, last), (goat_first, goat_last) = (
                [mean(chart, measured, name, network, at, seeds) for at in (chart.points[0], chart.points[-1])]
                for name in (scheme, "GOAT")
            )
            yield Statement(
                f"{network}: {scheme} crosses GOAT from below",
                f"{first:.1f} to {last:.1f}, GOAT {goat_last:.1f}",
                first < goat_first and last > goat_last,
            )


def plot(chart: Chart, measured: Measured, seeds: range, request: Request) -> None:
    canvas = Canvas(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(canvas)
    for axes, network in zip(canvas.subplots(1, 2), NETWORKS, strict=True):
        for scheme, (color, style) in STYLES.items():
            values = [mean(chart, measured, scheme, network, at, seeds) for at in chart.points]
            axes.plot(chart.points, values, style, color=color, marker="o", markersize=3, label=scheme)
        axes.set(title=network, xlabel=chart.axis, ylabel=f"{chart.title} (GB)", ylim=(0, None))
    canvas.axes[0].legend(fontsize=7, handlelength=4)
    with writing(request.results):
        for suffix in ("png", "svg"):
            canvas.savefig(request.results / f"goat-{chart.name}.{suffix}")
