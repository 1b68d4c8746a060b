"""Pcaps played into one switch, and the pcaps of what leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import PcapNgWriter, rdpcap, wrpcap
from single_targets import EVERYWHERE, PROGRAMS
from small_programs import PROGRAMS as SMALL_PROGRAMS
from typer.testing import CliRunner

from inakit.experiments.cli.app import app
from inakit.switch.testing.pcaps import replay
from inakit.topo.errors import InputError

COMMANDS = """
table_add RouterIngress.ipv4_lpm RouterIngress.forward 10.0.0.0/8 => 02:00:00:00:00:02 2
table_add RouterIngress.ipv4_lpm RouterIngress.forward 10.1.0.0/16 => 02:00:00:00:00:03 3
"""


def frame(destination: str, seconds: float) -> Packet:
    packet = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:09") / IP(dst=destination, src="1.1.1.1", ttl=9)
    packet.time = seconds
    return packet


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    path = tmp_path / "commands.txt"
    path.write_text(COMMANDS)
    return path


@pytest.mark.parametrize("target", EVERYWHERE)
def test_packets_go_in_by_time_and_keep_it(target: str, commands: Path, tmp_path: Path) -> None:
    one, two, out = tmp_path / "one.pcap", tmp_path / "two.pcapng", tmp_path / "out"
    wrpcap(str(one), [frame("10.0.0.1", 1.5), frame("10.1.0.1", 3.25), frame("11.0.0.1", 4)])
    writer = PcapNgWriter(str(two))
    writer.write(frame("10.0.0.2", 2.125))
    writer.close()
    arguments = [
        "--commands",
        str(commands),
        "--in",
        f"1:{one}",
        "--in",
        f"4:{two}",
        "--output",
        str(out),
        "--target",
        target,
    ]
    done = CliRunner().invoke(
        app, ["switch", "replay", str(PROGRAMS / "router.json"), *arguments], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    left = {path.name: [(float(p.time), p[IP].dst, p[IP].ttl) for p in rdpcap(str(path))] for path in out.iterdir()}
    assert left == {"port2.pcap": [(1.5, "10.0.0.1", 8), (2.125, "10.0.0.2", 8)], "port3.pcap": [(3.25, "10.1.0.1", 8)]}
    assert [line.split() for line in done.output.splitlines()[:2]] == [
        ["port", "1:", "3", "arrived,", "0", "left"], ["port", "2:", "0", "arrived,", "2", "left"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "reason"),
    {"1": "PORT:FILE", "x:f": "PORT:FILE", "511:f": "ports are 0 to 510", "1:absent.pcap": "absent.pcap"}.items(),
)
def test_what_is_no_pcap_of_a_port_leaves_nothing_behind(given: str, reason: str, tmp_path: Path) -> None:
    arguments = ["--in", given, "--output", str(tmp_path / "out"), "--target", "interpreted"]
    with pytest.raises(InputError, match=reason):
        CliRunner().invoke(app, ["switch", "replay", str(PROGRAMS / "router.json"), *arguments], catch_exceptions=False)
    assert not (tmp_path / "out").exists()


def test_a_pcap_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(b"no pcap at all, whatever its name says")
    arguments = ["--in", f"1:{broken}", "--output", str(tmp_path / "out"), "--target", "interpreted"]
    with pytest.raises(InputError, match=r"broken\.pcap.*expected a pcap"):
        CliRunner().invoke(app, ["switch", "replay", str(PROGRAMS / "router.json"), *arguments], catch_exceptions=False)
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(InputError, match="choose a new or empty folder"):
        CliRunner().invoke(
            app,
            ["switch", "replay", str(PROGRAMS / "router.json"), "--in", "1:x", "--output", str(tmp_path)],
            catch_exceptions=False,
        )


@pytest.mark.parametrize("target", ["fast", "interpreted", "traced"])
def test_programs_have_the_time_of_the_packets(target: str, tmp_path: Path) -> None:
    given, out = tmp_path / "in.pcap", tmp_path / "out"
    empty = Ether(dst="02:00:00:00:00:01", type=0) / bytes(24)
    times_s = (1000.000001, 1010, 1009, 1030.5)
    frames = [empty.copy() for _ in times_s]
    for one, time_s in zip(frames, times_s, strict=True):
        one.time = time_s
    wrpcap(str(given), frames)
    replay(SMALL_PROGRAMS / "times.json", None, {1: given}, out, target)
    heads = [bytes(packet)[14:] for packet in rdpcap(str(out / "port1.pcap"))]
    came_us = [int.from_bytes(head[:6], "big") for head in heads]
    assert [us - came_us[0] for us in came_us] == [0, 9_999_999, 9_999_999, 30_499_999], "time never goes back"
    assert came_us[0] > 0, "as on BMv2, none comes when the switch starts"
    left_and_queued = [(int.from_bytes(head[6:12], "big"), int.from_bytes(head[12:16], "big")) for head in heads]
    assert left_and_queued == [(us, us) for us in came_us]
    assert [float(packet.time) for packet in rdpcap(str(out / "port1.pcap"))] == list(times_s)


@pytest.mark.parametrize("target", ["fast", "interpreted"])
def test_meters_fill_between_packets_of_a_pcap(target: str, tmp_path: Path) -> None:
    given, commands, out = tmp_path / "in.pcap", tmp_path / "commands.txt", tmp_path / "out"
    commands.write_text("meter_set_rates rate 0 0.000001:1 0.000001:1")
    frames = [Ether(dst="02:00:00:00:00:01", type=0) / bytes(4) for _ in range(4)]
    for one, time_s in zip(frames, (5, 5.1, 7.2, 7.3), strict=True):
        one.time = time_s
    wrpcap(str(given), frames)
    replay(SMALL_PROGRAMS / "model" / "meter.json", commands, {1: given}, out, target)
    (left,) = out.iterdir()
    assert [bytes(packet)[17] for packet in rdpcap(str(left))] == [0, 2, 0, 2], "a token a second, and one at most"
