"""Checksums to C: they are verified after the parser and updated before the deparser."""

from __future__ import annotations

from inakit.switch.fast.compile.context import Context, located
from inakit.switch.fast.compile.expressions.calculations import algorithm_of, call
from inakit.switch.fast.compile.expressions.values import unsigned_word
from inakit.switch.program.expressions import Checksum


def emit_verification(context: Context) -> None:
    """Write, for behind the parser, what notes a checksum that is wrong."""
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
    """Write, for before the deparser, what sets checksums."""
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
