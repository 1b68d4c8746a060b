"""GOAT's Figure 13 by real packets: the traffic on all links over the spread of the workers' rates, by slot policy.

The paper computes the figure (section IV-C). Here its testbed (section IV-B) is emulated: three switches with 20 MB
each for the 44 MB of ResNet-18, which makes 116 slots for a gradient of 256 fragments. The result depends on the number
of fragments that a worker can be ahead of the slowest one. The paper's workers send at their rates without waiting for
results, so here a window is the whole gradient, and every timeout is longer than the stragglers' delay. With windows of
16 and 32, far fewer than slots, ATP and ESA stay below GOAT; with 64 ATP is above it, with 128 both are.
Retransmissions count, so that ATP and ESA can cause more traffic than no aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from statistics import fmean

from rich.table import Table

from inakit.experiments.papers.common.drawing import LINES, Panel
from inakit.experiments.papers.common.emulated_figure import EmulatedFigure, EmulatedRun, EmulatedRuns
from inakit.experiments.papers.common.estimates import MISSING, Estimate, estimate, exact
from inakit.experiments.papers.common.figure_engine import Part, Picture, Rows
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.papers.goat.testbed import SCHEMES, Paces, at_rate, everywhere, name_of, patient, plan_of
from inakit.experiments.run.console import NARROW, figures, names
from inakit.experiments.run.outcome import Outcome, measured_figures, switch_events
from inakit.planner.core.plan import SHARED_WINDOW, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.generators import goat_testbed
from inakit.topo.fabric.variations import with_aggregators
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.measure.verdict import VALID
from inakit.traffic.wire.packet_format import FRAGMENT, Event

FRAGMENTS = SHARED_WINDOW
"""The fragments of a gradient, which is also the window where slots are shared."""
SLOTS = FRAGMENTS * 20 // 44
"""The slots of a switch: as large a part of a gradient as its 20 MB are of ResNet-18's 44 MB (section IV-B)."""
CAPACITY_BPS = 20e6
RATE_BPS = 1.3e6
"""A worker's mean rate, 500 fragments a second. Eight unaggregated flows of this rate fit the link to the PS, so that
no queue adds to the spread."""
SPREADS, QUICK_SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), (0.0, 0.2, 0.4)
WINDOWS = (16, 32, 64, 128, FRAGMENTS)
WINDOWS_SPREAD = 0.2
"""The paper's own spread (section IV-C), at which windows are compared."""
DRAWS = 3
"""The number of draws of the workers' rates; each is measured with every policy."""


@dataclass(frozen=True)
class AsynchronyRun:
    """A run's place in the figure: `spread` is the standard deviation of the rates' shares, `draw` their seed.

    `window` is the number of fragments that a worker may have on their way.
    """

    policy: str
    spread: float
    draw: int = 0
    window: int = FRAGMENTS

    def emulated_run(self) -> EmulatedRun:
        """The run on the testbed, with workers that send at the drawn rates."""
        problem = testbed()
        shares = Stragglers(self.spread, seed=self.draw).shares(problem)
        workers = frozenset(worker for job in problem.jobs for worker in job.workers)
        return EmulatedRun(
            f"{self.policy}-spread{self.spread:g}-window{self.window}-draw{self.draw}",
            problem,
            at_rate(PLANS[self.policy](problem) if self.policy in PLANS else plan_of(self.policy, problem), RATE_BPS),
            asdict(self),
            patient(FRAGMENTS, RATE_BPS, min(shares.values())),
            (Paces(shares, self.window, workers if self.spread else frozenset()),),
        )


def settings(*, quick: bool) -> Iterator[AsynchronyRun]:
    """Every spread with every policy, then, unless `quick`, smaller windows. Equal rates are drawn only once."""
    policies = [*(policy for policy in PLANS if policy != "shadow-copy" or not quick), *own_planners()]
    for spread in QUICK_SPREADS if quick else SPREADS:
        for policy in policies:
            yield from (AsynchronyRun(policy, spread, draw) for draw in range(1 if quick or not spread else DRAWS))
    for window in () if quick else WINDOWS[:-1]:
        for policy in policies:
            yield from (AsynchronyRun(policy, WINDOWS_SPREAD, draw, window) for draw in range(DRAWS))


def testbed() -> Problem:
    """GOAT's testbed with a job of eight workers, for one iteration: in a second one ATP's windows would be smaller."""
    fabric = with_aggregators(goat_testbed(capacity_bps=CAPACITY_BPS), slots=SLOTS)
    workers = tuple(host.name for host in fabric.hosts if host.name != "ps")
    job = Job(1, workers, ("ps",), FRAGMENTS * 4 * FRAGMENT.values)
    return Problem(fabric, (job,), FRAGMENT)


PLANS: dict[str, Callable[[Problem], Plan]] = {
    **{name: SCHEMES[name] for name in ("atp", "esa", "goat-krgs", "goat")},
    "shadow-copy": everywhere("shadow-copy"),
}
"""The plans that are compared. Shadow copies (SwitchML's, here below a PS) are not in the paper's figure: with them a
worker's lead never exceeds its number of slots."""


@dataclass(frozen=True)
class AsynchronyPoint:
    """The figures of one run; bytes count whole frames.

    `transfers` is the mean number of links that a fragment's packets cross, retransmissions included. `collisions`
    counts fragments that found their slot taken and went on alone or evicted its contents.
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
    """The runs of one place in the figure; `runs` is the number of all runs, the other fields use valid ones only."""

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
    """A mean for each place in the figure, in the order of first occurrence."""
    places: dict[tuple[str, float, int], list[AsynchronyPoint]] = {}
    for point in points:
        places.setdefault((point.policy, point.spread, point.window), []).append(point)
    return [
        Mean(*place, tuple(point for point in found if point.verdict == VALID), len(found))
        for place, found in places.items()
    ]


def over_spread(points: Sequence[AsynchronyPoint]) -> list[Mean]:
    widest = max(point.window for point in points)
    return sorted(means(point for point in points if point.window == widest), key=lambda mean: mean.spread)


def over_window(points: Sequence[AsynchronyPoint]) -> list[Mean]:
    """By window, the means at the spread at which several windows were measured; empty if there are none."""
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
    columns = figures(axis, *(heading for heading, _, _ in COLUMNS), "valid", no_wrap=True)
    table = Table(columns[0], *names("policy"), *columns[1:], caption=caption, **NARROW)
    for mean, after in zip(found, [*found[1:], None], strict=True):
        own, style = getattr(mean, axis), "green" if len(mean.valid) == mean.runs else "bold red"
        cells = (format(mean.of(value), form) if mean.valid else "-" for _, value, form in COLUMNS)
        ends = after is None or getattr(after, axis) != own
        table.add_row(
            f"{own:g}", name_of(mean.policy), *cells, f"[{style}]{len(mean.valid)}/{mean.runs}[/]", end_section=ends
        )
    return table


def transfers_over_spread(points: Sequence[AsynchronyPoint]) -> dict[str, dict[float, float]]:
    """By policy and spread, the mean number of links that a fragment crosses in valid runs, for the largest window."""
    found: dict[str, dict[float, float]] = {}
    for mean in over_spread(points):
        if mean.valid:
            found.setdefault(mean.policy, {})[mean.spread] = mean.of(lambda point: point.transfers)
    return found


def conclusion(points: Sequence[AsynchronyPoint]) -> Iterator[str]:
    """A sentence for each policy: its overhead at the largest spread compared with the overhead at equal rates."""
    for policy, curve in transfers_over_spread(points).items():
        first, (spread, last) = next(iter(curve.values())), list(curve.items())[-1]
        change = f"{last:.2f} at spread {spread:g} ({last / first - 1:+.0%})"
        yield f"{name_of(policy)}: {first:.2f} transfers per fragment at equal rates, {change}"


OVERHEAD = "communication overhead\n(transfers per fragment)"
SPREAD = "standard deviation of the workers' rates"
NOTHING_SUMMED = "no aggregation"


def panels(points: Sequence[AsynchronyPoint], unaggregated: int) -> list[Panel]:
    """The paper's figure, the PS ingress, and, if several windows were measured, the overhead over windows.

    `unaggregated` is the number of links that a fragment crosses without aggregation; it is drawn as a line.
    """
    spreads, windows = over_spread(points), over_window(points)
    overhead, ingress = (
        series_of(spreads, "spread", value)
        for value in (lambda point: point.transfers, lambda point: point.ps_ingress_bytes / 1e3)
    )
    places = sorted({mean.spread for mean in spreads})
    overhead[NOTHING_SUMMED] = [exact(float(unaggregated)) for _ in places]
    found = [
        Panel(LINES, places, overhead, SPREAD, OVERHEAD), Panel(LINES, places, ingress, SPREAD, "PS ingress (kB)"),
    ]  # fmt: skip
    if windows:
        title = f"at a standard deviation of {windows[0].spread:g}"
        series = series_of(windows, "window", lambda point: point.transfers)
        widths = sorted({mean.window for mean in windows})
        found.append(Panel(LINES, widths, series, "window (fragments)", OVERHEAD, title, log="x"))
    return found


def series_of(found: Sequence[Mean], axis: str, value: Callable[[AsynchronyPoint], float]) -> dict[str, list[Estimate]]:
    """For each policy a line over `axis`, with a gap where no run was valid."""
    at = {(mean.policy, getattr(mean, axis)): mean.estimate(value) for mean in found}
    places = sorted({getattr(mean, axis) for mean in found})
    policies = dict.fromkeys(mean.policy for mean in found)
    return {name_of(policy): [at.get((policy, place), MISSING) for place in places] for policy in policies}


def show(request: Request, done: EmulatedRuns) -> Iterator[Part]:
    """The points as `points.csv`, the figure, its tables, and a sentence for each policy."""
    points = [point(*each) for each in zip(settings(quick=request.quick), done.outcomes, strict=True)]
    yield Rows("points.csv", [column.name for column in fields(AsynchronyPoint)], map(astuple, points))
    # Without aggregation each worker's fragment crosses three links to the PS.
    yield Picture(panels(points, 3 * len(testbed().jobs[0].workers)))
    for axis, found in (("spread", over_spread(points)), ("window", over_window(points))):
        if found:
            yield means_table(axis, found)
    yield from conclusion(points)


def point(setting: AsynchronyRun, outcome: Outcome) -> AsynchronyPoint:
    """A run's point in the figure, in the paper's metrics (section IV-A).

    The in-network aggregation amount is the size of all workers' models less the PS ingress.
    """
    problem, figures = testbed(), measured_figures(outcome.measured, outcome.monitor)
    assert figures.overhead_bytes is not None
    busy = sum(events[Event.COLLISION] + events[Event.EVICTED] for _, events in switch_events(outcome.monitor))
    models = len(problem.jobs[0].workers) * FRAGMENTS * FRAGMENT.wire_bytes
    return AsynchronyPoint(
        **asdict(setting),
        overhead_bytes=figures.overhead_bytes,
        transfers=figures.overhead_bytes / (FRAGMENTS * FRAGMENT.wire_bytes),
        aggregated_bytes=models - figures.ps_ingress_bytes,
        ps_ingress_bytes=figures.ps_ingress_bytes,
        communication_time_s=figures.communication_time_s,
        collisions=busy,
        retransmissions=figures.retransmissions,
        exact=bool(figures.exact),
        verdict=outcome.verdict,
    )


FIGURES = {
    "fig13-emulated": EmulatedFigure(
        "goat-fig13-emulated", lambda asked: [each.emulated_run() for each in settings(quick=asked.quick)], show
    )
}
