"""Captures in virtual time: what scapy reads of a file, when each packet passed, and what is no part of it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scapy.utils import RawPcapReader

from inakit.topo.errors import OutputError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.topo.virtual.engine import PS_PER_S
from inakit.topo.virtual.virtual_network import Tap, VirtualNetwork

pytestmark = pytest.mark.compiler

FRAME = np.dtype([("number", np.uint32), ("rest", np.uint8, 96)])
"""100 bytes: 800 ns at 1 Gbit/s."""
NS = PS_PER_S // 10**9


@pytest.fixture
def network() -> Iterator[VirtualNetwork]:
    """Hosts a and b at a switch that does nothing; links of 1 Gbit/s and 50 ns; two packets may wait at the switch."""
    switch = Switch("s", 1, contiguous_pipelines(3, 1))
    links = tuple(Link(host, "s", 0, port, 1e9, 1e9, 50e-9) for port, host in ((1, "a"), (2, "b")))
    made = VirtualNetwork(Fabric("pair", (Host("a"), Host("b")), (switch,), links), {}, FRAME, queue_packets=2)
    yield made
    made.engine.close()


def send(network: VirtualNetwork, node: str, peer: str, *numbers: int) -> None:
    frames = np.zeros(len(numbers), FRAME)
    frames["number"] = numbers
    links = np.full(len(numbers), network.link_of[node, peer], np.uint32)
    network.engine.send(links, np.full(len(numbers), FRAME.itemsize, np.uint32), frames)


def packets(file: Path) -> list[tuple[int, int]]:
    """When each packet of a file passed, in nanoseconds, and its number."""
    with RawPcapReader(str(file)) as reader:
        assert (reader.nano, reader.linktype) == (True, 1)
        found = [(10**9 * head.sec + head.usec, data) for data, head in reader]
    assert all(len(data) == FRAME.itemsize for _, data in found)
    return [(at, int(np.frombuffer(data, FRAME)["number"][0])) for at, data in found]


def test_both_directions_are_in_the_order_of_their_times(network: VirtualNetwork, tmp_path: Path) -> None:
    """A packet leaves when its last bit does, and arrives when that has come."""
    file = tmp_path / "new" / "s-1.pcap"
    with Tap(network, "s", "a", file) as tap:
        send(network, "a", "s", 1, 2)
        network.engine.run(100 * NS)
        send(network, "s", "a", 11, 12)
        network.engine.run(10_000 * NS)
    assert packets(file) == [(850, 1), (900, 11), (1650, 2), (1700, 12)]
    assert tap.packets == 4


def test_only_that_port_is_in_the_file_and_only_while_the_tap_is_open(network: VirtualNetwork, tmp_path: Path) -> None:
    send(network, "s", "a", 1)
    network.engine.run(100 * NS)
    with Tap(network, "s", "a", tmp_path / "a.pcap"):
        send(network, "s", "a", 2)
        send(network, "s", "b", 3)
        network.engine.run(2_000 * NS)
    send(network, "s", "a", 4)
    network.engine.run(4_000 * NS)
    assert packets(tmp_path / "a.pcap") == [(1600, 2)]


def test_what_is_dropped_or_still_waits_is_not_in_the_file(network: VirtualNetwork, tmp_path: Path) -> None:
    with Tap(network, "s", "a", tmp_path / "a.pcap") as tap:
        send(network, "s", "a", 1, 2, 3, 4, 5)
        network.engine.run(1_600 * NS)
    assert [number for _, number in packets(tmp_path / "a.pcap")] == [1, 2]
    assert tap.packets == 2
    assert network.engine.links["dropped"].sum() == 2


def test_what_is_lost_on_a_link_has_left_its_port(network: VirtualNetwork, tmp_path: Path) -> None:
    with Tap(network, "s", "a", tmp_path / "near.pcap"), Tap(network, "s", "b", tmp_path / "far.pcap"):
        send(network, "s", "a", 1)
        send(network, "b", "s", 2)
        for host in ("a", "b"):
            network.set_link("s", host, up=False)
        network.engine.run(2_000 * NS)
    assert packets(tmp_path / "near.pcap") == [(800, 1)]
    assert packets(tmp_path / "far.pcap") == []


def test_times_beyond_seconds_of_32_bits_of_nanoseconds(network: VirtualNetwork, tmp_path: Path) -> None:
    network.engine.run(5 * PS_PER_S)
    with Tap(network, "s", "a", tmp_path / "a.pcap"):
        send(network, "s", "a", 1)
        network.engine.run(6 * PS_PER_S)
    assert packets(tmp_path / "a.pcap") == [(5_000_000_800, 1)]


def test_a_file_that_cannot_be_written_to_its_end_is_an_error(network: VirtualNetwork, tmp_path: Path) -> None:
    """This process may write no file of more than 1,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    tap = Tap(network, "s", "a", tmp_path / "a.pcap")
    for number in range(20):
        send(network, "s", "a", number)
        network.engine.run(network.engine.now_ps + 1000 * NS)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        with pytest.raises(OutputError, match=r"a\.pcap: File too large"):
            tap.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_folder_that_cannot_be_made_is_an_error(network: VirtualNetwork, tmp_path: Path) -> None:
    (tmp_path / "pcap").write_text("a file")
    with pytest.raises(OutputError, match="choose a folder"):
        Tap(network, "s", "a", tmp_path / "pcap" / "a.pcap")


def test_a_file_is_written_while_time_passes(network: VirtualNetwork, tmp_path: Path) -> None:
    with Tap(network, "s", "a", tmp_path / "a.pcap") as tap:
        send(network, "a", "s", *range(1000))
        network.engine.run(10**6 * NS)
        assert (tmp_path / "a.pcap").stat().st_size > 100_000
    assert [number for _, number in packets(tmp_path / "a.pcap")] == list(range(1000))
    assert tap.packets == 1000
