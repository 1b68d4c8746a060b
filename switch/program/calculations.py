"""What a program hashes, checks, reports and keeps: calculations, checksums and lists of fields."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.program.expressions import Expression, HeaderReference
from inakit.switch.program.headers import Field
from inakit.switch.program.source import Source


@dataclass(frozen=True)
class SizedNumber:
    """A number of a known width, as a part of what is hashed."""

    value: int
    bits: int


@dataclass(frozen=True)
class Payload:
    """All of the packet behind the headers that were parsed, as a part of what is hashed."""


HashInput = Field | SizedNumber | HeaderReference | Payload
"""One part of what is hashed; the parts stand side by side, bit after bit."""


@dataclass(frozen=True)
class Calculation:
    """A hash function with what it is computed over; fields of headers that are not valid are left out."""

    name: str
    algorithm: str
    input: tuple[HashInput, ...]
    source: Source | None = None


@dataclass(frozen=True)
class CrcParameters:
    """What a cyclic redundancy check divides by, begins with, and combines its result with by exclusive or.

    `reflect_data`: the bits of each byte are taken in the opposite order, `reflect_result`: those of the result.
    """

    polynomial: int
    first: int
    last: int
    reflect_data: bool
    reflect_result: bool


CRC_CUSTOM = {"crc16_custom": 16, "crc32_custom": 32}
"""The algorithms whose parameters the control plane sets, with the bits of their results."""


@dataclass(frozen=True)
class Checksum:
    """A checksum field, `target`, for the packets for which `condition` holds (None: for all).

    With `verify` it is compared after the parser, with `update` it is set before the deparser.
    """

    name: str
    target: Field
    calculation: Calculation
    verify: bool
    update: bool
    condition: Expression | None
    source: Source | None = None


@dataclass(frozen=True)
class FieldList:
    """Fields that a digest reports, or that a copy of the packet keeps."""

    number: int
    name: str
    fields: tuple[Field | SizedNumber, ...]
    source: Source | None = None
