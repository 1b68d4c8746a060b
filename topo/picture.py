"""A fabric as a picture: a row per tier, the pipelines of INA switches, aggregation trees and link loads."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot
from pathlib import Path
from typing import Literal, Protocol

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from inakit.topo.errors import InputError, writing
from inakit.topo.fabric.fabric import DirectedLink, Fabric
from inakit.topo.fabric.positions import SWITCH_HEIGHT, NodePositions, Point
from inakit.topo.fabric.variations import Folding, folded


@dataclass
class Labels:
    """The labels of one drawing: each load stands beside the line of its own direction, and overlaps nothing.

    Places are tried one after another with the label's rendered size. A label that fits nowhere is omitted and counted.
    `taken` are boxes in pixels that no label overlaps.
    """

    axes: Axes
    taken: list[Bbox] = field(default_factory=list)
    left_out: int = 0

    def place(self, text: Text, places: Iterable[Point]) -> bool:
        """Put a text at the first of `places` where it fits, else remove it; return whether it fits."""
        for place in places:
            text.set_position(place)
            box = self.extent(text)
            if not any(overlap(box, other) for other in self.taken):
                self.taken.append(box)
                return True
        text.remove()
        self.left_out += 1
        return False

    def extent(self, text: Text) -> Bbox:
        canvas = self.axes.get_figure(root=True).canvas  # type: ignore[union-attr]
        assert isinstance(canvas, FigureCanvasAgg)
        return text.get_window_extent(canvas.get_renderer())  # type: ignore[no-untyped-call]


def overlap(one: Bbox, other: Bbox) -> bool:
    return bool(one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1)


def along(first: float) -> Iterator[float]:
    """Yield shares of a line's length: `first`, then values ever further from it on both sides, away from the ends."""
    yield first
    for step in range(1, 14):
        yield from (at for at in (first + 0.05 * step, first - 0.05 * step) if 0.12 <= at <= 0.88)


TREE_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#4B4B4B")
INK, PAPER, CABLE, COMMON = "#20262E", "#FFFFFF", "#C9D1DA", "#E4E8EC"
PIPELINE_TINTS = ("#DCEBF7", "#C3DDF1")
ROLES = {
    "worker": ("o", "#2F6DA8", "worker"),
    "ps": ("s", "#B3261E", "parameter server"),
    "": ("o", "#FFFFFF", "idle host"),
}
FORMATS = (".png", ".svg")
MAX_LABELS = 120
INCHES_PER_UNIT, INCHES_PER_UNIT_FOLDED = 0.62, 0.42
LANE = 0.09
"""The distance between two lines on one cable, in units of the drawing."""
MAX_INCHES = 60.0
DASHES: tuple[Literal["-", "--", ":"], ...] = ("-", "--", ":")
MOST_JOBS = 3
"""The most jobs of a host that are listed; for more the drawing shows their number."""
LABEL_POINTS, LABEL_ASIDE, HOST_RADIUS = 5.4, 0.22, 0.13
"""A label's font size, its distance from the middle of a cable with loads in both directions, and a host's radius."""


class BranchShape(Protocol):
    """The part of a tree's branch that a drawing uses."""

    @property
    def links(self) -> Sequence[DirectedLink]:
        """The directed links of the branch's path."""


class AggregatorShape(Protocol):
    """The part of an aggregator that a drawing uses."""

    @property
    def switch(self) -> str:
        """The switch that aggregates."""

    @property
    def pipeline(self) -> int:
        """The pipeline of the switch that aggregates."""


class TreeShape(Protocol):
    """The part of an aggregation tree that a drawing uses: `topo` does not import plans."""

    @property
    def number(self) -> int:
        """The tree's number, for the legend."""

    @property
    def branches(self) -> Sequence[BranchShape]:
        """The branches, in any order."""

    @property
    def aggregators(self) -> Sequence[AggregatorShape]:
        """The aggregators, in any order."""


def draw(
    fabric: Fabric,
    paths: Path | Iterable[Path],
    *,
    loads: Mapping[DirectedLink, float] | None = None,
    trees: Sequence[TreeShape] = (),
    roles: Mapping[str, str] | None = None,
    owners: Sequence[int] = (),
    jobs: Mapping[str, Sequence[int]] | None = None,
    title: str | None = None,
) -> None:
    """Draw to each of `paths`, whose suffix (.png, .svg) sets the format. Raises `InputError`.

    `loads` are bit/s of directed links, shown as width and label. Each of `trees` has a colour, and a Σ where it
    aggregates. `roles` maps hosts to 'worker' or 'ps', `owners[n]` is the number of the job of `trees[n]`, and `jobs`
    maps hosts to their jobs.
    """
    targets = [paths] if isinstance(paths, Path) else list(paths)
    for path in targets:
        if path.suffix not in FORMATS:
            raise InputError(f"{path}: a drawing ends in {' or '.join(FORMATS)}")
    picture = Picture(fabric, loads or {}, trees, roles or {}, owners, jobs or {})
    figure = picture.figure(fabric.name if title is None else title)
    with rc_context({"svg.fonttype": "none"}):  # text stays text, which can be searched and edited
        for path in targets:
            with writing(path):
                figure.savefig(path, dpi=160, facecolor=PAPER, bbox_inches="tight", pad_inches=0.25)


class Picture:
    """One drawing: its content, and the steps that draw it. Positions are in units of `NodePositions`."""

    def __init__(
        self,
        fabric: Fabric,
        loads: Mapping[DirectedLink, float],
        trees: Sequence[TreeShape],
        roles: Mapping[str, str],
        owners: Sequence[int] = (),
        jobs: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.owners, self.roles, self.jobs = owners, roles, jobs or {}
        self.folding = folding_of(fabric, loads, trees, {h: (roles.get(h), tuple(self.jobs.get(h, ()))) for h in roles})
        self.fabric = self.folding.fabric()
        self.layout = NodePositions(self.fabric)
        self.merged: dict[DirectedLink, list[float]] = defaultdict(list)
        for (a, b), load in loads.items():
            self.merged[self.folding.of[a], self.folding.of[b]].append(load)
        self.loads = {hop: sum(each) for hop, each in self.merged.items()}
        self.trees = trees
        self.users = users_of_links(trees, self.folding.of)
        self.names: list[tuple[Text, str]] = []
        """The names of switches as they are drawn, each with its node."""

    def figure(self, title: str) -> Figure:
        """The finished figure. Raises `InputError` for a fabric without switches."""
        if not self.fabric.switches:
            raise InputError(f"fabric '{self.fabric.name}' has no switch: there is nothing to draw")
        inches = INCHES_PER_UNIT_FOLDED if self.is_folded else INCHES_PER_UNIT
        width = min(MAX_INCHES, max(6.0, inches * (self.layout.width + 1)))
        height = width * (self.layout.heights[-1] + 3.2) / (self.layout.width + 1)
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_aspect("equal")
        for link in self.fabric.links:
            self.draw_line(axes, link.a, link.b, 0.0, color=CABLE, linewidth=1.1, zorder=1)
        for hop in self.directed:
            self.draw_flow(axes, hop)
        for switch in self.fabric.switch_by_name:
            self.draw_switch(axes, switch)
        for host in self.fabric.hosts:
            self.draw_host(axes, host.name)
        self.limit(axes)
        labels = Labels(axes)
        for text, switch in self.names:
            (left, _), (right, _) = axes.transData.transform(self.box_of(switch))
            text.set_fontsize(min(8.0, 8.0 * 0.88 * (right - left) / labels.extent(text).width))
        missing = self.label_loads(labels)
        self.finish(axes, title, width, missing)
        return figure

    @property
    def is_folded(self) -> bool:
        """Whether a node stands for several."""
        return len(self.folding.of) > len(self.fabric.tiers)

    @property
    def directed(self) -> list[DirectedLink]:
        """The directed links that trees use or that carry a load."""
        return [hop for hop in self.fabric.capacities_bps if hop in self.users or self.loads.get(hop)]

    def draw_flow(self, axes: Axes, hop: DirectedLink) -> None:
        """Draw one line per tree on the link, side by side, or a single line for a load that belongs to no tree."""
        trees = self.users.get(hop, [])
        colors = [TREE_COLORS[tree % len(TREE_COLORS)] for tree in trees] or [INK]
        dashes = [dash_of(tree) for tree in trees] or [DASHES[0]]
        width = 1.4 + 2.6 * min(1.0, self.loads.get(hop, 0.0) / self.fabric.capacities_bps[hop])
        both_ways = hop[::-1] in self.users or bool(self.loads.get(hop[::-1]))
        middle = -0.75 if both_ways else (len(colors) - 1) / 2
        for number, (color, dash) in enumerate(zip(colors, dashes, strict=True)):
            shift = LANE * (number - middle)
            thick = width / len(colors) ** 0.5
            self.draw_line(axes, *hop, shift, color=color, linestyle=dash, linewidth=thick, zorder=2)
            # An arrowhead just beyond the middle of the line.
            style = {"arrowstyle": "-|>", "mutation_scale": 7 + 2 * width / len(colors), "color": color}
            tail, tip = self.point_at(hop, 0.52, shift), self.point_at(hop, 0.6, shift)
            axes.annotate("", xy=tip, xytext=tail, arrowprops=style | {"shrinkA": 0, "shrinkB": 0}, zorder=2.5)

    def draw_line(self, axes: Axes, a: str, b: str, shift: float, **style: object) -> None:
        """Draw the line of a link from `a` to `b`, moved by `shift` to the right, in matplotlib's `style`."""
        points = self.course(a, b, shift)
        axes.plot([x for x, _ in points], [y for _, y in points], solid_capstyle="round", **style)  # type: ignore[arg-type]

    def course(self, a: str, b: str, shift: float) -> list[Point]:
        """The points of the line from `a` to `b`, shifted to the right of its direction."""
        (ax, ay), (bx, by) = self.layout.end(a, b), self.layout.end(b, a)
        length = hypot(bx - ax, by - ay) or 1.0
        dx, dy = shift * (by - ay) / length, shift * (ax - bx) / length
        bend = self.layout.arc(a, b)
        steps = 24 if bend else 1
        return [
            (ax + t * (bx - ax) + dx, ay + t * (by - ay) + dy + 4 * bend * t * (1 - t))
            for t in (i / steps for i in range(steps + 1))
        ]

    def point_at(self, hop: DirectedLink, t: float, shift: float = 0.0) -> Point:
        """The point at share `t` of the line of a link, from its sender."""
        points = self.course(*hop, shift)
        at = t * (len(points) - 1)
        first = min(int(at), len(points) - 2)
        (ax, ay), (bx, by) = points[first], points[first + 1]
        return ax + (at - first) * (bx - ax), ay + (at - first) * (by - ay)

    def label_loads(self, labels: Labels) -> int:
        """Label every load beside its own direction's line; return the number of labels without room."""
        hops = [hop for hop in self.directed if self.loads.get(hop)]
        if len(hops) > MAX_LABELS:
            return len(hops)
        axes = labels.axes
        labels.taken += [labels.extent(text) for text in axes.texts if text.get_text()]
        labels.taken += [Bbox(axes.transData.transform(self.box_of(node))) for node in self.fabric.tiers]
        for hop in hops:
            labels.place(self.load_text(axes, hop), self.places(hop))
        return labels.left_out

    def box_of(self, node: str) -> tuple[Point, Point]:
        x, y = self.layout.positions[node]
        if node in self.fabric.host_names:
            return (x - HOST_RADIUS, y - HOST_RADIUS), (x + HOST_RADIUS, y + HOST_RADIUS)
        width = self.layout.switch_width(node)
        return (x - width / 2, y - SWITCH_HEIGHT / 2), (x + width / 2, y + SWITCH_HEIGHT / 2)

    def load_text(self, axes: Axes, hop: DirectedLink) -> Text:
        """The text of a load: an arrow for its direction, the rate, and its share of the capacity."""
        load = self.loads[hop]
        share, each = load / self.fabric.capacities_bps[hop], [each for each in self.merged[hop] if each]
        alike = len(each) > 1 and max(each) - min(each) <= SAME * max(each)
        rate = f"{len(each)}×{short_rate(each[0])}" if alike else short_rate(load)
        return axes.text(
            0, 0, f"{self.arrow(hop)}{rate}\n{share:.0%}",
            ha="center", va="center", fontsize=LABEL_POINTS, color=INK, linespacing=0.95, zorder=5,
            bbox={"boxstyle": "round,pad=0.1", "fc": PAPER, "ec": "none", "alpha": 0.9},
        )  # fmt: skip

    def arrow(self, hop: DirectedLink) -> str:
        """An arrow in the direction in which the link is drawn: up, down or sideways."""
        (ax, ay), (bx, by) = (self.layout.positions[node] for node in hop)
        if ay == by:
            return "→" if bx > ax else "←"
        return "↑" if by > ay else "↓"

    def places(self, hop: DirectedLink) -> Iterator[Point]:
        """Yield the possible places of a load's label, best first: on its own side of the cable, near its sender.

        On a link to a host they are near the host.
        """
        to_host = hop[1] in self.fabric.host_names
        both_ways = bool(self.loads.get(hop[::-1]))
        for aside in (LABEL_ASIDE, 2 * LABEL_ASIDE, 0.0) if both_ways else (0.0, LABEL_ASIDE, -LABEL_ASIDE):
            for t in along(0.73 if to_host else 0.27):
                yield self.point_at(hop, t, aside)

    def draw_switch(self, axes: Axes, name: str) -> None:
        """Draw a box with a column per pipeline; a switch without INA is grey and has no columns."""
        x, y = self.layout.positions[name]
        width = self.layout.switch_width(name)
        switch = self.fabric.switch_by_name[name]
        left, bottom = x - width / 2, y - SWITCH_HEIGHT / 2
        box = FancyBboxPatch(
            (left, bottom), width, SWITCH_HEIGHT, boxstyle="round,pad=0,rounding_size=0.1",
            facecolor=COMMON, edgecolor=INK, linewidth=0.9, zorder=3,
        )  # fmt: skip
        axes.add_patch(box)
        columns = len(switch.pipelines) if switch.ina else 0
        for pipeline in range(columns):
            tint = PIPELINE_TINTS[pipeline % 2]
            column = Rectangle((left + pipeline * width / columns, bottom), width / columns, SWITCH_HEIGHT)
            column.set(facecolor=tint, edgecolor="none", zorder=3.1)
            axes.add_patch(column)
            column.set_clip_path(box)
            self.draw_sums(axes, name, pipeline)
        axes.add_patch(
            FancyBboxPatch((left, bottom), width, SWITCH_HEIGHT, boxstyle="round,pad=0,rounding_size=0.1",
                           facecolor="none", edgecolor=INK, linewidth=0.9, zorder=3.3)
        )  # fmt: skip
        raised = 0.13 if any(a.switch == name for tree in self.trees for a in tree.aggregators) else 0.0
        label = self.label(name)
        text = axes.text(x, y + raised, label, ha="center", va="center", fontsize=8, color=INK, zorder=4)
        self.names.append((text, name))

    def label(self, name: str) -> str:
        """The name of a node, or of the nodes for which it stands: "h1-4", or "h1 +3" where numbers have gaps."""
        members = self.folding.members(name)
        if len(members) == 1:
            return name
        ends = [re.fullmatch(r"(.*?)([0-9]+)", each) for each in (members[0], members[-1])]
        if all(ends) and ends[0][1] == ends[1][1] and int(ends[1][2]) - int(ends[0][2]) == len(members) - 1:  # type: ignore[index]
            return f"{name}-{ends[1][2]}"  # type: ignore[index]
        return f"{name} +{len(members) - 1}"

    def draw_sums(self, axes: Axes, switch: str, pipeline: int) -> None:
        """Draw a Σ in the colour of each tree that aggregates in this pipeline."""
        sums = [
            number
            for number, tree in enumerate(self.trees)
            if any((a.switch, a.pipeline) == (switch, pipeline) for a in tree.aggregators)
        ]
        x, y = self.layout.pipeline_x(switch, pipeline), self.layout.positions[switch][1] - 0.15
        for place, number in enumerate(sums):
            axes.text(
                x + 0.2 * (place - (len(sums) - 1) / 2), y, "Σ", ha="center", va="center",
                fontsize=7.5, fontweight="bold", color=TREE_COLORS[number % len(TREE_COLORS)], zorder=4,
            )  # fmt: skip

    def draw_host(self, axes: Axes, name: str) -> None:
        """Draw a marker for a host's role, its name, and its jobs."""
        marker, color, _ = ROLES.get(self.roles.get(name, ""), ROLES[""])
        x, y = self.layout.positions[name]
        axes.plot([x], [y], marker=marker, markersize=9, markerfacecolor=color, markeredgecolor=INK,
                  markeredgewidth=0.9, zorder=4)  # fmt: skip
        lower = 0.5 if self.is_folded and self.layout.rows[0].index(name) % 2 else 0.0  # so that long names have room
        axes.text(x, y - 0.28 - lower, self.label(name), ha="center", va="top", fontsize=7, color=INK, zorder=4)
        axes.text(
            x,
            y - 0.56 - lower,
            job_names(self.jobs.get(name, ())),
            ha="center",
            va="top",
            fontsize=6,
            color=INK,
            zorder=4,
        )

    def limit(self, axes: Axes) -> None:
        """Set the limits of the axes, before any text is measured."""
        arcs = max((self.layout.arc(link.a, link.b) for link in self.fabric.links), default=0.0)
        axes.set_xlim(-0.4, self.layout.width + 0.4)
        axes.set_ylim(-1.5 if self.is_folded else -1.1, self.layout.heights[-1] + SWITCH_HEIGHT / 2 + arcs + 0.3)
        axes.apply_aspect()

    def finish(self, axes: Axes, title: str, figure_width: float, missing: int) -> None:
        """Add the title and the legend, which also says how many loads are `missing` a label."""
        axes.set_title(title, fontsize=11, color=INK, loc="left", pad=8)
        handles = self.legend()
        if missing:
            handles.append(Line2D([], [], color="none", label=f"{missing} loads without a label: no room"))
        longest = max((len(str(handle.get_label())) for handle in handles), default=0)
        axes.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0),
            ncols=max(1, min(len(handles), int(figure_width / (0.6 + 0.055 * longest)))),
            frameon=False, fontsize=7.5, handletextpad=0.6, columnspacing=1.6, handlelength=3,
        )  # fmt: skip

    def legend(self) -> list[Patch | Line2D]:
        """The entries of the legend, for the elements in this drawing only."""
        present = {self.roles.get(host.name, "") for host in self.fabric.hosts}
        handles: list[Patch | Line2D] = [
            Line2D([], [], marker=marker, color="none", markerfacecolor=color, markeredgecolor=INK, label=label)
            for role, (marker, color, label) in ROLES.items()
            if role in present and self.roles
        ]
        kinds = {switch.ina for switch in self.fabric.switches}
        if True in kinds:
            handles.append(
                Patch(facecolor=PIPELINE_TINTS[0], edgecolor=INK, label="INA switch (a column per pipeline)")
            )
        if False in kinds:
            handles.append(Patch(facecolor=COMMON, edgecolor=INK, label="common switch"))
        for number, tree in enumerate(self.trees):
            color = TREE_COLORS[number % len(TREE_COLORS)]
            owner = f"job {self.owners[number]}, " if self.owners else ""
            label = f"{owner}tree {tree.number} (Σ aggregates)"
            handles.append(Line2D([], [], color=color, linestyle=dash_of(number), linewidth=2.4, label=label))
        if self.is_folded:
            handles.append(Line2D([], [], color="none", label="h1-4: four hosts of a rack; agg1_1-3: three switches"))
        if self.loads:
            label = "full link (load one way, share of capacity)"
            handles.append(Line2D([], [], color=INK, linewidth=4, label=label))
        return handles


def dash_of(tree: int) -> Literal["-", "--", ":"]:
    """The dashes of a tree, in which trees of the same colour differ."""
    return DASHES[tree // len(TREE_COLORS) % len(DASHES)]


def job_names(numbers: Sequence[int]) -> str:
    if len(numbers) > MOST_JOBS:
        return f"{len(numbers)} jobs"
    return f"job {','.join(map(str, numbers))}" if numbers else ""


MOST_HOSTS, MOST_ABREAST, MOST_ABREAST_UNUSED = 32, 24, 48
"""The most hosts, and the most switches of a tier with and without trees, that are drawn one by one."""
SAME = 1e-3
"""The relative difference below which the loads of links in one line are told as one."""


def folding_of(
    fabric: Fabric, loads: Mapping[DirectedLink, float], trees: Sequence[TreeShape], kinds: Mapping[str, Hashable]
) -> Folding:
    """The fabric as it is drawn: racks of a large one are folded, and switches that neither trees nor loads use."""
    if len(fabric.hosts) <= MOST_HOSTS:
        return Folding(fabric)
    hops = {hop for tree in trees for branch in tree.branches for hop in branch.links}
    used = {node for hop in hops | {hop for hop in loads if loads[hop]} for node in hop}
    return folded(fabric, used, kinds, MOST_ABREAST if used else MOST_ABREAST_UNUSED)


def users_of_links(trees: Sequence[TreeShape], drawn: Mapping[str, str]) -> dict[DirectedLink, list[int]]:
    """For each directed link of the drawing, the positions in `trees` of those that use it."""
    users: dict[DirectedLink, list[int]] = defaultdict(list)
    for number, tree in enumerate(trees):
        for hop in dict.fromkeys((drawn[a], drawn[b]) for branch in tree.branches for a, b in branch.links):
            users[hop].append(number)
    return dict(users)


def short_rate(rate_bps: float) -> str:
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate_bps >= factor:
            return f"{rate_bps / factor:.3g}{unit}"
    return f"{rate_bps:.3g}"
