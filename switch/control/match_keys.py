"""Keys of table entries in every format: simple_switch_CLI, files, Thrift, P4Runtime, BF-Runtime and dumps.

A key is a tuple with one part per field: a number, an `Lpm`, a `Ternary` or a `Range`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from inakit.switch.control.codecs import Fields, Message, decode, encode, invalid
from inakit.switch.control.p4data import bits_of
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.program import MatchKey, Table

Key = tuple[KeyPart, ...]

PAIRS: Mapping[str, tuple[type[Lpm | Ternary | Range], str, str]] = {
    "lpm": (Lpm, "/", "[VALUE, PREFIX]"),
    "ternary": (Ternary, "&&&", "[VALUE, MASK]"),
    "range": (Range, "->", "[LOW, HIGH]"),
}
"""Kinds of matches that take two numbers: the type of the key part, the separator in text, and the form as a list."""


def ones(bits: int) -> int:
    return (1 << bits) - 1


def anything(kind: str, bits: int) -> KeyPart:
    """A part of a key that matches every value; 0 for an exact match."""
    match kind:
        case "lpm":
            return Lpm(0, 0)
        case "ternary" | "optional":
            return Ternary(0, 0)
        case "range":
            return Range(0, ones(bits))
    return 0


# text


MAC_ADDRESS = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")


def parse_number(word: str) -> int:
    """A number in decimal, 0x, 0b or 0o; or an IPv4, IPv6 or MAC address."""
    if MAC_ADDRESS.fullmatch(word):
        return int(word.replace(":", ""), 16)
    if "." in word or ":" in word:
        return int(ip_address(word))
    return int(word) if word.isdecimal() else int(word, 0)


def parse_key(table: Table, words: Sequence[str]) -> Key:
    """The key of an entry of `table`, one word per part; `ValueError` if the number of words is wrong."""
    if len(words) != len(table.key):
        raise ValueError(f"table '{table.name}' has {len(table.key)} key fields, {len(words)} values given")
    return tuple(parse_part(part, word) for part, word in zip(table.key, words, strict=True))


def parse_part(part: MatchKey, word: str) -> KeyPart:
    """One part of a key, in the notation of its kind of match: `V`, `V/PREFIX`, `V&&&MASK` or `LOW->HIGH`."""
    if part.match == "ternary" and "&&&" not in word:
        return Ternary(parse_number(word), ones(part.bits))
    return shown_part(part.match, word, parse_number)


def shown_part(match: str, word: str, number: Callable[[str], int]) -> KeyPart:
    """The text of a key part, with its numbers written by `number`; a prefix is always decimal."""
    if match not in PAIRS:
        return number(word)
    kind, sign, _ = PAIRS[match]
    first, second = word.split(sign)
    return kind(number(first), int(second) if match == "lpm" else number(second))


# lists of one or two numbers, as in the JSON of p4lang's tutorials and of BF-Runtime


def part_of_list(part: MatchKey, value: Any, number: Callable[[Any], int]) -> KeyPart:
    """A part of a key: a value, alone or in a list; or a list of a value and its prefix, mask or upper end."""
    if not isinstance(value, list) or len(value) == 1:
        return whole_part(part, number(only_one(value)))
    if part.match not in PAIRS or len(value) != 2:
        expected = PAIRS[part.match][2] if part.match in PAIRS else "one value"
        raise ValueError(f"'{part.name}' matches {part.match}: expected {expected}, not {value!r}")
    return PAIRS[part.match][0](number(value[0]), number(value[1]))


def only_one(value: Any) -> Any:
    """A value, alone or as the only element of a list; `ValueError` for other lists."""
    if not isinstance(value, list):
        return value
    if len(value) != 1:
        raise ValueError(f"{value!r}: expected one value")
    return value[0]


def whole_part(part: MatchKey, value: int) -> KeyPart:
    """A part of a key in which all bits are compared."""
    match part.match:
        case "lpm":
            return Lpm(value, part.bits)
        case "ternary":
            return Ternary(value, ones(part.bits))
        case "range":
            return Range(value, value)
    return value


def list_of_part(part: KeyPart) -> int | list[int]:
    """A part of a key as a number, or as a list of a value and its prefix, its mask, or the upper end of a range."""
    match part:
        case Lpm(value, second) | Ternary(value, second) | Range(value, second):
            return [value, second]
    return part


# Thrift: as many bytes as the field needs, most significant first; the surplus bits of the first byte are ignored


KINDS_IN_THRIFT = ("exact", "lpm", "ternary", "valid", "range")
"""The kinds of matches by their numbers in Thrift's `MatchKind`."""


def read_thrift_key(table: Table, parts: Sequence[Any]) -> Key:
    """The key that a message gives for a table; a refusal if the number, kinds or sizes of its parts are wrong."""
    if len(parts) != len(table.key):
        why = f"key of table '{table.name}': {len(parts)} parts given, {len(table.key)} expected"
        raise Refused(RefusalKind.BAD_MATCH_KEY, why)
    return tuple(read_thrift_part(table, place, part) for place, part in zip(table.key, parts, strict=True))


def read_thrift_part(table: Table, place: MatchKey, part: Any) -> KeyPart:
    given = getattr(part, place.match)
    if part.type != KINDS_IN_THRIFT.index(place.match) or given is None:
        raise Refused(RefusalKind.BAD_MATCH_KEY, f"table '{table.name}': '{place.name}' matches {place.match}")

    def number(octets: bytes | None) -> int:
        size = (place.bits + 7) // 8
        if octets is None or len(octets) != size:
            why = f"'{place.name}' has {place.bits} bits: {size} bytes, not {len(octets or b'')}"
            raise Refused(RefusalKind.BAD_MATCH_KEY, why)
        return int.from_bytes(octets, "big")

    known = ones(place.bits)
    match place.match:
        case "exact":
            return number(given.key) & known
        case "lpm":
            return Lpm(number(given.key) & known, given.prefix_length or 0)
        case "ternary":
            mask = number(given.mask) & known
            return Ternary(number(given.key) & mask, mask)
        case "range":
            low, high = number(given.start), number(given.end_)
            if low > high:
                raise Refused(RefusalKind.BAD_MATCH_KEY, f"the range {low}->{high} of '{place.name}' is empty")
            return Range(low & known, high & known)
    return int(bool(given.key))


def thrift_key(types: Any, table: Table, key: Key) -> list[Any]:
    return [thrift_part(types, place, part) for place, part in zip(table.key, key, strict=True)]


def thrift_part(types: Any, place: MatchKey, part: KeyPart) -> Any:
    size = (place.bits + 7) // 8
    match part:
        case Lpm(value, prefix):
            written = types.LpmPart(value.to_bytes(size, "big"), prefix)
        case Ternary(value, mask):
            written = types.TernaryPart(value.to_bytes(size, "big"), mask.to_bytes(size, "big"))
        case Range(low, high):
            written = types.RangePart(low.to_bytes(size, "big"), high.to_bytes(size, "big"))
        case int() if place.match == "valid":
            written = types.ValidPart(bool(part))
        case int():
            written = types.ExactPart(part.to_bytes(size, "big"))
    return types.KeyPart(KINDS_IN_THRIFT.index(place.match), **{place.match: written})


# P4Runtime: byte strings without leading zeros; a part that matches everything is omitted


@dataclass(frozen=True)
class MatchField:
    """A part of a key; `kind` is the P4Info's: exact, lpm, ternary, range or optional."""

    id: int
    name: str
    kind: str
    bits: int


KINDS = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}
"""The kinds of matches by their numbers in `MatchField.MatchType`."""

MATCHED_AS = {"exact": ("exact", "valid"), "optional": ("ternary",)}
"""The program's kinds of match for a kind in the P4Info, where the names differ."""


def read_match_field(table: str, described: Message, types: Message, part: MatchKey) -> MatchField:
    """One part of a key in a P4Info; its width is the program's, regardless of a translated type."""
    kind = kind_of(described)
    translated = bits_of(described, types) != described.bitwidth or described.HasField("type_name")
    if part.match not in MATCHED_AS.get(kind, (kind,)) or (described.bitwidth != part.bits and not translated):
        has = f"{kind} with {described.bitwidth} bits"
        raise invalid(f"P4Info: '{described.name}' of table '{table}' is {has}, not {part.match} with {part.bits}")
    return MatchField(described.id, described.name, kind, part.bits)


def kind_of(described: Message) -> str:
    """The kind of a match field; a fault for kinds of other architectures."""
    if described.match_type not in KINDS:
        other = described.other_match_type or described.match_type
        raise invalid(f"P4Info: '{described.name}' matches by '{other}': known are {', '.join(KINDS.values())}")
    return KINDS[described.match_type]


def read_key(where: str, fields: Sequence[MatchField], matches: Iterable[Message]) -> Key:
    """The key in the matches of an entry; a fault if one is wrong or an exact match is missing."""
    parts: dict[int, KeyPart] = {}
    by_id = {each.id: each for each in fields}
    for match in matches:
        field = by_id.get(match.field_id)
        if field is None:
            known = ", ".join(f"{each.id} ({each.name})" for each in fields) or "none"
            raise invalid(f"{where} has no field {match.field_id}: it has {known}")
        if field.id in parts:
            raise invalid(f"{where}: field {match.field_id} is given twice")
        parts[field.id] = read_match(field, match)
    missing = next((each for each in fields if each.kind == "exact" and each.id not in parts), None)
    if missing is not None:
        raise invalid(f"field {missing.id} ('{missing.name}') matches exactly: it is required")
    return tuple(parts[each.id] if each.id in parts else anything(each.kind, each.bits) for each in fields)


def read_match(field: MatchField, match: Message) -> KeyPart:
    """The key part of one match; a fault if it is not canonical, for example if it matches everything."""
    kind = match.WhichOneof("field_match_type")
    if kind != field.kind:
        raise invalid(f"field '{field.name}' matches {field.kind}, not {kind}")
    what, bits = field.name, field.bits
    match kind:
        case "exact":
            return decode(match.exact.value, bits, what)
        case "lpm":
            value, length = decode(match.lpm.value, bits, what), match.lpm.prefix_len
            if not 0 < length <= bits:
                raise invalid(f"field '{what}': a prefix of {length} bits, of {bits}; omit a prefix of 0 bits")
            if value & ones(bits - length):
                raise invalid(f"field '{what}': the value {value:#x} has bits outside its prefix of {length}")
            return Lpm(value, length)
        case "ternary":
            value, mask = decode(match.ternary.value, bits, what), decode(match.ternary.mask, bits, what)
            if not mask or value & ~mask:
                given = Ternary(value, mask)
                raise invalid(f"field '{what}': {given} has a mask of 0 (omit it), or value bits outside its mask")
            return Ternary(value, mask)
        case "range":
            low, high = decode(match.range.low, bits, what), decode(match.range.high, bits, what)
            if low > high or (low == 0 and high == ones(bits)):
                raise invalid(f"field '{what}': the range {low} to {high} is empty, or matches everything (omit it)")
            return Range(low, high)
    return Ternary(decode(match.optional.value, bits, what), ones(bits))


def matches_of(fields: Sequence[MatchField], key: Key) -> list[Fields]:
    """The matches of an entry, without those that match everything."""
    pairs = zip(fields, key, strict=True)
    return [{"field_id": field.id} | match_of(field, part) for field, part in pairs if not is_anything(field, part)]


def is_anything(field: MatchField, part: KeyPart) -> bool:
    match part:
        case Lpm(_, second) | Ternary(_, second):
            return not second
        case Range(low, high):
            return low == 0 and high == ones(field.bits)
    return False


def match_of(field: MatchField, part: KeyPart) -> Fields:
    """The fields of one match, without its field id."""
    match part:
        case Lpm(value, prefix):
            cut = field.bits - prefix
            return {"lpm": {"value": encode(value >> cut << cut), "prefix_len": prefix}}
        case Ternary(value, _) if field.kind == "optional":
            return {"optional": {"value": encode(value)}}
        case Ternary(value, mask):
            return {"ternary": {"value": encode(value & mask), "mask": encode(mask)}}
        case Range(low, high):
            return {"range": {"low": encode(low), "high": encode(high)}}
    return {"exact": {"value": encode(part)}}
