"""Network files of p4lang's tutorials and of p4-utils, as those read them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from single_targets import PROGRAMS

from switch.control.entry_files.runtime_json import HIGHEST_PRIORITY, read_runtime
from switch.entries import DefaultAction, Lpm, MirrorSession, MulticastGroup, Range, SwitchEntries, TableEntry, Ternary
from switch.networks.course_files import read_network
from switch.networks.network_plan import LinkEnd, PlannedLink
from switch.program.read import read_program
from topo.errors import InputError

TUTORIAL: dict[str, Any] = {
    "hosts": {
        "h1": {
            "ip": "10.0.1.1/24",
            "mac": "08:00:00:00:01:11",
            "commands": ["route add default gw 10.0.1.10 dev eth0"],
        },
        "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
    },
    "switches": {"s1": {"runtime_json": "pod-topo/s1-runtime.json", "cpu_port": 510}, "s2": {}},
    "links": [["h1", "s1-p1"], ["s1-p3", "s2-p7", "5", 0.5], ["h2", "s2-p2", 10]],
}
P4_UTILS: dict[str, Any] = {
    "p4_src": "ecmp.p4",
    "exec_scripts": [{"cmd": "python controller.py", "reboot_run": True}],
    "topology": {
        "assignment_strategy": "mixed",
        "default": {"bw": 10, "auto_arp_tables": False},
        "links": [["h2", "s2", {"delay": 3}], ["s1", "s10"], ["h1", "s1"], ["s1", "s2", {"bw": 1}]],
        "hosts": {"h1": {}, "h2": {}},
        "switches": {"s1": {"cli_input": "s1-commands.txt", "cpu_port": True}, "s2": {}, "s10": {}},
    },
}


@pytest.fixture
def exercise(tmp_path: Path) -> Path:
    """The folder of an exercise."""
    (tmp_path / "pod-topo").mkdir()
    runtime = {"target": "bmv2", "bmv2_json": "build/basic.json", "table_entries": []}
    (tmp_path / "pod-topo" / "s1-runtime.json").write_text(json.dumps(runtime))
    (tmp_path / "build").mkdir()
    for name in ("build/basic.json", "ecmp.p4", "s1-commands.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_a_topology_of_the_tutorials(exercise: Path) -> None:
    plan = read_network(written(exercise / "pod-topo" / "topology.json", TUTORIAL))
    assert [(host.name, host.address, host.interface, host.commands) for host in plan.hosts] == [
        ("h1", "10.0.1.1/24", "eth0", ("route add default gw 10.0.1.10 dev eth0",)),
        ("h2", "10.0.2.2/24", "eth0", ()),
    ]
    one, other = plan.switches
    assert one.program is not None
    assert one.program.resolve() == exercise / "build" / "basic.json"
    assert (one.runtime, one.cpu_port) == (exercise / "pod-topo" / "s1-runtime.json", 510)
    assert (other.program, other.runtime) == (None, None)
    assert plan.links == (
        PlannedLink(LinkEnd("h1", 0), LinkEnd("s1", 1)),
        PlannedLink(LinkEnd("s1", 3), LinkEnd("s2", 7), (("delay", "5"), ("bw", 0.5))),
        PlannedLink(LinkEnd("h2", 0), LinkEnd("s2", 2), (("delay", "10ms"),)),
    )


def test_a_network_of_p4_utils(exercise: Path) -> None:
    plan = read_network(written(exercise / "p4app.json", P4_UTILS))
    first, second = plan.hosts
    assert (first.address, first.mac, first.gateway) == ("10.0.1.1/24", "00:00:0a:00:01:01", "10.0.1.254")
    assert first.neighbors == (("10.0.1.254", "00:01:0a:00:01:01"),)
    assert second.address == "10.0.2.2/24"
    assert [(switch.name, switch.cpu_port) for switch in plan.switches] == [("s1", 510), ("s2", None), ("s10", None)]
    assert plan.switches[0].commands == exercise / "s1-commands.txt"
    assert plan.links == (
        PlannedLink(LinkEnd("h1", 0), LinkEnd("s1", 1, "00:01:0a:00:01:01"), (("bw", 10),)),
        PlannedLink(LinkEnd("h2", 0), LinkEnd("s2", 1, "00:01:0a:00:02:02"), (("bw", 10), ("delay", "3ms"))),
        PlannedLink(LinkEnd("s1", 2), LinkEnd("s2", 2), (("bw", 1),)),
        PlannedLink(LinkEnd("s1", 3), LinkEnd("s10", 1), (("bw", 10),)),
    )
    assert plan.scripts == ("python controller.py",)
    assert not plan.know_each_other


@pytest.mark.parametrize(
    ("strategy", "addresses"),
    {"l2": ["10.0.0.1/16", "10.0.0.2/16"], "l3": ["10.1.1.2/24", "10.2.2.2/24"]}.items(),
)
def test_strategies_of_p4_utils(strategy: str, addresses: list[str], exercise: Path) -> None:
    document = P4_UTILS | {"topology": P4_UTILS["topology"] | {"assignment_strategy": strategy}}
    plan = read_network(written(exercise / "p4app.json", document), program=exercise / "other.json")
    assert [host.address for host in plan.hosts] == addresses
    assert {switch.program for switch in plan.switches} == {exercise / "other.json"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"links": [["h1", "s9-p1"]]}, "a link ends at 's9'"),
        ({"links": [["h1", "s1-p1"], ["h2", "s1-p1"]]}, "two links end at port 1 of 's1'"),
        ({"links": [["h1"]]}, r"links\[0\]: .*expected"),
        ({"hosts": {"h1": {"mac": "x"}}}, "key 'ip' is missing"),
        ({"switches": {"s1": {"runtime_json": "no.json"}}}, "names 'no.json', which is in none of"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], reason: str, exercise: Path) -> None:
    with pytest.raises(InputError, match=reason):
        read_network(written(exercise / "pod-topo" / "topology.json", TUTORIAL | change))


def test_entries_of_the_tutorials(tmp_path: Path) -> None:
    document = {
        "table_entries": [
            {"table": "RouterIngress.acl", "default_action": True, "action_name": "RouterIngress.permit"},
            {
                "table": "RouterIngress.ipv4_lpm",
                "match": {"hdr.ipv4.dst": ["10.0.1.0", 24]},
                "action_name": "RouterIngress.forward",
                "action_params": {"mac": "08:00:00:00:01:11", "port": 2},
            },
            {
                "table": "RouterIngress.acl",
                "match": {"hdr.ipv4.src": ["10.0.0.0", "0xff000000"]},
                "action_name": "RouterIngress.drop",
                "priority": 5,
            },
        ],
        "multicast_group_entries": [
            {
                "multicast_group_id": 1,
                "replicas": [{"egress_port": 2, "instance": 1}, {"egress_port": 1, "instance": 1}],
            }
        ],
        "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 3, "instance": 1}]}],
    }
    entries = read_runtime(written(tmp_path / "s1-runtime.json", document), read_program(PROGRAMS / "router.json"))
    forward, drop = "RouterIngress.forward", "RouterIngress.drop"
    key = (Ternary(0x0A000000, 0xFF000000), Ternary(0, 0), Range(0, 65535))
    assert entries.tables == (
        TableEntry("RouterIngress.ipv4_lpm", (Lpm(0x0A000100, 24),), forward, (0x080000000111, 2)),
        TableEntry("RouterIngress.acl", key, drop, (), HIGHEST_PRIORITY - 5),
    )
    assert entries.defaults == (DefaultAction("RouterIngress.acl", "RouterIngress.permit"),)
    assert entries.groups == (MulticastGroup(1, (), ((1, 2), (1, 1)), ordered=True),)
    assert entries.mirrors == (MirrorSession(5, 3),)


IPV4, FORWARD = "RouterIngress.ipv4_lpm", "RouterIngress.forward"


def entries_of(tmp_path: Path, match: Any = None, params: Any = None, **more: Any) -> tuple[SwitchEntries, list[str]]:
    """What a file with one entry of the router's gives, and what is told of it."""
    entry = {
        "table": IPV4,
        "match": match or {"hdr.ipv4.dst": ["10.0.1.0", 24]},
        "action_name": FORWARD,
        "action_params": params or {"mac": "02:00:00:00:00:02", "port": 2},
    }
    document = {"target": "bmv2", "p4info": "x.p4info", "table_entries": [entry], **more}
    told: list[str] = []
    program = read_program(PROGRAMS / "router.json")
    return read_runtime(written(tmp_path / "s1-runtime.json", document), program, told.append), told


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["10.0.1.9"], "expected [VALUE, PREFIX], not ['10.0.1.9']"),
        (["10.0.1.9", 24, 1], "expected [VALUE, PREFIX]"),
        ([True, 24], "True: expected a number or an address"),
        (None, "None: expected a number"),
        ({"value": 1}, "expected a number"),
    ],
)
def test_a_key_that_is_none_is_told_with_its_entry(value: Any, expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"table_entries\[0\]: .*" + re.escape(expected)):
        entries_of(tmp_path, match={"hdr.ipv4.dst": value})


def test_numbers_may_be_texts_and_lists_of_one(tmp_path: Path) -> None:
    groups = [{"multicast_group_id": "1", "replicas": [{"egress_port": "2", "instance": "1"}]}]
    entries, told = entries_of(
        tmp_path, params={"mac": ["02:00:00:00:00:02"], "port": "2"}, multicast_group_entries=groups
    )
    assert entries.tables[0].params == (0x020000000002, 2)
    assert entries.groups == (MulticastGroup(1, (), ((1, 2),), ordered=True),)
    assert told == []
    assert entries_of(tmp_path, params={"mac": -1, "port": -1})[0].tables[0].params == (0xFFFFFFFFFFFF, 0x1FF)


def test_a_clone_session_says_how_long_its_clones_are(tmp_path: Path) -> None:
    session = {"clone_session_id": 5, "replicas": [{"egress_port": 3}], "packet_length_bytes": 128}
    assert entries_of(tmp_path, clone_session_entries=[session])[0].mirrors == (MirrorSession(5, 3, size_bytes=128),)


def test_keys_of_entries_that_nobody_reads_are_told(tmp_path: Path) -> None:
    _, told = entries_of(tmp_path, table_entry=[], comment="mine")
    path = tmp_path / "s1-runtime.json"
    assert told == [f"{path}: these keys have no effect here: table_entry (did you mean 'table_entries'?), comment"]


def test_a_key_of_entries_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s1-runtime.json"
    path.write_text('{"table_entries": [], "table_entries": []}')
    with pytest.raises(InputError, match="key 'table_entries' is given twice"):
        read_runtime(path, read_program(PROGRAMS / "router.json"))
