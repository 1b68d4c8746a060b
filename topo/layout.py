"""Where a drawing puts the nodes and cables of a fabric: a row per tier, a column per pipeline of a switch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from topo.fabric import Fabric

ROW_HEIGHT = 2.4
HOST_SPACING = 1.0
SWITCH_HEIGHT = 0.62
MAX_SWITCH_WIDTH = 2.2
ARC_HEIGHT = 0.9

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Positions in the units of the drawing; hosts are `HOST_SPACING` apart, their row is y = 0."""

    fabric: Fabric

    @cached_property
    def rows(self) -> list[list[str]]:
        """The nodes of every tier from the hosts up, from left to right: each stands over what it serves."""
        tiers = self.fabric.tiers
        rows: list[list[str]] = []
        for tier in sorted({0, 1, *tiers.values()}):
            members = [node for node in tiers if tiers[node] == tier]
            place = {node: number for row in rows for number, node in enumerate(row)}
            rows.append(sorted(members, key=lambda node: self.barycenter(node, place)))
        order = {switch: number for number, switch in enumerate(rows[1])}
        rows[0].sort(key=lambda host: order.get(self.fabric.tor_of(host), 0))
        return [row for row in rows if row]

    def barycenter(self, node: str, place: dict[str, int]) -> float:
        """The mean place of the switches below."""
        below = [place[peer] for peer in self.fabric.neighbors[node] if peer in place and self.fabric.tiers[peer] > 0]
        return sum(below) / len(below) if below else 0.0

    @cached_property
    def width(self) -> float:
        hosts = len(self.rows[0]) + (self.racks - 1) / 2
        return max(HOST_SPACING * hosts, *(1.5 * len(row) for row in self.rows))

    @cached_property
    def racks(self) -> int:
        return len({self.fabric.tor_of(host) for host in self.fabric.host_names}) or 1

    @cached_property
    def height(self) -> float:
        return ROW_HEIGHT * (len(self.rows) - 1)

    @cached_property
    def positions(self) -> dict[str, Point]:
        """The middle of every node."""
        points: dict[str, Point] = {}
        for number, row in enumerate(self.rows):
            points |= {node: (x, number * ROW_HEIGHT) for node, x in zip(row, self.spread(row), strict=True)}
        return points

    def spread(self, row: list[str]) -> list[float]:
        """Even spacing over the width; the hosts of different switches have a gap between them."""
        if row[0] not in self.fabric.host_names:
            return [self.width * (i + 0.5) / len(row) for i in range(len(row))]
        racks = [len(list(rack)) for _, rack in groupby(row, self.fabric.tor_of)]
        slots, at = [], 0.5
        for size in racks:
            slots += [at + i for i in range(size)]
            at += size + 0.5
        return [self.width * slot / (at - 0.5) for slot in slots]

    def switch_width(self, switch: str) -> float:
        row = next(row for row in self.rows if switch in row)
        return min(MAX_SWITCH_WIDTH, 0.78 * self.width / len(row))

    def pipeline_x(self, switch: str, pipeline: int) -> float:
        """The middle of a pipeline's column."""
        count = len(self.fabric.switch_by_name[switch].pipelines)
        return self.positions[switch][0] + self.switch_width(switch) * ((pipeline + 0.5) / count - 0.5)

    def end(self, node: str, peer: str) -> Point:
        """Where the cable to `peer` meets `node`: on the side towards it, in the column of its pipeline."""
        x, y = self.positions[node]
        if node in self.fabric.host_names:
            return x, y
        switch = self.fabric.switch_by_name[node]
        if switch.ina:
            x = self.pipeline_x(node, self.fabric.ingress_pipeline(node, peer))
        rise = self.positions[peer][1] - y
        return x, y + SWITCH_HEIGHT / 2 * ((rise >= 0) - (rise < 0))

    def arc(self, a: str, b: str) -> float:
        """How far the cable bends: not at all, but between switches of one row it goes round those in between."""
        (ax, ay), (bx, by) = self.positions[a], self.positions[b]
        return ARC_HEIGHT if ay == by and ax != bx else 0.0
