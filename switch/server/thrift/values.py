"""Keys, parameters and numbers of Thrift messages as those of the program, and back.

BMv2 takes as many bytes as a field has, most significant first, and ignores the bits of the first one that the field
does not have. Thrift has no unsigned integers: handles and counts are the signed numbers of the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.program import Action
from inakit.switch.program.program import MatchKey, Table
from inakit.switch.server.thrift.description import description

GREATEST_I64 = (1 << 63) - 1


def key_of(table: Table, parts: Sequence[Any]) -> tuple[KeyPart, ...]:
    """The key that a message gives for a table; a refusal unless number, kinds and sizes of its parts are right."""
    if len(parts) != len(table.key):
        why = f"key of table '{table.name}': {len(parts)} parts given, {len(table.key)} expected"
        raise Refused(RefusalKind.BAD_MATCH_KEY, why)
    return tuple(part_of(table, place, part) for place, part in zip(table.key, parts, strict=True))


def part_of(table: Table, place: MatchKey, part: Any) -> KeyPart:
    """One part of a key."""
    given = getattr(part, place.match)
    if part.type != description().MatchKind._NAMES_TO_VALUES[place.match.upper()] or given is None:
        raise Refused(RefusalKind.BAD_MATCH_KEY, f"table '{table.name}': '{place.name}' matches {place.match}")
    return READ_PART[place.match](place, given)


def number_of(place: MatchKey, given: bytes | None, cut: bool = True) -> int:
    """A number of a key; bits that its field does not have are `cut` off."""
    size = (place.bits + 7) // 8
    if given is None or len(given) != size:
        why = f"'{place.name}' has {place.bits} bits: {size} bytes, not {len(given or b'')}"
        raise Refused(RefusalKind.BAD_MATCH_KEY, why)
    number = int.from_bytes(given, "big")
    return number & ((1 << place.bits) - 1) if cut else number


def lpm_of(place: MatchKey, given: Any) -> Lpm:
    """A prefix."""
    return Lpm(number_of(place, given.key), given.prefix_length or 0)


def ternary_of(place: MatchKey, given: Any) -> Ternary:
    """A value and a mask; bits outside of the mask are 0."""
    mask = number_of(place, given.mask)
    return Ternary(number_of(place, given.key) & mask, mask)


def range_of(place: MatchKey, given: Any) -> Range:
    """A range, the lower end first."""
    low, high = number_of(place, given.start, cut=False), number_of(place, given.end_, cut=False)
    if low > high:
        raise Refused(RefusalKind.BAD_MATCH_KEY, f"the range {low}->{high} of '{place.name}' is empty")
    return Range(number_of(place, given.start), number_of(place, given.end_))


READ_PART: dict[str, Callable[[MatchKey, Any], KeyPart]] = {
    "exact": lambda place, given: number_of(place, given.key),
    "lpm": lpm_of,
    "ternary": ternary_of,
    "valid": lambda _, given: int(bool(given.key)),
    "range": range_of,
}


def message_key(table: Table, key: Sequence[KeyPart]) -> list[Any]:
    """A key as a message has it."""
    return [message_part(place, part) for place, part in zip(table.key, key, strict=True)]


def message_part(place: MatchKey, part: KeyPart) -> Any:
    """One part of a key as a message has it."""
    types, size = description(), (place.bits + 7) // 8
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
    return types.KeyPart(getattr(types.MatchKind, place.match.upper()), **{place.match: written})


def params_of(actions: Sequence[Action], name: str, params: Sequence[bytes]) -> tuple[int, ...]:
    """The parameters that a message gives for one of these actions, without the bits that they do not have."""
    numbers = tuple(int.from_bytes(each, "big") for each in params)
    places = next((action.parameters for action in actions if action.name == name), ())
    if len(places) != len(numbers):
        return numbers
    return tuple(number & ((1 << place.bits) - 1) for number, place in zip(numbers, places, strict=True))


def message_params(params: Sequence[int]) -> list[bytes]:
    """Parameters as a message has them: no leading zeros, as BMv2 gives them."""
    return [number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big") for number in params]


def unsigned(number: int, bits: int = 32) -> int:
    """The unsigned number whose bits a signed one of a message has."""
    return number & ((1 << bits) - 1)


def signed(number: int, bits: int = 32) -> int:
    """The signed number of as many bits, for a message."""
    number = unsigned(number, bits)
    return number - (1 << bits) if number >> (bits - 1) else number
