"""BMv2's simple_switch to C: what happens to a packet around the parser and the two pipelines."""

from __future__ import annotations

from switch.fast.compile.context import Context
from switch.fast.layout.field_usage import meter_results, statements_of, written_by
from switch.fast.layout.layout import LOST, STARTED
from switch.program.headers import Field
from switch.program.v1model import DROP_PORT, NORMAL, PORTS, REPLICATED


def emit_architecture(context: Context) -> None:
    """Write `reset`, `egress_of`, `replicate`, and `receive`, which a packet enters by."""
    emit_reset(context)
    emit_egress(context)
    emit_replicate(context)
    emit_receive(context)


def set_standard(context: Context, name: str, text: str) -> None:
    """Assign to a metadata field of the switch; do nothing where the program does not have it."""
    field = context.layout.intrinsic.get(name)
    if field is not None:
        context.out.line(f"{context.layout.field(field)} = ({text}) & {(1 << field.bits) - 1:#x}ull;")


def set_clock(context: Context, name: str) -> None:
    """Assign the microseconds since the switch started. No packet waits in a queue: its depths and times are 0."""
    if context.layout.timed(name):
        started = context.layout.arrays[STARTED]
        set_standard(context, name, f"(clock_ns() - own->{started.symbol}[0].ns) / 1000")


def standard(context: Context, name: str) -> str:
    """The C expression of a metadata field of the switch; "0" where the program does not have it."""
    field = context.layout.intrinsic.get(name)
    return "0" if field is None else context.layout.field(field)


def emit_reset(context: Context) -> None:
    """Write `reset`: when a packet comes, all metadata is 0 and no header is valid."""
    out, layout = context.out, context.layout
    with out.block("static INLINE void reset(PACKET *packet, u32 port)"):
        for header in context.program.headers.values():
            if header.metadata:
                out.line(f"__builtin_memset(&{layout.header(header.name)}, 0, sizeof {layout.header(header.name)});")
        out.line("__builtin_memset(&state.valid, 0, sizeof state.valid);")
        if not layout.rebuilt:
            out.line("__builtin_memset(&state.dirty, 0, sizeof state.dirty);")
        out.line("state.length = packet_length(packet);")
        if layout.claims:
            out.line("state.failed = 0;")
        if layout.rebuilt:
            out.line("state.head = 0, state.current_length = state.length;")
        set_standard(context, "ingress_port", "port")
        set_standard(context, "packet_length", "state.length")
        set_clock(context, "ingress_global_timestamp")


def emit_egress(context: Context) -> None:
    """Write `egress_of`: one packet through egress and deparser; returns 1 if it is to leave by `port`."""
    out = context.out
    if context.layout.rebuilt:
        lost = context.layout.arrays[LOST]
        out.line(f"static INLINE int lose(void) {{ return own->{lost.symbol}[0].packets++, 0; }}")
    out.comment("egress_spec becomes the drop port plus one, as in simple_switch.")
    with out.block("FUNCTION int egress_of(PACKET *packet, u32 port, u32 copy)"):
        out.line("TAKEN(packet); TAKEN(port); TAKEN(copy);")
        set_standard(context, "egress_port", "port")
        set_standard(context, "egress_rid", "copy")
        set_clock(context, "enq_timestamp")
        set_clock(context, "egress_global_timestamp")
        set_standard(context, "egress_spec", f"{DROP_PORT + 1}")
        set_standard(context, "packet_length", "state.current_length" if context.layout.rebuilt else "state.length")
        out.line(f"{context.layout.names.of(context.program.egress.name)}();")
        out.line(f"if ({standard(context, 'egress_spec')} == {DROP_PORT}) return 0;")
        if context.layout.claims:
            out.line("if (state.failed) return 0;")
        out.line(f"return !deparse(packet){' || lose()' if context.layout.rebuilt else ''};")


def kept_for_copies(context: Context) -> list[Field]:
    """The fields that egress changes: each copy has to start with what ingress left in them."""
    owned = set(context.layout.intrinsic.values())
    egress = context.program.egress
    written = written_by(statements_of(egress)) | meter_results(context.program, egress)
    written -= owned
    return sorted(written, key=lambda field: (field.header, field.offset))


def emit_replicate(context: Context) -> None:
    """Write `replicate`: a copy of the packet for each member of a group; the packet itself is the last one."""
    out = context.out
    with out.block("static INLINE int replicate(PACKET *packet, u32 number)"):
        out.line("const struct key_groups key = {{number}};")
        out.line("const struct entry_groups *group = find_groups(&key);")
        out.line("if (!group) return drop(packet);")
        set_standard(context, "instance_type", str(REPLICATED))
        emit_saving(context)
        with out.block("for (u32 i = 0; i < MAX_REPLICAS && i < group->count; i++)"):
            emit_restoring(context)
            out.line("u32 port = group->replicas[i].port;")
            out.line("int leaves = egress_of(packet, port, group->replicas[i].copy);")
            out.line("if (i + 1 >= group->count) return leaves ? send(packet, port) : drop(packet);")
            out.line("if (leaves) send_copy(packet, port);")
        out.line("return drop(packet);")


def kept_parts(context: Context) -> list[str]:
    """The parts of `state` that egress may change, where headers are written anew."""
    names = context.layout.names
    return [*(names.of(name) for name in context.layout.state), "valid", "current_length"]


def emit_saving(context: Context) -> None:
    """Keep the fields that ingress left and egress may change."""
    if context.layout.rebuilt:
        for part in kept_parts(context):
            context.out.line(f"saved.{part} = state.{part};")
        return
    for index, field in enumerate(kept_for_copies(context)):
        context.out.line(f"saved.field_{index} = {context.layout.field(field)};")


def emit_restoring(context: Context) -> None:
    """Give a copy the fields that ingress left."""
    if context.layout.rebuilt:
        for part in kept_parts(context):
            context.out.line(f"state.{part} = saved.{part};")
        return
    kept = kept_for_copies(context)
    for index, field in enumerate(kept):
        context.out.line(f"{context.layout.field(field)} = saved.field_{index};")
    context.touch(kept)


def declare_saved(context: Context) -> None:
    """Declare `saved`, in which `replicate` keeps what egress changes."""
    if context.layout.rebuilt:
        context.out.line("WHOLE struct state saved;")
    elif kept := kept_for_copies(context):
        with context.out.block("WHOLE struct", " saved;"):
            for index, field in enumerate(kept):
                context.out.line(f"u{64 if field.bits <= 64 else 128} field_{index};")


def emit_receive(context: Context) -> None:
    """Write `receive`, a packet's whole way: a multicast group goes before the drop port, and that before a port."""
    out = context.out
    with out.block("static INLINE int receive(PACKET *packet, u32 port)"):
        out.line("reset(packet, port);")
        out.line("parse(packet);")
        out.line(f"{context.layout.names.of(context.program.ingress.name)}();")
        out.line(f"u32 group = {standard(context, 'mcast_grp')}, spec = {standard(context, 'egress_spec')};")
        out.line("if (group) return replicate(packet, group);")
        out.line(f"if (spec == {DROP_PORT} || spec >= {PORTS}) return drop(packet);")
        out.line("CHECKED(spec);")
        set_standard(context, "instance_type", str(NORMAL))
        out.comment("simple_switch has one queue for each port; a packet of another priority is lost.")
        out.line(f"if ({standard(context, 'priority')}) return drop(packet);")
        rid = standard(context, "egress_rid")
        out.line(f"return egress_of(packet, spec, {rid}) ? send(packet, spec) : drop(packet);")
