"""The packet format as scapy, NumPy and Wireshark see it is that of the compiled P4 program."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import wrpcap

from inakit.topo.errors import InputError
from inakit.traffic.wire.dissector import dissector
from inakit.traffic.wire.packet_format import (
    BARE_FRAME,
    FRAGMENT,
    FRAME,
    PROGRAM,
    UDP_PORT,
    Event,
    Flag,
    Frames,
    Kind,
    constant,
    constants,
    header,
    new_frames,
)
from inakit.traffic.wire.scapy_layers import INA, Values, template_frames

SOURCE_MAC, TARGET_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
SOURCE_IP, TARGET_IP = "10.0.0.1", "10.0.0.2"


def random_frames(count: int, seed: int) -> Frames:
    """Gradients whose every INA field and value is random."""
    rng = np.random.default_rng(seed)
    frames = new_frames(count, src_mac=SOURCE_MAC, dst_mac=TARGET_MAC, src_ip=SOURCE_IP, dst_ip=TARGET_IP)
    frames["ina"] = np.frombuffer(rng.bytes(count * FRAME["ina"].itemsize), FRAME["ina"])
    frames["ina"]["kind"] = Kind.GRADIENT
    frames["values"] = rng.integers(-(2**31), 2**31, frames["values"].shape)
    return frames


def scapy_packet(**fields: Any) -> Packet:
    return (
        Ether(src=SOURCE_MAC, dst=TARGET_MAC)
        / IP(src=SOURCE_IP, dst=TARGET_IP, id=0, ttl=64)
        / UDP(sport=UDP_PORT, chksum=0)
        / INA(**fields)
    )


def test_sizes_on_the_wire() -> None:
    assert (FRAME.itemsize, BARE_FRAME.itemsize) == (326, 70)
    assert (FRAGMENT.values, FRAGMENT.wire_bytes) == (64, 326)


def test_the_port_is_the_one_that_the_parser_selects() -> None:
    states = json.loads(PROGRAM.read_text())["parsers"][0]["parse_states"]
    selected = [t["value"] for s in states for t in s["transitions"] if t["next_state"] == "ina"]
    assert [int(value, 16) for value in selected] == [UDP_PORT]


@pytest.mark.parametrize(("enum", "prefix"), [(Kind, "KIND_"), (Flag, "FLAG_"), (Event, "EVENT_")])
def test_every_constant_of_the_program_has_a_name_here(
    enum: type[Kind] | type[Flag] | type[Event], prefix: str
) -> None:
    of_program = {name.removeprefix(prefix): n for name, n in constants().items() if name.startswith(prefix)}
    assert {member.name: member.value for member in enum} == of_program


def test_a_missing_constant_is_named() -> None:
    with pytest.raises(InputError, match=r"ina\.p4 defines no constant 'KIND_SURPRISE'"):
        constant("KIND_SURPRISE")


def test_a_missing_header_is_named() -> None:
    with pytest.raises(InputError, match=r"ina\.json has no header type 'vxlan_t'"):
        header("vxlan_t")


def test_scapy_reads_what_numpy_writes() -> None:
    for frame in random_frames(20, seed=1):
        packet = Ether(frame.tobytes())
        assert packet[INA].fields == {name: frame["ina"][name] for name in FRAME["ina"].names or ()}
        assert list(packet[Values].fields.values()) == frame["values"].tolist()


def test_numpy_reads_what_scapy_writes() -> None:
    values = {f"v{i}": (-1) ** i * i * 10_000_019 for i in range(FRAGMENT.values)}
    packet = scapy_packet(kind=Kind.RESULT, job=3, tree=4, seq=2**32 - 1, bitmap=2**63, workers=9) / Values(**values)
    (frame,) = np.frombuffer(bytes(packet), FRAME)
    expected = new_frames(1, src_mac=SOURCE_MAC, dst_mac=TARGET_MAC, src_ip=SOURCE_IP, dst_ip=TARGET_IP)[0]
    assert [frame[part].tobytes() for part in ("ethernet", "ipv4", "udp")] == [
        expected[part].tobytes() for part in ("ethernet", "ipv4", "udp")
    ]
    assert frame["ina"].tolist() == (Kind.RESULT, 0, 3, 4, 0, 2**32 - 1, 0, 2**63, 9, 0, 0)
    assert frame["values"].tolist() == list(values.values())


@pytest.mark.parametrize("capable", [False, True])
def test_a_template_of_scapy_is_the_frame_that_numpy_makes(capable: bool) -> None:
    ways: dict[str, Any] = {"src_mac": SOURCE_MAC, "dst_mac": TARGET_MAC, "src_ip": SOURCE_IP, "dst_ip": TARGET_IP}
    ina = {"kind": Kind.GRADIENT, "job": 3, "tree": 4, "label": 5, "workers": 1, "priority": 2}
    made = template_frames(3, **ways, ina=ina, capable=capable)
    assert made.tobytes() == new_frames(3, **ways, ina=ina, capable=capable).tobytes()
    made["values"] = 7  # templates are filled in


def test_a_packet_of_scapy_tells_itself_in_one_line() -> None:
    packet = scapy_packet(kind=Kind.GRADIENT, flags=int(Flag.ECN | Flag.PARTIAL), job=1, tree=2, label=3, seq=17)
    fields: dict[str, Any] = {f"v{i}": -i for i in range(FRAGMENT.values)}
    told = "INA gradient job 1 tree 2 label 3 seq 17 workers 0 ECN+PARTIAL"
    ways = f"Ether / {IP(src=SOURCE_IP, dst=TARGET_IP, proto=17).summary()} / UDP"  # `17` where /etc/protocols lacks
    assert (packet / Values(**fields)).summary() == f"{ways} / {told} / 64 values 0 -1 -2 -3 ..."
    assert packet.summary() == f"{ways} / {told}"


def test_a_notice_has_no_values() -> None:
    packet = Ether(bytes(scapy_packet(kind=Kind.NOTICE, flags=int(Flag.OVERFLOW))))
    assert len(packet) == BARE_FRAME.itemsize
    assert Values not in packet
    assert str(packet[INA].flags) == "OVERFLOW"


def test_no_frames_is_a_batch_too() -> None:
    frames = new_frames(0, src_mac=SOURCE_MAC, dst_mac=TARGET_MAC, src_ip=SOURCE_IP, dst_ip=TARGET_IP)
    assert frames.tobytes() == b""


def tshark(pcap: Path, script: Path, *arguments: str) -> list[str]:
    command = ["tshark", "-n", "-X", f"lua_script:{script}", "-r", str(pcap), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "Lua" not in done.stderr, f"{done.stderr}\n{script.read_text()}"
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_wireshark_shows_the_same_fields(tmp_path: Path) -> None:
    frames = random_frames(5, seed=2)
    script, pcap = tmp_path / "ina.lua", tmp_path / "ina.pcap"
    script.write_text(dissector())
    wrpcap(str(pcap), [Ether(frame.tobytes()) for frame in frames])
    names = [*(FRAME["ina"].names or ()), "v0", "v63"]
    shown = tshark(pcap, script, "-T", "fields", *(part for name in names for part in ("-e", f"ina.{name}")))
    assert [[int(cell, 0) for cell in row.split("\t")] for row in shown] == [
        [*map(int, frame["ina"].tolist()), int(frame["values"][0]), int(frame["values"][63])] for frame in frames
    ]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_wireshark_summarises_a_notice(tmp_path: Path) -> None:
    script, pcap = tmp_path / "ina.lua", tmp_path / "ina.pcap"
    script.write_text(dissector())
    wrpcap(str(pcap), [scapy_packet(kind=Kind.NOTICE, flags=int(Flag.OVERFLOW), job=1, tree=2, seq=7)])
    (line,) = tshark(pcap, script)
    assert re.search(r"INA 70 notice job 1 tree 2 label 0 seq 7 workers 0", line)
    (flags,) = tshark(pcap, script, "-T", "fields", "-e", "ina.flags.overflow", "-e", "ina.flags.partial")
    assert [cell in ("1", "True") for cell in flags.split("\t")] == [True, False]
