"""What a running network says of itself: found by others while it is up, and only then."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inakit.topo.errors import InputError, RunError
from inakit.topo.fabric.generators import aro_figure1
from inakit.topo.fabric.variations import with_capacity
from inakit.topo.live import ledger
from inakit.topo.live.ledger import (
    FILE,
    JSON,
    HostFacts,
    PortFacts,
    RunningNetwork,
    SwitchFacts,
    find_network,
    running_networks,
    start_time,
)

FOUND = RunningNetwork(
    id="ab3d",
    fabric="small",
    owner=os.getpid(),
    endpoint_processors=(0,),
    switch_processors=(1,),
    hosts={"h1": HostFacts(4711, "eth0")},
    switches={"leaf1": SwitchFacts((PortFacts(1, "ab3d-leaf1-1", "h1", 2e7, 1e7),), {"target": "fast", "maps": [7]})},
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for ledgers that other runs of this machine do not share."""
    monkeypatch.setattr(ledger, "ROOT", tmp_path)
    yield tmp_path


def place(root: Path, run: str, owner: int) -> Path:
    """The folder of a network that is up, of the process `owner`."""
    folder = root / run
    folder.mkdir()
    (folder / "owner").write_text(f"{owner} {start_time(owner) or 1}\n")
    (folder / FILE).write_bytes(JSON.dump_json(RunningNetwork(**{**vars(FOUND), "id": run})))
    return folder


def test_what_is_written_is_read(root: Path) -> None:
    folder = place(root, "ab3d", os.getpid())
    assert find_network() == find_network("ab3d") == FOUND
    assert FOUND.up
    (folder / FILE).unlink()
    assert not FOUND.up
    assert running_networks() == []


def test_no_network_says_how_to_start_one(root: Path) -> None:
    place(root, "dead", 2**22 + 1)
    with pytest.raises(RunError, match="no network is running: start one, such as `sudo make emulate`"):
        find_network()


def test_of_several_networks_one_must_be_chosen(root: Path) -> None:
    place(root, "aaaa", os.getpid())
    place(root, "bbbb", os.getpid())
    with pytest.raises(InputError, match=r"2 networks are running: aaaa \(small, process \d+\), bbbb .*--run ID"):
        find_network()
    assert find_network("bbbb").id == "bbbb"
    with pytest.raises(InputError, match="unknown running network 'bbbc': did you mean 'bbbb'"):
        find_network("bbbc")


def test_unknown_switches_and_ports_are_named() -> None:
    assert FOUND.port("leaf1", 1).interface == "ab3d-leaf1-1"
    with pytest.raises(InputError, match=r"unknown switch of network 'ab3d' \(small\) 'leaf2': did you mean 'leaf1'"):
        FOUND.switch("leaf2")
    with pytest.raises(InputError, match=r"switch 'leaf1' has no link at port 2: it has 1 \(to h1\)"):
        FOUND.port("leaf1", 2)


@pytest.mark.root
def test_a_network_says_what_it_is_while_it_is_up() -> None:
    pytest.importorskip("mininet", reason="needs Mininet")
    from mininet.node import Switch as MininetSwitch  # noqa: PLC0415, for this test alone

    from inakit.topo.live.network import Network  # noqa: PLC0415

    class SpeakingSwitch(MininetSwitch):  # type: ignore[misc]
        """A switch that forwards nothing."""

        def start(self, _controllers: list[object]) -> None:
            self.started = True

        def handle(self) -> dict[str, Any]:
            return {"speaks for": self.name}

    fabric = aro_figure1()
    with Network(fabric, SpeakingSwitch) as network:
        found = find_network(network.ledger.id)
        assert (found.fabric, found.owner, found.up) == (fabric.name, os.getpid(), True)
        assert {name: host.pid for name, host in found.hosts.items()} == {n: h.pid for n, h in network.hosts.items()}
        assert {name: switch.handle for name, switch in found.switches.items()} == {
            name: {"speaks for": name} for name in network.switches
        }
        ports = {(name, port.peer): port for name, switch in found.switches.items() for port in switch.ports}
        assert set(ports) == {(node, peer) for node, peer in fabric.port_numbers if node in network.switches}
        for (name, peer), port in ports.items():
            assert port.interface == network.interface(name, peer).name
            assert port.number == fabric.port_numbers[name, peer]
            assert (port.out_bps, port.in_bps) == (fabric.capacities_bps[name, peer], fabric.capacities_bps[peer, name])
        network.set_capacities(with_capacity(fabric, 5e6))
        now = find_network(network.ledger.id).switches.values()
        assert {rate for switch in now for port in switch.ports for rate in (port.out_bps, port.in_bps)} == {5e6}
    assert not found.up
    assert found.id not in [other.id for other in running_networks()]
