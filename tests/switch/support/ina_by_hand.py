"""INA packets written by hand, from the description of the protocol alone, and the entries of one small tree."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program

INA = Path(__file__).resolve().parents[3] / "p4" / "build" / "ina.json"
CONTROL = "InaIngress"
GRADIENT, RESULT, NOTICE = 1, 2, 3
ECN, COLLISION, OVERFLOW, PARTIAL, RETRANSMITTED = 1, 2, 4, 8, 16
PS = 0x0A000001


def ina_program() -> Program:
    """The program ina.p4."""
    return read_program(INA)


def ina_packet(
    label: int, *, kind: int = GRADIENT, flags: int = 0, job: int = 1, tree: int = 1, seq: int = 0, slot: int = 0,
    bitmap: int = 0, workers: int = 1, values: Sequence[int] = range(64), destination: int = PS, udp_port: int = 0x494E,
) -> bytes:  # fmt: skip
    """A packet of the INA protocol, as the P4 program describes it."""
    body = struct.pack(">BBHHHIIQHBB", kind, flags, job, tree, label, seq, slot, bitmap, workers, 0, 0)
    if kind != NOTICE:
        body += struct.pack(">64i", *values)
    udp = struct.pack(">HHHH", 1, udp_port, 8 + len(body), 0) + body
    return ipv4_packet(udp, destination)


def ipv4_packet(payload: bytes, destination: int, protocol: int = 17) -> bytes:
    """An Ethernet frame with an IPv4 packet."""
    head = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0, 0x0A000002, destination)
    return ethernet_packet(head + payload, 0x0800)


def ethernet_packet(payload: bytes, ethertype: int) -> bytes:
    """An Ethernet frame."""
    return b"\2\0\0\0\0\1" + b"\2\0\0\0\0\2" + struct.pack(">H", ethertype) + payload


def ina_header(packet: bytes) -> dict[str, int]:
    """The fields of a packet's INA header."""
    names = ("kind", "flags", "job", "tree", "label", "seq", "slot", "bitmap", "workers", "priority", "part")
    return dict(zip(names, struct.unpack(">BBHHHIIQHBB", packet[42:70]), strict=True))


def ina_values(packet: bytes) -> list[int]:
    """The values of a packet."""
    return list(struct.unpack(">64i", packet[70:326]))


def entry(table: str, key: tuple[int, ...], action: str, *params: int) -> TableEntry:
    """An entry of the ingress of ina.p4, by short names."""
    return TableEntry(f"{CONTROL}.{table}", key, f"{CONTROL}.{action}", params)


def small_tree(slots: int = 16, pipelines: Sequence[int] = (0, 0, 0, 1), policy: int = 0) -> SwitchEntries:
    """Workers 2, 3 at ports 1, 2 sum as label 9 towards port 3; worker 4 is at port 4; the PS is behind port 3.

    Tree 1 of job 1 sums 2 and 3 in the pipeline of port 1. Label 5, behind port 2, is a descendant further down.
    """
    tables = [entry("pipeline", (port,), "set_pipeline", p) for port, p in enumerate(pipelines, start=1)]
    for port, label in ((1, 2), (2, 3), (4, 4), (2, 5)):
        tables.append(entry("admission", (port, GRADIENT, 1, 1, label), "admit"))
    tables += [entry("admission", (3, kind, 1, 1, 0), "admit") for kind in (RESULT, NOTICE)]
    for label, child in ((2, 1), (3, 2)):
        key = (pipelines[0], 1, 1, label)
        tables.append(entry("aggregation", key, "aggregate", child, 3, 5, slots, 9, slots, policy))
    tables.append(entry("aggregation", (pipelines[0], 1, 1, 5), "aggregate", 0, 3, 5, slots, 9, slots, policy))
    tables += [entry("forward", (1, 1, label), "send", 3) for label in (2, 3, 4, 5, 9)]
    tables.append(entry("ipv4_route", (PS,), "send", 3))
    tables.append(entry("results", (1, 1), "replicate", 7))
    return SwitchEntries("s1", tuple(tables), (MulticastGroup(7, (4, 2, 1)),))


def received(switch: KernelSwitch | InProcessSwitch) -> int:
    """Packets that have entered a switch of ina.p4."""
    return int(switch.read_counter(f"{CONTROL}.received")[0].sum())
