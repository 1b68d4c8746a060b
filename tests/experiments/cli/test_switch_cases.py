"""Small files of courses and of BMv2's world that once failed: `tests/experiments/cases`, by their commands."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from command import Answer, inakit
from scapy.utils import rdpcap

CASES = Path(__file__).resolve().parents[1] / "cases"
ROUTER = str(Path(__file__).resolve().parents[2] / "stf" / "programs" / "router.json")


def run_network(case: str, *lines: str, at: Path) -> Answer:
    """Start the network of a case, and give its command line these lines."""
    given = [part for line in lines for part in ("--execute", line)]
    return inakit("switch", "network", str(CASES / case), "--program", ROUTER, *given, at=at)


def replay(case: str, entries: str, packets: str, at: Path, program: str = ROUTER) -> Answer:
    """Replay the packets of a case at port 1."""
    folder = CASES / case
    given = ["--commands", str(folder / entries), "--in", f"1:{folder / packets}", "--output", "out"]
    return inakit("switch", "replay", program, *given, at=at)


@pytest.mark.root
@pytest.mark.beside
def test_hosts_of_p4_utils_have_the_addresses_of_their_file(tmp_path: Path) -> None:
    lines = (
        "h1 ip -c=never -br addr show h1-eth0",
        "h1 ip -c=never -br link show h1-eth0",
        "h2 ip -c=never -br addr show h2-eth0",
    )
    answer = run_network("p4app-host-ip-ignored/p4app.json", *lines, at=tmp_path)
    assert answer.code == 0, answer.error
    for said in ("192.168.10.52/24", "00:00:0a:00:00:99", "192.168.10.53/24"):
        assert said in answer.output + answer.error


@pytest.mark.root
@pytest.mark.beside
def test_names_that_are_long_for_linux_are_shortened_and_told(tmp_path: Path) -> None:
    answer = run_network(
        "network-long-names/topology.json", "links", "SRV_BLOCK_1 ip -c=never -br addr show eth0", at=tmp_path
    )
    assert answer.code == 0, answer.error
    assert "the interfaces of 'SW_SUPERVISOR_1' are SW_SUP_1-eth" in answer.error
    assert "eth0<->SW_SUP_1-eth1 (OK OK)" in answer.output + answer.error
    assert "10.0.1.1/24" in answer.output + answer.error


@pytest.mark.root
@pytest.mark.beside
def test_a_hosts_second_link_gets_its_next_port(tmp_path: Path) -> None:
    answer = run_network("two-links-of-a-host/topology.json", "links", at=tmp_path)
    assert answer.code == 0, answer.error
    assert "eth0<->s1-eth1 (OK OK)" in answer.output + answer.error
    assert "h1-eth1<->s2-eth1 (OK OK)" in answer.output + answer.error


def test_a_key_in_a_list_of_its_own_is_taken(tmp_path: Path) -> None:
    answer = replay("runtime-list-of-one", "s1-runtime.json", "in.pcap", at=tmp_path)
    assert answer.code == 0, answer.error
    assert len(rdpcap(str(tmp_path / "out" / "port2.pcap"))) == 1


def test_a_byte_order_mark_of_a_command_file_is_skipped(tmp_path: Path) -> None:
    answer = replay("bom", "commands.txt", "in.pcap", at=tmp_path)
    assert answer.code == 0, answer.error
    assert len(rdpcap(str(tmp_path / "out" / "port2.pcap"))) == 1


def test_packets_ten_seconds_apart_are_that_for_the_program(tmp_path: Path) -> None:
    clock = str(CASES / "replay-clock" / "clock.json")
    answer = replay("replay-clock", "commands.txt", "apart.pcap", at=tmp_path, program=clock)
    assert answer.code == 0, answer.error
    left = [bytes(packet) for packet in rdpcap(str(tmp_path / "out" / "port2.pcap"))]
    came_us = [int.from_bytes(packet[6:12], "big") for packet in left]
    assert [later - sooner for sooner, later in pairwise(came_us)] == [10_000_000] * 2
