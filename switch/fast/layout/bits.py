"""Fields in bytes: the C that reads a field from a packet and writes it there, wherever its bits are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inakit.switch.program.expressions import Field
from inakit.topo.errors import UnsupportedError

WORD_BYTES = 8


@dataclass(frozen=True)
class FieldPiece:
    """Bits of a field that lie within 8 bytes of the packet: in the `length` bytes from `first` on.

    In these bytes they are `shift` bits above the lowest one; in the field they are `above` bits above its lowest one.
    """

    first: int
    length: int
    shift: int
    bits: int
    above: int

    @property
    def mask(self) -> int:
        """As many ones as the piece has bits."""
        return (1 << self.bits) - 1

    @property
    def whole(self) -> bool:
        """Whether the piece fills its bytes, so that none of their other bits must be kept."""
        return self.bits == 8 * self.length


def pieces(field: Field, header_offset: int) -> Iterator[FieldPiece]:
    """The field in pieces of at most 8 bytes, the one with its lowest bits first."""
    start = header_offset * 8 + field.offset
    end, above = start + field.bits, 0
    while end > start:
        last = (end - 1) // 8
        first = max(start // 8, last - WORD_BYTES + 1)
        bits = end - max(start, first * 8)
        yield FieldPiece(first, last - first + 1, (last + 1) * 8 - end, bits, above)
        end, above = end - bits, above + bits


def whole_bytes(field: Field) -> tuple[int, int]:
    """The number of bytes of a field, and the first one's place in its header; for fields that no word holds.

    `UnsupportedError` if the field does not begin and end with a byte.
    """
    if field.bits % 8 or field.offset % 8:
        raise UnsupportedError(f"field '{field}' of {field.bits} bits that are no whole bytes")
    return field.bits // 8, field.offset // 8


def load(field: Field, header_offset: int) -> str:
    """The C expression of a field of a header that begins `header_offset` bytes behind `data`."""
    return " | ".join(map(load_piece, pieces(field, header_offset))) or "0"


def load_piece(piece: FieldPiece) -> str:
    """The C expression of one piece of a field, at its place in the field."""
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
    """The C statement that writes one piece, and keeps the other bits of its bytes."""
    place = f"data + {piece.first}"
    if piece.whole:
        return f"store_{piece.length}({place}, {value});"
    kept = f"(load_{piece.length}({place}) & {~(piece.mask << piece.shift) & (1 << 8 * piece.length) - 1:#x}ull)"
    return f"store_{piece.length}({place}, {kept} | ((u64){value} << {piece.shift}));"
