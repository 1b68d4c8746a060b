"""A course's network runs: hosts, a switch with its entries, and the commands of its line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from single_targets import PROGRAMS

pytestmark = pytest.mark.root

NEAR = {"h1": "02:00:00:00:00:11", "h2": "02:00:00:00:00:22"}
START = "from inakit.experiments.cli.main import main; main()"


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """Two hosts at one router, with a route to each."""
    hosts = {
        name: {
            "ip": f"10.0.{n}.{n}/24",
            "mac": mac,
            "commands": [
                f"ip route add default via 10.0.{n}.9",
                f"ip neigh replace 10.0.{n}.9 lladdr {mac[:-2]}99 dev eth0",
            ],
        }
        for n, (name, mac) in enumerate(NEAR.items(), start=1)
    }
    routes = (f"table_add ipv4_lpm forward 10.0.{n}.0/24 => {mac} {n}" for n, mac in enumerate(NEAR.values(), start=1))
    (tmp_path / "s1-commands.txt").write_text("\n".join(["table_dump ipv4_lpm", *routes]))
    links = [["h1", "s1-p1"], ["h2", "s1-p2"]]
    document = {"hosts": hosts, "switches": {"s1": {"cli_input": "s1-commands.txt"}}, "links": links}
    (tmp_path / "topology.json").write_text(json.dumps(document))
    return tmp_path / "topology.json"


def network(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START, "switch", "network", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


def test_hosts_reach_each_other(topology: Path) -> None:
    done = network(str(topology), "--program", str(PROGRAMS / "router.json"), "--pingall")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0% dropped (2/2 received)" in done.stdout + done.stderr
    assert "s1: " in done.stdout
    assert "'table_dump' is skipped" in done.stderr


def test_the_line_of_the_network_changes_a_switch(topology: Path) -> None:
    lines = [
        "h1 ping -c 1 -W 1 h2",
        "switch s1 table_delete ipv4_lpm 1",
        "h1 ping -c 1 -W 1 h2",
        "register s1 RouterIngress.routed",
    ]
    given = [part for line in lines for part in ("--execute", line)]
    done = network(str(topology), "--program", str(PROGRAMS / "router.json"), *given)
    said = done.stdout + done.stderr
    assert said.index("1 received") < said.index("0 received"), said
    assert "[1] 1, [2] 1" in said, said
    assert subprocess.run(["ip", "link", "show", "s1-eth1"], capture_output=True, check=False).returncode != 0


def test_a_network_that_is_ended_leaves_nothing(topology: Path) -> None:
    command = [sys.executable, "-u", "-c", START, "switch", "network", str(topology)]
    program = ["--program", str(PROGRAMS / "router.json"), "--execute", "h1 sleep 60"]
    with subprocess.Popen([*command, *program], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert any(line.startswith("s1: ") for line in running.stdout)
        again = network(str(topology), *program)
        running.terminate()
        running.wait(timeout=60)
    assert "interfaces s1-eth1, s1-eth2 already exist" in again.stderr
    assert subprocess.run(["ip", "link", "show", "s1-eth1"], capture_output=True, check=False).returncode != 0


def test_a_network_of_p4_utils_routes_between_its_subnets(tmp_path: Path) -> None:
    routes = [f"table_add ipv4_lpm forward 10.1.{n}.0/24 => 00:00:0a:01:{n:02x}:02 {n}\n" for n in (1, 2)]
    (tmp_path / "s1-commands.txt").write_text("".join(routes))
    topology = {
        "assignment_strategy": "l3",
        "hosts": {"h1": {}, "h2": {}},
        "switches": {"s1": {"cli_input": "s1-commands.txt", "cpu_port": True}},
        "links": [["h1", "s1", {"bw": 100, "delay": 1}], ["h2", "s1"]],
    }
    (tmp_path / "p4app.json").write_text(json.dumps({"p4_src": "absent.p4", "cli": True, "topology": topology}))
    given = [str(tmp_path / "p4app.json"), "--program", str(PROGRAMS / "router.json")]
    done = network(*given, "--execute", "h1 ping -c 1 -W 2 h2", "--execute", "links")
    said = done.stdout + done.stderr
    assert "1 received" in said, said
    assert "s1-cpu-eth0<->s1-cpu-eth1 (OK OK)" in said, said
    assert "these keys have no effect here: cli" in said, said
    lacks_netem = "Specified qdisc kind is unknown" in said
    assert ("no netem, so these have no effect: h1 - s1 (delay)" in said) == lacks_netem, said


def test_a_network_of_2018_routes_between_its_switches(tmp_path: Path) -> None:
    mac = {n: f"00:00:00:00:0{n}:0{n}" for n in (1, 2)}
    for n, other in ((1, 2), (2, 1)):
        lines = [
            f"table_add ipv4_lpm forward 10.0.{n}.{n}/32 => {mac[n]} 1",
            f"table_add ipv4_lpm forward 10.0.{other}.{other}/32 => {mac[other]} 2",
        ]
        (tmp_path / f"s{n}.txt").write_text("\n".join(lines))
    switches = {f"s{n}": {"cli_input": f"s{n}.txt"} for n in (1, 2)}
    document = {"hosts": ["h1", "h2"], "switches": switches, "links": [["h1", "s1"], ["s1", "s2"], ["s2", "h2"]]}
    (tmp_path / "topology.json").write_text(json.dumps(document))
    done = network(str(tmp_path / "topology.json"), "--program", str(PROGRAMS / "router.json"), "--pingall")
    assert done.returncode == 0, done.stdout + done.stderr
