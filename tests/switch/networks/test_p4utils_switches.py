"""A network of p4-utils whose switch class is the kit's: its own control plane fills it, and hosts reach each other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from sandbox import sandboxed
from single_targets import PROGRAMS

pytestmark = [pytest.mark.root, pytest.mark.bmv2]

NETWORK = """
from p4utils.mininetlib.network_API import NetworkAPI
from p4utils.utils.sswitch_thrift_API import SimpleSwitchThriftAPI
from inakit.switch.networks.p4utils_switches import InakitP4Switch

net = NetworkAPI()
net.setLogLevel("warning")
net.disableCli()
net.addP4Switch("s1", cls=InakitP4Switch, json_path="{program}", thrift_port=9190, device_id=77)
net.addHost("h1")
net.addHost("h2")
net.addLink("h1", "s1", port2=1)
net.addLink("h2", "s1", port2=2)
net.l3()
net.startNetwork()
try:
    control = SimpleSwitchThriftAPI(9190)
    for number in (1, 2):
        mac = f"00:00:0a:4d:0{{number}}:02"
        route = [f"10.77.{{number}}.0/24"], [mac, str(number)]
        control.table_add("RouterIngress.ipv4_lpm", "RouterIngress.forward", *route)
    print("lost", net.net.pingAll())
finally:
    net.net.stop()
"""


def run_network(at: Path) -> str:
    """What the script says. p4-utils ends processes and removes files by their names, so it runs in a sandbox."""
    command = sandboxed([sys.executable, "-c", NETWORK.format(program=PROGRAMS / "router.json")])
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False, timeout=100)
    return done.stdout + done.stderr


@contextmanager
def bystander(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody else's process, which is called `name`."""
    process = subprocess.Popen([name, "1000"], executable=shutil.which("sleep"))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_network_of_p4_utils_runs_on_the_kits_switch_and_harms_nobody(tmp_path: Path) -> None:
    with NamedTemporaryFile(suffix=".log", dir="/tmp") as log, bystander("mininet:somebody") as process:
        said = run_network(tmp_path)
        assert "lost 0.0" in said, said
        assert Path(log.name).exists(), "Mininet's clean-up removes all such files"
        assert process.poll() is None, "Mininet's clean-up ends all such processes"
