"""Types of values in P4Runtime: registers, digests, and the bits of anything that a client writes.

A program stores the members of structs, tuples and headers one after the other, each as an unsigned number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from inakit.switch.control.codecs import (
    Code,
    Fault,
    Fields,
    Message,
    decode,
    decode_signed,
    encode,
    encode_signed,
    invalid,
)


class Layout(Protocol):
    """A type of values that clients write and read."""

    def encode(self, numbers: Iterator[int]) -> Fields:
        """The `P4Data` of the next numbers."""

    def decode(self, data: Message, what: str) -> list[int]:
        """The numbers in a `P4Data`; a fault if it has another type."""


@dataclass(frozen=True)
class Number:
    """`bit<bits>`, `int<bits>` or a serializable enum; its values are the member `place` of a `P4Data`."""

    bits: int
    signed: bool = False
    place: str = "bitstring"

    def encode(self, numbers: Iterator[int]) -> Fields:
        return {self.place: self.octets(next(numbers))}

    def decode(self, data: Message, what: str) -> list[int]:
        return [self.number(getattr(expect(data, self.place, what), self.place), what)]

    def octets(self, number: int) -> bytes:
        """The byte string of a number."""
        return encode_signed(number, self.bits) if self.signed else encode(number)

    def number(self, octets: bytes, what: str) -> int:
        """The number in a byte string."""
        return (decode_signed if self.signed else decode)(octets, self.bits, what)


@dataclass(frozen=True)
class Truth:
    """`bool`."""

    def encode(self, numbers: Iterator[int]) -> Fields:
        return {"bool": bool(next(numbers))}

    def decode(self, data: Message, what: str) -> list[int]:
        return [int(expect(data, "bool", what).bool)]


@dataclass(frozen=True)
class Members:
    """A struct or a tuple; its values are the member `place` of a `P4Data`."""

    place: str
    layouts: tuple[Layout, ...]

    def encode(self, numbers: Iterator[int]) -> Fields:
        return {self.place: {"members": [layout.encode(numbers) for layout in self.layouts]}}

    def decode(self, data: Message, what: str) -> list[int]:
        members = getattr(expect(data, self.place, what), self.place).members
        if len(members) != len(self.layouts):
            raise invalid(f"{what}: {len(members)} members, {len(self.layouts)} expected")
        pairs = zip(self.layouts, members, strict=True)
        return [number for layout, member in pairs for number in layout.decode(member, what)]


@dataclass(frozen=True)
class HeaderFields:
    """A header that is always valid."""

    layouts: tuple[Number, ...]

    def encode(self, numbers: Iterator[int]) -> Fields:
        strings = [layout.octets(next(numbers)) for layout in self.layouts]
        return {"header": {"is_valid": True, "bitstrings": strings}}

    def decode(self, data: Message, what: str) -> list[int]:
        header = expect(data, "header", what).header
        if not header.is_valid or len(header.bitstrings) != len(self.layouts):
            raise invalid(f"{what}: a valid header with {len(self.layouts)} fields is expected")
        return [layout.number(each, what) for layout, each in zip(self.layouts, header.bitstrings, strict=True)]


def expect(data: Message, place: str, what: str) -> Message:
    """The `P4Data` if it has this member; else a fault."""
    if data.WhichOneof("data") != place:
        raise invalid(f"{what}: P4Data has '{data.WhichOneof('data')}', '{place}' is expected")
    return data


def layout_of(spec: Message, types: Message) -> Layout:  # noqa: PLR0911
    """The layout of a `P4DataTypeSpec`; `types` is the P4Info's `type_info`."""
    kind = spec.WhichOneof("type_spec")
    match kind:
        case "bitstring":
            return number_of(spec.bitstring)
        case "bool":
            return Truth()
        case "serializable_enum":
            enum = types.serializable_enums[spec.serializable_enum.name]
            return Number(enum.underlying_type.bitwidth, place="enum_value")
        case "new_type":
            declared = types.new_types[spec.new_type.name]
            if declared.WhichOneof("representation") == "original_type":
                return layout_of(declared.original_type, types)
            return Number(translated_bits(declared))
        case "struct":
            members = types.structs[spec.struct.name].members
            return Members("struct", tuple(layout_of(member.type_spec, types) for member in members))
        case "tuple":
            return Members("tuple", tuple(layout_of(member, types) for member in spec.tuple.members))
        case "header":
            fields = types.headers[spec.header.name].members
            return HeaderFields(tuple(number_of(field.type_spec) for field in fields))
    raise Fault(Code.UNIMPLEMENTED, f"values of type '{kind}' are not supported: use bits, structs, tuples or headers")


def number_of(spec: Message) -> Number:
    """The layout of a `P4BitstringLikeTypeSpec`."""
    match spec.WhichOneof("type_spec"):
        case "bit":
            return Number(spec.bit.bitwidth)
        case "int":
            return Number(spec.int.bitwidth, signed=True)
    raise Fault(Code.UNIMPLEMENTED, "values of type varbit are not supported")


def bits_of(described: Message, types: Message) -> int:
    """The bits of a field, a parameter or metadata in a client's messages; a fault for a string."""
    spec = types.new_types[described.type_name.name] if described.HasField("type_name") else None
    if spec is not None and spec.WhichOneof("representation") == "translated_type":
        return translated_bits(spec)
    return int(described.bitwidth)


def translated_bits(spec: Message) -> int:
    """The bits of a translated type; a fault for a string."""
    if spec.translated_type.WhichOneof("sdn_type") == "sdn_string":
        raise Fault(Code.UNIMPLEMENTED, f"type '{spec.translated_type.uri}' is translated to strings: use bit<W>")
    return int(spec.translated_type.sdn_bitwidth)
