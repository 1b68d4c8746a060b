"""The compiled C inside this process: packets go in and come out, without root or network."""

from __future__ import annotations

import ctypes
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from inakit.switch.fast.compile.generate import LIBRARY, GeneratedC, generate
from inakit.switch.fast.layout.layout import RANDOM
from inakit.switch.fast.load.running_tables import Clock
from inakit.switch.fast.load.shared_state import CompiledSwitch, SwitchState
from inakit.switch.program.program import Program
from inakit.topo.c_library import aligned_zeros, build
from inakit.topo.errors import RunError

OUT_BYTES = 1 << 20
KEPT = "_library"
MACHINE_TIME = -1
"""The time argument of C that means the machine's clock."""


class TableHead(ctypes.Structure):
    """`struct table` of process.h."""

    _fields_ = [
        ("key_bytes", ctypes.c_uint32),
        ("entry_bytes", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("slots", ctypes.c_uint32),
        ("bytes", ctypes.c_void_p),
    ]


class Library:
    """The compiled C of one program, shared by all of its switches, and the sizes of its tables."""

    def __init__(self, generated: GeneratedC) -> None:
        self.source, self.layout = generated.source, generated.layout
        self.c = ctypes.CDLL(str(build(generated.source, LIBRARY)))
        self.c.table_put.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        self.c.table_remove.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self.c.table_free.argtypes = [ctypes.c_void_p]
        self.c.process.restype = ctypes.c_int64
        numbers = [ctypes.c_int64, ctypes.c_uint32]
        self.c.process.argtypes = [ctypes.c_void_p, *numbers, *[ctypes.c_void_p] * 4, ctypes.c_uint32]
        sizes, symbols = ctypes.c_uint32 * 3, self.layout.fronts
        self.sizes = {name: tuple(sizes.in_dll(self.c, f"sizes_of_{name}")) for name in symbols}

    @property
    def take_packet(self) -> int:
        address = ctypes.cast(self.c.take_packet, ctypes.c_void_p).value
        assert address is not None
        return address


class ProcessTables:
    """The hash tables of one switch in this process, by their symbols."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.tables = (TableHead * len(library.sizes))()
        for number, key_bytes, entry_bytes in library.sizes.values():
            self.tables[number].key_bytes, self.tables[number].entry_bytes = key_bytes, entry_bytes

    def __del__(self) -> None:
        for table in self.tables:
            self.library.c.table_free(ctypes.addressof(table))

    def put(self, symbol: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Add (key, entry) pairs to a table; an existing entry with the same key is replaced."""
        table = ctypes.addressof(self.table(symbol))
        for key, entry in entries:
            if self.library.c.table_put(table, key, entry):
                raise RunError(f"no memory for an entry of table '{symbol}'")

    def remove(self, symbol: str, keys: Sequence[bytes]) -> None:
        table = ctypes.addressof(self.table(symbol))
        for key in keys:
            self.library.c.table_remove(table, key)

    def table(self, symbol: str) -> TableHead:
        found: TableHead = self.tables[self.library.sizes[symbol][0]]
        return found

    def items(self, symbol: str) -> Iterator[tuple[bytes, bytes]]:
        """All (key, entry) pairs of a table, in the order of its slots."""
        table = self.table(symbol)
        key_room = -(-table.key_bytes // 8) * 8
        stride = 8 + key_room + table.entry_bytes
        for slot in range(table.slots):
            data = ctypes.string_at(table.bytes + slot * stride, stride)
            if data[0]:
                yield data[8 : 8 + table.key_bytes], data[8 + key_room :]


class Pointers(ctypes.Structure):
    """`struct switch_state` of process.h."""

    _fields_ = [("memory", ctypes.c_void_p), ("tables", ctypes.c_void_p)]


class InProcessSwitch(CompiledSwitch):
    """A switch that runs `program`, compiled, in this process. It has all port numbers.

    Switches of one program share its code; only one of them can process packets at a time. `clock` is the caller's, by
    default the machine's.
    """

    def __init__(self, program: Program, name: str = "switch", clock: Clock = time.monotonic_ns) -> None:
        self.name = name
        kept: dict[str, object] = vars(program)
        if KEPT not in kept:
            kept[KEPT] = Library(generate(program))
        self.library = cast(Library, kept[KEPT])
        self.source = self.library.source
        layout = self.library.layout
        memory, tables = aligned_zeros(layout.memory_bytes), ProcessTables(self.library)
        self.pointers = Pointers(memory.ctypes.data, ctypes.addressof(tables.tables))
        self.state = SwitchState(layout, memory, tables, clock=clock)
        if RANDOM in layout.arrays:
            layout.view(memory, RANDOM)["state"][0] = zlib.crc32(name.encode())
        self.out = np.zeros(OUT_BYTES, np.uint8)

    @property
    def take_packet(self) -> int:
        """The address of the C function of `process.h` that takes one packet, shared by all switches of the program."""
        return self.library.take_packet

    @property
    def address(self) -> int:
        """The address of the switch's state, the first argument of `take_packet`."""
        return ctypes.addressof(self.pointers)

    def check(self) -> None:
        """Raise `RunError` if an assertion of the program failed; otherwise the switch runs as long as the process."""
        self.check_claims()

    def inject(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Return the packets that leave, as (port, packet) in order, when `packet` arrives at `port`."""
        return self.inject_all([(port, packet)])

    def inject_all(self, packets: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Return the packets that leave when `packets` arrive one after the other."""
        data = np.frombuffer(b"".join(packet for _, packet in packets), np.uint8).copy()
        ports = np.array([port for port, _ in packets], np.uint32)
        lengths = np.array([len(packet) for _, packet in packets], np.uint32)
        return split(self.process(ports, lengths, data))

    def process(
        self, ports: NDArray[np.uint32], lengths: NDArray[np.uint32], data: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """Process the packets that lie one after the other in `data`; return the record of leaving packets.

        `ports` and `lengths` have one number per packet; `data` is overwritten. For each leaving packet the record has
        its port, its length (32 bits each) and its bytes; it is valid until the next call.
        """
        numbers = (ports.ctypes.data, lengths.ctypes.data)
        room = (self.out.ctypes.data, len(self.out))
        failed, lost = self.state.read_failed(), self.state.read_lost()
        now_ns = MACHINE_TIME if self.state.clock is time.monotonic_ns else self.state.clock()
        given = (ctypes.byref(self.pointers), now_ns, len(ports), *numbers, data.ctypes.data)
        used = self.library.c.process(*given, *room)
        if used < 0:
            raise RunError(f"the packets that leave need more than {len(self.out)} bytes: process fewer at once")
        if self.state.read_failed() != failed:
            self.check_claims()
        if self.state.read_lost() != lost:
            raise RunError(f"switch '{self.name}': a packet loops, or has more waiting copies than fit")
        return self.out[:used]


def split(record: NDArray[np.uint8]) -> list[tuple[int, bytes]]:
    """The packets, as (port, bytes), of a record that `process` returned."""
    data, packets = record.tobytes(), []
    while data:
        port, length = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
        packets.append((port, data[8 : 8 + length]))
        data = data[8 + length :]
    return packets
