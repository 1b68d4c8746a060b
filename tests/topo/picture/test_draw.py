"""Drawings show every node, every sum and every load, and nothing lies upon anything else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import pytest

from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import FABRICS, aro_figure1, fat_tree, leaf_spine, named_fabric, units
from inakit.topo.fabric.positions import SWITCH_HEIGHT, NodePositions
from inakit.topo.fabric.variations import with_pipelines
from inakit.topo.picture import Picture, draw, overlap


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
    assert {"↑5M", "25%", "↓20M", "100%", "tree 7 (Σ aggregates)"} <= set(shown)


@pytest.mark.parametrize("fabric", [*map(named_fabric, FABRICS), fat_tree(6)], ids=lambda fabric: fabric.name)
def test_nodes_do_not_overlap(fabric: Fabric) -> None:
    layout = NodePositions(fabric)
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
    layout = NodePositions(fabric)
    ends = [layout.end("agg2_1", peer)[0] for peer in fabric.neighbors["agg2_1"]]
    assert ends == sorted(set(ends))
    assert ends == [pytest.approx(layout.pipeline_x("agg2_1", pipeline)) for pipeline in range(4)]


CROWDED = {
    "fat-tree, 16 hosts": fat_tree(4),
    "leaf-spine, 24 hosts": leaf_spine(4, 3, 6),
    "leaf-spine, 32 hosts": leaf_spine(4, 3, 8),
    "four units": units(4),
    "eight units of four": units(8),
}


def everything_used(fabric: Fabric, *, both_ways: bool) -> dict[tuple[str, str], float]:
    """Loads on every link upwards, or in both directions."""
    tiers = fabric.tiers
    return {hop: 2.5e6 for hop in fabric.capacities_bps if both_ways or tiers[hop[0]] <= tiers[hop[1]]}


@pytest.mark.parametrize("both_ways", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("fabric", CROWDED.values(), ids=CROWDED)
def test_no_text_lies_upon_another_or_upon_a_node(fabric: Fabric, both_ways: bool) -> None:
    loads = everything_used(fabric, both_ways=both_ways)
    jobs = {host.name: (1, 2) for host in fabric.hosts}
    picture = Picture(fabric, loads, (), dict.fromkeys(jobs, "worker"), (), jobs)
    axes = picture.figure("crowded").axes[0]
    renderer = axes.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    texts = [(text.get_text(), text.get_window_extent(renderer)) for text in axes.texts if text.get_text()]
    assert not [(one, other) for (one, a), (other, b) in combinations(texts, 2) if overlap(a, b)]
    labels = [(text, box) for text, box in texts if "%" in text]
    assert len(labels) >= 0.9 * len(loads), "nearly every load is told"
    for node in fabric.tiers:
        corners = axes.transData.transform(picture.box_of(node))
        assert not [text for text, box in labels if overlap(box, type(box)(corners))], node


def test_the_two_directions_of_a_link_are_told_apart(tmp_path: Path) -> None:
    fabric = units(2)
    hops = {("u1h1", "u1"): 1e6, ("u1", "u1h1"): 2e6, ("u1", "u2"): 3e6, ("u2", "u1"): 4e6}
    draw(fabric, tmp_path / "units.svg", loads=hops)
    assert {"↑1M", "↓2M", "→3M", "←4M"} <= set(texts(tmp_path / "units.svg"))


def test_the_legend_says_whose_a_tree_is_and_hosts_for_whom_they_work(tmp_path: Path) -> None:
    trees = [Tree(1, (Branch((("w0", "l1"),)),), ()), Tree(1, (Branch((("w1", "l1"),)),), ())]
    members = {"w0": [1], "w1": [2], "ps": [1, 2], "w2": [1, 2, 3, 4]}
    draw(aro_figure1(), tmp_path / "jobs.svg", trees=trees, owners=[1, 2], jobs=members)
    shown = texts(tmp_path / "jobs.svg")
    assert {"job 1, tree 1 (Σ aggregates)", "job 2, tree 1 (Σ aggregates)"} <= set(shown)
    assert {"job 1", "job 2", "job 1,2", "4 jobs"} <= set(shown)


def test_what_has_no_room_is_left_out_and_said(tmp_path: Path) -> None:
    fabric = leaf_spine(leaves=16, spines=16, hosts_per_leaf=2)
    draw(fabric, tmp_path / "large.svg", loads=everything_used(fabric, both_ways=True))
    count = len(fabric.capacities_bps)
    assert f"{count} loads without a label: no room" in texts(tmp_path / "large.svg")


def test_wrong_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fabric\.gif: a drawing ends in \.png or \.svg"):
        draw(fat_tree(2), tmp_path / "fabric.gif")


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fabric 'void' has no switch: there is nothing to draw"):
        draw(Fabric("void", (), (), ()), tmp_path / "void.svg")
    assert not (tmp_path / "void.svg").exists()


def tree_from(fabric: Fabric, *workers: str) -> Tree:
    """A tree from these hosts to their ToRs, and to one switch above them."""
    tors = {worker: fabric.neighbors[worker][0] for worker in workers}
    above = {tor: next(peer for peer in fabric.neighbors[tor] if fabric.tiers[peer] == 2) for tor in tors.values()}
    branches = (Branch(((worker, tor), (tor, above[tor]))) for worker, tor in tors.items())
    return Tree(1, tuple(branches), tuple(Aggregator(tor, 0) for tor in dict.fromkeys(tors.values())))


def inside_their_boxes(picture: Picture) -> None:
    """Fails where the name of a switch is as wide as its box."""
    axes = picture.figure("names").axes[0]
    renderer = axes.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = {
        picture.label(node): axes.transData.transform(picture.box_of(node)) for node in picture.fabric.switch_by_name
    }
    texts = {text.get_text(): text.get_window_extent(renderer) for text in axes.texts}
    assert [name for name, ((left, _), (right, _)) in boxes.items() if texts[name].width > 0.95 * (right - left)] == []


def test_long_names_of_switches_are_inside_their_boxes() -> None:
    spread = tree_from(fat_tree(16), "h42", "h266", "h311", "h395")
    loads = {hop: 20e6 for branch in spread.branches for hop in branch.links}
    picture = Picture(fat_tree(16), loads, [spread], {})
    assert "edge5_1 +5" in map(picture.label, picture.fabric.switch_by_name)
    inside_their_boxes(picture)
    fabric = fat_tree(4)
    long = replace(fabric.switches[0], name="a-switch-with-a-name-of-forty-letters-ab")
    names = {fabric.switches[0].name: long.name}
    links = [replace(link, a=names.get(link.a, link.a), b=names.get(link.b, link.b)) for link in fabric.links]
    inside_their_boxes(Picture(replace(fabric, switches=(long, *fabric.switches[1:]), links=tuple(links)), {}, (), {}))


@pytest.mark.parametrize("k", [8, 16])
def test_racks_and_unused_switches_of_a_large_fabric_are_folded(k: int, tmp_path: Path) -> None:
    fabric, workers = fat_tree(k), ("h1", "h2", "h3")
    tree = tree_from(fabric, *workers)
    loads = {hop: 20e6 for branch in tree.branches for hop in branch.links}
    picture = Picture(fabric, loads, [tree], dict.fromkeys(workers, "worker"))
    used = {node for hop in loads for node in hop if node not in fabric.host_names}
    assert all(picture.folding.members(switch) == [switch] for switch in used), "a switch of a tree stands for itself"
    assert len(picture.fabric.tiers) < 120 < len(fabric.tiers)
    assert set(picture.folding.of) == set(fabric.tiers) and set(picture.folding.of.values()) == set(
        picture.fabric.tiers
    )
    whole, drawn = (sum(each.capacities_bps.values()) for each in (fabric, picture.fabric))
    assert drawn == pytest.approx(whole)
    assert picture.merged["h1", "edge1_1"] == [20e6] * 3
    draw(fabric, tmp_path / "large.svg", loads=loads, trees=[tree], roles=dict.fromkeys(workers, "worker"))
    shown = texts(tmp_path / "large.svg")
    assert {"h1-3", "edge1_1", f"edge2_1-{k // 2}", "↑3×20M", "worker"} <= set(shown)
    axes = picture.figure("large").axes[0]
    renderer = axes.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    names = [(text.get_text(), text.get_window_extent(renderer)) for text in axes.texts if text.get_text()]
    assert not [(one, other) for (one, a), (other, b) in combinations(names, 2) if overlap(a, b)]
    inside_their_boxes(picture)
    assert picture.figure("large").get_size_inches()[0] < 30


def test_a_rack_of_hosts_with_other_roles_is_several_nodes_and_small_fabrics_are_whole() -> None:
    roles = {"h1": "worker", "h2": "ps", "h3": "worker"}
    large = Picture(fat_tree(8), {}, (), roles)
    assert [large.label(host) for host in ("h1", "h2", "h4", "h5")] == ["h1 +1", "h2", "h4", "h5-8"]
    assert Picture(fat_tree(6), {}, (), roles).is_folded
    small = Picture(fat_tree(4), {}, (), roles)
    assert not small.is_folded and small.fabric == fat_tree(4)
