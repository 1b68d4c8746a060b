"""The bytes that cross between units: by plan, as the kernel counts them, and what they say of the paper's claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table

from inakit.experiments.papers.common.emulated_runs import EmulatedRun
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.panels import BARS, Panel
from inakit.experiments.papers.p4inc_aoi.placements import SCENES
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.printed.report import VERDICT_STYLES
from inakit.experiments.run.printed.tables import NARROW
from inakit.experiments.styles.method_styles import categories
from inakit.planner.core.fragment_ranges import fragment_ranges
from inakit.topo.fabric.fabric import Fabric
from inakit.traffic.measure.verdict import VALID


@dataclass(frozen=True)
class Crossing:
    """The bytes on circuits between units in both directions, as planned and as measured during the whole run.

    `circuits` are those that carried any. The communication time is that of the slowest job.
    """

    scene: str
    planned_bytes: int
    measured_bytes: int
    circuits: tuple[str, ...]
    communication_time_s: float
    verdict: str


def crossing(run: EmulatedRun, outcome: Outcome) -> Crossing:
    """A run's crossing by the kernel's counters of every circuit's two interfaces, which count bytes of any kind."""
    fabric, ports = run.problem.fabric, outcome.monitor.watched.ports
    sent = {
        (a, b): outcome.monitor.after.interfaces[ports[a][fabric.port_numbers[a, b]]].sent_bytes
        for a, b in between_units(fabric)
    }
    return Crossing(
        scene=run.name,
        planned_bytes=planned_crossing(run),
        measured_bytes=sum(sent.values()),
        circuits=tuple(sorted({"-".join(sorted(circuit)) for circuit, count in sent.items() if count})),
        communication_time_s=max(iteration.communication_time_s for iteration in outcome.measured.iterations),
        verdict=outcome.verdict,
    )


def between_units(fabric: Fabric) -> Iterator[tuple[str, str]]:
    """The directed links of all circuits, both directions of each."""
    for link in fabric.links:
        if link.optical:
            yield from ((link.a, link.b), (link.b, link.a))


def planned_crossing(run: EmulatedRun) -> int:
    """The bytes that cross by plan: each fragment once on every circuit of its branch, and of its result's way back."""
    problem, circuits = run.problem, set(between_units(run.problem.fabric))
    ranges, packets = fragment_ranges(problem, run.plan), 0
    for shard in run.plan.shards:
        for tree in shard.trees:
            gradients = [link for branch in tree.branches for link in branch.links]
            results = [(parent, node) for node, parent in tree.result_parents.items()]
            packets += len(ranges[shard.job, tree.number]) * sum(link in circuits for link in gradients + results)
    return packets * problem.fragment.wire_bytes


def judgement(crossed: int, verdict: str) -> str:
    """A sentence: whether the claim holds, given the bytes that crossed where none should."""
    if not crossed:
        return "[green]the claim holds[/]: of jobs inside units nothing at all crossed"
    if verdict == VALID:
        return f"[bold red]the claim does not hold[/]: of jobs inside units {crossed:,} bytes crossed"
    return f"[bold yellow]no result[/]: {crossed:,} bytes crossed, but the emulation was overloaded"


def panel(found: Sequence[Crossing]) -> Panel:
    """Bars of what crossed between units, with the planned values."""
    scenes = [SCENES[each.scene].title.replace(": ", ":\n") for each in found]
    series = {"measured": [exact(each.measured_bytes / 1e3) for each in found]}
    planned = {"measured": [each.planned_bytes / 1e3 for each in found]}
    return Panel(BARS, scenes, series, "", "between units (kB)", planned=planned, styles=categories(series))


def crossings_table(found: Sequence[Crossing]) -> Table:
    """A row for each part of the figure."""
    table = Table(title="P4INC-AOI, Figure 2: between units", **NARROW)
    table.add_column("", no_wrap=True)
    for heading in ("planned\n(bytes)", "measured\n(bytes)", "circuits\nused", "comm. time\n(ms)"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for each in found:
        figures = (each.planned_bytes, each.measured_bytes, len(each.circuits), round(1e3 * each.communication_time_s))
        style = VERDICT_STYLES.get(each.verdict, "bold yellow")
        table.add_row(SCENES[each.scene].title, *(f"{figure:,}" for figure in figures), f"[{style}]{each.verdict}[/]")
    return table
