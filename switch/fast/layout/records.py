"""Records: the layout of structs that Python and the generated C share (keys, entries, register rows).

Members are ordered by size, so that none needs padding in front of it. C then lays the struct out in the same way,
and the generated C asserts that it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inakit.switch.fast.layout.bits import WORD_BYTES
from inakit.switch.fast.layout.emitter import Emitter, Identifiers

ALIGNMENT = 8
CACHE_LINE = 64
LONGEST_BYTES = 16  # of a C integer


def rounded_up(size: int, unit: int) -> int:
    """`size`, rounded up to a multiple of `unit`."""
    return -(-size // unit) * unit


def container_bytes(bits: int) -> int:
    """Bytes of the smallest C integer that holds `bits` bits; beyond 128 bits, of an array of bytes."""
    return next((size for size in (1, 2, 4, 8, LONGEST_BYTES) if bits <= 8 * size), -(-bits // 8))


@dataclass(frozen=True)
class RecordMember:
    """`name` in Python, `symbol` in C; `offset` in bytes."""

    name: str
    symbol: str
    size: int
    offset: int


@dataclass(frozen=True)
class MemoryRecord:
    """A struct of unsigned integers. `order` has the members in the order in which values are packed."""

    name: str
    order: tuple[RecordMember, ...]
    size: int
    alignment: int = ALIGNMENT

    @cached_property
    def members(self) -> tuple[RecordMember, ...]:
        """The members in the order of memory."""
        return tuple(sorted(self.order, key=lambda member: member.offset))

    @cached_property
    def symbols(self) -> dict[str, str]:
        """The members' names in C, by their names in Python."""
        return {member.name: member.symbol for member in self.order}

    def pack(self, values: Sequence[int]) -> bytes:
        """The record's bytes in this machine's order, from a value for each member of `order`."""
        data = bytearray(self.size)
        for member, value in zip(self.order, values, strict=True):
            data[member.offset : member.offset + member.size] = value.to_bytes(member.size, "little")
        return bytes(data)

    def unpack(self, data: bytes) -> tuple[int, ...]:
        """The values that `pack` was given."""
        return tuple(int.from_bytes(data[m.offset : m.offset + m.size], "little") for m in self.order)

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The record as NumPy sees it, members under their Python names."""
        return np.dtype(
            {
                "names": [member.name for member in self.members],
                "formats": [
                    f"<u{member.size}" if member.size <= WORD_BYTES else f"V{member.size}" for member in self.members
                ],
                "offsets": [member.offset for member in self.members],
                "itemsize": self.size,
            }
        )

    def declare(self, out: Emitter) -> None:
        """The struct in C, padded with named bytes so that all of it can be initialised."""
        with out.block(f"struct {self.name}", f" __attribute__((aligned({self.alignment})));"):
            end = 0
            for member in self.members:
                array = member.size > LONGEST_BYTES
                out.line(f"u8 {member.symbol}[{member.size}];" if array else f"u{8 * member.size} {member.symbol};")
                end = member.offset + member.size
            if end < self.size:
                out.line(f"u8 padding_[{self.size - end}];")
        out.line(f'_Static_assert(sizeof(struct {self.name}) == {self.size}, "layout of {self.name}");')


def place_by_size(bits: int) -> int:
    """The key by which members are ordered: integers before arrays, the longest integers first."""
    size = container_bytes(bits)
    return -size if size <= LONGEST_BYTES else size


def make_record(name: str, members: Iterable[tuple[str, int]], whole_lines: bool = False) -> MemoryRecord:
    """A record of (name, bits) members; with `whole_lines`, one that lies in as few cache lines as possible."""
    given = list(members)
    names = Identifiers()
    names.of("padding_")
    offset = 0
    placed: dict[int, RecordMember] = {}
    for index in sorted(range(len(given)), key=lambda i: place_by_size(given[i][1])):
        member, bits = given[index]
        size = container_bytes(bits)
        placed[index] = RecordMember(member, names.of(member), size, offset)
        offset += size
    least = rounded_up(max(offset, 1), ALIGNMENT)
    alignment = min(CACHE_LINE, 1 << (least - 1).bit_length()) if whole_lines else ALIGNMENT
    return MemoryRecord(
        name, tuple(placed[index] for index in range(len(given))), rounded_up(least, alignment), alignment
    )
