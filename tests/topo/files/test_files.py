"""Fabric files: what is written is read back, and each mistake gets its one message."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inakit.topo.errors import FabricError, InputError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.topo.fabric.generators import FABRICS, named_fabric
from inakit.topo.fabric.variations import with_capacities, with_ina, with_pipelines
from inakit.topo.files.fabrics import MAX_FILE_BYTES, load_fabric, save_fabric
from inakit.topo.files.quantities import parse_rate

names = st.text(string.ascii_letters + string.digits + "_-", max_size=8)
rates = st.one_of(
    st.floats(1e-3, 1e13, allow_nan=False), st.integers(1, 5000).map(lambda n: n * 1e6), st.sampled_from([1e9, 1e-300])
)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Any fabric: ports and pipelines at random, also ports that no link uses."""
    switches = ["s" + name for name in draw(st.lists(names, unique=True, min_size=1, max_size=5))]
    hosts = ["h" + name for name in draw(st.lists(names, unique=True, max_size=5))]
    pairs = [(a, b) for i, a in enumerate(switches) for b in switches[:i]]
    ends = [(host, draw(st.sampled_from(switches))) for host in hosts]
    ends += draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    free = {switch: draw(st.permutations(range(1, 12))) for switch in switches}
    links = tuple(
        Link(
            a, b, free[a].pop() if a in free else 0, free[b].pop(),
            draw(rates), draw(rates), draw(st.floats(0, 10)), draw(st.booleans()),
        )
        for a, b in ends
    )  # fmt: skip
    return Fabric("f" + draw(names), tuple(map(Host, hosts)), tuple(draw(switch(name)) for name in switches), links)


@st.composite
def switch(draw: st.DrawFn, name: str) -> Switch:
    pipelines = contiguous_pipelines(11, draw(st.integers(1, 8)))
    slots, rate = draw(st.integers(1, 2**20)), draw(st.none() | rates)
    return Switch(name, draw(st.integers(1, 4)), pipelines, draw(st.booleans()), slots, rate)


@settings(max_examples=60, deadline=None)
@given(fabric=fabrics())
def test_yaml_round_trip(fabric: Fabric, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "round.yml"
    save_fabric(fabric, path)
    assert load_fabric(path) == fabric


@pytest.mark.parametrize("name", FABRICS)
def test_named_fabrics_round_trip(name: str, tmp_path: Path) -> None:
    fabric = with_ina(with_pipelines(with_capacities(named_fabric(name), 1e6, 9e6, 1), 3), share=0.5, seed=1)
    fabric = replace(fabric, switches=tuple(replace(switch, latency_s=8e-7) for switch in fabric.switches))
    save_fabric(fabric, tmp_path / "fabric.yml")
    assert load_fabric(tmp_path / "fabric.yml") == fabric


def test_short_form(tmp_path: Path) -> None:
    """The example of inakit.topo.files.fabric_records: ports and pipelines are filled in."""
    path = tmp_path / "fabric.yml"
    path.write_text(
        """
        name: two-racks
        hosts: [h1, h2, h3]
        switches:
          leaf1: {tier: 1, pipelines: 2}
          leaf2: {tier: 1, pipelines: [[1, 2], [3]], ina: false}
          spine1: {tier: 2, aggregator_slots: 512, aggregation_rate: 10M, latency: 800ns}
        links:
          - {a: h1, b: leaf1, capacity: 20M}
          - {a: h2, b: leaf1, capacity: 20 M}
          - {a: h3, b: leaf2, capacity: 2e7}
          - {a: leaf1, b: spine1, capacity: 0.1G, capacity_back: 10M, delay: 50us, b_port: 1}
          - {a: leaf2, b: spine1, capacity: 100G, delay: 0.5}
        """
    )
    fabric = load_fabric(path)
    assert fabric.switch_by_name["leaf1"].pipelines == ((1,), (2, 3))
    assert not fabric.switch_by_name["leaf2"].ina
    assert fabric.switch_by_name["spine1"].aggregation_rate_bps == 10e6
    assert fabric.switch_by_name["spine1"].latency_s == pytest.approx(800e-9)
    assert fabric.port_numbers["spine1", "leaf1"] == 1
    assert fabric.port_numbers["spine1", "leaf2"] == 2
    assert fabric.capacities_bps["leaf1", "spine1"] == pytest.approx(100e6)
    assert fabric.capacities_bps["spine1", "leaf1"] == 10e6
    assert {fabric.capacities_bps[f"h{i}", f"leaf{(i + 1) // 2}"] for i in (1, 2, 3)} == {20e6}
    assert [link.delay_s for link in fabric.links[3:]] == [pytest.approx(50e-6), 0.5]


def document(link: str = "capacity: 20M", leaf: str = "tier: 1", rest: str = "") -> str:
    lines = (
        "name: x",
        "hosts: [h1]",
        "switches:",
        f"  leaf1: {{{leaf}}}",
        "links:",
        f"  - {{a: h1, b: leaf1, {link}}}",
    )
    return "\n".join(lines) + rest


RATE = "expected a rate in bit/s greater than 0, such as 20M or 100G"
LINK_KEYS = "a, b, capacity, capacity_back, a_port, b_port, delay, optical"
SWITCH_KEYS = "pipelines, ina, aggregator_slots, aggregation_rate, latency, chip, tier"
PIPELINES = "expected a number from 1 to 8, or lists of port numbers"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            document("capcity: 20M"),
            f" line 6: links[0].capcity: unknown key, did you mean 'capacity'? expected one of {LINK_KEYS}",
        ),
        (document(leaf="INA_on: true"), f" line 4: switches.leaf1.INA_on: unknown key; expected one of {SWITCH_KEYS}"),
        (document("capacity: 0"), f" line 6: links[0].capacity: 0: {RATE}"),
        (document("capacity: 20X"), f" line 6: links[0].capacity: '20X': {RATE}"),
        (document("capacity: true"), f" line 6: links[0].capacity: True: {RATE}"),
        (document("capacity: .nan"), f" line 6: links[0].capacity: nan: {RATE}"),
        (document("capacity: .inf"), f" line 6: links[0].capacity: inf: {RATE}"),
        (document("capacity: -5M"), f" line 6: links[0].capacity: '-5M': {RATE}"),
        (document("delay: 1ms"), f" line 6: links[0]: key 'capacity' is missing: {RATE}"),
        (
            document("capacity: 1M, delay: 1 fortnight"),
            " line 6: links[0].delay: '1 fortnight': expected a time in seconds, or such as 50us or 1ms",
        ),
        (document(leaf="pipelines: 9"), f" line 4: switches.leaf1.pipelines: 9: {PIPELINES}"),
        (document(leaf="pipelines: true"), f" line 4: switches.leaf1.pipelines: True: {PIPELINES}"),
        (document(leaf="pipelines: [[1], [two]]"), f" line 4: switches.leaf1.pipelines: [[1], ['two']]: {PIPELINES}"),
        (
            document(leaf="pipelines: [[1, 2], [2]]"),
            ": switch 'leaf1': port 2 is in two pipelines; a port belongs to exactly one, remove it from the others",
        ),
        (document(leaf="ina: 1"), " line 4: switches.leaf1.ina: 1: expected true or false"),
        (
            document(leaf="aggregator_slots: 0"),
            " line 4: switches.leaf1.aggregator_slots: 0: expected a whole number, at least 1",
        ),
        (document("capacity: 1M, capacity: 2M"), " line 6: key 'capacity' is given twice"),
        (document(rest="\nlinks: []"), " line 7: key 'links' is given twice"),
        (document("capacity: 1M, b_port: 7", "pipelines: [[1]]"), ": switch 'leaf1' has no port 7: it has [1]"),
        ("name: &n x\nhosts: [*n]", " line 2: alias '*n': write it out"),
        (
            "name: x\nhosts: [no]\nswitches: {}\nlinks: []",
            " line 2: hosts: False: expected a list of names; quote names that YAML reads as another type",
        ),
        ("", " line 1: expected the keys name, hosts, switches, links, chips, found null"),
        ("name: [x", " line 1: expected ',' or ']', but got '<stream end>'"),
        (
            "name: !!python/object/apply:os.getcwd []",
            " line 1: tag 'tag:yaml.org,2002:python/object/apply:os.getcwd': leave it out",
        ),
        ("? [a]\n: b", " line 1: a key is a word, not a list"),
        (document("capacity: 1_000"), " line 6: number '1_000': write it without '_' and ':', and a text in quotes"),
        (document("capacity: 16:40"), " line 6: number '16:40': write it without '_' and ':', and a text in quotes"),
        ("[" * 5000, ": nested too deeply for a fabric file"),
        ("name: x\nhosts: [h1]\nswitches: {}\nlinks: []", ": host 'h1' has no link: join it to a switch"),
        (
            "name: x\nhosts: ['a/b']\nswitches: {}\nlinks: []",
            ": name 'a/b': a letter, then letters, digits, '_' or '-' are expected, 40 at most",
        ),
    ],
)  # fmt: skip
def test_mistakes_get_one_message(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "fabric.yml"
    path.write_text(text)
    with pytest.raises(FabricError) as refused:
        load_fabric(path)
    assert str(refused.value) == f"{path}{message}"


def test_files_that_are_none(tmp_path: Path) -> None:
    for name, content, message in (
        ("fabric.txt", b"{}", "a fabric file ends in .yml, .yaml, .json, .graphml"),
        ("big.yml", b"#" * (MAX_FILE_BYTES + 1), "larger than 8 MiB, which no fabric file is"),
        ("latin.yml", b"name: \xe9", "not text in UTF-8: save it in this encoding"),
        ("bad.graphml", b"<graph", "not GraphML: unclosed token: line 1, column 0"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FabricError) as refused:
            load_fabric(tmp_path / name)
        assert str(refused.value) == f"{tmp_path / name}: {message}"
    with pytest.raises(FabricError, match=r"absent\.yml: No such file or directory"):
        load_fabric(tmp_path / "absent.yml")


@pytest.mark.parametrize(("text", "bps"), [("20M", 20e6), ("0.1G", 100e6), ("5e3", 5e3), ("1 T", 1e12)])
def test_rates(text: str, bps: float) -> None:
    assert parse_rate(text) == pytest.approx(bps)


@pytest.mark.parametrize("text", ["", "M", "20m", "-1", "0", "nan", "inf", "1e999", "20Mbit"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_rate(text)
    assert str(refused.value) == f"'{text}': {RATE}"


@pytest.mark.parametrize("tier", ["1.0", '"1"', "'1.0'"])
def test_whole_numbers_may_be_texts_or_have_a_point(tier: str, tmp_path: Path) -> None:
    path = tmp_path / "fabric.yml"
    path.write_text(document("capacity: '20000000', b_port: 1.0", f"tier: {tier}, ina: 'True', pipelines: '1'"))
    assert load_fabric(path).switch_by_name["leaf1"] == Switch("leaf1", 1, ((1,),))


def test_a_fabric_may_be_json(tmp_path: Path) -> None:
    links = [{"a": "h1", "b": "leaf1", "capacity": "1M"}]
    said = {"name": "x", "hosts": ["h1"], "switches": {"leaf1": {}}, "links": links}
    (tmp_path / "fabric.json").write_text("\ufeff" + json.dumps(said, indent="\t"))
    assert load_fabric(tmp_path / "fabric.json").capacities_bps["h1", "leaf1"] == 1e6
    (tmp_path / "fabric.json").write_text(json.dumps(said | {"links": [links[0] | {"capacity": "fast"}]}))
    with pytest.raises(FabricError, match=r"fabric\.json: links\[0\]\.capacity: 'fast'"):
        load_fabric(tmp_path / "fabric.json")
