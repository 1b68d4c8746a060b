"""One recording of the corpus, as a line of JSON has it.

Packets are in hexadecimal; registers and counters are those that are not 0, by index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from comparison import differences
from numpy.typing import NDArray
from sequences import COUNTERS, PORTS, PacketSwitch, Seen, Step

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from inakit.switch.program.bmv2_json import read_program
from inakit.traffic.wire.packet_format import PROGRAM

CLOCKS = {"InaEgress.marks.counted_at"}
"""Registers that hold times, which no two switches have in common."""
REGISTERS = tuple(name for name in read_program(PROGRAM).registers if name not in CLOCKS)
SIZES = {array.name: array.size for array in read_program(PROGRAM).registers.values()} | {
    name: read_program(PROGRAM).counter(name).size for name in COUNTERS
}


@dataclass(frozen=True)
class Recording:
    """A sequence of packets, and what simple_switch made of it."""

    name: str
    entries: SwitchEntries
    steps: tuple[Step, ...]
    seen: Seen

    def replay(self, switch: PacketSwitch) -> str:
        """A line for each thing that `switch` does otherwise than simple_switch did."""
        return "\n".join(differences(self.seen, switch.run(self.entries, self.steps, REGISTERS)))


def recording_to_json(recording: Recording) -> dict[str, Any]:
    """The document of a recording."""
    entries, seen = recording.entries, recording.seen
    return {
        "name": recording.name,
        "tables": [[each.table, each.key, each.action, each.params] for each in entries.tables],
        "groups": [[each.group, each.ports, each.more] for each in entries.groups],
        "presets": [[each.register, each.index, each.value] for each in entries.registers],
        "steps": [[port, packet.hex()] for port, packet in recording.steps],
        "sent": {port: [packet.hex() for packet in packets] for port, packets in seen.sent.items() if packets},
        "registers": {name: kept for name, values in seen.registers.items() if (kept := to_sparse(values))},
        "counters": {name: [to_sparse(values) for values in both] for name, both in seen.counters.items()},
    }


def recording_from_json(document: Mapping[str, Any]) -> Recording:
    """The recording that a document describes."""
    entries = SwitchEntries(
        "s1",
        tuple(
            TableEntry(table, tuple(key), action, tuple(params)) for table, key, action, params in document["tables"]
        ),
        tuple(group_from_json(*group) for group in document["groups"]),
        tuple(RegisterPreset(*preset) for preset in document["presets"]),
    )
    steps = tuple(Step(port, bytes.fromhex(packet)) for port, packet in document["steps"])
    return Recording(document["name"], entries, steps, seen_from_json(document))


def group_from_json(group: int, ports: Sequence[int], more: Sequence[Sequence[int]] = ()) -> MulticastGroup:
    """A multicast group; documents without `more` mean none."""
    return MulticastGroup(group, tuple(ports), tuple((replica, port) for replica, port in more))


def seen_from_json(document: Mapping[str, Any]) -> Seen:
    """What simple_switch made of the packets, with zeros where the document has nothing."""
    sent = {int(port): [bytes.fromhex(packet) for packet in packets] for port, packets in document["sent"].items()}
    registers = {name: from_sparse(document["registers"].get(name, {}), SIZES[name]) for name in REGISTERS}
    counters = {
        name: (from_sparse(packets, SIZES[name]), from_sparse(octets, SIZES[name]))
        for name, (packets, octets) in document["counters"].items()
    }
    return Seen({port: sent.get(port, []) for port in PORTS}, registers, counters)


def to_sparse(values: NDArray[np.uint64]) -> dict[int, int]:
    """The values that are not 0, by index."""
    return {int(index): int(values[index]) for index in np.flatnonzero(values)}


def from_sparse(kept: Mapping[str, int], size: int) -> NDArray[np.uint64]:
    """All values, those that are not in `kept` 0."""
    values = np.zeros(size, np.uint64)
    for index, value in kept.items():
        values[int(index)] = value
    return values
