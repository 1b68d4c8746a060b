"""P4INC-AOI's hashed slots and error control (section VI-B) by packets: asynchronous errors, notices and AIMD.

A worker hashes a packet's job and fragment to a slot of its job's segment. A packet that finds an older fragment there,
which still waits for other workers, is an asynchronous error: the switch returns it with ECN, and its sender halves its
window. The paper lets workers redirect packets whose slot is taken, which rules such errors out (policy
`p4inc-aoi-timeout`, which recovers losses as the paper does); `p4inc-aoi-hash` does not redirect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields

from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import LINES, Panel
from inakit.experiments.papers.common.emulated_figure import (
    EmulatedFigure,
    EmulatedRun,
    EmulatedRuns,
    wrong_unless_all_hold,
)
from inakit.experiments.papers.common.estimates import Estimate, exact
from inakit.experiments.papers.common.figure_engine import Part, Picture, Rows
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.report.method_styles import categories
from inakit.experiments.run.console import NARROW, figures, names
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.run.outcome import Outcome, switch_events
from inakit.experiments.run.printed_report import styled
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.fault_entries import LinkFaults
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import find_method
from inakit.planner.trees.headroom import with_policy
from inakit.topo.fabric.generators import units
from inakit.topo.fabric.variations import with_switches
from inakit.traffic.wire.packet_format import FRAGMENT, Event

CAPACITY_BPS = 5e6
WORKERS = 8
FRAGMENTS, QUICK_FRAGMENTS = 2000, 400
SLOTS = (32, 128, 512)
LOSSES = (0.0, 0.0001, 0.001, 0.01)
QUICK_SLOTS, QUICK_LOSSES = (128,), (0.0, 0.01)
REDIRECTED = "redirected"
SCHEMES = {REDIRECTED: "p4inc-aoi-timeout", "hashed only": "p4inc-aoi-hash"}
PER = 1000


@dataclass(frozen=True)
class Place:
    """A run's place in the figure: the scheme, the segment's slots, and the part of packets that every link loses."""

    scheme: str
    slots: int
    loss: float

    @property
    def name(self) -> str:
        return f"{SCHEMES[self.scheme]}, {self.slots} slots, loss {self.loss:g}"


@dataclass(frozen=True)
class Point:
    """A run's time over the plan's, and the asynchronous errors and halved windows for each 1,000 fragments."""

    scheme: str
    slots: int
    loss: float
    over_plan: float
    errors: float
    window_cuts: float
    exact: bool
    verdict: str


def places(request: Request) -> list[Place]:
    """The places of all runs; a quick request has fewer."""
    slots, losses = (QUICK_SLOTS, QUICK_LOSSES) if request.quick else (SLOTS, LOSSES)
    return [Place(scheme, size, loss) for size in slots for scheme in SCHEMES for loss in losses]


def emulated_run(place: Place, fragments: int) -> EmulatedRun:
    """One job of `WORKERS` workers in a unit, with its PS in another one."""
    fabric = with_switches(units(2, WORKERS, capacity_bps=CAPACITY_BPS), lambda _: {"aggregator_slots": place.slots})
    workers = tuple(f"u1h{number}" for number in range(1, WORKERS + 1))
    problem = Problem(fabric, (Job(1, workers, ("u2h1",), 4 * FRAGMENT.values * fragments),), FRAGMENT)
    plan = with_headroom(problem, find_method("atp-tor").plan(problem)).plan
    lossy = FaultPlan(links=dict.fromkeys(fabric.capacities_bps, LinkFaults(drop=place.loss))) if place.loss else None
    return EmulatedRun(
        place.name,
        problem,
        with_policy(problem, plan, SCHEMES[place.scheme]),
        {"slots": place.slots, "loss": place.loss},
        interferences=() if lossy is None else lossy.interferences,
    )


def runs(request: Request) -> list[EmulatedRun]:
    """A run for each place."""
    return [emulated_run(place, QUICK_FRAGMENTS if request.quick else FRAGMENTS) for place in places(request)]


def point(place: Place, run: EmulatedRun, outcome: Outcome) -> Point:
    """The figures of a run."""
    measured, (job,) = outcome.measured, run.problem.jobs
    thousands = FRAGMENT.count(job.gradient_bytes) / PER
    errors = sum(int(events[Event.NOTIFIED]) for _, events in switch_events(outcome.monitor))
    planned_s = run.prepared.prediction.communication_time_s
    return Point(
        place.scheme,
        place.slots,
        place.loss,
        measured.communication_time_s / planned_s,
        errors / thousands,
        measured.window_cuts / thousands,
        measured.exact is True,
        outcome.verdict,
    )


def points(request: Request, done: EmulatedRuns) -> list[Point]:
    return [point(*each) for each in zip(places(request), done.runs, done.outcomes, strict=True)]


def table(found: list[Point]) -> Table:
    """A row for each run."""
    columns = figures("slots", "loss", "time over\nplan", "errors /\n1,000", "windows\nhalved / 1,000", no_wrap=True)
    shown = Table(*names("slots by"), *columns, *names("verdict"), title="P4INC-AOI: asynchronous errors", **NARROW)
    for each in found:
        numbers = (f"{each.over_plan:.3f}", f"{each.errors:,.1f}", f"{each.window_cuts:,.1f}")
        shown.add_row(each.scheme, str(each.slots), f"{each.loss:.2%}", *numbers, styled(each.verdict))
    return shown


def panels(found: list[Point]) -> Iterator[Panel]:
    """A panel of times and one of errors, over losses; a curve for each scheme and size."""
    losses = sorted({each.loss for each in found})
    charts: list[tuple[str, str, Callable[[Point], float]]] = [
        ("time over plan", "measured / planned", lambda each: each.over_plan),
        ("asynchronous errors", "per 1,000 fragments", lambda each: each.errors),
    ]
    for title, y, value in charts:
        series: dict[str, list[Estimate]] = {}
        for each in found:
            series.setdefault(f"{each.scheme}, {each.slots} slots", []).append(exact(value(each)))
        yield Panel(LINES, [f"{100 * loss:g}" for loss in losses], series, "loss on every link (%)", y, title,
                    styles=categories(series))  # fmt: skip


def show(request: Request, done: EmulatedRuns) -> Iterator[Part]:
    """The points as a table and as curves, and what redirecting rules out."""
    found = points(request, done)
    yield Rows("hashing.csv", [column.name for column in fields(Point)], map(astuple, found))
    yield table(found)
    yield Picture(list(panels(found)))
    redirected = sum(each.errors for each in found if each.scheme == REDIRECTED)
    yield [
        statements.is_below("runs with inexact sums", sum(not each.exact for each in found), 0),
        statements.is_below("asynchronous errors of redirected fragments", redirected, 0),
        statements.is_above("asynchronous errors otherwise, per 1,000", sum(each.errors for each in found), 1),
    ]


FIGURES = {
    "hashing": EmulatedFigure(
        "p4inc-aoi-hashing", runs, show,
        wrong_unless_all_hold, leaves_out="it compares ways to find slots",
    )
}  # fmt: skip
