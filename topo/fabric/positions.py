"""The positions of a fabric's nodes and cables in a drawing: a row per tier, a column per pipeline of a switch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from inakit.topo.fabric.fabric import Fabric

ROW_HEIGHT = 2.2
HOST_ROW_HEIGHT = 2.0
HOST_SPACING = 0.8
MIN_COLUMN = 1.6
COLUMN_GAP = 0.5
SWITCH_HEIGHT = 0.62
MAX_SWITCH_WIDTH = 2.0
ARC_HEIGHT = 0.4

Point = tuple[float, float]


@dataclass(frozen=True)
class NodePositions:
    """Positions in the units of the drawing, from the left end of the host row at (0, 0)."""

    fabric: Fabric

    @cached_property
    def rows(self) -> list[list[str]]:
        """The rows of nodes from the hosts up, each from left to right; a node stands over the nodes below it."""
        tiers = self.fabric.tiers
        rows: list[list[str]] = []
        for tier in sorted({0, 1, *tiers.values()}):
            members = [node for node in tiers if tiers[node] == tier]
            place = {node: number for row in rows for number, node in enumerate(row)}
            rows.append(sorted(members, key=lambda node: self.barycenter(node, place)))
        order = {switch: number for number, switch in enumerate(switch for row in rows[1:] for switch in row)}
        rows[0].sort(key=lambda host: order.get(self.fabric.tor_of(host), 0))
        return [row for row in rows if row]

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """The row of every node, and its place in the row."""
        return {node: (number, at) for number, row in enumerate(self.rows) for at, node in enumerate(row)}

    def barycenter(self, node: str, place: dict[str, int]) -> float:
        """The mean place of the switches below. Rows are sorted by it so that few cables cross."""
        below = [place[peer] for peer in self.fabric.neighbors[node] if peer in place and self.fabric.tiers[peer] > 0]
        return sum(below) / len(below) if below else 0.0

    @cached_property
    def columns(self) -> dict[str, tuple[float, float]]:
        """The left and right end of every lowest switch's column, which is as wide as its hosts need.

        Hosts of a higher switch have a column to the right of those.
        """
        hosts = Counter(map(self.fabric.tor_of, self.fabric.host_names))
        higher = [switch for row in self.rows for switch in row if switch in hosts and switch not in self.lowest]
        columns, left = {}, 0.0
        for switch in [*self.lowest, *higher]:
            right = left + max(MIN_COLUMN, HOST_SPACING * hosts[switch])
            columns[switch] = (left, right)
            left = right + COLUMN_GAP
        return columns

    @property
    def lowest(self) -> list[str]:
        """The row of switches nearest to the hosts."""
        return next(row for row in self.rows if row[0] not in self.fabric.host_names)

    @cached_property
    def width(self) -> float:
        right = max(right for _, right in self.columns.values())
        return max(right, *(MIN_COLUMN * len(row) for row in self.rows if row[0] not in self.fabric.host_names))

    @cached_property
    def heights(self) -> list[float]:
        """The y of every row; wide rows are further apart, because their cables need the room."""
        step = max(ROW_HEIGHT, self.width / 9)
        return [0.0, *(HOST_ROW_HEIGHT + step * number for number in range(len(self.rows) - 1))]

    @cached_property
    def positions(self) -> dict[str, Point]:
        points: dict[str, Point] = {}
        for row, y in zip(self.rows, self.heights[-len(self.rows) :], strict=True):
            points |= {node: (x, y) for node, x in zip(row, self.spread(row), strict=True)}
        return points

    def spread(self, row: list[str]) -> list[float]:
        """The x of a row's nodes: lowest switches in their columns, hosts beneath, other switches spaced evenly."""
        if row == self.lowest:
            return [sum(self.columns[switch]) / 2 for switch in row]
        if row[0] not in self.fabric.host_names:
            pitch = (self.width + COLUMN_GAP) / len(row)
            return [pitch * (i + 0.5) - COLUMN_GAP / 2 for i in range(len(row))]
        places = []
        for tor, rack in groupby(row, self.fabric.tor_of):
            hosts = list(rack)
            first = (sum(self.columns[tor]) - HOST_SPACING * (len(hosts) - 1)) / 2
            places += [first + HOST_SPACING * i for i in range(len(hosts))]
        return places

    def switch_width(self, switch: str) -> float:
        """The width of a switch's box, which is narrower in a crowded row."""
        row, _ = self.places[switch]
        return min(MAX_SWITCH_WIDTH, 0.8 * self.width / len(self.rows[row]))

    def pipeline_x(self, switch: str, pipeline: int) -> float:
        """The middle of a pipeline's column."""
        count = len(self.fabric.switch_by_name[switch].pipelines)
        return self.positions[switch][0] + self.switch_width(switch) * ((pipeline + 0.5) / count - 0.5)

    def end(self, node: str, peer: str) -> Point:
        """The point where the cable to `peer` meets `node`: on the side towards the peer, in its pipeline's column."""
        x, y = self.positions[node]
        if node in self.fabric.host_names:
            return x, y
        switch = self.fabric.switch_by_name[node]
        if switch.ina:
            x = self.pipeline_x(node, self.fabric.ingress_pipeline(node, peer))
        rise = self.positions[peer][1] - y
        return x, y + (SWITCH_HEIGHT / 2 if rise > 0 else -SWITCH_HEIGHT / 2 if rise < 0 else SWITCH_HEIGHT / 4)

    def arc(self, a: str, b: str) -> float:
        """The height of a cable's bend over the nodes between its ends, if both are in the same row; else 0."""
        (row, at), (other, to) = self.places[a], self.places[b]
        return ARC_HEIGHT * abs(at - to) if row == other else 0.0
