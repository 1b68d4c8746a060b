"""Hash calculations and checksums to C.

The input becomes one run of bytes, which a function of hashes.h hashes. Checksums are verified after the parser and
updated before the deparser.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from inakit.switch.fast.compile.context import Context, located
from inakit.switch.fast.compile.expressions import WORD, unsigned_word, word_text
from inakit.switch.fast.layout.layout import CHOSEN, crc_array
from inakit.switch.fast.layout.records import store
from inakit.switch.fast.layout.table_layout import COPIES
from inakit.switch.program.program import (
    CRC_CUSTOM,
    Calculation,
    Checksum,
    Field,
    HeaderReference,
    Payload,
    SizedNumber,
)
from inakit.topo.errors import UnsupportedError


@dataclass(frozen=True)
class Algorithm:
    """A function of hashes.h, and the bits of its result. Some functions can continue over the packet's payload."""

    function: str
    bits: int
    takes_payload: bool = False


ALGORITHMS: dict[str, Algorithm] = {
    "crc16": Algorithm("crc16", 16),
    "crc16_custom": Algorithm("crc16", 16),  # the parameters with which BMv2 starts
    "crc32": Algorithm("crc32", 32),
    "crc32_custom": Algorithm("crc32", 32),
    "crcCCITT": Algorithm("crc_ccitt", 16),
    "csum16": Algorithm("csum16", 16, takes_payload=True),
    "identity": Algorithm("identity", 64),
    "xor16": Algorithm("xor16", 16),
    "xor32": Algorithm("xor32", 32),
}


def algorithm_of(calculation: Calculation) -> Algorithm:
    """The function for a calculation; `UnsupportedError` if hashes.h has none."""
    if calculation.algorithm not in ALGORITHMS:
        raise UnsupportedError(f"hash algorithm '{calculation.algorithm}' in '{calculation.name}'")
    return ALGORITHMS[calculation.algorithm]


def hashed_bytes(context: Context) -> int:
    """The bytes of the largest input of all calculations, plus 8; 0 without calculations."""
    inputs = (list(fields_of(context, each)) for each in used_calculations(context))
    return max((-(-sum(part.bits for part in parts) // 8) + 8 for parts in inputs), default=0)


def used_calculations(context: Context) -> list[Calculation]:
    """The calculations of actions, checksums and selectors, each once."""
    program = context.program
    named = [each for action in program.actions for p in action.primitives for each in p.arguments]
    found = [each for each in named if isinstance(each, Calculation)]
    found += [checksum.calculation for checksum in program.checksums]
    found += [profile.selector for profile in program.profiles.values() if profile.selector is not None]
    return list({calculation.name: calculation for calculation in found}.values())


def fields_of(context: Context, calculation: Calculation) -> Iterator[Field | SizedNumber]:
    """The input of a calculation before the payload, with headers as their fields."""
    for part in calculation.input:
        if isinstance(part, HeaderReference):
            yield from context.program.headers[part.header].fields
        elif not isinstance(part, Payload):
            yield part


def emit_calculations(context: Context) -> None:
    """Write a function for each calculation that the program uses."""
    out, arrays = context.out, context.layout.arrays
    for calculation in used_calculations(context):
        with located(calculation.source):
            algorithm, payload = algorithm_of(calculation), has_payload(calculation)
            if payload and not algorithm.takes_payload:
                raise UnsupportedError(f"hash algorithm '{calculation.algorithm}' over the payload")
            out.comment(f"calculation {calculation.name} ({calculation.algorithm})")
            with out.block(f"FUNCTION u64 {symbol(context, calculation)}({'PACKET *packet' if payload else 'void'})"):
                out.line("__builtin_memset(hashed, 0, sizeof hashed);")
                out.line("u32 length = 0;")
                emit_input(context, calculation)
                if calculation.algorithm in CRC_CUSTOM:  # with the parameters that the control plane has set, if any
                    chosen = arrays[CHOSEN]
                    out.line(f"u32 which = own->{chosen.symbol}[0].{chosen.record.symbols[calculation.name]};")
                    given = f"&own->{arrays[crc_array(calculation.name)].symbol}[which % {COPIES}]"
                    hashed = f"CRC_CUSTOM({given}, hashed, length, sizeof hashed, {algorithm.bits})"
                    out.line(f"if (which) return {hashed};")
                more = ", payload_sum(packet, state.head)" if payload else ", 0" * algorithm.takes_payload
                out.line(f"return {algorithm.function}(hashed, length, sizeof hashed{more});")


def has_payload(calculation: Calculation) -> bool:
    """Whether a calculation also hashes the packet's payload."""
    return any(isinstance(part, Payload) for part in calculation.input)


def symbol(context: Context, calculation: Calculation) -> str:
    """The name of a calculation's function."""
    return context.layout.names.of(f"calculate {calculation.name}")


def emit_input(context: Context, calculation: Calculation) -> None:
    """Write the input's bytes into `hashed`, and their number into `length`; fields of invalid headers are omitted."""
    out, bit, headers = context.out, 0, context.program.headers

    def owner(part: Field | SizedNumber) -> str:
        """The header of a part; "" for parts that are always present."""
        return "" if isinstance(part, SizedNumber) or headers[part.header].metadata else part.header

    runs = [(header, list(parts)) for header, parts in groupby(fields_of(context, calculation), owner)]
    for index, (header, parts) in enumerate(runs):
        bits = sum(part.bits for part in parts)
        if header and bits % 8 and (bit or index + 1 < len(runs)):
            raise UnsupportedError(f"hashing parts of header '{header}' that are no whole bytes together with others")
        with out.block(f"if ({context.validity(header)})" if header else ""):
            out.line("u8 *data = hashed + length;")
            emit_parts(context, parts, bit)
            out.line(f"length += {-(-bits // 8) if header else (bit + bits) // 8};")
        bit = bit if header else (bit + bits) % 8
    if bit:
        out.line("length += 1;")


def emit_parts(context: Context, parts: list[Field | SizedNumber], bit: int) -> None:
    """Write parts one after the other, starting `bit` bits behind `data`."""
    for part in parts:
        if isinstance(part, Field) and part.variable:
            raise UnsupportedError(f"hashing '{part}', which has a variable length")
        value = context.layout.field(part) if isinstance(part, Field) else word_text(part.value, WORD)
        for statement in store(Field("", "", part.bits, False, bit), 0, value):
            context.out.line(statement)
        bit += part.bits


def call(context: Context, calculation: Calculation) -> str:
    """The C expression of a calculation's result."""
    return f"{symbol(context, calculation)}({'packet' if has_payload(calculation) else ''})"


def emit_verification(context: Context) -> None:
    """Write the statements after the parser that note wrong checksums."""
    error = context.layout.intrinsic.get("checksum_error")
    for checksum in context.program.checksums:
        if checksum.verify and error is not None:
            context.out.comment(checksum.source or checksum.name)
            with located(checksum.source):
                header, target = context.program.headers[checksum.target.header], context.layout.field(checksum.target)
                there = "1" if header.metadata else context.validity(header.name)
                wrong = f"{call(context, checksum.calculation)} != {target}"
                condition = f"{there} && {condition_of(context, checksum)} && {wrong}"
                context.out.line(f"if ({condition}) {context.layout.field(error)} = 1;")


def emit_update(context: Context) -> None:
    """Write the statements before the deparser that set checksums."""
    for checksum in context.program.checksums:
        if checksum.update:
            context.out.comment(checksum.source or checksum.name)
            with located(checksum.source), context.out.block(f"if ({condition_of(context, checksum)})"):
                bits = algorithm_of(checksum.calculation).bits
                context.assign(checksum.target, unsigned_word(call(context, checksum.calculation), bits))
                context.touch([checksum.target])


def condition_of(context: Context, checksum: Checksum) -> str:
    """The C text of the condition under which a checksum applies."""
    return "1" if checksum.condition is None else context.value(checksum.condition).text
