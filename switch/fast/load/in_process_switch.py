"""The compiled C inside this process: packets in, packets out, without root or network."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from switch.fast.compile.generate import generate
from switch.fast.load.build import LIBRARY, build
from switch.fast.load.shared_state import StatefulSwitch, SwitchState
from switch.program.program import Program
from topo.errors import RunError

OUT_BYTES = 1 << 20


class TableHead(ctypes.Structure):
    """`struct table` of process.h."""

    _fields_ = [
        ("key_bytes", ctypes.c_uint32),
        ("entry_bytes", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("slots", ctypes.c_uint32),
        ("bytes", ctypes.c_void_p),
    ]


class ProcessTables:
    """The hash tables that are globals of a loaded library, by their symbols."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.library.table_put.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]

    def put(self, symbol: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Add (key, entry) pairs to a table; an entry with the same key is replaced."""
        table = ctypes.addressof(ctypes.c_char.in_dll(self.library, symbol))
        for key, entry in entries:
            if self.library.table_put(table, key, entry):
                raise RunError(f"no memory for an entry of table '{symbol}'")

    def items(self, symbol: str) -> Iterator[tuple[bytes, bytes]]:
        """All (key, entry) pairs of a table, in the order of its slots."""
        table = TableHead.in_dll(self.library, symbol)
        key_room = -(-table.key_bytes // 8) * 8
        stride = 8 + key_room + table.entry_bytes
        for slot in range(table.slots):
            data = ctypes.string_at(table.bytes + slot * stride, stride)
            if data[0]:
                yield data[8 : 8 + table.key_bytes], data[8 + key_room :]


class InProcessSwitch(StatefulSwitch):
    """A switch that runs `program`, compiled, in this process. It has all port numbers."""

    def __init__(self, program: Program, name: str = "switch") -> None:
        self.name = name
        generated = generate(program)
        self.source = generated.source
        self.library = load_own_copy(build(generated.source, LIBRARY))
        self.library.process.restype = ctypes.c_int64
        self.library.process.argtypes = [ctypes.c_uint32, *[ctypes.c_void_p] * 4, ctypes.c_uint32]
        size = generated.layout.memory_bytes
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).in_dll(self.library, "memory"))
        self.state = SwitchState(generated.layout, memory, ProcessTables(self.library))
        self.out = np.zeros(OUT_BYTES, np.uint8)

    def check(self) -> None:
        """Do nothing: a switch in this process runs as long as the process does."""

    def inject(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """What leaves, as (port, packet) in order, when `packet` arrives at `port`."""
        return self.inject_all([(port, packet)])

    def inject_all(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """What leaves when `packets` arrive one after the other."""
        data = np.frombuffer(b"".join(packet for _, packet in packets), np.uint8).copy()
        ports = np.array([port for port, _ in packets], np.uint32)
        lengths = np.array([len(packet) for _, packet in packets], np.uint32)
        return split(self.process(ports, lengths, data))

    def process(
        self, ports: NDArray[np.uint32], lengths: NDArray[np.uint32], data: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """Process packets that stand one after the other in `data`; return the record of what leaves.

        `ports` and `lengths` have a number for each packet; `data` is overwritten. The record has, for each packet that
        leaves, its port, its length (32 bits each) and its bytes; it is valid until the next call.
        """
        used = self.library.process(
            len(ports), ports.ctypes.data, lengths.ctypes.data, data.ctypes.data, self.out.ctypes.data, len(self.out)
        )
        if used < 0:
            raise RunError(f"the packets that leave need more than {len(self.out)} bytes: process fewer at once")
        return self.out[:used]


def split(record: NDArray[np.uint8]) -> list[tuple[int, bytes]]:
    """The packets, as (port, bytes), of a record that `process` returned."""
    data, packets = record.tobytes(), []
    while data:
        port, length = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
        packets.append((port, data[8 : 8 + length]))
        data = data[8 + length :]
    return packets


def load_own_copy(library: Path) -> ctypes.CDLL:
    """Load a copy of the library: its globals are the state of one switch, so each switch needs its own."""
    with tempfile.TemporaryDirectory() as directory:
        copy = shutil.copy(library, directory)
        return ctypes.CDLL(str(copy))
