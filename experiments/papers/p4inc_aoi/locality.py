"""P4INC-AOI's Figure 2 by real packets: the inter-unit traffic of jobs inside one unit and of other jobs.

A unit is a programmable switch and its servers; an all-optical interconnect (AOI) joins units (section III). For jobs
whose workers share a unit the switch replaces the PS, "thus no connection needs to be set up through the AOI". The test
is strict: no byte of these jobs may cross between units, neither gradients nor results nor notices, although each job's
PS is in another unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields

from rich.table import Table

from inakit.experiments.papers.common.drawing import BARS, Panel
from inakit.experiments.papers.common.emulated_figure import EmulatedFigure, EmulatedRun, EmulatedRuns
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Part, Picture, Rows
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.report.method_styles import categories
from inakit.experiments.run.console import NARROW, figures, names
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.printed_report import styled
from inakit.planner.core.plan import Plan, fragment_ranges
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slot_policies import DEFAULT_POLICY
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import find_method
from inakit.planner.trees.headroom import with_policies
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import units
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

CAPACITY_BPS = 5e6
GRADIENT_BYTES, QUICK_GRADIENT_BYTES = 548_000, 64_000
IN_NETWORK = "p4inc-aoi"
Placement = Mapping[int, tuple[tuple[str, ...], str]]
"""Each job's workers and its PS, by job number."""
COMPACT: Placement = {
    1: (("u1h1", "u1h2"), "u3h1"),
    2: (("u1h3", "u1h4"), "u3h2"),
    3: (("u2h1", "u2h2", "u2h3", "u2h4"), "u4h1"),
}
"""Figures 2b and 2d: the workers of each job share a unit. PSs are in units 3 and 4."""
FRAGMENTED: Placement = {
    1: (("u1h1", "u1h2"), "u3h1"),
    2: (("u2h1", "u2h2"), "u3h2"),
    3: (("u1h3", "u1h4", "u2h3", "u2h4"), "u4h1"),
}
"""Figures 2a and 2c: job 3 has workers in units 1 and 2."""


@dataclass(frozen=True)
class Scene:
    """A part of Figure 2: the placement of jobs and the planner. `claim` is true where no byte may cross."""

    title: str
    placement: Placement
    planner: str
    claim: bool


SCENES = {
    "compact": Scene("2d: inside units, INC", COMPACT, "atp-tor", claim=True),
    "fragmented": Scene("2c: job 3 over two, INC", FRAGMENTED, "atp-tor", claim=False),
    "compact-no-inc": Scene("2b: inside units", COMPACT, "lbmm", claim=False),
    "fragmented-no-inc": Scene("2a: job 3 over two", FRAGMENTED, "lbmm", claim=False),
}
"""Planner `atp-tor` sums only at the workers' own switches, like the paper's INC; `lbmm` does not sum in switches."""
QUICK_SCENES = {name: scene for name, scene in SCENES.items() if scene.planner == "atp-tor"}


def problem_of(placement: Placement, gradient_bytes: int) -> Problem:
    jobs = (Job(number, workers, (server,), gradient_bytes) for number, (workers, server) in placement.items())
    return Problem(units(capacity_bps=CAPACITY_BPS), tuple(jobs), FRAGMENT)


def plan_of(problem: Problem, planner: str) -> Plan:
    """The planner's trees; a tree inside one unit has its root there, any other at the PS (section III)."""
    plan = with_headroom(problem, find_method(planner).plan(problem)).plan
    summed = {each.job for each in plan.trees if each.tree.aggregators}
    local = {job.number for job in problem.jobs if len({problem.fabric.tor_of(host) for host in job.workers}) == 1}
    in_network = summed & local
    policies = {job.number: IN_NETWORK if job.number in in_network else DEFAULT_POLICY for job in problem.jobs}
    return with_policies(problem, plan, policies)


def emulated_runs(scenes: Mapping[str, Scene], gradient_bytes: int) -> Iterator[EmulatedRun]:
    """A run for each part of the figure."""
    for name, scene in scenes.items():
        problem = problem_of(scene.placement, gradient_bytes)
        yield EmulatedRun(name, problem, plan_of(problem, scene.planner), {"figure": scene.title})


@dataclass(frozen=True)
class Crossing:
    """The bytes on circuits between units, in both directions, as planned and as measured during the whole run.

    `circuits` are the circuits that carried bytes. The communication time is the slowest job's.
    """

    scene: str
    planned_bytes: int
    measured_bytes: int
    circuits: tuple[str, ...]
    communication_time_s: float
    verdict: str


def crossing(run: EmulatedRun, outcome: Outcome) -> Crossing:
    """A run's inter-unit bytes, from the kernel's counters of each circuit's two interfaces; they count all bytes."""
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
    """The directed links of all circuits, two for each circuit."""
    for link in fabric.links:
        if link.optical:
            yield from ((link.a, link.b), (link.b, link.a))


def planned_crossing(run: EmulatedRun) -> int:
    """The planned inter-unit bytes: each fragment crosses once per circuit of its branch and of its result's path."""
    problem, circuits = run.problem, set(between_units(run.problem.fabric))
    ranges, packets = fragment_ranges(problem, run.plan), 0
    for each in run.plan.trees:
        tree = each.tree
        gradients = [link for branch in tree.branches for link in branch.links]
        results = [(parent, node) for node, parent in tree.result_parents.items()]
        packets += len(ranges[each.job, tree.number]) * sum(link in circuits for link in gradients + results)
    return packets * problem.fragment.wire_bytes


def judgement(crossed: int, verdict: str) -> str:
    """A sentence that states whether the claim holds, given the bytes that crossed where none should."""
    if not crossed:
        return "[green]the claim holds[/]: no byte of jobs inside units crossed"
    if verdict == VALID:
        return f"[bold red]the claim does not hold[/]: {crossed:,} bytes of jobs inside units crossed"
    return f"[bold yellow]no result[/]: {crossed:,} bytes crossed, but the emulation was overloaded"


def crossings_panel(found: Sequence[Crossing]) -> Panel:
    scenes = [SCENES[each.scene].title.replace(": ", ":\n") for each in found]
    series = {"measured": [exact(each.measured_bytes / 1e3) for each in found]}
    planned = {"measured": [each.planned_bytes / 1e3 for each in found]}
    return Panel(BARS, scenes, series, "", "between units (kB)", planned=planned, styles=categories(series))


def crossings_table(found: Sequence[Crossing]) -> Table:
    """A row for each part of the figure."""
    columns = figures("planned\n(bytes)", "measured\n(bytes)", "circuits\nused", "comm. time\n(ms)", no_wrap=True)
    table = Table(*names(""), *columns, *names("verdict"), title="P4INC-AOI, Figure 2: between units", **NARROW)
    for each in found:
        cells = (each.planned_bytes, each.measured_bytes, len(each.circuits), round(1e3 * each.communication_time_s))
        table.add_row(SCENES[each.scene].title, *(f"{cell:,}" for cell in cells), styled(each.verdict))
    return table


def runs(request: Request) -> list[EmulatedRun]:
    """A run for each part of Figure 2; a quick request leaves out those without INC."""
    asked = (QUICK_SCENES, QUICK_GRADIENT_BYTES) if request.quick else (SCENES, GRADIENT_BYTES)
    return list(emulated_runs(*asked))


def crossed(found: Iterable[Crossing]) -> int:
    """The bytes of jobs inside units that crossed between units."""
    return sum(each.measured_bytes for each in found if SCENES[each.scene].claim)


def show(_: Request, done: EmulatedRuns) -> Iterator[Part]:
    """The inter-unit bytes of each run, and whether the claim holds."""
    found = crossings(done)
    yield Rows("locality.csv", [column.name for column in fields(Crossing)], map(astuple, found))
    yield crossings_table(found)
    yield Picture([crossings_panel(found)])
    yield judgement(crossed(found), done.verdict)


def crossings(done: EmulatedRuns) -> list[Crossing]:
    return [crossing(*each) for each in zip(done.runs, done.outcomes, strict=True)]


def verdict(done: EmulatedRuns, _: list[Statement]) -> str:
    """WRONG if bytes of jobs inside units crossed in runs that are VALID."""
    return Verdict.WRONG if done.verdict == VALID and crossed(crossings(done)) else done.verdict


FIGURES = {
    "locality": EmulatedFigure("p4inc-aoi-locality", runs, show, verdict, leaves_out="it compares placements of jobs")
}
