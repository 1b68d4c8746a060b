"""Keys of entries: `FieldMatch` messages as parts of a key, and back. A field that is left out matches everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.server.p4runtime.protocol.bytestrings import decode, encode
from inakit.switch.server.p4runtime.protocol.faults import invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.schema import MatchField, TableSchema

Key = tuple[KeyPart, ...]


def read_key(table: TableSchema, matches: Iterable[Message]) -> Key:
    """The key that the matches of an entry make; a fault if one is wrong, or an exact one is missing."""
    parts: list[KeyPart | None] = [None] * len(table.fields)
    for match in matches:
        position = table.positions.get(match.field_id)
        if position is None:
            known = ", ".join(f"{each.id} ({each.name})" for each in table.fields) or "none"
            raise invalid(f"table '{table.name}' has no field {match.field_id}: it has {known}")
        if parts[position] is not None:
            raise invalid(f"table '{table.name}': field {match.field_id} is given twice")
        parts[position] = read_match(table.fields[position], match)
    fields = zip(parts, table.fields, strict=True)
    return tuple(anything(field) if part is None else part for part, field in fields)


def read_match(field: MatchField, match: Message) -> KeyPart:
    """The part of a key that one match stands for; a fault if it is not canonical, as one that matches everything."""
    kind = match.WhichOneof("field_match_type")
    if kind != field.kind:
        raise invalid(f"field '{field.name}' matches {field.kind}, not {kind}")
    what, bits = field.name, field.bits
    match kind:
        case "exact":
            return decode(match.exact.value, bits, what)
        case "lpm":
            return read_prefix(field, match.lpm)
        case "ternary":
            return canonical_ternary(what, Ternary(*(decode(each, bits, what) for each in pair_of(match.ternary))))
        case "range":
            low, high = decode(match.range.low, bits, what), decode(match.range.high, bits, what)
            if low > high or (low == 0 and high == ones(bits)):
                raise invalid(f"field '{what}': the range {low} to {high} is empty, or everything: then leave it out")
            return Range(low, high)
        case _:
            return Ternary(decode(match.optional.value, bits, what), ones(bits))


def pair_of(ternary: Message) -> tuple[bytes, bytes]:
    """Value and mask."""
    return ternary.value, ternary.mask


def read_prefix(field: MatchField, lpm: Message) -> Lpm:
    """A prefix, the rest of whose value is 0."""
    value, length = decode(lpm.value, field.bits, field.name), lpm.prefix_len
    if not 0 < length <= field.bits:
        raise invalid(f"field '{field.name}': a prefix of {length} bits, of {field.bits}; without any, leave it out")
    if value & ones(field.bits - length):
        raise invalid(f"field '{field.name}': the value {value:#x} has bits behind its prefix of {length}")
    return Lpm(value, length)


def canonical_ternary(what: str, part: Ternary) -> Ternary:
    """A value and a mask, if the mask is not 0 and the value has no other bits."""
    if not part.mask or part.value & ~part.mask:
        raise invalid(f"field '{what}': {part} has a mask of 0 (then leave it out), or a value outside of its mask")
    return part


def anything(field: MatchField) -> KeyPart:
    """The part of a key that matches everything; a fault for a field that matches exactly."""
    match field.kind:
        case "lpm":
            return Lpm(0, 0)
        case "range":
            return Range(0, ones(field.bits))
        case "ternary" | "optional":
            return Ternary(0, 0)
    raise invalid(f"field {field.id} ('{field.name}') matches exactly: it cannot be left out")


def matches_of(table: TableSchema, key: Sequence[KeyPart]) -> list[Message]:
    """The matches of an entry, without those that match everything."""
    found = (match_of(field, part) for field, part in zip(table.fields, key, strict=True))
    return [match for match in found if match is not None]


def match_of(field: MatchField, part: KeyPart) -> Message | None:
    """One match; None for one that matches everything."""
    match = v1.FieldMatch(field_id=field.id)
    match part:
        case Lpm(_, 0) | Ternary(_, 0):
            return None
        case Lpm(value, prefix):
            match.lpm.value, match.lpm.prefix_len = encode(value >> field.bits - prefix << field.bits - prefix), prefix
        case Ternary(value, _) if field.kind == "optional":
            match.optional.value = encode(value)
        case Ternary(value, mask):
            match.ternary.value, match.ternary.mask = encode(value & mask), encode(mask)
        case Range(low, high):
            if low == 0 and high == ones(field.bits):
                return None
            match.range.low, match.range.high = encode(low), encode(high)
        case int(value):
            match.exact.value = encode(value)
    return match


def ones(bits: int) -> int:
    """The greatest number of so many bits."""
    return (1 << bits) - 1
