"""A network of p4-utils whose switch class is the kit's: its own control plane fills it, and hosts reach each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from single_targets import PROGRAMS

pytestmark = [pytest.mark.root, pytest.mark.bmv2]

NETWORK = """
from p4utils.mininetlib.network_API import NetworkAPI
from p4utils.utils.sswitch_thrift_API import SimpleSwitchThriftAPI
from switch.networks.p4utils_switches import InakitP4Switch

net = NetworkAPI()
net.setLogLevel("warning")
net.disableCli()
net.addP4Switch("s1", cls=InakitP4Switch, json_path="{program}", thrift_port=9190)
net.addHost("h1")
net.addHost("h2")
net.addLink("h1", "s1", port2=1)
net.addLink("h2", "s1", port2=2)
net.l3()
net.startNetwork()
try:
    control = SimpleSwitchThriftAPI(9190)
    for number in (1, 2):
        mac = f"00:00:0a:01:0{{number}}:02"
        route = [f"10.1.{{number}}.0/24"], [mac, str(number)]
        control.table_add("RouterIngress.ipv4_lpm", "RouterIngress.forward", *route)
    print("lost", net.net.pingAll())
finally:
    net.net.stop()
"""


def test_a_network_of_p4_utils_runs_on_the_kits_switch(tmp_path: Path) -> None:
    pytest.importorskip("p4utils")
    script = NETWORK.format(program=PROGRAMS / "router.json")
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert "lost 0.0" in done.stdout, done.stdout + done.stderr
