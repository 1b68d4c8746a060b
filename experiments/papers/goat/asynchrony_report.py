"""Means over the draws of GOAT's emulated Figure 13: a table, a conclusion, and the statements about the curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.table import Table

from inakit.experiments.papers.common.estimates import MISSING, Estimate, estimate
from inakit.experiments.papers.common.statements import Statement, crosses, rises
from inakit.experiments.run.printed.tables import NARROW
from inakit.traffic.measure.verdict import VALID


@dataclass(frozen=True)
class AsynchronyPoint:
    """The figures of one run; bytes are those of whole frames.

    `transfers` is how many links a fragment crosses on average, by all its packets and those sent again. `collisions`
    counts fragments that found their slot taken and went on alone or evicted what was there.
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


@dataclass(frozen=True)
class Mean:
    """The runs of one place in the figure, of which only valid ones count; `runs` is the number of all."""

    policy: str
    spread: float
    window: int
    valid: tuple[AsynchronyPoint, ...]
    runs: int

    def of(self, value: Callable[[AsynchronyPoint], float]) -> float:
        """The mean of a figure over the valid runs, of which there must be one."""
        return fmean(map(value, self.valid))

    def estimate(self, value: Callable[[AsynchronyPoint], float]) -> Estimate:
        """The mean over valid draws with its interval; missing where none is valid."""
        return estimate([value(point) for point in self.valid]) if self.valid else MISSING


def means(points: Iterable[AsynchronyPoint]) -> list[Mean]:
    """A mean for each place in the figure, in the order in which the places first occur."""
    places: dict[tuple[str, float, int], list[AsynchronyPoint]] = {}
    for point in points:
        places.setdefault((point.policy, point.spread, point.window), []).append(point)
    return [
        Mean(*place, tuple(point for point in found if point.verdict == VALID), len(found))
        for place, found in places.items()
    ]


def over_spread(points: Sequence[AsynchronyPoint]) -> list[Mean]:
    """The means of the figure itself, which has the widest window, by spread."""
    widest = max(point.window for point in points)
    return sorted(means(point for point in points if point.window == widest), key=lambda mean: mean.spread)


def over_window(points: Sequence[AsynchronyPoint]) -> list[Mean]:
    """The means at the spread at which several windows were measured, by window; empty where none were."""
    widest = max(point.window for point in points)
    spreads = {point.spread for point in points if point.window < widest}
    return sorted(means(point for point in points if point.spread in spreads), key=lambda mean: mean.window)


COLUMNS: tuple[tuple[str, Callable[[AsynchronyPoint], float], str], ...] = (
    ("links\n(kB)", lambda point: point.overhead_bytes / 1e3, ".0f"),
    ("links/\nfragm.", lambda point: point.transfers, ".2f"),
    ("INA\n(kB)", lambda point: point.aggregated_bytes / 1e3, ".0f"),
    ("PS\n(kB)", lambda point: point.ps_ingress_bytes / 1e3, ".0f"),
    ("colli-\nsions", lambda point: point.collisions, ".0f"),
    ("sent\nagain", lambda point: point.retransmissions, ".0f"),
    ("time\n(ms)", lambda point: point.communication_time_s * 1e3, ".0f"),
)


def means_table(axis: str, found: Sequence[Mean]) -> Table:
    """A row for each mean, grouped by `axis`, which is "spread" or "window". A place without a valid run has none."""
    caption = "on all links, links that a fragment takes; aggregated in the network; PS ingress"
    table = Table(caption=caption, **NARROW)
    table.add_column(axis, justify="right", no_wrap=True)
    table.add_column("policy", no_wrap=True)
    for heading, _, _ in COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("valid", justify="right", no_wrap=True)
    following = [*(getattr(mean, axis) for mean in found[1:]), None]
    for mean, after in zip(found, following, strict=True):
        own = getattr(mean, axis)
        table.add_row(f"{own:g}", mean.policy, *cells(mean), end_section=own != after)
    return table


def cells(mean: Mean) -> Iterator[str]:
    """A table row's cells of one mean: its figures, and how many of the runs are valid."""
    for _, value, form in COLUMNS:
        yield format(mean.of(value), form) if mean.valid else "-"
    style = "green" if len(mean.valid) == mean.runs else "bold red"
    yield f"[{style}]{len(mean.valid)}/{mean.runs}[/]"


def conclusion(points: Sequence[AsynchronyPoint]) -> Iterator[str]:
    """A sentence for each policy: its overhead at the largest spread compared with that at equal rates."""
    for policy, curve in curves(over_spread(points), "spread", transfers).items():
        (_, first), (spread, last) = curve[0], curve[-1]
        change = f"{last / first - 1:+.0%}"
        yield f"{policy}: {first:.2f} transfers per fragment at equal rates, {last:.2f} at spread {spread:g} ({change})"


def said(points: Sequence[AsynchronyPoint]) -> Iterator[Statement]:
    """The text's sentences about Figure 13, for the widest window."""
    found = curves(over_spread(points), "spread", transfers)
    goat = [value for _, value in found.get("goat", [])]
    for policy in ("esa", "atp"):
        curve = [value for _, value in found.get(policy, [])]
        if goat and curve:
            yield crosses(f"{policy} crosses goat from below", curve, goat)
            yield rises(f"{policy} rises with the spread", curve)


def transfers(point: AsynchronyPoint) -> float:
    """How many links a fragment crosses on average."""
    return point.transfers


def ingress_kb(point: AsynchronyPoint) -> float:
    """The PS ingress in kB."""
    return point.ps_ingress_bytes / 1e3


def curves(
    found: Sequence[Mean], axis: str, value: Callable[[AsynchronyPoint], float]
) -> dict[str, list[tuple[float, float]]]:
    """For each policy, its valid means as pairs of a place on `axis` and a value."""
    result: dict[str, list[tuple[float, float]]] = {}
    for mean in found:
        if mean.valid:
            result.setdefault(mean.policy, []).append((getattr(mean, axis), mean.of(value)))
    return result
