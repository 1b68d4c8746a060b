"""Network files of p4lang's tutorials and of p4-utils, as those read them."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from single_targets import PROGRAMS

from inakit.switch.control.entry_files import HIGHEST_PRIORITY, read_runtime
from inakit.switch.entries import (
    DefaultAction,
    Lpm,
    MirrorSession,
    MulticastGroup,
    Range,
    SwitchEntries,
    TableEntry,
    Ternary,
)
from inakit.switch.networks.course_files import read_network
from inakit.switch.networks.network_plan import LinkEnd, NetworkPlan, PlannedLink
from inakit.switch.program.bmv2_json import read_program
from inakit.topo.errors import InputError

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


def end(node: str, port: int, mac: str | None = None, interface: str | None = None) -> LinkEnd:
    return LinkEnd(node, port, mac, interface or f"{node}-eth{port}")


def app(path: Path, *, top: dict[str, Any] | None = None, **topology: Any) -> NetworkPlan:
    """The plan of a p4app.json with two hosts at one switch, and with these keys."""
    two = {"hosts": {"h1": {}, "h2": {}}, "switches": {"s1": {}}, "links": [["h2", "s1"], ["h1", "s1"]]}
    return read_network(written(path / "p4app.json", {**(top or {}), "topology": two | topology}))


def topology(path: Path, **document: Any) -> NetworkPlan:
    """The plan of a topology.json with these keys."""
    return read_network(written(path / "topology.json", {"hosts": {}, "switches": {"s1": {}}, "links": []} | document))


def test_a_topology_of_the_tutorials(exercise: Path) -> None:
    plan = read_network(written(exercise / "pod-topo" / "topology.json", TUTORIAL))
    assert [(host.name, host.address, host.commands) for host in plan.hosts] == [
        ("h1", "10.0.1.1/24", ("route add default gw 10.0.1.10 dev eth0",)),
        ("h2", "10.0.2.2/24", ()),
    ]
    one, other = plan.switches
    assert one.program is not None
    assert one.program.resolve() == exercise / "build" / "basic.json"
    assert (one.runtime, one.cpu_port) == (exercise / "pod-topo" / "s1-runtime.json", 510)
    assert (other.program, other.runtime) == (None, None)
    assert plan.links == (
        PlannedLink(end("h1", 0, interface="eth0"), end("s1", 1)),
        PlannedLink(end("s1", 3), end("s2", 7), (("delay", "5"), ("bw", 0.5))),
        PlannedLink(end("h2", 0, interface="eth0"), end("s2", 2), (("delay", "10ms"),)),
    )


def test_a_network_of_p4_utils(exercise: Path) -> None:
    plan = read_network(written(exercise / "p4app.json", P4_UTILS))
    first, second = plan.hosts
    assert (first.address, first.mac, first.gateway) == ("10.0.1.1/24", "00:00:0a:00:01:01", "10.0.1.254")
    assert first.neighbors == (("10.0.1.254", "00:01:0a:00:01:01"),)
    assert second.address == "10.0.2.2/24"
    assert [(switch.name, switch.device_id) for switch in plan.switches] == [("s1", 1), ("s2", 2), ("s10", 3)]
    assert plan.switches[0].commands == exercise / "s1-commands.txt"
    assert plan.links == (
        PlannedLink(end("h1", 0), end("s1", 1, mac="00:01:0a:00:01:01"), (("bw", 10),)),
        PlannedLink(end("h2", 0), end("s2", 1, mac="00:01:0a:00:02:02"), (("bw", 10), ("delay", "3ms"))),
        PlannedLink(end("s1", 2), end("s2", 2), (("bw", 1),)),
        PlannedLink(end("s1", 3), end("s10", 1), (("bw", 10),)),
        PlannedLink(end("s1", 4, interface="s1-cpu-eth0"), end("sw-cpu", 1, interface="s1-cpu-eth1")),
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
        ({"hosts": {"h1": {"mac": "x"}}}, "hosts.h1.mac: 'x': expected an address"),
        ({"hosts": {"h1": {"ip": "10.0.1"}}}, "hosts.h1.ip: '10.0.1': expected an address"),
        ({"links": [["h1", "s1-p1", "soon"]]}, r"links\[0\]: 'soon' is no delay"),
        ({"links": [["h1", "s1-p1", 1, "wide"]]}, r"links\[0\]: 'wide' is no bw"),
        ({"switches": {"s1": {"cpu_port": "door"}}}, "switches.s1.cpu_port: 'door': expected a port number"),
        ({"switches": {"s1": {"runtime_json": "no.json"}}}, "names 'no.json', which is in none of"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], reason: str, exercise: Path) -> None:
    with pytest.raises(InputError, match=reason):
        read_network(written(exercise / "pod-topo" / "topology.json", TUTORIAL | change))


def test_a_topology_of_2018_has_ports_and_addresses_by_names(tmp_path: Path) -> None:
    links = [["h11", "s1"], ["s2", "s1", "0", 0.5], ["s2", "h2"]]
    plan = topology(tmp_path, hosts=["h2", "h11"], switches={"s1": {}, "s2": {}}, links=links)
    second, eleventh = plan.hosts
    assert (second.address, second.mac) == ("10.0.2.2/24", "00:00:00:00:02:02")
    assert (eleventh.address, eleventh.mac) == ("10.0.1.11/24", "00:00:00:00:01:0b")
    assert (eleventh.gateway, eleventh.neighbors) == ("10.0.11.254", (("10.0.11.254", "00:00:00:00:01:0b"),))
    assert [(link.one.node, link.one.port, link.other.node, link.other.port) for link in plan.links] == [
        ("h11", 0, "s1", 1), ("h2", 0, "s2", 1), ("s1", 2, "s2", 2)
    ]  # fmt: skip
    assert plan.links[2].options == (("bw", 0.5),)


def test_a_topology_may_leave_out_addresses_and_write_numbers_as_texts(tmp_path: Path) -> None:
    hosts = {"h1": {"ip": None, "mac": None}, "h2": {}, "h3": {"ip": "10.0.1.3"}}
    switches = {"s1": {"cpu_port": "510", "grpc_port": "50051", "device_id": 0}}
    links = [["h1", "s1-p1"], ["h2", "s1-p2", "0ms", "100"], ["h3", "s1-p3", None, None]]
    plan = topology(tmp_path, hosts=hosts, switches=switches, links=links)
    assert [host.address for host in plan.hosts] == [None, None, "10.0.1.3/8"], "Mininet's prefix"
    (switch,) = plan.switches
    assert (switch.cpu_port, switch.grpc_port, switch.device_id) == (510, 50051, 0)
    assert [link.options for link in plan.links] == [(), (("bw", 100),), ()]


def test_a_hosts_second_link_has_its_next_port(tmp_path: Path) -> None:
    switches: dict[str, Any] = {"s1": {}, "s2": {}}
    plan = topology(tmp_path, hosts={"h1": {}}, switches=switches, links=[["h1", "s1-p1"], ["h1", "s2-p1"]])
    assert [link.one for link in plan.links] == [end("h1", 0, interface="eth0"), end("h1", 1)]


def test_keys_that_nobody_reads_are_told_in_one_line(tmp_path: Path) -> None:
    hosts = {"h1": {"ipp": "10.0.0.1"}}
    (note,) = topology(tmp_path, hosts=hosts, switches={"s1": {"log": 1}, "s2": {"log": 2}}, controller={}).notes
    told = "these keys have no effect here: controller, hosts.*.ipp (did you mean 'ip'?), switches.*.log"
    assert note == f"{tmp_path / 'topology.json'}: {told}"
    links = [["h1", "s1", {"weight": 2, "bw": 1}], ["h2", "s1", {"weight": 3}]]
    (note,) = app(tmp_path, top={"pcap_dump": True}, links=links, default={"weight": 4}).notes
    assert note.endswith("no effect here: pcap_dump, topology.default.weight, topology.links.weight")


def test_hosts_of_p4_utils_have_the_addresses_that_the_file_says(tmp_path: Path) -> None:
    plan = app(
        tmp_path, hosts={"h1": {"ip": "192.168.10.52/24", "mac": "00:00:0a:00:00:99"}, "h2": {"ip": "192.168.10.53"}}
    )
    assert [(host.address, host.mac) for host in plan.hosts] == [
        ("192.168.10.52/24", "00:00:0a:00:00:99"), ("192.168.10.53/24", "00:00:c0:a8:0a:35")
    ]  # fmt: skip
    link = ["s1", "h1", {"params2": {"ip": "10.9.0.2/24"}, "addr2": "00:00:00:00:00:07", "sw_ip1": "10.9.0.1/24"}]
    plan = app(tmp_path, hosts={"h1": {"defaultRoute": "via 10.9.0.1"}}, links=[link])
    (host,) = plan.hosts
    assert (host.address, host.mac, host.gateway) == ("10.9.0.2/24", "00:00:00:00:00:07", "10.9.0.1")
    assert host.neighbors == (("10.9.0.1", "00:01:0a:09:00:02"),)


def test_hosts_without_a_strategy_have_addresses_one_after_the_other(tmp_path: Path) -> None:
    assert [host.address for host in app(tmp_path).hosts] == ["10.0.0.1/8", "10.0.0.2/8"]
    plan = app(tmp_path, hosts={"h1": {}, "h2": {}, "h3": {}}, links=[["h1", "s1"]])
    assert [host.address for host in plan.hosts] == ["10.0.0.1/8", None, None], "those without a link stay"


def test_a_file_of_p4_utils_until_2020(tmp_path: Path) -> None:
    links = [["h2", "s5"], ["h1", "s5"], ["s5", "s3"]]
    old = {"program": "x.p4", "switch_cli": "simple_switch_CLI"}
    plan = app(
        tmp_path, top=old, switches={"s3": {"cpu_port": True}, "s5": {}}, links=links, auto_arp_tables=False,
        default_bw=7, default_delay=2,
    )  # fmt: skip
    assert [host.address for host in plan.hosts] == ["10.0.5.1/24", "10.0.5.2/24"], "mixed, by the number in s5"
    assert [(link.one.node, link.other.port) for link in plan.links] == [("h2", 1), ("h1", 2), ("s5", 1), ("s3", 1)]
    assert plan.links[0].options == (("bw", 7), ("delay", "2ms"))
    assert plan.links[3].one == end("s3", 2, interface="s3-cpu-eth0")
    assert not plan.know_each_other


def test_manual_addresses_of_p4_utils(tmp_path: Path) -> None:
    hosts = {"h1": {"ip": "10.0.1.2", "gw": "10.0.1.1"}, "h2": {"ip": "auto"}}
    switches = {"s1": {"h1": "10.0.1.1"}}
    plan = app(tmp_path, assignment_strategy="manual", hosts=hosts, switches=switches)
    first, second = plan.hosts
    assert (first.address, first.mac) == ("10.0.1.2/24", "00:00:0a:00:01:02")
    assert first.neighbors == (("10.0.1.1", "00:00:0a:00:01:01"),)
    assert second.address is None
    assert [note.partition(": ")[2] for note in plan.notes] == [
        "host 'h2' has no address: no DHCP client is started here"
    ]


def test_gateways_are_unknown_where_the_file_says_so(tmp_path: Path) -> None:
    plan = app(tmp_path, assignment_strategy="l3", default={"auto_gw_arp": False})
    assert [(host.gateway, host.neighbors) for host in plan.hosts] == [("10.1.1.1", ()), ("10.1.2.1", ())]


def test_a_switch_of_p4_utils_says_its_ports(tmp_path: Path) -> None:
    (switch,) = app(tmp_path, switches={"s1": {"device_id": 9, "thrift_port": 9100, "grpc_port": "9600"}}).switches
    assert (switch.device_id, switch.thrift_port, switch.grpc_port) == (9, 9100, 9600)


@pytest.mark.parametrize(
    ("topology", "reason"),
    [
        ({"links": [["h1", "s1", {"bw": "wide"}]]}, r"topology.links\[0\]\[2\].bw: 'wide': expected a number"),
        ({"links": [["h1", "s1", 5]]}, r"topology.links\[0\]: .*expected"),
        ({"default": {"delay": "soon"}}, "topology.default.delay: 'soon': expected a number of milliseconds"),
        ({"hosts": {"h1": {"ip": "10.0.1"}}}, "hosts.h1.ip: '10.0.1': expected an address"),
        ({"assignment_strategy": "l4"}, "'l4'.*l3"),
        ({"routers": {"r1": {}}}, "routers are not run here"),
        ({"assignment_strategy": "l3", "hosts": {"h300": {}}, "links": [["h300", "s1"]]}, "l3 has no free address"),
    ],
)
def test_what_is_wrong_in_a_file_of_p4_utils_is_told(topology: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        app(tmp_path, **topology)


def test_a_program_stands_for_a_source_that_is_not_there(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p4app.json",
        {"p4_src": "absent.p4", "topology": P4_UTILS["topology"] | {"switches": {"s1": {}, "s2": {}, "s10": {}}}},
    )
    assert {switch.program for switch in read_network(path).switches} == {None}
    assert {switch.program for switch in read_network(path, Path("mine.json")).switches} == {Path("mine.json")}


def test_long_names_have_short_interfaces_of_their_own(tmp_path: Path) -> None:
    names = ["SW_SUPERVISOR_1", "SW_SUPERVISOR_2", "SW_SUP_1", "s 1"]
    links = [[f"{name}-p1", f"{other}-p2"] for name, other in itertools.pairwise([*names, names[0]])]
    plan = topology(tmp_path, switches={name: {} for name in names}, links=links)
    interfaces = [each.interface or "" for link in plan.links for each in (link.one, link.other)]
    assert len(set(interfaces)) == len(interfaces), interfaces
    assert all(re.fullmatch(r"[\w.-]{1,15}", name) for name in interfaces), interfaces
    assert "SW_SUP_1-eth1" in interfaces
    assert len(plan.notes) == 3


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"directed": False, "nodes": [], "links": []}, "p4-utils writes this file for a running network"),
        ({"program": "x.p4", "targets": {}}, "p4app of 2016 and 2017"),
    ],
)
def test_files_of_other_formats_are_told_apart(document: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        read_network(written(tmp_path / "topology.json", document))


def test_entries_of_the_tutorials(tmp_path: Path) -> None:
    document = {
        "table_entries": [
            {"table": "RouterIngress.acl", "default_action": "true", "action_name": "RouterIngress.permit"},
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
        ([], "expected [VALUE, PREFIX], not []"),
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
    assert entries_of(tmp_path, match={"hdr.ipv4.dst": ["10.0.1.9"]})[0].tables[0].key == (Lpm(0x0A000109, 32),)
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
