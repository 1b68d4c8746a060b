"""The corpus: simple_switch's answers to sequences of packets, kept as data for machines that lack it.

`corpus/bmv2.jsonl.xz` has one JSON document a line: first the versions, then one for each sequence.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from recording_json import REGISTERS, Recording, recording_from_json, recording_to_json
from sequences import PacketSwitch, Seen, Step

from inakit.switch.entries import SwitchEntries
from inakit.traffic.wire.packet_format import PROGRAM

FILE = Path(__file__).parents[1] / "corpus" / "bmv2.jsonl.xz"
TOOLS = {"simple_switch": "simple_switch", "p4c": "p4c-bm2-ss"}


class Corpus(NamedTuple):
    """Recordings, and the versions of the program and of the tools that they were made with."""

    versions: dict[str, str]
    recordings: list[Recording]


class Recorder:
    """A switch that keeps what it is asked and what it answers, under the names that `name` gives."""

    def __init__(self, switch: PacketSwitch, name: Callable[[], str]) -> None:
        self.switch = switch
        self.name = name
        self.recordings: list[Recording] = []

    def run(self, entries: SwitchEntries, steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What the switch makes of `steps`; what is kept has all registers."""
        seen = self.switch.run(entries, steps, REGISTERS)
        name = f"{len(self.recordings)}: {self.name()}"
        self.recordings.append(Recording(name, entries, tuple(steps), seen))
        return seen._replace(registers={register: seen.registers[register] for register in registers})

    def write(self) -> None:
        """Write what was recorded as the corpus."""
        lines = [versions(), *map(recording_to_json, self.recordings)]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_corpus() -> Corpus:
    """The corpus of this folder."""
    head, *lines = map(json.loads, lzma.decompress(FILE.read_bytes()).decode().splitlines())
    return Corpus(head, [recording_from_json(line) for line in lines])


def program_fingerprint() -> str:
    """The hash of the program that the corpus must be of."""
    return hashlib.sha256(PROGRAM.read_bytes()).hexdigest()


def versions() -> dict[str, str]:
    """The program's hash, and the versions of the tools."""
    return {"program_sha256": program_fingerprint()} | {name: version(tool) for name, tool in TOOLS.items()}


def version(tool: str) -> str:
    """The version that `tool` prints, with the source that it was built of where it says that."""
    done = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True, timeout=60)
    found = re.search(r"\d+(\.\d+)+.*", done.stdout + done.stderr)
    assert found, done
    return found[0].strip()
