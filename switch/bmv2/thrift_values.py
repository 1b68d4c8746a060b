"""Keys and parameters of entries as BMv2's control plane takes them."""

from __future__ import annotations

from bm_runtime.standard.ttypes import (
    BmMatchParam,
    BmMatchParamExact,
    BmMatchParamLPM,
    BmMatchParamRange,
    BmMatchParamTernary,
    BmMatchParamType,
    BmMatchParamValid,
)

from inakit.switch.entries import KeyPart, Lpm, ProfileEntry, Range, TableEntry, Ternary
from inakit.switch.program.program import ActionCall
from inakit.switch.program.program import MatchKey
from inakit.switch.program.program import Program


def key_of(program: Program, entry: TableEntry | ProfileEntry) -> list[BmMatchParam]:
    """The key of an entry that was checked."""
    return [match(value, part) for value, part in zip(entry.key, program.table(entry.table).key, strict=True)]


def values(call: ActionCall) -> list[bytes]:
    """The values of an action's parameters as BMv2 takes them: big-endian, in whole bytes."""
    return [
        in_bytes(value, parameter.bits) for value, parameter in zip(call.values, call.action.parameters, strict=True)
    ]


def match(value: KeyPart, part: MatchKey) -> BmMatchParam:
    """One part of an entry's key as BMv2 takes it."""
    bits, kinds = part.bits, BmMatchParamType
    match value:
        case Lpm():
            return BmMatchParam(kinds.LPM, lpm=BmMatchParamLPM(in_bytes(value.value, bits), value.prefix))
        case Ternary():
            ternary = BmMatchParamTernary(in_bytes(value.value, bits), in_bytes(value.mask, bits))
            return BmMatchParam(kinds.TERNARY, ternary=ternary)
        case Range():
            return BmMatchParam(
                kinds.RANGE, range=BmMatchParamRange(in_bytes(value.low, bits), in_bytes(value.high, bits))
            )
    if part.match == "valid":
        return BmMatchParam(kinds.VALID, valid=BmMatchParamValid(bool(value)))
    return BmMatchParam(kinds.EXACT, exact=BmMatchParamExact(in_bytes(value, bits)))


def in_bytes(value: int, bits: int) -> bytes:
    """A number as BMv2 takes it: big-endian, in whole bytes."""
    return value.to_bytes((bits + 7) // 8, "big")
