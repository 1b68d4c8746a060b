"""What statements of a program name: headers, fields, expressions, calculations, lists of fields; as typed data.

Numbers are Python integers without a width, as in BMv2; fields and parameters have one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A line of P4, and the fragment of it that the construct was compiled from."""

    file: str
    line: int
    fragment: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.fragment}"


STANDARD_METADATA = "standard_metadata"
"""The instance that holds the metadata of the switch itself."""

INTRINSIC = {
    "intrinsic_metadata": (
        "mcast_grp", "egress_rid", "priority", "ingress_global_timestamp", "egress_global_timestamp",
    ),
    "queueing_metadata": ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth", "qid"),
}  # fmt: skip
"""Metadata of the switch that BMv2 knows as fields of other instances than `standard_metadata`.

Programs declare these instances, as those of P4-14 do, or aliases of these names for fields of `standard_metadata`.
"""

PORTS = 512
"""A port number has 9 bits."""

DROP_PORT = 511
"""A packet whose `egress_spec` is this one is dropped; it is the number of no port."""

NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
"""The values of `standard_metadata.instance_type`."""

QUEUE_DEPTH = 64
"""Packets that a queue in front of egress holds unless it is told otherwise."""


@dataclass(frozen=True)
class Field:
    """A field of a header or metadata instance. `offset` counts bits from the header's start.

    A field of variable length (`varbit`) has 0 `bits`: its length is found when it is extracted.
    """

    header: str
    name: str
    bits: int
    signed: bool
    offset: int
    variable: bool = False

    def __str__(self) -> str:
        return f"{self.header}.{self.name}"


@dataclass(frozen=True)
class Header:
    """A header instance, or (`metadata`) a group of metadata fields.

    `max_bytes` bounds a header with a field of variable length; `type` names its declaration.
    """

    name: str
    metadata: bool
    fields: tuple[Field, ...]
    type: str = ""
    max_bytes: int | None = None

    @property
    def bits(self) -> int:
        """The sum of the fields' bits; a field of variable length adds none."""
        return sum(field.bits for field in self.fields)

    @property
    def size(self) -> int:
        """The bytes that the header takes in a packet, without those of a field of variable length."""
        return self.bits // 8


@dataclass(frozen=True)
class Stack:
    """A header stack: the instances that are its elements, first to last."""

    name: str
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Union:
    """A header union: its instances by the names of its members, of which at most one is valid."""

    name: str
    members: dict[str, str]


@dataclass(frozen=True)
class UnionStack:
    """A stack of header unions, first to last."""

    name: str
    unions: tuple[Union, ...]


@dataclass(frozen=True)
class Constant:
    """A number that the program gives."""

    value: int


@dataclass(frozen=True)
class Boolean:
    """True or false, as the program gives it."""

    value: bool


@dataclass(frozen=True)
class Validity:
    """Whether a header is valid, as the number 1 or 0."""

    header: str


@dataclass(frozen=True)
class Parameter:
    """The parameter at `index` of the action that runs: the table entry gives its value."""

    index: int
    bits: int


@dataclass(frozen=True)
class Operation:
    """An operator and its operands; those of `?` are condition, value if true, value if false."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class HeaderReference:
    """A header instance itself, as the operand of a comparison or of a primitive."""

    header: str


@dataclass(frozen=True)
class StackReference:
    """A header stack itself; as what a parser extracts, its next element."""

    stack: str


@dataclass(frozen=True)
class UnionReference:
    """A header union itself, as an operand."""

    union: str


@dataclass(frozen=True)
class UnionStackReference:
    """A stack of unions itself; with `member`, that member of its next union (to extract) or last (to read)."""

    stack: str
    member: str | None = None


@dataclass(frozen=True)
class LastField:
    """A field of the last element that the parser filled; `index` is its place among the header's fields.

    Of a stack of unions, `member` names the header of the union.
    """

    stack: str
    index: int
    bits: int
    member: str | None = None


@dataclass(frozen=True)
class ElementField:
    """The field at place `index` of the header that `header` evaluates to.

    The index after the last field stands for the header's validity.
    """

    header: Expression
    index: int


@dataclass(frozen=True)
class Lookahead:
    """`bits` bits of the packet that the parser has not extracted yet, `offset` bits on from where it is."""

    offset: int
    bits: int

    def __str__(self) -> str:
        return f"lookahead of {self.bits} bits"


@dataclass(frozen=True)
class Unknown:
    """A construct of BMv2 JSON that has no place in this representation: targets refuse it by its kind and name."""

    kind: str
    name: str
    source: Source | None = None


Expression = (
    Constant
    | Boolean
    | Validity
    | Parameter
    | Field
    | Operation
    | HeaderReference
    | StackReference
    | UnionReference
    | UnionStackReference
    | LastField
    | ElementField
    | Lookahead
    | Unknown
)


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

    @property
    def only_fields(self) -> list[Field]:
        """The fields, without numbers between them."""
        return [each for each in self.fields if isinstance(each, Field)]
