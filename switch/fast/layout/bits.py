"""Fields in bytes: the C that reads a field out of a packet, and that puts it there, wherever its bits stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from switch.program.headers import Field
from topo.errors import UnsupportedError

WORD_BYTES = 8


@dataclass(frozen=True)
class Piece:
    """Bits of a field in at most 8 bytes: `length` bytes from `first` on hold them `shift` bits above their end.

    In the field they stand `above` its lowest bit.
    """

    first: int
    length: int
    shift: int
    bits: int
    above: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    @property
    def whole(self) -> bool:
        return self.bits == 8 * self.length


def pieces(field: Field, header_offset: int) -> Iterator[Piece]:
    """The field, cut where 8 bytes are not enough; its lowest bits first."""
    start = header_offset * 8 + field.offset
    end, above = start + field.bits, 0
    while end > start:
        last = (end - 1) // 8
        first = max(start // 8, last - WORD_BYTES + 1)
        bits = end - max(start, first * 8)
        yield Piece(first, last - first + 1, (last + 1) * 8 - end, bits, above)
        end, above = end - bits, above + bits


def whole_bytes(field: Field) -> tuple[int, int]:
    """How many bytes a field that no word holds has, and where in its header they start."""
    if field.bits % 8 or field.offset % 8:
        raise UnsupportedError(f"field '{field}' of {field.bits} bits that are no whole bytes")
    return field.bits // 8, field.offset // 8


def load(field: Field, header_offset: int) -> str:
    """The C expression of a field in the bytes at `data`."""
    return " | ".join(map(load_piece, pieces(field, header_offset)))


def load_piece(piece: Piece) -> str:
    word = f"load_{piece.length}(data + {piece.first})"
    text = word if piece.whole else f"({word} >> {piece.shift}) & {piece.mask:#x}ull"
    return f"((u128)({text}) << {piece.above})" if piece.above else text


def store(field: Field, header_offset: int, value: str) -> Iterator[str]:
    """The C statements that put `value` where the field is in the bytes at `data`."""
    for piece in pieces(field, header_offset):
        part = f"({value} >> {piece.above})" if piece.above else value
        top = piece.above + piece.bits == field.bits
        yield store_piece(piece, part if top or piece.whole else f"({part} & {piece.mask:#x}ull)")


def store_piece(piece: Piece, value: str) -> str:
    place = f"data + {piece.first}"
    if piece.whole:
        return f"store_{piece.length}({place}, {value});"
    kept = f"(load_{piece.length}({place}) & {~(piece.mask << piece.shift) & (1 << 8 * piece.length) - 1:#x}ull)"
    return f"store_{piece.length}({place}, {kept} | ((u64){value} << {piece.shift}));"
