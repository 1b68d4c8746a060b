"""Up-down paths, against a brute-force search of all simple paths."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import Cable, fat_tree, goat_testbed, leaf_spine, wire
from inakit.topo.fabric.up_down import is_up_down, up_down_paths


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Small fabrics of any shape: tiers at random, links between any two nodes, up to four hosts."""
    tiers = {f"s{i}": tier for i, tier in enumerate(draw(st.lists(st.integers(1, 3), min_size=1, max_size=6)))}
    names = list(tiers)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    cables = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    hosts = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    cables += [(f"h{i}", switch) for i, switch in enumerate(hosts)]
    return wire("random", [f"h{i}" for i in range(len(hosts))], tiers, [Cable(a, b, 1.0) for a, b in cables])


def brute_force(fabric: Fabric, src: str, dst: str) -> set[tuple[str, ...]]:
    """All simple paths whose tiers rise, then stay, then fall, and of these the shortest."""
    graph = nx.Graph(list(fabric.capacities_bps))
    graph.add_nodes_from(fabric.tiers)
    if src == dst:
        return {(src,)}
    shaped = []
    for path in nx.all_simple_paths(graph, src, dst):
        rises = [fabric.tiers[b] - fabric.tiers[a] for a, b in pairwise(path)]
        signs = [(rise > 0) - (rise < 0) for rise in rises]
        if signs == sorted(signs, reverse=True) and not fabric.host_names & set(path[1:-1]):
            shaped.append(tuple(path))
    least = min(map(len, shaped), default=0)
    return {path for path in shaped if len(path) == least}


@settings(max_examples=150, deadline=None)
@given(fabrics(), st.data())
def test_paths_are_those_of_brute_force(fabric: Fabric, data: st.DataObject) -> None:
    src, dst = (data.draw(st.sampled_from(sorted(fabric.tiers))) for _ in range(2))
    paths = up_down_paths(fabric, src, dst)
    assert len(paths) == len(set(paths))
    assert set(paths) == brute_force(fabric, src, dst)
    assert all(is_up_down(fabric, path) for path in paths)


def test_path_counts_of_clos() -> None:
    fabric = fat_tree(4)
    assert [len(up_down_paths(fabric, "h1", other)) for other in ("h2", "h3", "h16")] == [1, 2, 4]
    assert len(up_down_paths(leaf_spine(4, 3, 1), "h1", "h4")) == 3


def test_valley_is_refused() -> None:
    fabric = leaf_spine(3, 2, 1)
    assert is_up_down(fabric, ("h1", "leaf1", "spine1", "leaf2", "h2"))
    assert not is_up_down(fabric, ("h1", "leaf1", "spine1", "leaf3", "spine2", "leaf2", "h2"))


@pytest.mark.parametrize("path", [(), ("h1", "leaf2"), ("h1", "leaf1", "h1"), ("leaf1", "h9")])
def test_what_is_no_path_is_refused(path: tuple[str, ...]) -> None:
    assert not is_up_down(leaf_spine(3, 2, 1), path)


def test_goat_detour_crosses_twice() -> None:
    fabric = goat_testbed()
    assert is_up_down(fabric, ("w8", "s2", "s1", "s3", "ps"))
    assert up_down_paths(fabric, "w8", "ps") == [("w8", "s2", "s3", "ps")]


def test_unknown_node_is_named() -> None:
    with pytest.raises(FabricError, match="unknown host or switch 'h99': did you mean 'h"):
        up_down_paths(fat_tree(4), "h1", "h99")
