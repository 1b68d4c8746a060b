"""BMv2's simple_switch to C: the program-dependent parts of simple_switch.h beside the parser and the two pipelines."""

from __future__ import annotations

from inakit.switch.fast.compile.actions import emit_learning
from inakit.switch.fast.compile.context import Context
from inakit.switch.fast.layout.field_usage import MOVING, meter_results, statements_of, written_by
from inakit.switch.fast.layout.layout import CLOCKS, LOST, METADATA, MIRRORS, STARTED
from inakit.switch.program.program import Field

NO_CLOCK = "0"


def whole_state(context: Context) -> bool:
    """Whether egress may change more than fields: the validity of headers, or whole ones."""
    statements = statements_of(context.program.egress)
    return not context.layout.in_place or any(each.name in MOVING for each in statements)


def kept_fields(context: Context) -> list[Field]:
    """The fields that egress changes, if it changes no more: each copy starts with ingress's values."""
    owned, egress = set(context.layout.intrinsic.values()), context.program.egress
    written = (written_by(statements_of(egress)) | meter_results(context.program, egress)) - owned
    return sorted(written - context.layout.local, key=lambda field: (field.header, field.offset))


def kept_parts(context: Context) -> list[tuple[str, str]]:
    """For each part of the state that egress may change, the C expressions of its saved copy and of the part itself."""
    if whole_state(context):
        names = [*map(context.layout.names.of, context.layout.state), "valid", "current_length"]
        return [(f"saved.{name}", f"state.{name}") for name in names]
    return [(f"saved.field_{index}", context.layout.field(field)) for index, field in enumerate(kept_fields(context))]


def declare_saved(context: Context) -> None:
    """Declare `saved`, in which `replicate` keeps the parts of the state that egress changes."""
    if whole_state(context):
        context.out.line("WHOLE struct state saved;")
    elif kept := kept_fields(context):
        with context.out.block("WHOLE struct", " saved;"):
            for index, field in enumerate(kept):
                context.out.line(f"u{64 if field.bits <= 64 else 128} field_{index};")


def declare_metadata(context: Context) -> None:
    """Define the macros that read and set the switch's own metadata; a missing field reads as 0."""
    out, layout = context.out, context.layout
    for name in (*METADATA, *CLOCKS):
        field = layout.intrinsic.get(name)
        text = NO_CLOCK if field is None else layout.field(field)
        out.line(f"#define META_{name.upper()} {text}")
        kept = "" if field is None else f" {text} = (value) & {(1 << field.bits) - 1:#x}ull"
        out.line(f"#define SET_{name.upper()}(value){kept}")
    started = layout.arrays.get(STARTED)
    out.line(f"#define MICROSECONDS {f'((clock_ns() - own->{started.symbol}[0].ns) / 1000)' if started else NO_CLOCK}")


def emit_copied_state(context: Context) -> None:
    """Write the functions for passes.h: they keep and restore parts of the state of a waiting packet."""
    out, layout, program = context.out, context.layout, context.program
    metadata = [layout.names.of(name) for name in layout.state if program.headers[name].metadata]
    others = [layout.names.of(name) for name in layout.state if not program.headers[name].metadata]
    others += ["valid", *layout.places, "length"]
    for name, members, to, of in (
        ("keep_metadata", metadata, "one->state", "state"),
        ("keep_headers", others, "one->state", "state"),
        ("take_metadata", metadata, "state", "one->state"),
        ("take_headers", others, "state", "one->state"),
    ):
        with out.block(f"FUNCTION int {name}(u64 place)"):
            out.line("AT_PLACE(place, -1);")
            for member in members:
                out.line(f"{to}.{member} = {of}.{member};")
            out.line("return 0;")
    out.comment("Metadata are 0 but for the fields of a list, and for what kind of packet it is.")
    with out.block("FUNCTION int keep_fields(u64 place, u32 list, u32 kind)"):
        out.line("AT_PLACE(place, -1);")
        out.line("TAKEN(list); TAKEN(kind);")
        for member in metadata:
            out.line(f"__builtin_memset(&one->state.{member}, 0, sizeof one->state.{member});")
        with out.block("switch (list)"):
            for number, fields in program.field_lists.items():
                kept = " ".join(f"one->{field} = {field};" for field in map(layout.field, fields.only_fields))
                out.line(f"case {number}: {kept} break;")
        if instance_type := layout.intrinsic.get("instance_type"):
            out.line(f"one->{layout.field(instance_type)} = kind;")
        out.line("return 0;")
    out.line(f"#define MIRROR_SESSIONS {layout.arrays[MIRRORS].symbol}")
    out.line(f"#define SESSIONS {layout.arrays[MIRRORS].length}")


def emit_architecture(context: Context) -> None:
    """Write the parts of simple_switch.h that depend on the program, and include it."""
    out, layout, program = context.out, context.layout, context.program
    if layout.copying:
        emit_copied_state(context)
    with out.block("static INLINE void clear_metadata(void)"):
        for header in (layout.header(name) for name in layout.state if program.headers[name].metadata):
            out.line(f"__builtin_memset(&{header}, 0, sizeof {header});")
    with out.block("static INLINE void save(void)"):
        for saved, place in kept_parts(context):
            out.line(f"{saved} = {place};")
    with out.block("static INLINE void restore(void)"):
        for saved, place in kept_parts(context):
            out.line(f"{place} = {saved};")
        if not whole_state(context):
            context.touch(kept_fields(context))
    with out.block("static INLINE void learn(void)"):
        emit_learning(context)
    for name, text in (
        ("INGRESS", layout.names.of(program.ingress.name)),
        ("EGRESS", layout.names.of(program.egress.name)),
        ("LATE_CLOCK", int(layout.late_clock is not None)),
        *((("LOST", layout.arrays[LOST].symbol),) if layout.losing else ()),
        *((("CLAIMS", ""),) if layout.claims else ()),
        *((("DIGESTS", ""),) if layout.digesting else ()),
    ):
        out.line(f"#define {name} {text}")
    out.line('#include "simple_switch.h"')
