"""Pcaps played into one switch, and the pcaps of what leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import PcapNgWriter, rdpcap, wrpcap
from single_targets import EVERYWHERE, PROGRAMS
from typer.testing import CliRunner

from experiments.cli.app import app
from topo.errors import InputError

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
        "--out",
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
    arguments = ["--in", given, "--out", str(tmp_path / "out"), "--target", "interpreted"]
    with pytest.raises(InputError, match=reason):
        CliRunner().invoke(app, ["switch", "replay", str(PROGRAMS / "router.json"), *arguments], catch_exceptions=False)
    assert not (tmp_path / "out").exists()


def test_a_pcap_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(b"no pcap at all, whatever its name says")
    arguments = ["--in", f"1:{broken}", "--out", str(tmp_path / "out"), "--target", "interpreted"]
    with pytest.raises(InputError, match=r"broken\.pcap.*expected a pcap"):
        CliRunner().invoke(app, ["switch", "replay", str(PROGRAMS / "router.json"), *arguments], catch_exceptions=False)
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(InputError, match="choose a new or an empty folder"):
        CliRunner().invoke(
            app,
            ["switch", "replay", str(PROGRAMS / "router.json"), "--in", "1:x", "--out", str(tmp_path)],
            catch_exceptions=False,
        )
