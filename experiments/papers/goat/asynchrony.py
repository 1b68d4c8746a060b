"""GOAT's Figure 13 by real packets: the traffic on all links over the spread of the workers' rates, by slot policy.

The paper computes the figure (section IV-C). Here its testbed (section IV-B) is emulated: three switches with 20 MB
each for the 44 MB of ResNet-18, which makes 116 slots for a gradient of 256 fragments. What decides is how many
fragments a worker may be ahead of the slowest one. The paper's workers send at their rates whatever results come back,
so here a window is the whole gradient, and no timeout is shorter than stragglers are late. With windows of 16 and 32,
far fewer than slots, ATP and ESA stay below GOAT; with 64 ATP is above it, with 128 both are. Packets that are sent
again count, so that ATP and ESA may cause more traffic than no aggregation at all.
"""

from __future__ import annotations

from dataclasses import asdict, fields

from rich.console import Console

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.emulated_runs import run_emulated
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.goat.asynchrony_panels import panels
from inakit.experiments.papers.goat.asynchrony_report import (
    AsynchronyPoint,
    conclusion,
    means_table,
    over_spread,
    over_window,
    said,
)
from inakit.experiments.papers.goat.asynchrony_runs import FRAGMENTS, AsynchronyRun, settings, testbed
from inakit.experiments.run.outcome import Outcome, measured_figures, switch_events
from inakit.traffic.wire.frames import FRAGMENT
from inakit.traffic.wire.packet_format import Event


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
