"""Records: the layout of structs that Python and the generated C share (keys, entries, register rows).

Members are ordered by size, so that none needs padding before it. C then lays out the struct in the same way; the
generated C asserts this. `Emitter` writes C, one line at a time: indentation follows `with`; names and comments are
made safe there and only there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inakit.switch.program.program import Field
from inakit.topo.errors import UnsupportedError

WORD_BYTES = 8


@dataclass(frozen=True)
class FieldPiece:
    """Bits of a field that lie within 8 bytes of the packet: in the `length` bytes from `first` on.

    The piece begins `shift` bits above the lowest bit of these bytes, and `above` bits above the field's lowest bit.
    """

    first: int
    length: int
    shift: int
    bits: int
    above: int

    @property
    def mask(self) -> int:
        """A number with as many ones as the piece has bits."""
        return (1 << self.bits) - 1

    @property
    def whole(self) -> bool:
        """Whether the piece fills its bytes, so that no other bits in them must be kept."""
        return self.bits == 8 * self.length


def pieces(field: Field, header_offset: int) -> Iterator[FieldPiece]:
    """The field in pieces of at most 8 bytes, lowest bits first."""
    start = header_offset * 8 + field.offset
    end, above = start + field.bits, 0
    while end > start:
        last = (end - 1) // 8
        first = max(start // 8, last - WORD_BYTES + 1)
        bits = end - max(start, first * 8)
        yield FieldPiece(first, last - first + 1, (last + 1) * 8 - end, bits, above)
        end, above = end - bits, above + bits


def whole_bytes(field: Field) -> tuple[int, int]:
    """The number of bytes of a field too long for a word, and the place of the first byte in its header.

    `UnsupportedError` unless the field begins and ends at byte boundaries.
    """
    if field.bits % 8 or field.offset % 8:
        raise UnsupportedError(f"field '{field}' of {field.bits} bits that are no whole bytes")
    return field.bits // 8, field.offset // 8


def load(field: Field, header_offset: int) -> str:
    """The C expression of a field of a header that begins `header_offset` bytes behind `data`."""
    return " | ".join(map(load_piece, pieces(field, header_offset))) or "0"


def load_piece(piece: FieldPiece) -> str:
    """The C expression of one piece of a field, shifted to its place in the field."""
    word = f"load_{piece.length}(data + {piece.first})"
    text = word if piece.whole else f"({word} >> {piece.shift}) & {piece.mask:#x}ull"
    return f"((u128)({text}) << {piece.above})" if piece.above else text


def store(field: Field, header_offset: int, value: str) -> Iterator[str]:
    """The C statements that write `value` to a field of a header that begins `header_offset` bytes behind `data`."""
    for piece in pieces(field, header_offset):
        part = f"({value} >> {piece.above})" if piece.above else value
        top = piece.above + piece.bits == field.bits
        yield store_piece(piece, part if top or piece.whole else f"({part} & {piece.mask:#x}ull)")


def store_piece(piece: FieldPiece, value: str) -> str:
    """The C statement that writes one piece and keeps the other bits of its bytes."""
    place = f"data + {piece.first}"
    if piece.whole:
        return f"store_{piece.length}({place}, {value});"
    kept = f"(load_{piece.length}({place}) & {~(piece.mask << piece.shift) & (1 << 8 * piece.length) - 1:#x}ull)"
    return f"store_{piece.length}({place}, {kept} | ((u64){value} << {piece.shift}));"


KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "auto break case char const continue default do double else enum extern float for goto if inline int long "
        "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile "
        "while asm typeof u8 u16 u32 u64 s64",
    )
)


def identifier(name: str) -> str:
    """`name` as a C identifier; different names can give the same one."""
    safe = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not safe or safe[0].isdigit():
        return f"_{safe}"
    return f"{safe}_" if safe in KEYWORDS else safe


class Identifiers:
    """Unique C identifiers for P4 names; each name always gets the same one."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The identifier of a P4 name."""
        if name not in self.given:
            wanted = chosen = identifier(name)
            number = 2
            while chosen in self.given.values():
                chosen, number = f"{wanted}_{number}", number + 1
            self.given[name] = chosen
        return self.given[name]


class Emitter:
    """The growing text of a C file."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def line(self, text: str = "") -> None:
        """Add a line with the indentation of the open blocks."""
        self.lines.append("    " * self.depth + text if text else "")

    def comment(self, text: object) -> None:
        """Add a one-line comment; any `text` is safe."""
        self.line("// " + re.sub(r"[^ -~]+", " ", str(text)).rstrip("\\ "))

    @contextmanager
    def block(self, head: str, tail: str = "") -> Iterator[None]:
        """Write `head {`, then what is written inside the `with`, then `}tail`."""
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line(f"}}{tail}")

    def text(self) -> str:
        """The whole file. An open block is a fault of the generator."""
        assert self.depth == 0, "a block of the generated C was not closed"
        return "\n".join(self.lines) + "\n"


ALIGNMENT = 8
CACHE_LINE = 64
LONGEST_BYTES = 16  # the size of the longest C integer


def rounded_up(size: int, unit: int) -> int:
    """`size`, rounded up to a multiple of `unit`."""
    return -(-size // unit) * unit


def container_bytes(bits: int) -> int:
    """Bytes of the smallest C integer that holds `bits` bits; beyond 128 bits, of a byte array."""
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
        """The record's bytes in this machine's byte order, from a value for each member of `order`."""
        data = bytearray(self.size)
        for member, value in zip(self.order, values, strict=True):
            data[member.offset : member.offset + member.size] = value.to_bytes(member.size, "little")
        return bytes(data)

    def unpack(self, data: bytes) -> tuple[int, ...]:
        """The values that were given to `pack`."""
        return tuple(int.from_bytes(data[m.offset : m.offset + m.size], "little") for m in self.order)

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The record as a NumPy type, with the members' Python names."""
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
        """Write the struct in C, padded with named bytes so that all of it can be initialised."""
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
    """The sort key of members: integers before arrays, the longest integers first."""
    size = container_bytes(bits)
    return -size if size <= LONGEST_BYTES else size


def make_record(name: str, members: Iterable[tuple[str, int]], whole_lines: bool = False) -> MemoryRecord:
    """A record of (name, bits) members; with `whole_lines`, one that spans as few cache lines as possible."""
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
