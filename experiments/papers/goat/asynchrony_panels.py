"""The picture of GOAT's emulated Figure 13: overhead and PS ingress over the spread, and overhead over windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inakit.experiments.papers.common.estimates import MISSING, exact
from inakit.experiments.papers.common.panels import LINES, Panel
from inakit.experiments.papers.goat.asynchrony_report import (
    AsynchronyPoint,
    Mean,
    ingress_kb,
    over_spread,
    over_window,
    transfers,
)

OVERHEAD = "communication overhead\n(transfers per fragment)"
SPREAD = "standard deviation of the workers' rates"
NOTHING_SUMMED = "no aggregation"


def panels(points: Sequence[AsynchronyPoint], unaggregated: int) -> list[Panel]:
    """The paper's figure, the PS ingress beside it, and, if several windows were measured, the overhead over windows.

    `unaggregated` is how many links a fragment crosses without any aggregation, which is drawn as a line.
    """
    spreads, windows = over_spread(points), over_window(points)
    found = [
        panel(spreads, "spread", transfers, SPREAD, OVERHEAD, floor=unaggregated),
        panel(spreads, "spread", ingress_kb, SPREAD, "PS ingress (kB)"),
    ]
    if windows:
        title = f"at a standard deviation of {windows[0].spread:g}"
        found.append(panel(windows, "window", transfers, "window (fragments)", OVERHEAD, title=title))
    return found


def panel(
    found: Sequence[Mean],
    axis: str,
    value: Callable[[AsynchronyPoint], float],
    xlabel: str,
    ylabel: str,
    *,
    title: str = "",
    floor: int | None = None,
) -> Panel:
    """A line for each policy over `axis`, with a gap where no run was valid; `floor` is drawn as no aggregation."""
    places = sorted({getattr(mean, axis) for mean in found})
    at = {(mean.policy, getattr(mean, axis)): mean.estimate(value) for mean in found}
    policies = dict.fromkeys(mean.policy for mean in found)
    series = {policy: [at.get((policy, place), MISSING) for place in places] for policy in policies}
    if floor is not None:
        series[NOTHING_SUMMED] = [exact(float(floor)) for _ in places]
    return Panel(LINES, places, series, xlabel, ylabel, title, log="x" if axis == "window" else "")
