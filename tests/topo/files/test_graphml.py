"""Fabrics in GraphML: hosts, capacities and names that a map has, what is assumed of it, and what is refused."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from inakit.experiments.run.scenario import FabricChoice
from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.up_down import up_down_paths
from inakit.topo.files.fabrics import load_fabric, load_graphml
from inakit.topo.files.quantities import RATE

GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="t" for="node" attr.name="tier" attr.type="int"/>
<key id="c" for="edge" attr.name="capacity" attr.type="string"/>
<key id="l" for="node" attr.name="Latitude" attr.type="double"/>
<graph edgedefault="undirected">{}</graph></graphml>"""


def graphml(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "ring.graphml"
    path.write_text(GRAPHML.format(body))
    return path


def test_graphml_with_hosts(tmp_path: Path) -> None:
    nodes = (
        '<node id="h1"><data key="t">0</data></node><node id="a"><data key="t">1</data><data key="l">5.5</data></node>'
    )
    path = graphml(tmp_path, nodes + '<edge source="h1" target="a"><data key="c">7M</data></edge>')
    fabric = load_fabric(path)
    assert fabric.capacities_bps == {("h1", "a"): 7e6, ("a", "h1"): 7e6}


def test_graphml_map_grows_hosts_and_routes(tmp_path: Path) -> None:
    nodes = "".join(f'<node id="{i}"/>' for i in range(4))
    edges = "".join(f'<edge source="{i}" target="{(i + 1) % 4}"/>' for i in range(4))
    fabric = load_graphml(graphml(tmp_path, nodes + edges), hosts_per_switch=2, capacity_bps=3e6)
    assert len(fabric.hosts) == 8
    assert set(fabric.capacities_bps.values()) == {3e6}
    assert len(up_down_paths(fabric, "h1", "h5")) == 2


def test_graphml_mistake_names_its_place(tmp_path: Path) -> None:
    body = '<node id="a"/><node id="b"/><edge source="a" target="b"><data key="c">fast</data></edge>'
    with pytest.raises(FabricError) as refused:
        load_fabric(graphml(tmp_path, body))
    assert str(refused.value) == f"{tmp_path}/ring.graphml: links[2].capacity: 'fast': expected {RATE}"


ZOO = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="r" for="edge" attr.name="LinkSpeedRaw" attr.type="double"/>
<key id="s" for="edge" attr.name="LinkSpeed" attr.type="string"/>
<key id="u" for="edge" attr.name="LinkSpeedUnits" attr.type="string"/>
<key id="y" for="node" attr.name="type" attr.type="string"/>
<graph edgedefault="{direction}">{nodes}{edges}</graph></graphml>"""


def zoo(
    tmp_path: Path, edges: str, direction: str = "undirected", hosts: bool = False, nodes: str = ""
) -> tuple[Fabric, list[str]]:
    """Nodes a and b and further `nodes`, with `hosts` w and v behind the two, as loaded, and what was told."""
    nodes += '<node id="a"><data key="y">Small City</data></node><node id="b"/>'
    if hosts:
        nodes += '<node id="w"><data key="y">Host</data></node><node id="v"><data key="y">server</data></node>'
        edges += '<edge source="w" target="a"/><edge source="v" target="b"/>'
    path = tmp_path / "zoo.graphml"
    path.write_text(ZOO.format(direction=direction, nodes=nodes, edges=edges))
    told: list[str] = []
    return load_fabric(path, told.append), [line.removeprefix(f"{path}: ") for line in told]


def edge(*data: str, ends: str = 'source="a" target="b"') -> str:
    return f"<edge {ends}>" + "".join(f'<data key="{each[0]}">{each[1:]}</data>' for each in data) + "</edge>"


@pytest.mark.parametrize(
    ("data", "bps"),
    [
        (("r1.0E10",), 10e9),
        (("r1.0E10", "s5", "uM"), 10e9),
        (("s2.5", "uG"), 2.5e9),
        (("s155", "uMbps"), 155e6),
        (("s64", "uK"), 64e3),
        (("s10",), 20e6),
        (("s&lt;10", "uG"), 20e6),
        (("r0",), 20e6),
        ((), 20e6),
    ],
)
def test_the_topology_zoos_names_of_capacities(data: tuple[str, ...], bps: float, tmp_path: Path) -> None:
    fabric, told = zoo(tmp_path, edge(*data))
    assert fabric.capacities_bps["a", "b"] == fabric.capacities_bps["b", "a"] == bps
    assert ("1 of 1 links do not state their capacity" in told[0]) == (bps == 20e6)


def test_a_map_without_hosts_says_where_they_come_from(tmp_path: Path) -> None:
    fabric, told = zoo(tmp_path, edge("r1E9"))
    assert [host.name for host in fabric.hosts] == ["h1", "h2"]
    assert told == [
        "no node is a host (`tier` 0 or `type` host), so each of 2 switches gets 1, by a link as fast as the switch's "
        "fastest"
    ]
    assert set(fabric.capacities_bps.values()) == {1e9}


def test_nodes_whose_type_says_host_are_hosts(tmp_path: Path) -> None:
    fabric, told = zoo(tmp_path, edge("r1E9"), hosts=True)
    assert {host.name for host in fabric.hosts} == {"w", "v"}
    assert told == [
        "2 hosts, the nodes with `tier` 0 or `type` host; 2 switches; 2 of 3 links do not state their capacity "
        "(`capacity`, `LinkSpeedRaw`, or `LinkSpeed` and `LinkSpeedUnits`) and get 1G, the median of the others, "
        "hosts' links that of their switch's fastest; --capacity sets the capacity of all links"
    ]
    assert set(fabric.capacities_bps.values()) == {1e9}


def test_parallel_links_are_one_and_loops_none(tmp_path: Path) -> None:
    fabric, told = zoo(tmp_path, edge("r1E9") + edge("r2E9") + edge("r1E9", ends='source="a" target="a"'))
    assert fabric.capacities_bps["a", "b"] == fabric.capacities_bps["b", "a"] == 3e9
    assert told[0].endswith(
        "; 1 parallel links are merged into one link each; 1 links from a node to itself are omitted"
    )


def test_directed_edges_are_a_links_two_directions(tmp_path: Path) -> None:
    fabric, told = zoo(tmp_path, edge("r1E9") + edge("r2E9", ends='source="b" target="a"'), direction="directed")
    assert "parallel" not in told[0]
    assert (fabric.capacities_bps["a", "b"], fabric.capacities_bps["b", "a"]) == (1e9, 2e9)


def test_what_a_map_leaves_open_is_as_what_it_says(tmp_path: Path) -> None:
    """The switch's fastest link for hosts, the median for other links: no 20M in a file of gigabits."""
    edges = edge("r4E10") + edge("r1E10", ends='source="b" target="c"') + edge("r1E10", ends='source="c" target="d"')
    fabric, _ = zoo(tmp_path, edges + edge(ends='source="d" target="a"'), nodes='<node id="c"/><node id="d"/>')
    assert fabric.capacities_bps["d", "a"] == 1e10
    by_switch = {
        fabric.tor_of(host.name): fabric.capacities_bps[host.name, fabric.tor_of(host.name)] for host in fabric.hosts
    }
    assert by_switch == {"a": 4e10, "b": 4e10, "c": 1e10, "d": 1e10}


def test_a_map_without_any_capacity_has_the_usual_one_at_every_scale(tmp_path: Path) -> None:
    path = tmp_path / "silent.graphml"
    path.write_text(ZOO.format(direction="undirected", nodes='<node id="a"/><node id="b"/>', edges=edge()))
    for scale in ("1", "1/1000"):
        assert set(FabricChoice(str(path), scale=scale).build().capacities_bps.values()) == {20e6}


def named(tmp_path: Path, *nodes: str) -> tuple[Fabric, str]:
    """A chain of nodes, which are XML, and what was told."""
    ids = [re.search('id="([^"]*)"', node)[1] for node in nodes]  # type: ignore[index]
    edges = "".join(f'<edge source="{a}" target="{b}"/>' for a, b in pairwise(ids))
    path = tmp_path / "named.graphml"
    path.write_text(LABELS.format("".join(nodes) + edges), encoding="utf-8")
    told: list[str] = []
    return load_fabric(path, told.append), told[0]


LABELS = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="l" for="node" attr.name="label" attr.type="string"/>
<key id="c" for="node" attr.name="Country" attr.type="string"/>
<key id="n" for="edge" attr.name="note" attr.type="string"/>
<key id="m" for="edge" attr.name="note" attr.type="string"/>
<graph edgedefault="undirected">{}</graph></graphml>"""


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (("\u5317\u4eac", "\u4e0a\u6d77"), ("n1", "n2")),
        (("Z\u00fcrich", "Zurich", "Zu rich", "Zu_rich"), ("Zurich_2", "Zurich", "Zu_rich_2", "Zu_rich")),
        (("0", "1", "n0"), ("n0_2", "n1", "n0")),
        (("h1", "a"), ("h1", "a")),
        (("x" * 45 + "1", "x" * 45 + "2"), ("x" * 40, "x" * 32 + "_2")),
    ],
)
def test_every_node_has_a_name_of_its_own(ids: tuple[str, ...], names: tuple[str, ...], tmp_path: Path) -> None:
    fabric, _ = named(tmp_path, *(f'<node id="{each}"/>' for each in ids))
    assert tuple(fabric.switch_by_name) == names
    assert len(fabric.hosts) == len(ids)


def test_nodes_that_have_a_number_are_called_by_their_label_and_what_is_not_used_is_told(tmp_path: Path) -> None:
    paris = '<node id="0"><data key="l">Paris</data><data key="c">France</data></node>'
    fabric, told = named(tmp_path, paris, '<node id="1"><data key="l">K\u00f6ln</data></node>', '<node id="\u5317"/>')
    assert tuple(fabric.switch_by_name) == ("Paris", "Koln", "n3")
    assert told.endswith(
        "; 2 nodes are called by their `label`; names of plain letters: '\u5317' n3; not used: Country of nodes"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('<node id="a"/><node id="a"/>', "node 'a' is given twice: every node needs its own id"),
        ('<node id="a"/><edge source="a" target="b"/>', "edge 'a'-'b': no node has the id 'b'"),
        (
            '<node id="a"><data key="l">1</data><data key="l">2</data></node>',
            "node 'a' has two values of 'label': keep one of them",
        ),
        (
            '<node id="a"/><node id="b"/>'
            '<edge source="a" target="b"><data key="n">1</data><data key="m">2</data></edge>',
            "edge 'a'-'b' has two values of 'note': keep one of them",
        ),
        (
            '<node id="a"><graph edgedefault="undirected"><node id="b"/></graph></node>',
            "node 'b' is inside another node: a fabric has no such groups, move it out",
        ),
        (
            '<node id="a"/></graph><graph edgedefault="undirected">',
            "it has 2 graphs: a fabric is one graph, keep one of them",
        ),
        ('<node id="a"><port name="p"/></node>', "GraphML port tag not supported: leave it out"),
    ],
)
def test_graphml_of_which_something_would_be_lost_is_refused(body: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "lost.graphml"
    path.write_text(LABELS.format(body))
    with pytest.raises(FabricError) as refused:
        load_fabric(path)
    assert str(refused.value) == f"{path}: not GraphML: {message}"


@pytest.mark.parametrize("tier", ["0", "0.0"])
def test_a_tier_in_graphml_may_be_text(tier: str, tmp_path: Path) -> None:
    text = GRAPHML.replace('"tier" attr.type="int"', '"tier" attr.type="string"').format(
        f'<node id="h1"><data key="t">{tier}</data></node><node id="a"><data key="t">1</data></node>'
        '<edge source="h1" target="a"><data key="c">7M</data></edge>'
    )
    (tmp_path / "text.graphml").write_text(text)
    assert load_fabric(tmp_path / "text.graphml").tiers == {"h1": 0, "a": 1}
