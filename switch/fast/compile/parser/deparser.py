"""Deparser to C: changed headers are written back where they are, or all valid ones anew before the payload."""

from __future__ import annotations

from inakit.switch.fast.compile.context import Context
from inakit.switch.fast.compile.expressions.values import WIDE
from inakit.switch.fast.compile.parser.checksums import emit_update
from inakit.switch.fast.compile.parser.parser_positions import HeaderPlaces
from inakit.switch.fast.layout.bits import store, whole_bytes
from inakit.switch.program.expressions import Field, Header


def emit_deparser(context: Context, places: HeaderPlaces) -> None:
    """Write the function `deparse`, which returns 0, or another number if the packet cannot be made so."""
    if context.layout.rebuilt:
        emit_rebuilding(context)
    else:
        emit_changing(context, places)


def emit_changing(context: Context, places: HeaderPlaces) -> None:
    """Write a `deparse` that puts changed fields back into headers that have stayed in the packet."""
    layout, out = context.layout, context.out
    with out.block("static INLINE int deparse(PACKET *packet)"):
        emit_update(context)
        out.line("u8 *data = packet_data(packet), *end = packet_end(packet);")
        for name in layout.packet_headers:
            symbol = layout.names.of(name)
            for place in sorted(places.of[name]):
                header = context.program.headers[name]
                fits = f"data + {place + header.size} <= end"
                there = f"{context.validity(name)} && state.dirty.{symbol}"
                with out.block(f"if ({there} && state.at.{symbol} == {place} && {fits})"):
                    written = [each for each in layout.used(name) if each in layout.written]
                    emit_stores(context, written, place)
            out.line(f"state.dirty.{symbol} = 0;")
        out.line("return 0;")


def emit_stores(context: Context, fields: list[Field], place: int) -> None:
    """Write statements that put fields into the header that begins `place` bytes behind `data`."""
    for each in fields:
        if each.bits > WIDE:
            size, start = whole_bytes(each)
            context.out.line(f"copy_bytes(data + {place + start}, {context.layout.field(each)}, {size}, {size});")
            continue
        for statement in store(each, place, context.layout.field(each)):
            context.out.line(statement)


def emit_rebuilding(context: Context) -> None:
    """Write a `deparse` that puts all valid headers, in order, in place of those that were parsed."""
    order, out = context.program.deparser, context.out
    for name in dict.fromkeys(order):
        emit_header(context, context.program.headers[name])
    with out.block("static INLINE int deparse(PACKET *packet)"):
        emit_update(context)
        out.line("u32 length = 0;")
        for name in order:
            out.line(f"if ({context.validity(name)}) length = emit_{context.layout.names.of(name)}(length);")
        out.line("int failed = replace_head(packet, state.head, length);")
        out.line("state.head = length;")
        out.line("return failed;")


def emit_header(context: Context, header: Header) -> None:
    """Write a function that puts one header into `head` at `at`, and returns where it ends."""
    out, variable = context.out, context.layout.variable(header.name)
    fields = context.layout.used(header.name)
    out.comment(f"emit {header.name}")
    with out.block(f"FUNCTION u32 emit_{context.layout.names.of(header.name)}(u32 at)"):
        most = context.layout.most_bytes(header.name)
        out.line(f"if (at > HEAD_BYTES - {most}) return 0; // never: there is room for all headers")
        out.line("u8 *data = head + at;")
        if variable is None:
            emit_stores(context, fields, 0)
            out.line(f"return at + {header.size};")
            return
        start = variable.field.offset
        emit_stores(context, [each for each in fields if each.offset < start], 0)
        out.line(f"u64 more = {variable.length};")
        out.line(f"if (more > {variable.most}) return 0; // never")
        out.line("CHECKED(more);")
        out.line(f"copy_bytes(data + {start // 8}, {variable.bytes}, more, {variable.most});")
        out.line("data += more;")
        emit_stores(context, [each for each in fields if each.offset >= start], 0)
        out.line(f"return at + {header.size} + more;")
