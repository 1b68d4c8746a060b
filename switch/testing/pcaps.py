"""Plays pcaps into one switch, and writes the packets that leave each port to pcaps."""

from __future__ import annotations

import heapq
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from scapy.error import Scapy_Exception
from scapy.utils import RawPcapNgReader, RawPcapReader, RawPcapWriter

from inakit.switch.control.entry_files import read_entries
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import DROP_PORT
from inakit.switch.testing.devices import Device, open_device
from inakit.topo.errors import InputError, writing

ETHERNET = 1
PORTS = range(DROP_PORT)
LEAST_PORTS = 16

LEAD_NS = 1_000_000_000
"""The switch's time at the first packet: at time 0 many programs would assume that no packet has come."""
IN_REAL_TIME = ("kernel", "bmv2")

Timed = tuple[int, int, bytes]
"""The time in nanoseconds, the port and the bytes of a packet."""


class PcapClock:
    """The switch's time, in nanoseconds since its start. It follows the times of packets but never goes back."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.start_ns: int | None = None

    def __call__(self) -> int:
        return self.now_ns

    def follow(self, packet_ns: int) -> None:
        """Advance to the time of a packet; the first one comes `LEAD_NS` after the switch's start."""
        if self.start_ns is None:
            self.start_ns = packet_ns - LEAD_NS
        self.now_ns = max(self.now_ns, packet_ns - self.start_ns)


@dataclass(frozen=True)
class Replayed:
    """Packets that arrived at and left each port."""

    arrived: Counter[int] = field(default_factory=Counter)
    left: Counter[int] = field(default_factory=Counter)


def replay(
    program: Path,
    commands: Path | None,
    pcaps: Mapping[int, Path],
    output: Path,
    target: str,
    skipped: Callable[[str], None] = lambda _: None,
) -> Replayed:
    """Play the packets of `pcaps` (by port), in the order of their times, into a switch that runs `program`.

    A switch in this process has the pcaps' time, `kernel` and `bmv2` the machine's. Packets that leave port 3 are
    written to `output`/port3.pcap, with the time of the packet that caused them; `output` must be empty or new, and
    stays so on failure. `commands` is a file of commands of simple_switch_CLI, or an s1-runtime.json; `skipped` is
    called for parts without effect. The switch has the ports of `pcaps` and 0 to 15; one in this process has all.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} already exists: choose a new or empty folder for the packets that leave")
    entries = SwitchEntries("switch") if commands is None else read_entries(commands, read_program(program), skipped)
    ports, clock = sorted({*pcaps, *range(LEAST_PORTS)}), PcapClock()
    with open_device(target, program, ports, clock) as device, tempfile.TemporaryDirectory() as scratch:
        device.install(entries)
        replayed = play(device, clock, pcaps, Path(scratch))
        with writing(output):
            output.mkdir(parents=True, exist_ok=True)
            for path in sorted(Path(scratch).iterdir()):
                shutil.move(path, output)
    return replayed


def play(device: Device, clock: PcapClock, pcaps: Mapping[int, Path], folder: Path) -> Replayed:
    """Send the packets to `device` one after the other, and write the leaving ones into files of `folder`."""
    replayed = Replayed()
    with ExitStack() as stack:
        outputs: dict[int, RawPcapWriter] = {}
        readers = [packets_of(path, port) for port, path in sorted(pcaps.items())]
        for packet_ns, port, packet in heapq.merge(*readers, key=itemgetter(0)):
            clock.follow(packet_ns)
            replayed.arrived[port] += 1
            for leaving, left in device.inject(port, packet):
                if leaving not in outputs:
                    outputs[leaving] = RawPcapWriter(str(folder / f"port{leaving}.pcap"), linktype=ETHERNET)
                    stack.callback(outputs[leaving].close)
                    outputs[leaving].write_header(None)
                whole, part = divmod(packet_ns // 1000, 1_000_000)
                outputs[leaving].write_packet(left, sec=whole, usec=part)
                replayed.left[leaving] += 1
    return replayed


def packets_of(path: Path, port: int) -> Iterator[Timed]:
    """The packets of a pcap or pcapng file in order; `InputError` for any other file."""
    try:
        with RawPcapReader(str(path)) as reader:
            for packet, about in reader:
                yield nanoseconds_of(reader, about), port, packet
    except (OSError, Scapy_Exception, EOFError) as error:
        raise InputError(f"{path}: {error}; expected a pcap or pcapng file") from error


def nanoseconds_of(reader: RawPcapReader | RawPcapNgReader, about: Any) -> int:
    """The capture time of a packet, in nanoseconds since 1970."""
    if isinstance(reader, RawPcapNgReader):
        return int(((about.tshigh << 32) + about.tslow) * 1_000_000_000 // int(about.tsresol))
    return int(about.sec) * 1_000_000_000 + int(about.usec) * (1 if reader.nano else 1000)


def parse_pcap(text: str) -> tuple[int, Path]:
    """The port and the file in PORT:FILE; `InputError` for anything else."""
    port, colon, path = text.partition(":")
    if not colon or not port.isdecimal() or int(port) not in PORTS or not path:
        raise InputError(f"--in {text}: expected PORT:FILE.pcap, such as 1:in.pcap; ports are 0 to {PORTS[-1]}")
    return int(port), Path(path)
