"""BMv2's simple_switch to C: what happens to a packet around the parser and the two pipelines."""

from __future__ import annotations

from inakit.switch.fast.compile.actions.digests import emit_learning
from inakit.switch.fast.compile.architecture.passes import emit_keeping, emit_passes
from inakit.switch.fast.compile.architecture.saved_state import emit_restoring, emit_saving
from inakit.switch.fast.compile.context import Context
from inakit.switch.fast.compile.expressions.standard_metadata import set_clock, set_egress_time, set_standard, standard
from inakit.switch.fast.layout.layout import LOST
from inakit.switch.program.expressions import DROP_PORT, NORMAL, PORTS, RECIRCULATED, REPLICATED


def emit_architecture(context: Context) -> None:
    """Write `reset`, `egress_of`, `replicate`, and `receive`, which a packet enters by."""
    emit_begin(context)
    emit_reset(context)
    emit_lose(context)
    if context.layout.copying:
        emit_keeping(context)
        emit_egress(context)
        emit_passes(context)
        return
    emit_egress(context)
    emit_replicate(context)
    emit_receive(context)


def emit_begin(context: Context) -> None:
    """Write `begin`: before the parser no header is valid."""
    out, layout = context.out, context.layout
    with out.block("static INLINE void begin(PACKET *packet)"):
        out.line("__builtin_memset(&state.valid, 0, sizeof state.valid);")
        if not layout.rebuilt:
            out.line("__builtin_memset(&state.dirty, 0, sizeof state.dirty);")
        out.line("state.length = packet_length(packet);")
        if layout.rebuilt:
            out.line("state.head = 0, state.current_length = state.length;")
        if layout.digesting:
            out.line("state.digest = 0;")


def emit_reset(context: Context) -> None:
    """Write `reset`: when a packet comes, all metadata is 0 and no header is valid."""
    out, layout = context.out, context.layout
    with out.block("static INLINE void reset(PACKET *packet, u32 port)"):
        for header in context.program.headers.values():
            if header.metadata:
                out.line(f"__builtin_memset(&{layout.header(header.name)}, 0, sizeof {layout.header(header.name)});")
        out.line("begin(packet);")
        if layout.claims:
            out.line("state.failed = 0;")
        set_standard(context, "ingress_port", "port")
        set_standard(context, "packet_length", "state.length")
        set_clock(context, "ingress_global_timestamp")


def emit_lose(context: Context) -> None:
    """Write `lose`, which counts a packet that could not be made, or that found no room to wait."""
    if context.layout.losing:
        lost = context.layout.arrays[LOST]
        context.out.line(f"static INLINE int lose(void) {{ return own->{lost.symbol}[0].packets++, 0; }}")


def emit_egress(context: Context) -> None:
    """Write `egress_of`: one packet through egress and deparser; returns 1 if it is to leave by `port`."""
    out = context.out
    out.comment("egress_spec becomes the drop port plus one, as in simple_switch.")
    with out.block("FUNCTION int egress_of(PACKET *packet, u32 port, u32 copy)"):
        out.line("TAKEN(packet); TAKEN(port); TAKEN(copy);")
        set_standard(context, "egress_port", "port")
        set_standard(context, "egress_rid", "copy")
        set_clock(context, "enq_timestamp")
        set_egress_time(context)
        set_standard(context, "egress_spec", f"{DROP_PORT + 1}")
        set_standard(context, "packet_length", "state.current_length" if context.layout.rebuilt else "state.length")
        out.line(f"{context.layout.names.of(context.program.egress.name)}();")
        if context.layout.copying:
            out.line("if (asked.session) clone_egress(packet);")
        out.line(f"if ({standard(context, 'egress_spec')} == {DROP_PORT}) return 0;")
        if context.layout.claims:
            out.line("if (state.failed) return 0;")
        if context.layout.copying:
            out.line("if (deparse(packet)) return lose();")
            out.line(f"if (asked.recirculate) return come_in_again(packet, asked.recirculate, {RECIRCULATED});")
            out.line("return 1;")
            return
        out.line(f"return !deparse(packet){' || lose()' if context.layout.rebuilt else ''};")


def emit_replicate(context: Context) -> None:
    """Write `replicate`: a copy of the packet for each member of a group; the packet itself is the last one."""
    out = context.out
    with out.block("static INLINE int replicate(PACKET *packet, u32 number)"):
        out.line("const struct key_groups key = {{number}};")
        out.line("const struct entry_groups *group = find_groups(&key);")
        out.line(f"if (!group || {standard(context, 'priority')}) return drop(packet);")
        set_standard(context, "instance_type", str(REPLICATED))
        emit_saving(context)
        with out.block("for (u32 i = 0; i < MAX_REPLICAS && i < group->count; i++)"):
            emit_restoring(context)
            out.line("u32 port = group->replicas[i].port;")
            out.line("int leaves = egress_of(packet, port, group->replicas[i].copy);")
            out.line("if (i + 1 >= group->count) return leaves ? send(packet, port) : drop(packet);")
            out.line("if (leaves) send_copy(packet, port);")
        out.line("return drop(packet);")


def emit_receive(context: Context) -> None:
    """Write `receive`, a packet's whole way: a multicast group goes before the drop port, and that before a port."""
    out = context.out
    with out.block("static INLINE int receive(PACKET *packet, u32 port)"):
        out.line("reset(packet, port);")
        out.line("parse(packet);")
        out.line(f"{context.layout.names.of(context.program.ingress.name)}();")
        emit_learning(context)
        out.line(f"u32 group = {standard(context, 'mcast_grp')}, spec = {standard(context, 'egress_spec')};")
        out.line("if (group) return replicate(packet, group);")
        out.line(f"if (spec == {DROP_PORT} || spec >= {PORTS}) return drop(packet);")
        out.line("CHECKED(spec);")
        set_standard(context, "instance_type", str(NORMAL))
        out.comment("simple_switch has one queue for each port; a packet of another priority is lost.")
        out.line(f"if ({standard(context, 'priority')}) return drop(packet);")
        rid = standard(context, "egress_rid")
        out.line(f"return egress_of(packet, spec, {rid}) ? send(packet, spec) : drop(packet);")
