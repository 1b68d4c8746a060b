"""Gathers the document of a report from the folders of runs: their figures, trees, loads, series and circuits."""

from __future__ import annotations

import csv
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.experiments.report.document import (
    AggregatorView,
    CircuitView,
    Document,
    EventView,
    FabricView,
    Figure,
    IterationView,
    JobView,
    LinkView,
    LoadsView,
    NodeView,
    PartView,
    PlannerView,
    RunView,
    SeriesView,
    SwitchView,
    TreeView,
    UsedView,
)
from inakit.experiments.report.method_styles import styles_of
from inakit.experiments.run.circuit_schedule import CIRCUITS
from inakit.experiments.run.outcome import PLANNED_LINKS
from inakit.experiments.run.printed_report import (
    collision_lines,
    interference_lines,
    no_result,
    replay_lines,
    sampled_lines,
    stranger_lines,
)
from inakit.experiments.run.record import InterferenceRecord, JobFigures, PlannerRecord, Processors
from inakit.experiments.run.run_folder import ReadFolder, Table, open_folder
from inakit.planner.core.plan import Plan
from inakit.topo.errors import InputError
from inakit.topo.fabric.circuits import INTERCONNECT
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Link, Switch
from inakit.topo.fabric.positions import NodePositions
from inakit.topo.files.quantities import in_words
from inakit.topo.kit import this_kit
from inakit.traffic.measure.verdict import VALID


@dataclass(frozen=True)
class DrawnFabric:
    """The drawing of a fabric. With `circuits`, its optical links are fibres to a circuit switch at the top.

    Each unit's fibres are drawn as one link.
    """

    described: Fabric
    circuits: bool = False

    @cached_property
    def fabric(self) -> Fabric:
        return with_circuit_switch(self.described) if self.circuits else self.described

    @cached_property
    def number_of(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.fabric.tiers)}

    @cached_property
    def link_number(self) -> Mapping[DirectedLink, int]:
        ends = ((link.a, link.b) for link in self.fabric.links)
        return {hop: 2 * n + back for n, pair in enumerate(ends) for back, hop in enumerate((pair, pair[::-1]))}

    @cached_property
    def optical(self) -> frozenset[DirectedLink]:
        pairs = [(link.a, link.b) for link in self.described.links if link.optical]
        return frozenset((*pairs, *(pair[::-1] for pair in pairs)))

    def numbers(self, hops: Iterable[DirectedLink]) -> list[int]:
        """The numbers of directed links of the described fabric; a circuit is two links of the drawing."""
        return [self.link_number[drawn] for hop in hops for drawn in self.drawn(hop)]

    def drawn(self, hop: DirectedLink) -> Iterator[DirectedLink]:
        """Yield the links of the drawing that represent a directed link of the described fabric."""
        if self.circuits and hop in self.optical:
            yield from ((hop[0], INTERCONNECT), (INTERCONNECT, hop[1]))
        else:
            yield hop

    def counted(self, sender: str, receiver: str) -> int | None:
        """The number of the link with this counter; None for a link that is not drawn.

        Fibres are counted at the sending units, each under the name of one of its unit's optical links.
        """
        if self.circuits and (sender, receiver) in self.optical:
            receiver = INTERCONNECT
        return self.link_number.get((sender, receiver))

    @cached_property
    def view(self) -> FabricView:
        layout = NodePositions(self.fabric)
        return FabricView(
            self.fabric.name,
            list(self.nodes(layout)),
            list(self.links(layout)),
            layout.width,
            layout.heights[-1] + max((layout.arc(link.a, link.b) for link in self.fabric.links), default=0.0),
        )

    def nodes(self, layout: NodePositions) -> Iterator[NodeView]:
        """Every node, in the order of their numbers."""
        for name, tier in self.fabric.tiers.items():
            x, y = layout.positions[name]
            switch = self.fabric.switch_by_name.get(name)
            if switch is None:
                yield NodeView(name, tier, x, y, 0.0)
                continue
            slots = switch.aggregator_slots if switch.ina else None
            yield NodeView(name, tier, x, y, layout.switch_width(name), switch.ina, len(switch.pipelines), slots)

    def links(self, layout: NodePositions) -> Iterator[LinkView]:
        """Every link, in the order of their numbers."""
        for link in self.fabric.links:
            yield LinkView(
                a=self.number_of[link.a],
                b=self.number_of[link.b],
                capacity_ab_bps=link.capacity_ab_bps,
                capacity_ba_bps=link.capacity_ba_bps,
                delay_s=link.delay_s,
                optical=link.optical,
                bend=layout.arc(link.a, link.b),
            )


def with_circuit_switch(fabric: Fabric) -> Fabric:
    """The fabric with a circuit switch on top, and one link from each unit to it instead of its optical links."""
    rates: dict[str, float] = {}
    ports: dict[str, int] = {}
    for link in fabric.links:
        for node, port, rate_bps in link.ends if link.optical else ():
            rates[node] = max(rates.get(node, 0.0), rate_bps)
            ports.setdefault(node, port)
    tier = 1 + max(fabric.tiers.values())
    panel = Switch(INTERCONNECT, tier, (tuple(range(1, len(ports) + 1)),), ina=False)
    fibres = [
        Link(unit, INTERCONNECT, port, number, rates[unit], rates[unit], optical=True)
        for number, (unit, port) in enumerate(ports.items(), start=1)
    ]
    electrical = tuple(link for link in fabric.links if not link.optical)
    return replace(fabric, switches=(*fabric.switches, panel), links=(*electrical, *fibres))


@dataclass(frozen=True)
class Carried:
    """Bytes that each directed link carried in the whole run, and drops of its queue, by link number."""

    sent_bytes: Mapping[int, float]
    drops: Mapping[int, int]


def carried(totals: Table, drawn: DrawnFabric) -> Carried:
    """Read `link_totals.csv`. The fibres of a unit are added up."""
    sent: dict[int, float] = defaultdict(float)
    drops: dict[int, int] = defaultdict(int)
    rows = zip(*(totals.get(name, ()) for name in ("sender", "receiver", "sent_bytes", "drops")), strict=True)
    for sender, receiver, count, dropped in rows:
        number = drawn.counted(sender, receiver)
        if number is not None:
            sent[number] += int(count)
            drops[number] += int(dropped or 0)
    return Carried(sent, drops)


def loads_view(drawn: DrawnFabric, planned: Table, found: Carried, iterations: Sequence[IterationView]) -> LoadsView:
    """The loads of all directed links: `planned` from `planned_links.csv`, and the measured ones in `found`."""
    count = 2 * len(drawn.fabric.links)
    rates: dict[int, float] = defaultdict(float)
    volume: dict[int, float] = defaultdict(float)
    users: dict[int, set[int]] = defaultdict(set)
    columns = (planned.get(name, ()) for name in ("sender", "receiver", "rate_bps", "bytes", "jobs"))
    for sender, receiver, rate_bps, sent, jobs in zip(*columns, strict=True):
        for number in drawn.numbers([(sender, receiver)]):  # circuits that share a fibre's link are added up
            rates[number] += float(rate_bps)
            volume[number] += float(sent)
            users[number].update(map(int, jobs.split()))
    measured = mean_rates(found, users, iterations)
    return LoadsView(
        listed(rates, count, 0.0 if planned else None),
        listed(measured, count),
        listed(volume, count, 0.0 if planned else None),
        listed(found.sent_bytes, count),
        listed(found.drops, count),
    )


def mean_rates(found: Carried, users: Mapping[int, set[int]], iterations: Sequence[IterationView]) -> dict[int, float]:
    """The mean rate of every link while its jobs send, in bit/s, by link number."""
    together = {frozenset[int]()}.union(map(frozenset, users.values()))
    times = {jobs: busy_s(iterations, jobs) for jobs in together}
    busy = {number: times[frozenset(users.get(number, ()))] for number in found.sent_bytes}
    return {number: 8 * sent / busy[number] for number, sent in found.sent_bytes.items() if busy[number]}


def listed(values: Mapping[int, float], count: int, otherwise: float | None = None) -> list[float | None]:
    """A list by the number of a directed link."""
    return [values.get(number, otherwise) for number in range(count)]


def busy_s(iterations: Iterable[IterationView], jobs: frozenset[int]) -> float:
    """The time in seconds during which an iteration of these jobs was in progress; of all jobs if `jobs` is empty."""
    own = [each for each in iterations if not jobs or each.job in jobs]
    if any(each.started_s is None for each in own):
        return sum(each.time_s for each in own)
    spans = sorted((each.started_s or 0.0, (each.started_s or 0.0) + each.time_s) for each in own)
    total, reached = 0.0, float("-inf")
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


FloatArray = NDArray[np.float64]

MOST_VALUES = 400_000
"""The approximate maximum number of values in a figure of all links of all planners; beyond it, intervals merge."""
LEAST_POINTS = 50
"""The minimum number of intervals after merging."""
NAMED_CIRCUIT = "{}:{} - {}:{}"


def iterations_of(table: Table, numbers: Mapping[str, int]) -> list[IterationView]:
    """The iterations of a planner's jobs, from `iterations.csv`."""
    if not table:
        return []
    rates: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    spans: dict[tuple[int, int], tuple[float | None, float]] = {}
    started = table.get("started_s") or [""] * len(table["job"])
    columns = (table[name] for name in ("job", "iteration", "communication_time_s", "host", "role", "rate_bps"))
    for job, number, time_s, host, role, rate, start in zip(*columns, started, strict=True):
        key = int(job), int(number)
        spans[key] = float(start) if start else None, float(time_s)
        if role == "worker" and host in numbers:
            rates[key][numbers[host]] = float(rate)
    return [IterationView(*key, *span, rates[key]) for key, span in spans.items()]


def events_of(interferences: Iterable[InterferenceRecord]) -> Iterator[EventView]:
    for each in interferences:
        yield from (EventView(**moment.as_json()) for moment in each.moments)


def circuits_of(circuits: Mapping[str, Any] | None, end_s: float) -> Iterator[CircuitView]:
    """Yield every circuit, from the slot that set it to the slot that removed it, from a schedule's details."""
    if circuits is None:
        return
    dark_s, slots = circuits["reconfiguration_s"], circuits["slots"]
    since: dict[tuple[Any, ...], float] = {}
    for number, slot in enumerate([*slots, {"at_s": end_s, "circuits": []}]):
        wanted = {tuple(map(tuple, each)) for each in slot["circuits"]}
        for gone in sorted(since.keys() - wanted):
            yield circuit_view(gone, since.pop(gone), slot["at_s"], dark_s, first_s=slots[0]["at_s"])
        for new in wanted - since.keys():
            since[new] = slot["at_s"] if number else slots[0]["at_s"]


def circuit_view(ends: tuple[Any, ...], from_s: float, until_s: float, dark_s: float, first_s: float) -> CircuitView:
    """A circuit; the circuits of the first slot exist before the run, and are lit immediately."""
    (a, a_port), (b, b_port) = ends
    lit_s = from_s if from_s == first_s else min(until_s, from_s + dark_s)
    return CircuitView(NAMED_CIRCUIT.format(a, a_port, b, b_port), (a, b), from_s, lit_s, until_s)


def used_of(used: Processors | None) -> UsedView | None:
    """The use of processors and memory by parts of the kit; None if it was not measured."""
    if used is None:
        return None
    parts = [PartView(name, part.processors, part.memory_bytes) for name, part in used.parts.items()]
    return UsedView(used.processors, used.starts_s, used.ends_s, parts)


def series_of(
    link_series: Sequence[str], seconds: Table, slots: Table, drawn: DrawnFabric, planners: int
) -> SeriesView:
    """The series of a planner: in virtual time from the lines of `link_series.csv.gz`, else from `links.csv`."""
    if len(link_series) > 1:
        starts, links = virtual_series(link_series, drawn)
    elif "sender" in seconds:
        starts, links = second_series(seconds, drawn)
    else:
        return SeriesView()
    held = {
        drawn.number_of[name]: np.asarray(row, dtype=np.float64)
        for name, row in slots.items()
        if name in drawn.fabric.switch_by_name and len(row) == len(starts)
    }
    used, mean, most = ({n: own[figure] for n, own in links.items() if figure < len(own)} for figure in range(3))
    step = step_of(len(starts), 2 * len(drawn.fabric.links), planners)
    width = float(starts[-1] - starts[-2]) if len(starts) > 1 else float(starts[-1])
    return SeriesView(
        [round(float(at), 9) for at in starts[::step]],
        float(starts[-1]) + width,
        joined(used, step, 1000.0, np.mean),
        joined(mean, step, 10.0, np.mean),
        joined(most, step, 10.0, np.max),
        joined(held, step, 10.0, np.mean),
    )


def step_of(points: int, links: int, planners: int) -> int:
    """The number of neighbouring intervals to merge, so that the page stays small enough."""
    most = max(LEAST_POINTS, MOST_VALUES // max(1, links * planners))
    return -(-points // most)


def virtual_series(lines: Sequence[str], drawn: DrawnFabric) -> tuple[FloatArray, dict[int, list[FloatArray]]]:
    """The begins of intervals, and each link's utilisation and mean and maximum queue in packets, by number."""
    header, *rows = lines
    place = {name: column for column, name in enumerate(header.split(","))}
    read = [place[name] for name in ("at_s", "rate_bps", "queue_mean_packets", "queue_most_packets")]
    at, *figures = np.loadtxt(rows, delimiter=",", quotechar='"', usecols=read, unpack=True, ndmin=2)
    points = int(np.argmax(at[1:] <= at[:-1])) + 1 if len(at) > 1 and (at[1:] <= at[:-1]).any() else len(at)
    links: dict[int, list[FloatArray]] = {}
    capacity = {drawn.link_number[hop]: bps for hop, bps in drawn.fabric.capacities_bps.items()}
    for first in range(0, len(at), points):
        ends = next(csv.reader([rows[first]]))
        number = drawn.counted(ends[place["from"]], ends[place["to"]])
        if number is None:
            continue
        rate, *queue = (figure[first : first + points] for figure in figures)
        own = [rate / capacity[number], *queue]
        links[number] = [a + b for a, b in zip(links[number], own, strict=True)] if number in links else own
    return at[:points], links


def second_series(table: Table, drawn: DrawnFabric) -> tuple[FloatArray, dict[int, list[FloatArray]]]:
    """The begins of intervals, and each link's utilisation, for real time, in which queues are not sampled.

    Time begins with the first sample.
    """
    at, rate, sent = (np.asarray(table[name], dtype=np.float64) for name in ("at_s", "rate_bps", "bytes"))
    ends, place = np.unique(at, return_inverse=True)
    first = np.flatnonzero((place == 0) & (sent > 0))
    begin = ends[0] - (8 * sent[first[0]] / rate[first[0]] if len(first) else 1.0)
    links: dict[int, list[FloatArray]] = {}
    capacity = {drawn.link_number[hop]: bps for hop, bps in drawn.fabric.capacities_bps.items()}
    for row, (sender, receiver) in enumerate(zip(table["sender"], table["receiver"], strict=True)):
        number = drawn.counted(sender, receiver)
        if number is not None:
            used = links.setdefault(number, [np.zeros(len(ends))])[0]
            used[place[row]] += rate[row] / capacity[number]
    return np.concatenate(([0.0], ends[:-1] - begin)), {n: own for n, own in links.items() if own[0].any()}


def joined(rows: Mapping[int, FloatArray], step: int, factor: float, how: Any) -> dict[str, list[int]]:
    """Series of nodes or links, with `step` intervals merged, as integer multiples of 1 / `factor`.

    The last merged interval can have fewer.
    """
    if not rows:
        return {}
    values = np.array(list(rows.values()))
    if step > 1:
        padded = np.pad(values, ((0, 0), (0, -values.shape[1] % step)), mode="edge")
        values = how(padded.reshape(-1, step), axis=1).reshape(len(values), -1)
    return dict(zip(map(str, rows), np.rint(values * factor).astype(int).tolist(), strict=True))


# -- The document of the runs.

WHOLE_RUN = (
    *("sending_rate_bps", "ps_ingress_bytes", "communication_time_s", "aggregation_ratio"),
    *("aggregated_bytes", "overhead_bytes", "retransmissions"),
)
"""The figures of all jobs together in a planner's row."""
UNFINISHED = "The run has not ended: the figures cover only its measured part."
MEANINGS = {
    VALID: "Nothing held the run up, and every sum is exact: the measured figures are results.",
    "INCOMPLETE": UNFINISHED,
    "INTERRUPTED": UNFINISHED,
    "FAILED": UNFINISHED,
}
"""What other verdicts than those of `no_result` mean, in words."""


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
    return Document(finding_of(runs), made_by(), runs)


MOST_COMPARED = 4
"""The number of slower planners that a title names."""
SAME = 0.005
"""The relative difference of times below which planners are equally fast."""


def finding_of(runs: Sequence[RunView]) -> str:
    """The finding of runs, which is the title of their page, and their setting.

    A run that is not VALID finds nothing, nor do runs of other fabrics or jobs beside each other.
    """
    times: dict[str, float] = {}
    for number, each_run in enumerate(runs, start=1):
        for planner in each_run.planners:
            measured = next(each.measured for each in planner.figures if each.name == "communication_time_s")
            if measured:
                times[planner.name if len(runs) == 1 else f"{number}: {planner.name}"] = measured
    run = runs[0]
    alike = all((each.fabrics[0], each.planners[0].jobs) == (run.fabrics[0], run.planners[0].jobs) for each in runs)
    if not alike or not times or any(each.verdict != VALID for each in runs):
        return f"No result ({run.verdict}): {run.title}" if len(runs) == 1 else f"{len(runs)} runs compared"
    ranked = sorted(times, key=times.__getitem__)
    best_s = times[ranked[0]]
    first = [name for name in ranked if times[name] <= best_s * (1 + SAME)]
    slower = ranked[len(first) :]
    each = in_words(best_s, "s")
    if not slower:
        found = f"{listed_names(first)} {'take' if len(first) > 1 else 'takes'} {each} per iteration"
    else:
        compared = [f"{as_fast(times[name] / best_s)} {name}" for name in slower[:MOST_COMPARED]]
        more = [f"and {len(slower) - MOST_COMPARED} more planners are slower"] * (len(slower) > MOST_COMPARED)
        found = f"{listed_names(first)} {'are' if len(first) > 1 else 'is'} {', '.join([*compared, *more])}"
    fabric, jobs = run.fabrics[0], run.planners[0].jobs
    sizes = [in_words(size, "bytes") for size in sorted({job.gradient_bytes for job in jobs})]
    workers = sum(len(job.workers) for job in jobs)
    switches = sum(node.tier > 0 for node in fabric.nodes)
    setting = [f"{len(jobs)} jobs"] * (len(jobs) > 1) + [f"{workers} workers", f"{switches} switches"]
    setting.append(" to ".join(dict.fromkeys((sizes[0], sizes[-1]))))
    day = datetime.fromisoformat(run.started)
    return f"{found}: {', '.join(setting)}, {run.verdict}, {day.day} {day:%B}"


def as_fast(ratio: float) -> str:
    """How much faster, in words."""
    return f"{ratio - 1:.1%} faster than" if ratio < 1.1 else f"{ratio:.{0 if ratio >= 10 else 1}f} times as fast as"


def listed_names(names: Sequence[str]) -> str:
    """Names in words: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


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
        meaning=no_result(record) or MEANINGS.get(record.verdict, ""),
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
    slots, seconds = folder.table(name, "slot_series.csv"), folder.table(name, "links.csv")
    links = (folder.text(name, "link_series.csv.gz") or "").splitlines()
    series = series_of(links, seconds, slots, drawn, len(planners))
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


NOTES = (replay_lines, interference_lines, collision_lines, stranger_lines, sampled_lines)
"""The notes on a planner's figures."""


def place_of(drawn: DrawnFabric, fabrics: list[DrawnFabric]) -> int:
    """The index of a fabric in a list, to which it is added if it is missing."""
    if drawn not in fabrics:
        fabrics.append(drawn)
    return fabrics.index(drawn)


def job_view(job: Any, drawn: DrawnFabric) -> JobView:
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
