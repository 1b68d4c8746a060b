"""What a person sees of GOAT's asynchrony: a table of means over the draws, what they say, and the figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

from experiments.report import VALID
from topo.draw import TREE_COLORS

GREY = "#9AA5B1"


@dataclass(frozen=True)
class Point:
    """One run, bytes of whole frames.

    `transfers`: over how many links a fragment goes, in all and those sent again. `collisions`: how often one found
    its slot taken, and went on alone or put out what was there.
    """

    policy: str
    spread: float
    draw: int
    window: int
    overhead_bytes: float
    transfers: float
    aggregated_bytes: float
    ps_ingress_bytes: float
    communication_time_s: float
    collisions: int
    retransmissions: int
    exact: bool
    verdict: str

    @property
    def place(self) -> tuple[int, float, str]:
        """What it shares with the other draws."""
        return self.window, self.spread, self.policy


@dataclass(frozen=True)
class Mean:
    """The runs of one place, of which only valid ones count."""

    policy: str
    spread: float
    window: int
    valid: tuple[Point, ...]
    runs: int

    def of(self, value: Callable[[Point], float]) -> float:
        return fmean(map(value, self.valid))


def means(points: Sequence[Point]) -> list[Mean]:
    """In the order of the points: the draws of a place lie side by side."""
    found = []
    for (window, spread, policy), group in groupby(points, lambda point: point.place):
        runs = list(group)
        found.append(Mean(policy, spread, window, tuple(run for run in runs if run.verdict == VALID), len(runs)))
    return found


# ---- table -------------------------------------------------------------------------------------

COLUMNS: tuple[tuple[str, Callable[[Point], float], str], ...] = (
    ("overhead\n(kB)", lambda point: point.overhead_bytes / 1e3, ".0f"),
    ("transfers per\nfragment", lambda point: point.transfers, ".2f"),
    ("INA amount\n(kB)", lambda point: point.aggregated_bytes / 1e3, ".0f"),
    ("PS ingress\n(kB)", lambda point: point.ps_ingress_bytes / 1e3, ".0f"),
    ("collisions", lambda point: point.collisions, ".0f"),
    ("sent\nagain", lambda point: point.retransmissions, ".0f"),
    ("comm. time\n(ms)", lambda point: point.communication_time_s * 1e3, ".0f"),
)


def points_table(points: Sequence[Point]) -> Table:
    """A row for each window, spread and policy. What is overloaded is counted, and is no result."""
    table = Table(
        title="GOAT, Figure 13, measured: means over draws of the workers' rates",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("window", "spread"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("policy", no_wrap=True)
    for heading, _, _ in COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(VALID, justify="right", no_wrap=True)
    found = means(points)
    for number, mean in enumerate(found):
        last = number + 1 == len(found) or found[number + 1].spread != mean.spread
        table.add_row(*cells(mean), end_section=last)
    return table


def cells(mean: Mean) -> Iterator[str]:
    yield from (str(mean.window), f"{mean.spread:g}", mean.policy)
    for _, value, form in COLUMNS:
        yield format(mean.of(value), form) if mean.valid else "-"
    style = "green" if len(mean.valid) == mean.runs else "bold red"
    yield f"[{style}]{len(mean.valid)}/{mean.runs}[/]"


def conclusion(points: Sequence[Point]) -> Iterator[str]:
    """By policy, how the overhead at the widest spread compares with that at none."""
    for policy, curve in curves(points).items():
        (_, first), (spread, last) = curve[0], curve[-1]
        change = f"{last / first - 1:+.0%}"
        yield f"{policy}: {first:.2f} transfers per fragment at equal rates, {last:.2f} at spread {spread:g} ({change})"


def curves(
    points: Sequence[Point], value: Callable[[Point], float] = lambda point: point.transfers
) -> dict[str, list[tuple[float, float]]]:
    """By policy, a value over the spread, with the widest window."""
    widest = max(point.window for point in points)
    found: dict[str, list[tuple[float, float]]] = {}
    for mean in means(points):
        if mean.window == widest and mean.valid:
            found.setdefault(mean.policy, []).append((mean.spread, mean.of(value)))
    return found


# ---- plot --------------------------------------------------------------------------------------


def draw_points(points: Sequence[Point], unaggregated: int) -> Figure:
    """The paper's figure, the PS's part of it, and where more than one was measured, the overhead over the window."""
    windows = over_window(points)
    figure = Figure(figsize=(14 if windows else 9.5, 3.6), layout="constrained")
    overhead, ingress, *rest = figure.subplots(1, 3 if windows else 2)
    draw_curves(overhead, curves(points))
    overhead.axhline(unaggregated, color=GREY, linestyle="--", label="no aggregation")
    label(overhead, "standard deviation of rates", "communication overhead\n(transfers per fragment)")
    draw_curves(ingress, curves(points, lambda point: point.ps_ingress_bytes / 1e3))
    label(ingress, "standard deviation of rates", "aggregation overhead of the PS (kB)")
    for axes in rest:
        draw_curves(axes, windows)
        axes.set_xscale("log", base=2)
        label(axes, "window (fragments)", "communication overhead\n(transfers per fragment)")
    overhead.legend(fontsize="small")
    return figure


def over_window(points: Sequence[Point]) -> dict[str, list[tuple[float, float]]]:
    """By policy, transfers over the window, at the spread at which more than one was measured."""
    narrow = {point.spread for point in points if point.window < max(p.window for p in points)}
    found: dict[str, list[tuple[float, float]]] = {}
    for mean in sorted(means(points), key=lambda mean: mean.window):
        if mean.spread in narrow and mean.valid:
            found.setdefault(mean.policy, []).append((mean.window, mean.of(lambda point: point.transfers)))
    return found


def draw_curves(axes: Axes, found: dict[str, list[tuple[float, float]]]) -> None:
    for color, (policy, curve) in zip(TREE_COLORS, found.items(), strict=False):
        axes.plot(*zip(*curve, strict=True), "o-", color=color, label=policy)


def label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
