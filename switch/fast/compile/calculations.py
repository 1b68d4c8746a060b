"""Hash calculations and checksums to C: what is hashed goes into one run of bytes, which a function hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from switch.fast.compile.context import Context, located
from switch.fast.compile.expressions import WORD, unsigned_word, word_text
from switch.fast.layout.bits import store
from switch.program.calculations import Calculation, Checksum, Literal, Payload
from switch.program.expressions import HeaderReference
from switch.program.headers import Field
from topo.errors import UnsupportedError


@dataclass(frozen=True)
class Algorithm:
    """A function of hashes.h, and how many bits its result has. Some can go on over the packet's payload."""

    function: str
    bits: int
    takes_payload: bool = False


ALGORITHMS: dict[str, Algorithm] = {
    "crc16": Algorithm("crc16", 16),
    "crc16_custom": Algorithm("crc16", 16),  # what it is until somebody sets other parameters
    "crc32": Algorithm("crc32", 32),
    "crc32_custom": Algorithm("crc32", 32),
    "csum16": Algorithm("csum16", 16, takes_payload=True),
    "identity": Algorithm("identity", 64),
    "xor16": Algorithm("xor16", 16),
}


def algorithm_of(calculation: Calculation) -> Algorithm:
    if calculation.algorithm not in ALGORITHMS:
        raise UnsupportedError(f"hash algorithm '{calculation.algorithm}' in '{calculation.name}'")
    return ALGORITHMS[calculation.algorithm]


def hashed_bytes(context: Context) -> int:
    """Room for the largest input of all calculations."""
    inputs = (list(fields_of(context, each)) for each in used_calculations(context))
    return max((-(-sum(part.bits for part in parts) // 8) + 8 for parts in inputs), default=0)


def used_calculations(context: Context) -> list[Calculation]:
    program = context.program
    named = [each for action in program.actions for p in action.primitives for each in p.arguments]
    found = [each for each in named if isinstance(each, Calculation)]
    found += [checksum.calculation for checksum in program.checksums]
    return list({calculation.name: calculation for calculation in found}.values())


def fields_of(context: Context, calculation: Calculation) -> Iterator[Field | Literal]:
    """What is hashed in front of the payload, headers as their fields."""
    for part in calculation.input:
        if isinstance(part, HeaderReference):
            yield from context.program.headers[part.header].fields
        elif not isinstance(part, Payload):
            yield part


def emit_calculations(context: Context) -> None:
    """A function for each calculation that the program uses."""
    for calculation in used_calculations(context):
        with located(calculation.source):
            emit_calculation(context, calculation)


def emit_calculation(context: Context, calculation: Calculation) -> None:
    algorithm, out = algorithm_of(calculation), context.out
    if has_payload(calculation) and not algorithm.takes_payload:
        raise UnsupportedError(f"hash algorithm '{calculation.algorithm}' over the payload")
    out.comment(f"calculation {calculation.name} ({calculation.algorithm})")
    given = "PACKET *packet" if has_payload(calculation) else "void"
    with out.block(f"FUNCTION u64 {symbol(context, calculation)}({given})"):
        out.line("__builtin_memset(hashed, 0, sizeof hashed);")
        out.line("u32 length = 0;")
        emit_input(context, calculation)
        payload = ", payload_sum(packet, state.head)" if has_payload(calculation) else ""
        out.line(
            f"return {algorithm.function}(hashed, length, sizeof hashed{payload or ', 0' * algorithm.takes_payload});"
        )


def has_payload(calculation: Calculation) -> bool:
    return any(isinstance(part, Payload) for part in calculation.input)


def symbol(context: Context, calculation: Calculation) -> str:
    return context.layout.names.of(f"calculate {calculation.name}")


def emit_input(context: Context, calculation: Calculation) -> None:
    """The input's bytes, and their number in `length`; fields of headers that are not there are left out."""
    out, bit = context.out, 0
    runs = [(header, list(parts)) for header, parts in groupby(fields_of(context, calculation), owner_of(context))]
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


def owner_of(context: Context) -> Callable[[Field | Literal], str]:
    """Gives a part's header, by which parts are grouped; "" for what is always there."""

    def owner(part: Field | Literal) -> str:
        if isinstance(part, Literal) or context.program.headers[part.header].metadata:
            return ""
        return part.header

    return owner


def emit_parts(context: Context, parts: list[Field | Literal], bit: int) -> None:
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


# ---- checksums -----------------------------------------------------------------------------------


def emit_verification(context: Context) -> None:
    """After the parser: note a checksum that is not what it should be."""
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
    """Before the deparser: set checksums."""
    for checksum in context.program.checksums:
        if checksum.update:
            context.out.comment(checksum.source or checksum.name)
            with located(checksum.source), context.out.block(f"if ({condition_of(context, checksum)})"):
                bits = algorithm_of(checksum.calculation).bits
                context.assign(checksum.target, unsigned_word(call(context, checksum.calculation), bits))
                context.touch([checksum.target])


def condition_of(context: Context, checksum: Checksum) -> str:
    return "1" if checksum.condition is None else context.value(checksum.condition).text
