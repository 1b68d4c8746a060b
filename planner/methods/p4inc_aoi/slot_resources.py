"""The resources of a slot while it is planned: bandwidth of switches, optical ports, and jobs that use INC."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import ceil

from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob
from inakit.planner.methods.p4inc_aoi.schedule import UnitCircuit, UnitPair, pair

ROUNDING = 1e-9


@dataclass(frozen=True)
class JobShape:
    """The resources of a job at a worker's rate of 1, if unit `inc`, or none, sums for it."""

    center: DataCenter
    job: PlacedJob
    inc: str | None

    @cached_property
    def most_bps(self) -> float:
        """The highest rate of a worker that the servers' links allow."""
        return self.job.most_bps(self.center, self.inc)

    @cached_property
    def places(self) -> tuple[tuple[str, int], ...]:
        return tuple(self.job.places(self.center, self.inc).items())

    @cached_property
    def flows(self) -> tuple[tuple[UnitPair, int], ...]:
        return tuple((pair(unit, self.job.server), weight) for unit, weight in self.job.flows(self.inc))

    @cached_property
    def loads(self) -> tuple[tuple[str, int], ...]:
        return tuple(self.job.switch_loads(self.inc).items())


class SlotResources:
    """The resources of a slot, to which the rates of jobs are added. `fixed` are circuits that never change.

    `ports`, `switch_bps`, `places` of servers and `inc_jobs` remain at each unit; `traffic_bps` is in use between two
    units.
    """

    def __init__(self, center: DataCenter, fixed: Mapping[UnitPair, int] | None = None) -> None:
        self.center, self.fixed = center, fixed
        self.ports = {unit.name: unit.optical_ports for unit in center.units}
        self.switch_bps = {unit.name: unit.switch_bps * (1 + ROUNDING) for unit in center.units}
        self.inc_jobs = {unit.name: unit.inc_jobs for unit in center.units}
        self.places = {unit.name: unit.places for unit in center.units}
        self.traffic_bps: dict[UnitPair, float] = {}

    def ports_for(self, bps: float) -> int:
        """The number of ports for this traffic."""
        return max(1, ceil(bps / self.center.port_bps - ROUNDING)) if bps > 0 else 0

    def fits(self, shape: JobShape, rate_bps: float) -> bool:
        """Whether the rate of every worker of a job can rise by `rate_bps` (Eqs. 5 and 6)."""
        if any(self.switch_bps[unit] < weight * rate_bps for unit, weight in shape.loads):
            return False
        return self.has_ports(shape, rate_bps)

    def has_ports(self, shape: JobShape, rate_bps: float) -> bool:
        """Whether enough optical ports are free for this rise or, if circuits are fixed, enough of their rate."""
        if self.fixed is not None:
            return all(
                self.traffic_bps.get(units, 0.0) + weight * rate_bps
                <= self.fixed.get(units, 0) * self.center.port_bps * (1 + ROUNDING)
                for units, weight in shape.flows
            )
        return all(self.ports[unit] >= count for unit, count in self.more_ports(shape, rate_bps).items())

    def more_ports(self, shape: JobShape, rate_bps: float) -> Counter[str]:
        """For each unit, the ports that a rate needs in addition to those in use."""
        found: Counter[str] = Counter()
        for units, weight in shape.flows:
            used = self.traffic_bps.get(units, 0.0)
            more = self.ports_for(used + weight * rate_bps) - self.ports_for(used)
            if more:
                for unit in units:
                    found[unit] += more
        return found

    def has_places(self, shape: JobShape) -> bool:
        """Whether servers for a job's workers and its PS are free."""
        return all(self.places[unit] >= count for unit, count in shape.places)

    def occupy(self, shape: JobShape, rate_bps: float) -> None:
        """Take all that a job needs in the slot: its servers, INC in its unit, and the rate of every worker."""
        self.seat(shape)
        if shape.inc is not None:
            self.inc_jobs[shape.inc] -= 1
        self.add(shape, rate_bps)

    def seat(self, shape: JobShape) -> None:
        """Take the servers of a job's workers and of its PS."""
        for unit, count in shape.places:
            self.places[unit] -= count

    def add(self, shape: JobShape, rate_bps: float) -> None:
        """Raise the rate of every worker of a job by `rate_bps`, which may be negative."""
        for unit, count in self.more_ports(shape, rate_bps).items():
            self.ports[unit] -= count
        for unit, weight in shape.loads:
            self.switch_bps[unit] -= weight * rate_bps
        for units, weight in shape.flows:
            self.traffic_bps[units] = self.traffic_bps.get(units, 0.0) + weight * rate_bps

    def steps(self, shape: JobShape, step_bps: float) -> int:
        """The number of steps of bandwidth that fit, found by bisection."""
        bound = min(self.switch_bps[unit] / weight / step_bps for unit, weight in shape.loads)
        bound = min(bound, shape.most_bps * (1 + ROUNDING) / step_bps)
        low, high = 0, max(0, int(bound))
        while low < high:
            middle = (low + high + 1) // 2
            if self.fits(shape, middle * step_bps):
                low = middle
            else:
                high = middle - 1
        return low

    def most_bps(self, shape: JobShape, wanted_bps: float) -> float:
        """The highest rate of a worker that fits, up to the wanted one; 0 if nothing remains.

        The rate is exact, so that a job has no data left over when its slots end.
        """
        bound = min(self.switch_bps[unit] / weight for unit, weight in shape.loads)
        most = max(0.0, min(bound, shape.most_bps, wanted_bps))
        if self.has_ports(shape, most):
            return most
        rates = sorted({0.0, *(rate for rate in self.filling_bps(shape) if rate < most)})
        return rates[bisect_left(rates, True, key=lambda rate: not self.has_ports(shape, rate)) - 1]

    def filling_bps(self, shape: JobShape) -> Iterator[float]:
        """The rates of a worker at which the ports between two units are full: beyond them, a flow needs another."""
        for units, weight in shape.flows:
            used = self.traffic_bps.get(units, 0.0)
            first = self.ports_for(used)
            last = first + min(self.ports[unit] for unit in units)
            for count in range(first, last + 1) if self.fixed is None else (self.fixed.get(units, 0),):
                yield max(0.0, count * self.center.port_bps - used) / weight

    def needed(self) -> dict[UnitPair, int]:
        """The connections for the traffic, by pair of units."""
        found = {units: self.ports_for(bps) for units, bps in self.traffic_bps.items()}
        return {units: count for units, count in found.items() if count > 0}


def settle(
    center: DataCenter,
    needed: Mapping[UnitPair, int],
    before: Mapping[UnitPair, int],
    last_used: Mapping[UnitPair, int],
) -> dict[UnitPair, int]:
    """The circuits of a slot: those needed, and as many of the previous ones as the remaining ports allow.

    A connection is cut only if its port is needed elsewhere; those unused for longest are cut first.
    """
    if all(count <= before.get(units, 0) for units, count in needed.items()):
        return dict(before)
    found = dict(needed)
    free = {unit.name: unit.optical_ports for unit in center.units}
    for (a, b), count in needed.items():
        free[a] -= count
        free[b] -= count
    for units in sorted(before, key=lambda units: (-last_used.get(units, -1), units)):
        a, b = units
        kept = min(before[units] - found.get(units, 0), free[a], free[b])
        if kept > 0:
            found[units] = found.get(units, 0) + kept
            free[a] -= kept
            free[b] -= kept
    return found


def uniform(center: DataCenter) -> dict[UnitPair, int]:
    """The same number of connections between any two units; remaining ports are distributed in turn."""
    free = {unit.name: unit.optical_ports for unit in center.units}
    found: Counter[UnitPair] = Counter()
    distances = sorted(combinations(range(len(center.units)), 2), key=lambda ends: (ends[1] - ends[0], ends))
    dealt = True
    while dealt:
        dealt = False
        for low, high in distances:
            a, b = center.units[low].name, center.units[high].name
            if free[a] and free[b]:
                free[a], free[b], dealt = free[a] - 1, free[b] - 1, True
                found[pair(a, b)] += 1
    return dict(found)


def circuits_of(ports: Mapping[UnitPair, int]) -> tuple[UnitCircuit, ...]:
    """The connections by pair of units as circuits, in the order of the units' names."""
    return tuple(UnitCircuit(a, b, count) for (a, b), count in sorted(ports.items()) if count)
