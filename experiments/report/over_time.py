"""What of a run is told over time: iterations, faults, circuits, and the series of links and switches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.experiments.report.document import CircuitView, EventView, IterationView, PartView, SeriesView, UsedView
from inakit.experiments.report.drawn_fabric import DrawnFabric
from inakit.experiments.report.run_folder import Table

FloatArray = NDArray[np.float64]

MOST_VALUES = 400_000
"""About how many values a figure of all links of all planners has at most; where there are more, intervals join."""
LEAST_POINTS = 50
"""Intervals do not join to fewer than so many."""
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


def events_of(faults: Mapping[str, Any] | None) -> Iterator[EventView]:
    """The faults that happened, from a planner's part of `run.json`."""
    if faults is None:
        return
    told: list[str] = []
    for moment in faults.get("moments", ()):
        told.append(f"{moment['kind']} {'-'.join(moment['nodes'])}")
        yield EventView(told[-1], moment["nodes"], moment["at_s"], moment["lasting_s"])
    for text in faults["events"]:
        if not text.startswith(tuple(told)):
            yield EventView(text, (), None, None)


def circuits_of(circuits: Mapping[str, Any] | None, end_s: float) -> Iterator[CircuitView]:
    """Every circuit from the slot that set it to the one that took it down, from a planner's part of `run.json`."""
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
    """A circuit; those of the first slot exist before the run, and are lit at once."""
    (a, a_port), (b, b_port) = ends
    lit_s = from_s if from_s == first_s else min(until_s, from_s + dark_s)
    return CircuitView(NAMED_CIRCUIT.format(a, a_port, b, b_port), (a, b), from_s, lit_s, until_s)


def used_of(processors: Mapping[str, Any] | None) -> UsedView | None:
    """What parts used, from a planner's part of `run.json`; None where that was not read."""
    if processors is None:
        return None
    parts = [PartView(name, part["processors"], part["memory_bytes"]) for name, part in processors["parts"].items()]
    return UsedView(processors["processors"], processors["starts_s"], processors["ends_s"], parts)


def series_of(link_series: Table, seconds: Table, slots: Table, drawn: DrawnFabric, planners: int) -> SeriesView:
    """The series of a planner: of virtual time from `link_series.csv.gz`, else of `links.csv`, each second's bytes."""
    if link_series:
        starts, links = virtual_series(link_series, drawn)
    elif "sender" in seconds:
        starts, links = second_series(seconds, drawn)
    else:
        return SeriesView()
    held = held_series(slots, drawn, len(starts))
    step = step_of(len(starts), 2 * len(drawn.fabric.links), planners)
    width = float(starts[-1] - starts[-2]) if len(starts) > 1 else float(starts[-1])
    return SeriesView(
        [round(float(at), 9) for at in starts[::step]],
        float(starts[-1]) + width,
        joined(links, 0, step, 1000.0, np.mean),
        joined(links, 1, step, 10.0, np.mean),
        joined(links, 2, step, 10.0, np.max),
        {number: joined_row(row, step, 10.0, np.mean) for number, row in held.items()},
    )


def step_of(points: int, links: int, planners: int) -> int:
    """How many neighbouring intervals become one, so that a page has no more values than it can carry."""
    most = max(LEAST_POINTS, MOST_VALUES // max(1, links * planners))
    return -(-points // most)


def virtual_series(table: Table, drawn: DrawnFabric) -> tuple[FloatArray, dict[int, list[FloatArray]]]:
    """The begins of intervals, and by link number its utilisation and its queue's mean and most packets."""
    at, *figures = (
        np.asarray(table[name], dtype=np.float64)
        for name in ("at_s", "rate_bps", "queue_mean_packets", "queue_most_packets")
    )
    points = int(np.argmax(at[1:] <= at[:-1])) + 1 if len(at) > 1 and (at[1:] <= at[:-1]).any() else len(at)
    capacities = list(drawn.fabric.capacities_bps.values())
    links: dict[int, list[FloatArray]] = {}
    ends = list(drawn.fabric.capacities_bps)
    capacity = {drawn.link_number[hop]: bps for hop, bps in zip(ends, capacities, strict=True)}
    for first in range(0, len(at), points):
        number = drawn.counted(table["from"][first], table["to"][first])
        if number is None:
            continue
        rate, *queue = (figure[first : first + points] for figure in figures)
        own = [rate / capacity[number], *queue]
        links[number] = [a + b for a, b in zip(links[number], own, strict=True)] if number in links else own
    return at[:points], links


def second_series(table: Table, drawn: DrawnFabric) -> tuple[FloatArray, dict[int, list[FloatArray]]]:
    """The same of a network in real time, whose queues are not sampled; time begins with the first sample."""
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


def held_series(table: Table, drawn: DrawnFabric, points: int) -> dict[str, FloatArray]:
    """The fragments that switches hold, by the text of their number, from `slot_series.csv`."""
    switches = [name for name in table if name in drawn.fabric.switch_by_name]
    rows = {str(drawn.number_of[name]): np.asarray(table[name], dtype=np.float64) for name in switches}
    return {number: row for number, row in rows.items() if len(row) == points}


def joined(
    links: Mapping[int, Sequence[FloatArray]], figure: int, step: int, factor: float, how: Any
) -> dict[str, list[int]]:
    """A figure of every link that has it, `step` intervals as one, as whole multiples of 1 / `factor`."""
    return {
        str(number): joined_row(own[figure], step, factor, how) for number, own in links.items() if figure < len(own)
    }


def joined_row(row: FloatArray, step: int, factor: float, how: Any) -> list[int]:
    """One series, `step` intervals as one; the last of them may be of fewer."""
    if step > 1:
        padded = np.pad(row, (0, -len(row) % step), mode="edge")
        row = how(padded.reshape(-1, step), axis=1)
    whole: list[int] = np.rint(row * factor).astype(int).tolist()
    return whole
