"""The program served.p4 with its packets: `kind` names the table that a packet asks, `key` is what it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.entries import KeyPart, TableEntry
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program

SERVED = Path(__file__).parents[1] / "programs" / "doors" / "served.json"
INGRESS = "ServedIngress."
ETHERNET = bytes.fromhex("02 00 00 00 00 02 02 00 00 00 00 01")
KINDS = (
    "exact_match",
    "longest_prefix",
    "masked",
    "in_range",
    "maybe",
    "given",
    "counting",
    "metering",
    "ageing",
    "shared",
    "chosen",
    "keyless",
)


def asking(table: str, key: int, value: int = 0, ethertype: int = 0x88B5) -> bytes:
    """A packet that asks `table` for `key`."""
    head = bytes([KINDS.index(table)]) + key.to_bytes(4, "big") + value.to_bytes(2, "big")
    return ETHERNET + ethertype.to_bytes(2, "big") + head + bytes(8)


@dataclass(frozen=True)
class Answer:
    """What a packet says that has left: the port, its value, and what its queue was like."""

    port: int
    value: int
    queued: int
    left: int
    waited_us: int


def answer_of(port: int, packet: bytes) -> Answer:
    """What a packet says that has left by `port`."""
    numbers = (packet[19:21], packet[21:23], packet[23:25], packet[25:29])
    return Answer(port, *(int.from_bytes(number, "big") for number in numbers))


def entry(table: str, key: tuple[KeyPart, ...], port: int, priority: int | None = None) -> TableEntry:
    """An entry of `table` by which packets leave by `port`."""
    action = {"counting": "counted_send", "metering": "metered_send"}.get(table, "send")
    return TableEntry(INGRESS + table, key, INGRESS + action, (port,), priority)


class Served:
    """An interpreted switch that runs served.p4, and its control plane; time passes only by `pass_us`."""

    def __init__(self) -> None:
        self.time_us = 0
        self.switch = InterpretedSwitch(read_program(SERVED), clock=lambda: self.time_us)
        self.control = ControlPlane(self.switch.state)

    def pass_us(self, duration_us: int) -> None:
        """Let time pass."""
        self.time_us += duration_us

    def ask(self, table: str, key: int, value: int = 0, port: int = 1) -> list[Answer]:
        """What leaves when a packet asks `table` for `key`."""
        return [answer_of(*sent) for sent in self.switch.inject(port, asking(table, key, value))]

    def ports(self, table: str, key: int, value: int = 0) -> list[int]:
        """By which ports such a packet leaves."""
        return [answer.port for answer in self.ask(table, key, value)]
