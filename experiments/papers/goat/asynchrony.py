"""GOAT's Figure 13 by real packets: the traffic on all links over the spread of the workers' rates, by slot policy.

The paper computes the figure (section IV-C). Here its testbed (section IV-B) is emulated: three switches with 20 MB
each for the 44 MB of ResNet-18, which makes 116 slots for a gradient of 256 fragments. What decides is how many
fragments a worker may be ahead of the slowest one. The paper's workers send at their rates whatever results come back,
so here a window is the whole gradient, and no timeout is shorter than stragglers are late. With windows of 16 and 32,
far fewer than slots, ATP and ESA stay below GOAT; with 64 ATP is above it, with 128 both are. Packets that are sent
again count, so that ATP and ESA may cause more traffic than no aggregation at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import LINES, Panel, save
from inakit.experiments.papers.common.emulated_runs import EmulatedRun, run_emulated
from inakit.experiments.papers.common.estimates import MISSING, Estimate, estimate, exact
from inakit.experiments.papers.common.figure import Request, own_planners
from inakit.experiments.papers.common.statements import Statement, crosses, rises
from inakit.experiments.papers.goat.testbed import SCHEMES, Paces, at_rate, everywhere, patient, plan_of
from inakit.experiments.run.console import NARROW
from inakit.experiments.run.outcome import Outcome, measured_figures, switch_events
from inakit.planner.core.plan import SHARED_WINDOW, Plan
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.generators import goat_testbed
from inakit.topo.fabric.variations import with_aggregators
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.measure.verdict import VALID
from inakit.traffic.wire.packet_format import FRAGMENT, Event

FRAGMENTS = SHARED_WINDOW
"""The fragments of a gradient: as many as may be on their way at once where slots are shared."""
SLOTS = FRAGMENTS * 20 // 44
"""The slots of a switch: as large a part of a gradient as its 20 MB are of ResNet-18's 44 MB (section IV-B)."""
CAPACITY_BPS = 20e6
RATE_BPS = 1.3e6
"""A worker's mean rate, 500 fragments a second. Unaggregated, eight of them still fit the link to the PS, so that no
queue adds to the spread."""
SPREADS, QUICK_SPREADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), (0.0, 0.2, 0.4)
WINDOWS = (16, 32, 64, 128, FRAGMENTS)
WINDOWS_SPREAD = 0.2
"""The paper's own spread (section IV-C), at which windows are compared."""
DRAWS = 3
"""Draws of the workers' rates, each of which is measured with every policy."""


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
            at_rate(plan_by(self.policy, problem), RATE_BPS),
            asdict(self),
            patient(FRAGMENTS, RATE_BPS, min(shares.values())),
            (Paces(shares, self.window, workers if self.spread else frozenset()),),
        )


def settings(*, quick: bool) -> Iterator[AsynchronyRun]:
    """Every spread with every policy; then, unless `quick`, narrower windows. Equal rates are drawn only once."""
    policies = [*(policy for policy in PLANS if policy != "shadow-copy" or not quick), *own_planners()]
    for spread in QUICK_SPREADS if quick else SPREADS:
        for policy in policies:
            yield from (AsynchronyRun(policy, spread, draw) for draw in range(1 if quick or not spread else DRAWS))
    for window in () if quick else WINDOWS[:-1]:
        for policy in policies:
            yield from (AsynchronyRun(policy, WINDOWS_SPREAD, draw, window) for draw in range(DRAWS))


def testbed() -> Problem:
    """GOAT's testbed with a job of eight workers for one iteration: in a second one ATP's windows would have shrunk."""
    fabric = with_aggregators(goat_testbed(capacity_bps=CAPACITY_BPS), slots=SLOTS)
    workers = tuple(host.name for host in fabric.hosts if host.name != "ps")
    job = Job(1, workers, ("ps",), FRAGMENTS * 4 * FRAGMENT.values)
    return Problem(fabric, (job,), FRAGMENT)


PLANS: dict[str, Callable[[Problem], Plan]] = {
    **{name: SCHEMES[name] for name in ("atp", "esa", "goat")},
    "shadow-copy": everywhere("shadow-copy"),
}
"""The plans that are compared. Shadow copies (SwitchML's, here below a PS) are not in the paper's figure: they never
let a worker be ahead by more fragments than it has slots."""


def plan_by(policy: str, problem: Problem) -> Plan:
    """The plan of one of `PLANS`, or of a planner of your own."""
    return PLANS[policy](problem) if policy in PLANS else plan_of(policy, problem)


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


def run(console: Console, request: Request) -> str:
    """Measure the figure, print its table, and leave `points.csv`, and the figure with its own CSV."""
    chosen = list(settings(quick=request.quick))
    done = run_emulated("goat-fig13-emulated", [setting.emulated_run() for setting in chosen], request, console)
    points = [point(*each) for each in zip(chosen, done.outcomes, strict=True)]
    names = [column.name for column in fields(AsynchronyPoint)]
    done.folder.write_rows("points.csv", names, [list(asdict(found).values()) for found in points])
    save(done.folder.path / "figure", *panels(points, unaggregated()))
    for axis, found in (("spread", over_spread(points)), ("window", over_window(points))):
        if found:
            console.print(means_table(axis, found))
    for line in conclusion(points):
        console.print(line, highlight=False)
    console.print(statements.table_of(said(points)))
    done.tell(console)
    return done.verdict


def point(setting: AsynchronyRun, outcome: Outcome) -> AsynchronyPoint:
    """A run's point in the figure, in the paper's metrics (section IV-A).

    The in-network aggregation amount is the size of all workers' models less the PS ingress.
    """
    problem, figures = testbed(), measured_figures(outcome.measured, outcome.monitor)
    busy = sum(events[Event.COLLISION] + events[Event.EVICTED] for _, events in switch_events(outcome.monitor))
    models = len(problem.jobs[0].workers) * FRAGMENTS * FRAGMENT.wire_bytes
    return AsynchronyPoint(
        **asdict(setting),
        overhead_bytes=figures["overhead_bytes"],
        transfers=figures["overhead_bytes"] / (FRAGMENTS * FRAGMENT.wire_bytes),
        aggregated_bytes=models - figures["ps_ingress_bytes"],
        ps_ingress_bytes=figures["ps_ingress_bytes"],
        communication_time_s=figures["communication_time_s"],
        collisions=busy,
        retransmissions=figures["retransmissions"],
        exact=bool(figures["exact"]),
        verdict=outcome.verdict,
    )


def unaggregated() -> int:
    """How often a fragment crosses a link when nothing is summed: each worker's crosses three links to the PS."""
    return 3 * len(testbed().jobs[0].workers)
