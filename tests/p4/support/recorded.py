"""The corpus: what simple_switch answered to sequences of packets, kept as data for machines that lack it.

`corpus/bmv2.jsonl.xz` has one JSON document a line: first the versions, then a sequence each. Packets are in
hexadecimal; registers and counters are those that are not 0, by index.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from comparison import differences
from numpy.typing import NDArray
from sequences import COUNTERS, PORTS, PacketSwitch, Seen, Step

from switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from switch.program.read import read_program
from traffic.wire.packet_format import PROGRAM

FILE = Path(__file__).parents[1] / "corpus" / "bmv2.jsonl.xz"
TOOLS = {"simple_switch": "simple_switch", "p4c": "p4c-bm2-ss"}
REGISTERS = tuple(read_program(PROGRAM).registers)
SIZES = {array.name: array.size for array in read_program(PROGRAM).registers.values()} | {
    name: read_program(PROGRAM).counter(name).size for name in COUNTERS
}


@dataclass(frozen=True)
class Recording:
    """A sequence, and what simple_switch made of it."""

    name: str
    entries: SwitchEntries
    steps: tuple[Step, ...]
    seen: Seen

    def replay(self, switch: PacketSwitch) -> str:
        """What `switch` does otherwise than simple_switch did, a line for each thing."""
        return "\n".join(differences(self.seen, switch.run(self.entries, self.steps, REGISTERS)))


class Corpus(NamedTuple):
    """Recordings, and the versions of the program and of the tools that they were made with."""

    versions: dict[str, str]
    recordings: list[Recording]


class Recorder:
    """A switch that remembers what it was asked and what it answered, under the names that `name` gives."""

    def __init__(self, switch: PacketSwitch, name: Callable[[], str]) -> None:
        self.switch = switch
        self.name = name
        self.recordings: list[Recording] = []

    def run(self, entries: SwitchEntries, steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """As the switch does; what is remembered has all registers."""
        seen = self.switch.run(entries, steps, REGISTERS)
        name = f"{len(self.recordings)}: {self.name()}"
        self.recordings.append(Recording(name, entries, tuple(steps), seen))
        return seen._replace(registers={register: seen.registers[register] for register in registers})

    def write(self) -> None:
        """Make what was recorded the corpus."""
        lines = [versions(), *map(recording_to_json, self.recordings)]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_corpus() -> Corpus:
    head, *lines = map(json.loads, lzma.decompress(FILE.read_bytes()).decode().splitlines())
    return Corpus(head, [recording_from_json(line) for line in lines])


# ---- versions ----------------------------------------------------------------------------------


def program_fingerprint() -> str:
    return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()


def versions() -> dict[str, str]:
    return {"program_sha256": program_fingerprint()} | {name: version(tool) for name, tool in TOOLS.items()}


def version(tool: str) -> str:
    """What `tool` says of itself: its number, and of which source it was built where it says that."""
    done = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True, timeout=60)
    found = re.search(r"\d+(\.\d+)+.*", done.stdout + done.stderr)
    assert found, done
    return found[0].strip()


# ---- JSON --------------------------------------------------------------------------------------


def recording_to_json(recording: Recording) -> dict[str, Any]:
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
    return MulticastGroup(group, tuple(ports), tuple((replica, port) for replica, port in more))


def seen_from_json(document: Mapping[str, Any]) -> Seen:
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
    values = np.zeros(size, np.uint64)
    for index, value in kept.items():
        values[int(index)] = value
    return values
