"""What a copy of a packet begins egress with: `saved` keeps what ingress has left in the state."""

from __future__ import annotations

from inakit.switch.fast.compile.context import Context
from inakit.switch.fast.layout.field_usage import meter_results, statements_of, written_by
from inakit.switch.program.expressions import Field


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
