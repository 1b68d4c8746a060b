"""Fields of variable length: the room that they and their lengths take beside the packet."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.fast.layout.records import LONGEST_BYTES
from inakit.switch.program.expressions import Field, Header
from inakit.topo.errors import UnsupportedError

MOST_VARIABLE_BYTES = 512


@dataclass(frozen=True)
class Variable:
    """A field of variable length, of up to `most` bytes; `bytes` and `length` are C expressions of them."""

    field: Field
    most: int
    bytes: str
    length: str


def most_variable_bytes(header: Header) -> int:
    """The most bytes that the header's field of variable length can have; `UnsupportedError` if too many."""
    most = (header.max_bytes or 0) - header.size
    if not 0 < most <= MOST_VARIABLE_BYTES:
        raise UnsupportedError(
            f"header '{header.name}' with {most} bytes of variable length (1 to {MOST_VARIABLE_BYTES})"
        )
    return most


def variable_parts(header: Header, field: Field) -> list[tuple[str, int]]:
    """Room for the field's bytes, which is an array, and for their number, as (name, bits)."""
    return [(field.name, 8 * max(most_variable_bytes(header), LONGEST_BYTES + 1)), (f"{field.name} length", 32)]
