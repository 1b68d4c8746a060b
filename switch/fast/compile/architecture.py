"""BMv2's simple_switch to C: what happens to a packet around the parser and the two pipelines, and to its copies."""

from __future__ import annotations

from collections.abc import Iterable

from inakit.switch.fast.compile.actions import emit_learning
from inakit.switch.fast.compile.context import (
    Context,
    set_clock,
    set_egress_time,
    set_standard,
    standard,
    standard_assignment,
)
from inakit.switch.fast.layout.field_usage import meter_results, statements_of, written_by
from inakit.switch.fast.layout.layout import LOST, MIRRORS
from inakit.switch.program.expressions import (
    DROP_PORT,
    EGRESS_CLONE,
    INGRESS_CLONE,
    NORMAL,
    PORTS,
    RECIRCULATED,
    REPLICATED,
    RESUBMITTED,
    Field,
)

INSTANCE_TYPES = {
    "NORMAL": NORMAL,
    "INGRESS_CLONE": INGRESS_CLONE,
    "EGRESS_CLONE": EGRESS_CLONE,
    "REPLICATED": REPLICATED,
    "RESUBMITTED": RESUBMITTED,
}
READ_FIELDS = {
    "PRIORITY": "priority",
    "EGRESS_RID": "egress_rid",
    "MULTICAST_GROUP": "mcast_grp",
    "EGRESS_SPEC": "egress_spec",
}
"""What passes.h calls the metadata fields of the switch that it reads."""


def kept_for_copies(context: Context) -> list[Field]:
    """The fields that egress changes: each copy has to start with what ingress left in them."""
    owned = set(context.layout.intrinsic.values())
    egress = context.program.egress
    written = (written_by(statements_of(egress)) | meter_results(context.program, egress)) - owned
    return sorted(written, key=lambda field: (field.header, field.offset))


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


def emit_copies(context: Context) -> None:
    """Write what passes.h needs of the program, for packets that are copied or come in again, and include it."""
    out, layout, program = context.out, context.layout, context.program
    metadata, headers = split_records(context)
    emit_copying(context, "keep_metadata", metadata, "one->state", "state")
    emit_copying(context, "keep_headers", headers, "one->state", "state")
    emit_copying(context, "take_metadata", metadata, "state", "one->state")
    emit_copying(context, "take_headers", headers, "state", "one->state")
    emit_kept_fields(context, metadata)
    with out.block("static INLINE void clear_metadata(void)"):
        for member in metadata:
            out.line(f"__builtin_memset(&state.{member}, 0, sizeof state.{member});")
    for name, emit in (("save", emit_saving), ("restore", emit_restoring), ("learn", emit_learning)):
        with out.block(f"static INLINE void {name}(void)"):
            emit(context)
    for name, text in (
        ("MIRROR_SESSIONS", layout.arrays[MIRRORS].symbol),
        ("SESSIONS", layout.arrays[MIRRORS].length),
        ("INGRESS", layout.names.of(program.ingress.name)),
        *((macro, standard(context, field)) for macro, field in READ_FIELDS.items()),
        *(INSTANCE_TYPES | {"DROP_PORT": DROP_PORT}).items(),
    ):
        out.line(f"#define {name} {text}")
    for macro, field in (
        ("SET_INGRESS_PORT", "ingress_port"),
        ("SET_PACKET_LENGTH", "packet_length"),
        ("SET_INSTANCE_TYPE", "instance_type"),
    ):
        out.line(f"#define {macro}(value) {standard_assignment(context, field, 'value')}")
    out.line('#include "passes.h"')


def split_records(context: Context) -> tuple[list[str], list[str]]:
    """The members of `struct state`: those of metadata, and all others."""
    layout, headers = context.layout, context.program.headers
    metadata = [layout.names.of(name) for name in layout.state if headers[name].metadata]
    others = [layout.names.of(name) for name in layout.state if not headers[name].metadata]
    places = ["head", "current_length"] if layout.rebuilt else ["at", "dirty"]
    return metadata, [*others, "valid", *places, "length"]


def emit_copying(context: Context, name: str, members: Iterable[str], to: str, of: str) -> None:
    """Write a function that copies members of the state from or to the place of a packet that waits."""
    with context.out.block(f"FUNCTION int {name}(u64 place)"):
        context.out.line("AT_PLACE(place, -1);")
        for member in members:
            context.out.line(f"{to}.{member} = {of}.{member};")
        context.out.line("return 0;")


def emit_kept_fields(context: Context, metadata: list[str]) -> None:
    """Write `keep_fields`: metadata are 0 but for the fields of a list, and for what kind of packet it is."""
    out = context.out
    with out.block("FUNCTION int keep_fields(u64 place, u32 list, u32 kind)"):
        out.line("AT_PLACE(place, -1);")
        out.line("TAKEN(list); TAKEN(kind);")
        for member in metadata:
            out.line(f"__builtin_memset(&one->state.{member}, 0, sizeof one->state.{member});")
        with out.block("switch (list)"):
            for number, fields in context.program.field_lists.items():
                kept = [context.layout.field(each) for each in fields.fields if isinstance(each, Field)]
                assignments = " ".join(f"one->{field} = {field};" for field in kept)
                out.line(f"case {number}: {assignments} break;")
        if instance_type := context.layout.intrinsic.get("instance_type"):
            out.line(f"one->{context.layout.field(instance_type)} = kind;")
        out.line("return 0;")


def emit_architecture(context: Context) -> None:
    """Write `reset`, `egress_of`, `replicate`, and `receive`, which a packet enters by."""
    emit_begin(context)
    emit_reset(context)
    if context.layout.losing:
        lost = context.layout.arrays[LOST]
        context.out.line(f"static INLINE int lose(void) {{ return own->{lost.symbol}[0].packets++, 0; }}")
    if context.layout.copying:
        emit_copies(context)
        emit_egress(context)
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
