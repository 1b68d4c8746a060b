"""A real network: built to the fabric, shaped to the rate, and gone without a trace, whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mininet", reason="needs Mininet")

import mininet.net
from mininet.node import Switch as MininetSwitch
from orphans import TIED
from pyroute2 import IPRoute
from tolerance import assert_within, undisturbed

from inakit.topo.errors import FabricError, MachineError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import aro_figure1, fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_capacity, with_delay
from inakit.topo.live.ledger import ROOT, Ledger, clean_dead_runs, start_time
from inakit.topo.live.netlink import inside, interface_name, set_namespace
from inakit.topo.live.network import Network

pytestmark = [pytest.mark.root, pytest.mark.beside]
"""The state that tests compare is the machine's own: networks of other processes may come and go meanwhile."""

FRAME = b"\xff" * 12 + b"\x88\xb5" + bytes(312)
WINDOWS = 5
WINDOW_S = 0.2


class IdleSwitch(MininetSwitch):  # type: ignore[misc]
    """A switch that forwards nothing."""

    def start(self, _controllers: list[object]) -> None:
        self.started = True


class BrokenSwitch(IdleSwitch):
    """A switch that fails at its start."""

    def start(self, _controllers: list[object]) -> None:
        raise RuntimeError(f"{self.name} is broken")


def children(pid: int) -> set[int]:
    return {
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    }


def traces(run: str) -> list[str]:
    """What is left of a run: interfaces, and its ledger."""
    return [name for _, name in socket.if_nameindex() if name.startswith(run)] + [
        str(folder) for folder in ROOT.iterdir() if folder.name == run
    ]


@pytest.fixture
def no_trace() -> Iterator[list[str]]:
    """Append run ids; at the end of the test nothing of those runs may be left, nor any new child process."""
    before, named = children(os.getpid()), set(Path("/run/netns").glob("*"))
    runs: list[str] = []
    yield runs
    assert runs
    assert [trace for run in runs for trace in traces(run)] == []
    assert children(os.getpid()) <= before
    assert set(Path("/run/netns").glob("*")) <= named


def test_network_is_the_fabric(no_trace: list[str]) -> None:
    fabric = aro_figure1()
    with Network(fabric, IdleSwitch) as network:
        no_trace.append(network.ledger.id)
        assert set(network.hosts) == fabric.host_names
        assert all(
            node.started and node.params["fabric_switch"].name == name for name, node in network.switches.items()
        )
        for (node, peer), port in fabric.port_numbers.items():
            interface = network.interface(node, peer)
            assert (interface.pid is None) == (node in network.switches)
            assert network.mininet[node].intfs[port].name == interface.name
            assert peer_index(interface.name, interface.pid) == index(network.interface(peer, node))
        assert "PERMANENT" in run_in(network, "w0", "ip", "neigh", "show", network.hosts["ps"].address.ipv4_text)
        assert run_in(network, "w0", "ip", "-6", "addr", "show", "dev", "eth0") == ""


def run_in(network: Network, host: str, *command: str) -> str:
    return network.popen(host, list(command), stderr=subprocess.STDOUT).communicate(timeout=10)[0].decode()


def peer_index(name: str, pid: int | None) -> int:
    with inside(pid) as netlink:
        peer: int = netlink.get_links(socket.if_nametoindex(name))[0].get_attr("IFLA_LINK")
        return peer


def index(interface: Any) -> int:
    with inside(interface.pid):
        return socket.if_nametoindex(interface.name)


def saturate(name: str, pid: int | None, seconds: float) -> None:
    """Send frames as fast as the interface takes them: a blocking socket waits for the queue."""
    with inside(pid):
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sender.bind((name, 0))
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 60 * 1024)
    end = time.monotonic() + seconds
    with sender:
        while time.monotonic() < end:
            sender.send(FRAME)


def measured_rate(network: Network, node: str, peer: str) -> float:
    """Bits per second that arrive at `peer` from a `node` that sends all it can: the median of short windows.

    The median, because a machine that pauses for longer than a shaper's burst loses that time.
    """
    out, into = network.interface(node, peer), network.interface(peer, node)
    child = os.fork()
    if child == 0:
        saturate(out.name, out.pid, (WINDOWS + 2) * WINDOW_S)
        os._exit(0)
    time.sleep(WINDOW_S)
    with inside(into.pid) as netlink:
        samples = [sample(netlink, socket.if_nametoindex(into.name)) for _ in range(WINDOWS + 1)]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return statistics.median(8 * (b1 - b0) / (t1 - t0) for (t0, b0), (t1, b1) in pairwise(samples))


def sample(netlink: IPRoute, index: int) -> tuple[float, int]:
    """The bytes that an interface received, and when, after one window's wait."""
    time.sleep(WINDOW_S)
    before = time.monotonic()
    received = netlink.get_links(index)[0].get_attr("IFLA_STATS64")["rx_bytes"]
    return (before + time.monotonic()) / 2, received


@pytest.mark.alone
def test_links_have_their_rates_each_way(no_trace: list[str]) -> None:
    fabric = leaf_spine(1, 1, 1)
    link = replace(fabric.links[0], capacity_ab_bps=20e6, capacity_ba_bps=7e6)
    with Network(replace(fabric, links=(link, fabric.links[1])), IdleSwitch) as network:
        no_trace.append(network.ledger.id)
        for node, peer, rate_bps in (("h1", "leaf1", 20e6), ("leaf1", "h1", 7e6)):
            measured = undisturbed(
                partial(measured_rate, network, node, peer), pytest.approx(rate_bps, rel=0.01).__eq__
            )
            assert_within(measured, rate_bps, 0.01, f"{node} to {peer}", "bit/s")


@pytest.mark.alone
def test_shaping_prints_no_kernel_warning(no_trace: list[str]) -> None:
    with Path("/dev/kmsg").open("rb", buffering=0) as log:
        os.set_blocking(log.fileno(), False)
        os.lseek(log.fileno(), 0, os.SEEK_END)
        with Network(with_capacity(leaf_spine(1, 1, 1), 900e6), IdleSwitch) as network:
            no_trace.append(network.ledger.id)
        lines = []
        while line := log.read(8192):
            lines.append(line)
    assert not [line for line in lines if b"quantum" in line]


def test_queue_limit_is_in_packets(no_trace: list[str]) -> None:
    with Network(leaf_spine(1, 1, 1), IdleSwitch, queue_packets=17) as network:
        no_trace.append(network.ledger.id)
        shown = run_in(network, "h1", "tc", "qdisc", "show", "dev", "eth0")
    assert "pfifo" in shown
    assert "limit 17p" in shown


def test_interfaces_of_switches_with_long_and_with_short_names_have_names_of_their_own() -> None:
    names = {
        interface_name("abcd", node, number, 1) for node, number in (("a", 1), ("a-very-long-name", 10), ("b", 11))
    }
    assert names == {"abcd-a-1", "abcd-a.1", "abcd-b-1"}


def test_a_switch_with_a_latency_is_refused() -> None:
    fabric = leaf_spine(1, 1, 1)
    slow = replace(fabric, switches=tuple(replace(switch, latency_s=1e-6) for switch in fabric.switches))
    with pytest.raises(FabricError, match="'leaf1' has a latency of 1e-06 s, which emulated networks do not have"):
        Network(slow, IdleSwitch)


def test_failing_switch_leaves_nothing(no_trace: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    no_trace.append(fixed_id(monkeypatch))
    with pytest.raises(RuntimeError, match="leaf1 is broken"), Network(leaf_spine(2, 1, 1), BrokenSwitch):
        pytest.fail("a network with a broken switch was entered")


def fixed_id(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the next run's id known before it starts."""
    monkeypatch.setattr("inakit.topo.live.ledger.random.choices", lambda *_args, **_options: list("zzt9"))
    return "zzt9"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError, SystemExit])
def test_exception_inside_leaves_nothing(no_trace: list[str], failure: type[BaseException]) -> None:
    with pytest.raises(failure), Network(leaf_spine(2, 1, 1), IdleSwitch) as network:
        no_trace.append(network.ledger.id)
        network.popen("h1", ["sleep", "60"])
        raise failure


def test_killed_shell_does_not_stop_the_removal(no_trace: list[str]) -> None:
    with Network(leaf_spine(2, 1, 1), IdleSwitch) as network:
        no_trace.append(network.ledger.id)
        os.kill(network.hosts["h1"].pid, signal.SIGKILL)
        os.kill(network.switches["leaf1"].pid, signal.SIGKILL)


SCRIPT = """
    import sys, time
    from mininet.node import Switch
    from inakit.topo.fabric.generators import fat_tree
    from inakit.topo.live.network import Network

    class IdleSwitch(Switch):
        def start(self, controllers): pass

    with Network(fat_tree(2), IdleSwitch) as network:
        network.popen("h1", ["sleep", "100"])
        print(network.ledger.id, flush=True)
        for _ in range(600):
            time.sleep(0.1)
"""
"""It sleeps for short times: a signal that comes right before a sleep is handled after it."""


def start_run() -> tuple[subprocess.Popen[str], str]:
    """A run in a process of its own, up and waiting; and its id."""
    process = subprocess.Popen(
        [*TIED, sys.executable, "-c", textwrap.dedent(SCRIPT)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout
    return process, process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing(no_trace: list[str], number: signal.Signals) -> None:
    process, run = start_run()
    no_trace.append(run)
    recorded = recorded_pids(run)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode not in (0, None)
    assert not [pid for pid in recorded if start_time(pid)]


def recorded_pids(run: str) -> list[int]:
    lines = (ROOT / run / "created").read_text().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("pid ")]


def test_next_run_cleans_after_kill_9_and_spares_the_living(no_trace: list[str]) -> None:
    living, living_run = start_run()
    killed, killed_run = start_run()
    no_trace += [living_run, killed_run]
    recorded = recorded_pids(killed_run)
    killed.kill()
    killed.communicate(timeout=20)
    assert traces(killed_run)
    with Network(leaf_spine(1, 1, 1), IdleSwitch) as network:
        no_trace.append(network.ledger.id)
        assert traces(killed_run) == []
        assert not [pid for pid in recorded if start_time(pid)]
        assert living.poll() is None
        assert len(traces(living_run)) == len(fat_tree(2).links) * 2 - 2 + 1
    living.send_signal(signal.SIGINT)
    living.communicate(timeout=20)


def test_ledger_removes_what_others_record(no_trace: list[str], tmp_path: Path) -> None:
    (tmp_path / "pin").touch()
    (tmp_path / "pins").mkdir()
    sleeper = subprocess.Popen(["sleep", "60"])
    with Ledger.open() as ledger:
        no_trace.append(ledger.id)
        for name in ("pin", "pins"):
            ledger.record("path", tmp_path / name)
        ledger.record("pid", sleeper.pid)
        ledger.record("interface", f"{ledger.id}-x")
        with inside(None) as netlink:
            netlink.link("add", ifname=f"{ledger.id}-x", kind="veth", peer={"ifname": f"{ledger.id}-y"})
    assert list(tmp_path.iterdir()) == []
    assert sleeper.wait(timeout=5) == -signal.SIGKILL


def test_ledger_spares_a_later_process_of_the_same_id(no_trace: list[str]) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    with Ledger.open() as ledger:
        no_trace.append(ledger.id)
        with (ledger.folder / "created").open("a") as created:
            created.write(f"pid {sleeper.pid} 12345\n")
    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait()


def test_unknown_kind_is_refused(no_trace: list[str]) -> None:
    with Ledger.open() as ledger:
        no_trace.append(ledger.id)
        with pytest.raises(ValueError, match="a ledger has pid, group, interface, path, setting; not 'veth'"):
            ledger.record("veth", "x")


def test_delay_without_netem_is_a_clear_error(no_trace: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Skipped where the kernel has netem: then the network is built, and must have the delay."""
    no_trace.append(fixed_id(monkeypatch))
    fabric = with_delay(leaf_spine(1, 1, 1), 0.002)
    try:
        with Network(fabric, IdleSwitch) as network:
            assert "delay 2ms" in run_in(network, "h1", "tc", "qdisc", "show", "dev", "eth0")
    except MachineError as error:
        assert str(error) == "this kernel has no netem, which delays packets: set the delay of every link to 0"


def test_limits_of_the_machine_stay_as_they_were(no_trace: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Mininet's `fixLimits` would raise them, though only in the machine's first namespace could that be seen."""
    raised: list[str] = []
    monkeypatch.setattr(mininet.net, "fixLimits", lambda: raised.append("by Mininet"))
    names = ("fs/file-max", "net/core/wmem_max", "net/core/netdev_max_backlog", "net/ipv4/neigh/default/gc_thresh1")
    here = [path for name in names if (path := Path("/proc/sys", name)).exists()]
    before = [path.read_text() for path in here]
    with Network(leaf_spine(1, 1, 1), IdleSwitch) as network:
        no_trace.append(network.ledger.id)
        assert [path.read_text() for path in here] == before
    assert raised == []


def test_long_and_numberless_names(no_trace: list[str]) -> None:
    fabric = leaf_spine(1, 1, 1)
    switches = tuple(
        replace(s, name={"leaf1": "a_switch_with_a_long_name"}.get(s.name, "top")) for s in fabric.switches
    )
    names = {"leaf1": "a_switch_with_a_long_name", "spine1": "top"}
    links = tuple(replace(link, a=names.get(link.a, link.a), b=names.get(link.b, link.b)) for link in fabric.links)
    with Network(Fabric("long", fabric.hosts, switches, links), IdleSwitch) as network:
        no_trace.append(network.ledger.id)
        assert network.interface("top", "a_switch_with_a_long_name").name == f"{network.ledger.id}-top-1"
        assert len(network.interface("a_switch_with_a_long_name", "top").name) <= 15


def test_not_root_is_refused_before_anything_is_created() -> None:
    code = "import os; from inakit.topo.live.needs import check_machine; os.setuid(65534); check_machine()"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3]
    )
    assert "MachineError: emulating a network needs root: run the same command with sudo" in shown.stderr


def test_clean_dead_runs_spares_this_run(no_trace: list[str]) -> None:
    with Ledger.open() as ledger:
        no_trace.append(ledger.id)
        assert ledger.id not in clean_dead_runs()
        assert (ledger.folder / "owner").exists()


def test_namespace_is_left_on_errors() -> None:
    home = Path("/proc/thread-self/ns/net").readlink()
    with pytest.raises(OSError, match="setns"):
        set_namespace(-1)
    with pytest.raises(FileNotFoundError), inside(2**22 + 1):
        pytest.fail("entered the namespace of no process")
    assert Path("/proc/thread-self/ns/net").readlink() == home
