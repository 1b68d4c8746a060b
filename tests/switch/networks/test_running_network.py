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
START = "from experiments.cli.main import main; main()"


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
    given = [part for line in lines for part in ("--run", line)]
    done = network(str(topology), "--program", str(PROGRAMS / "router.json"), *given)
    said = done.stdout + done.stderr
    assert said.index("1 received") < said.index("0 received"), said
    assert "[1] 1, [2] 1" in said, said
    assert subprocess.run(["ip", "link", "show", "s1-eth1"], capture_output=True, check=False).returncode != 0


def test_a_network_that_is_ended_leaves_nothing(topology: Path) -> None:
    command = [sys.executable, "-u", "-c", START, "switch", "network", str(topology)]
    program = ["--program", str(PROGRAMS / "router.json"), "--run", "h1 sleep 60"]
    with subprocess.Popen([*command, *program], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert any(line.startswith("s1: ") for line in running.stdout)
        again = network(str(topology), *program)
        running.terminate()
        running.wait(timeout=60)
    assert "there are interfaces s1-eth1, s1-eth2 already" in again.stderr
    assert subprocess.run(["ip", "link", "show", "s1-eth1"], capture_output=True, check=False).returncode != 0
