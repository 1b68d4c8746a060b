"""Drawings show every node, every sum and every load, and nothing lies upon anything else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from topo.draw import draw
from topo.errors import InputError
from topo.fabric import Fabric
from topo.generators import FABRICS, aro_figure1, fat_tree, named_fabric, with_pipelines
from topo.layout import SWITCH_HEIGHT, Layout


@dataclass(frozen=True)
class Branch:
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Aggregator:
    switch: str
    pipeline: int


@dataclass(frozen=True)
class Tree:
    number: int
    branches: tuple[Branch, ...]
    aggregators: tuple[Aggregator, ...]


def texts(svg: Path) -> list[str]:
    return [
        text for element in ET.parse(svg).iter() if element.tag.endswith(("}text", "}tspan")) and (text := element.text)
    ]


def test_svg_and_png(tmp_path: Path) -> None:
    fabric = aro_figure1()
    paths = [tmp_path / "fabric.svg", tmp_path / "fabric.png"]
    sums = (Aggregator("l1", 0), Aggregator("s1", 0))
    tree = Tree(7, (Branch((("w0", "l1"), ("l1", "s1"))), Branch((("s1", "l0"), ("l0", "ps")))), sums)
    loads = {("w0", "l1"): 5e6, ("l0", "ps"): 20e6}
    draw(fabric, paths, loads=loads, trees=[tree], roles={"ps": "ps", "w0": "worker"}, title="Figure 1")
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    shown = texts(paths[0])
    assert set(fabric.tiers) | {"Figure 1", "worker", "parameter server", "idle host", "common switch"} <= set(shown)
    assert shown.count("Σ") == len(sums)
    assert {"5M", "25%", "20M", "100%", "tree 7 (Σ aggregates)"} <= set(shown)


@pytest.mark.parametrize("fabric", [*map(named_fabric, FABRICS), fat_tree(6)], ids=lambda fabric: fabric.name)
def test_nodes_do_not_overlap(fabric: Fabric) -> None:
    layout = Layout(fabric)
    for row in layout.rows:
        widths = {node: 0.4 if node in fabric.host_names else layout.switch_width(node) for node in row}
        for a, b in combinations(row, 2):
            apart = abs(layout.positions[a][0] - layout.positions[b][0])
            assert apart > (widths[a] + widths[b]) / 2
    for (a, b), _ in fabric.capacities_bps.items():
        rise = layout.positions[b][1] - layout.positions[a][1]
        assert (rise > SWITCH_HEIGHT) == (fabric.tiers[b] > fabric.tiers[a])


def test_cables_end_in_the_column_of_their_pipeline() -> None:
    fabric = with_pipelines(fat_tree(4), 4)
    layout = Layout(fabric)
    ends = [layout.end("agg2_1", peer)[0] for peer in fabric.neighbors["agg2_1"]]
    assert ends == sorted(set(ends))
    assert ends == [pytest.approx(layout.pipeline_x("agg2_1", pipeline)) for pipeline in range(4)]


def test_wrong_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fabric\.gif: a drawing ends in \.png or \.svg"):
        draw(fat_tree(2), tmp_path / "fabric.gif")


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fabric 'void' has no switch: there is nothing to draw"):
        draw(Fabric("void", (), (), ()), tmp_path / "void.svg")
    assert not (tmp_path / "void.svg").exists()
