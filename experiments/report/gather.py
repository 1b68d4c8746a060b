"""Gathers the document of a report from the folders of runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inakit.experiments.report.charts import (
    DrawnFabric,
    carried,
    circuits_of,
    events_of,
    iterations_of,
    loads_view,
    series_of,
    used_of,
)
from inakit.experiments.report.document import (
    AggregatorView,
    Document,
    Figure,
    JobView,
    PlannerView,
    RunView,
    SwitchView,
    TreeView,
)
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.run.circuit_schedule import CIRCUITS
from inakit.experiments.run.outcome import PLANNED_LINKS
from inakit.experiments.run.printed_report import (
    NO_RESULTS,
    OVERLOAD,
    collision_lines,
    interference_lines,
    replay_lines,
    stranger_lines,
)
from inakit.experiments.run.record import JobFigures, PlannerRecord
from inakit.experiments.run.run_folder import ReadFolder, open_folder
from inakit.planner.core.plan import Plan
from inakit.topo.errors import InputError
from inakit.topo.kit import this_kit
from inakit.traffic.measure.verdict import VALID

WHOLE_RUN = (
    *("sending_rate_bps", "ps_ingress_bytes", "communication_time_s", "aggregation_ratio"),
    *("aggregated_bytes", "overhead_bytes", "retransmissions"),
)
"""The figures of all jobs together in a planner's row."""
SERIES = ("link_series.csv.gz", "links.csv", "slot_series.csv")
"""The files with series: of links in virtual time and in real time, and of slots."""
UNFINISHED = "The run has not ended: the figures cover only its measured part."
MEANINGS = {
    VALID: "The emulation kept up and every sum is exact: the measured figures are results.",
    "OVERLOADED": OVERLOAD,
    **NO_RESULTS,
    "INCOMPLETE": UNFINISHED,
    "INTERRUPTED": UNFINISHED,
    "FAILED": UNFINISHED,
}
"""The meaning of each verdict, in words."""


def document_of(folders: Sequence[Path]) -> Document:
    """Make the document of one or more runs. Raises `InputError` for a folder that is not that of a whole run."""
    runs = []
    for folder in map(open_folder, folders):
        try:
            runs.append(run_view(folder))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{folder.path} does not have the format of this inakit ({type(error).__name__}: {error}): "
                "make the report with the inakit that made the run"
            ) from error
    title = runs[0].title if len(runs) == 1 else f"{len(runs)} runs compared"
    return Document(title, made_by(), runs)


def made_by() -> str:
    """The name, version and commit of the program that makes the report."""
    return f"inakit {this_kit()}"


def run_view(folder: ReadFolder) -> RunView:
    """Read the view of a run from its folder. A foreign format raises Python's own errors."""
    record, fabrics = folder.record, list[DrawnFabric]()
    planners = [planner_view(folder, name, fabrics) for name in record.planners]
    return RunView(
        folder=folder.path.resolve().name,
        title=f"{record.fabric.name}, {record.switch}, {record.mode}",
        verdict=record.verdict,
        meaning=MEANINGS.get(record.verdict, ""),
        reasons=record.reasons,
        world=record.switch,
        mode=record.mode,
        seed=record.seed,
        scale=record.fabric.scale,
        command=shlex.join(["inakit", *record.command[1:]]),
        started=record.started,
        finished=record.finished,
        versions=record.versions | {"inakit": str(record.kit)},
        machine=record.machine.as_json(),
        configuration=record.configuration.model_dump(exclude_unset=True, exclude={"jobs"}),
        fabrics=[fabric.view for fabric in fabrics],
        planners=planners,
    )


def planner_view(folder: ReadFolder, name: str, fabrics: list[DrawnFabric]) -> PlannerView:
    """Read the view of one planner from a run's folder. A fabric that is not in `fabrics` is added to it."""
    planners = list(folder.record.planners)
    entry, problem = folder.record.planners[name], folder.problem(name)
    circuits = next((each.details for each in entry.interferences if each.kind == CIRCUITS), None)
    fabric = place_of(DrawnFabric(problem.fabric, circuits is not None), fabrics)
    drawn = fabrics[fabric]
    iterations = iterations_of(folder.table(name, "iterations.csv"), drawn.number_of)
    virtual, real, slots = (folder.table(name, each) for each in SERIES)
    series = series_of(virtual, real, slots, drawn, len(planners))
    end_s = max([series.end_s, *((each.started_s or 0.0) + each.time_s for each in iterations)])
    totals = carried(folder.table(name, "link_totals.csv"), drawn)
    return PlannerView(
        name=name,
        color=styles_of(planners)[name].color,
        fabric=fabric,
        verdict=entry.verdict or "-",
        reasons=entry.reasons,
        exact=entry.exact,
        jobs=[job_view(job, drawn) for job in problem.jobs],
        figures=list(figures_of(entry)),
        trees=list(trees_of(drawn, folder.plan(name))),
        loads=loads_view(drawn, folder.table(name, PLANNED_LINKS), totals, iterations),
        switches=list(switches_of(drawn, entry)),
        series=series,
        iterations=iterations,
        events=list(events_of(entry.interferences)),
        circuits=list(circuits_of(circuits, end_s)),
        notes=[line for lines in NOTES for line in lines(name, entry)],
        fragments=None if entry.fragments is None else entry.fragments.as_json(),
        used=used_of(entry.processors),
    )


NOTES = (replay_lines, interference_lines, collision_lines, stranger_lines)
"""The notes on a planner's figures."""


def place_of(drawn: DrawnFabric, fabrics: list[DrawnFabric]) -> int:
    """The index of a fabric in a list, to which it is added if it is missing."""
    if drawn not in fabrics:
        fabrics.append(drawn)
    return fabrics.index(drawn)


def job_view(job: Any, drawn: DrawnFabric) -> JobView:
    """The view of a job, with its hosts as numbers."""
    return JobView(
        number=job.number,
        workers=[drawn.number_of[host] for host in job.workers],
        servers=[drawn.number_of[host] for host in job.servers],
        gradient_bytes=job.gradient_bytes,
        iterations=job.iterations,
        arrival_s=job.arrival_s,
        model=job.model,
    )


def figures_of(entry: PlannerRecord) -> Iterator[Figure]:
    """Yield the planned and measured figures of all jobs together, then the figures of each job."""
    planned, measured = entry.planned, entry.measured
    for name in WHOLE_RUN:
        yield Figure(name, None, getattr(planned, name, None), getattr(measured, name, None))
    for job, figures in planned.jobs.items():
        found = None if measured is None else measured.jobs.get(job)
        for name in JobFigures.model_fields:
            yield Figure(name, int(job), getattr(figures, name), getattr(found, name, None))


def trees_of(drawn: DrawnFabric, plan: Plan | None) -> Iterator[TreeView]:
    """Yield the trees of a plan; nothing without a plan."""
    for planned in () if plan is None else plan.trees:
        tree = planned.tree
        links = (link for branch in tree.branches for link in branch.links)
        yield TreeView(
            job=planned.job,
            number=tree.number,
            root=drawn.number_of[tree.root],
            rate_bps=planned.rate_bps,
            share=planned.share,
            policy=tree.policy,
            links=list(dict.fromkeys(drawn.numbers(links))),
            result_links=list(dict.fromkeys(drawn.numbers((b, a) for a, b in tree.result_parents.items()))),
            aggregators=[
                AggregatorView(drawn.number_of[a.switch], a.pipeline, len(a.children), a.first_slot, a.slots)
                for a in tree.aggregators
            ],
        )


def switches_of(drawn: DrawnFabric, entry: PlannerRecord) -> Iterator[SwitchView]:
    """Yield the planned aggregation and the counters of every switch."""
    for name in drawn.fabric.switch_by_name:
        counts = dict(entry.switches.get(name, {}))
        ratio = counts.pop("aggregation_ratio", None)
        yield SwitchView(drawn.number_of[name], entry.planned.switches.get(name), ratio, counts)
