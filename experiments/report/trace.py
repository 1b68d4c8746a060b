"""A run as a trace for Perfetto (ui.perfetto.dev), in the Trace Event Format of Chrome, times in microseconds.

Each planner has tracks for its jobs' iterations, its workers (iterations, and the rate over time), the fragments that
switches hold in their slots, its circuits, and its faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from inakit.experiments.report.document import FabricView, PlannerView, RunView

US_PER_S = 1e6
Event = dict[str, Any]


def trace_of(run: RunView) -> dict[str, Any]:
    """The content of `trace.json`."""
    numbers = count(1)
    events = [event for planner in run.planners for event in planner_events(planner, run.fabrics, numbers)]
    about = {"run": run.folder, "command": run.command, "verdict": run.verdict}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


def planner_events(planner: PlannerView, fabrics: Sequence[FabricView], numbers: Iterator[int]) -> Iterator[Event]:
    """Yield the tracks of a planner, one group for each kind."""
    fabric = fabrics[planner.fabric]
    groups = {
        "jobs": iteration_events(planner),
        "workers": worker_events(planner, fabric),
        "slots of switches": slot_events(planner, fabric),
        "circuits": circuit_events(planner),
        "faults": fault_events(planner),
    }
    for kind, found in groups.items():
        process, tracks = next(numbers), dict[str, int]()
        for track, event in found:
            if not tracks:
                yield named("process_name", f"{planner.name}: {kind}", process)
            if track not in tracks:
                tracks[track] = len(tracks) + 1
                yield named("thread_name", track, process, tracks[track])
            yield event | {"pid": process, "tid": tracks[track]}


def named(kind: str, name: str, process: int, thread: int = 0) -> Event:
    """The event that gives a group or a track its name."""
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def span(name: str, from_s: float, until_s: float, **told: Any) -> Event:
    """An event with a duration."""
    return {"ph": "X", "name": name, "ts": from_s * US_PER_S, "dur": (until_s - from_s) * US_PER_S, "args": told}


def iteration_events(planner: PlannerView) -> Iterator[tuple[str, Event]]:
    for each in planner.iterations:
        if each.started_s is not None:
            name, end_s = f"iteration {each.number}", each.started_s + each.time_s
            yield f"job {each.job}", span(name, each.started_s, end_s, communication_time_s=each.time_s)


def worker_events(planner: PlannerView, fabric: FabricView) -> Iterator[tuple[str, Event]]:
    """Yield each worker's iterations, with its sending rate, and its rate over time if known."""
    uplinks = {2 * n + back: end for n, link in enumerate(fabric.links) for back, end in enumerate((link.a, link.b))}
    for each in planner.iterations:
        for worker, rate_bps in each.rates_bps.items() if each.started_s is not None else ():
            name, end_s = f"job {each.job}, iteration {each.number}", (each.started_s or 0.0) + each.time_s
            yield fabric.nodes[worker].name, span(name, each.started_s or 0.0, end_s, sending_rate_bps=rate_bps)
    workers = {worker for job in planner.jobs for worker in job.workers}
    for number, used in planner.series.used.items():
        node, link = uplinks[int(number)], fabric.links[int(number) // 2]
        if node in workers:
            capacity = link.capacity_ba_bps if int(number) % 2 else link.capacity_ab_bps
            values = [share * capacity / 1e9 for share in used]
            yield from counter(f"{fabric.nodes[node].name} sends (Mbit/s)", planner.series.starts_s, values)


def slot_events(planner: PlannerView, fabric: FabricView) -> Iterator[tuple[str, Event]]:
    """Yield the number of fragments that each switch holds over time."""
    for number, held in planner.series.held.items():
        name = f"{fabric.nodes[int(number)].name} (fragments)"
        yield from counter(name, planner.series.starts_s, [tenths / 10 for tenths in held])


def counter(name: str, starts_s: Sequence[float], values: Sequence[float]) -> Iterator[tuple[str, Event]]:
    """Yield a value over time, at its changes only."""
    before: float | None = None
    for at_s, value in zip(starts_s, values, strict=True):
        if value != before:
            yield name, {"ph": "C", "name": name, "ts": at_s * US_PER_S, "args": {"value": value}}
        before = value


def circuit_events(planner: PlannerView) -> Iterator[tuple[str, Event]]:
    """Yield the dark and the lit spans of each circuit."""
    for each in planner.circuits:
        if each.lit_s > each.from_s:
            yield each.name, span("dark", each.from_s, each.lit_s)
        yield each.name, span("lit", each.lit_s, each.until_s)


def fault_events(planner: PlannerView) -> Iterator[tuple[str, Event]]:
    """Yield the faults whose time is known. A fault without a duration is a moment."""
    for each in planner.events:
        if each.at_s is None:
            continue
        if each.lasting_s is None:
            yield "faults", {"ph": "i", "s": "p", "name": each.text, "ts": each.at_s * US_PER_S, "args": {}}
        else:
            yield "faults", span(each.text, each.at_s, each.at_s + each.lasting_s)
