"""A program to one C file, and its compilation. The stages run in the order in which C needs their results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from inakit.switch.fast.compile.actions import emit_action
from inakit.switch.fast.compile.architecture import declare_metadata, declare_saved, emit_architecture
from inakit.switch.fast.compile.calculations import emit_calculations, hashed_bytes
from inakit.switch.fast.compile.context import Context, check, refusal
from inakit.switch.fast.compile.parser import ParserGenerator, emit_deparser
from inakit.switch.fast.compile.pipelines import (
    declare_entries,
    declare_value_set,
    emit_membership,
    emit_pipeline,
    emit_search,
)
from inakit.switch.fast.layout.layout import MAX_REPLICAS, ProgramLayout, declare_memory
from inakit.switch.fast.layout.table_layout import GROUP_RECORD, METER, METER_RATES
from inakit.switch.program.bmv2_json import MALFORMED, not_p4c
from inakit.switch.program.program import (
    DROP_PORT,
    EGRESS_CLONE,
    INGRESS_CLONE,
    NORMAL,
    PORTS,
    RECIRCULATED,
    REPLICATED,
    RESUBMITTED,
    Program,
)
from inakit.topo import c_library
from inakit.topo.c_library import Compiler
from inakit.topo.errors import UnsupportedError

KEPT = "_generated"
CONSTANTS = {
    "PORTS": PORTS,
    "DROP_PORT": DROP_PORT,
    "MAX_REPLICAS": MAX_REPLICAS,
    "NORMAL": NORMAL,
    "INGRESS_CLONE": INGRESS_CLONE,
    "EGRESS_CLONE": EGRESS_CLONE,
    "RECIRCULATED": RECIRCULATED,
    "REPLICATED": REPLICATED,
    "RESUBMITTED": RESUBMITTED,
}
"""Constants of BMv2's simple_switch that the headers of `switch/fast/c` use."""


@dataclass(frozen=True)
class GeneratedC:
    """The C text, and the layout for filling its memory and tables."""

    source: str
    layout: ProgramLayout


def generate(program: Program) -> GeneratedC:
    """The C of `program`; `UnsupportedError` names constructs that this target does not run exactly as BMv2 does.

    The result is cached with the program, since all switches of a network run the same one.
    """
    kept: dict[str, object] = vars(program)
    if KEPT not in kept:
        kept[KEPT] = generate_anew(program)
    return cast(GeneratedC, kept[KEPT])


def generate_anew(program: Program) -> GeneratedC:
    """The C of `program`, without the cache."""
    check(program)
    try:
        return write(Context(program))
    except UnsupportedError as error:
        raise refusal(program, str(error)) from None
    except MALFORMED as error:
        raise not_p4c(program.name, error) from error


def write(context: Context) -> GeneratedC:
    """Write the whole file."""
    program = context.program
    parser = ParserGenerator(context)
    emit_head(context)
    declare_types(context)
    emit_calculations(context)
    parser.emit()
    emit_deparser(context, parser.places)
    for action in program.actions:
        emit_action(context, action)
    emit_pipeline(context, program.ingress)
    emit_pipeline(context, program.egress)
    emit_architecture(context)
    context.out.line(f"ENTRY({parser.places.furthest})")
    return GeneratedC(context.out.text(), context.layout)


def emit_head(context: Context) -> None:
    """Write the sizes that the headers of `switch/fast/c` need, and include them."""
    context.out.comment(f"Generated from the BMv2 JSON of {context.program.name}; each part names its line there.")
    for name, number in CONSTANTS.items():
        context.out.line(f"#define {name} {number}")
    if context.layout.copying:
        context.out.line("#define COPIES")
    if context.layout.in_place:
        context.out.line("#define IN_PLACE")
    if context.layout.moving:
        context.out.line("#define MOVING")
    if context.layout.rebuilt:
        room = sum(context.layout.most_bytes(name) for name in context.program.deparser)
        context.out.line(f"#define HEAD_BYTES {max(room, 1)}")
    if size := hashed_bytes(context):
        context.out.line(f"#define HASHED_BYTES {size}")
    if context.layout.meters:
        context.out.line(f"#define METER_RATES {METER_RATES}")
    context.out.line('#include "runtime.h"')


def declare_types(context: Context) -> None:
    """Declare parameters, entries and tables; the packet's state; the switch's memory."""
    layout, out = context.layout, context.out
    for record in layout.parameters.values():
        record.declare(out)
    if context.program.profiles:
        GROUP_RECORD.declare(out)
    for table in (layout.changeable | layout.tables).values():
        declare_entries(context, table)
        if table.hashed:
            out.line(f"TABLE({table.symbol}, struct {table.key.name}, struct entry_{table.symbol}, {table.table.size})")
    for value_set in layout.value_sets.values():
        declare_value_set(context, value_set)
    declare_state(context)
    for front in layout.fronts.values():
        front.declare(out)
    records = {array.record.name: array.record for array in layout.arrays.values()}
    for record in records.values():
        if record is not METER and not record.name.startswith(("entry_", "front_", "listed_", "place_")):
            record.declare(out)
    declare_memory(layout, out)
    out.line("DECLARE_MEMORY")
    declare_metadata(context)
    if layout.copying:
        out.line('#include "copies.h"')
    for front in layout.fronts.values():
        out.line(f"FIND({front.symbol}, {front.bits})")
    for table in layout.tables.values():
        emit_search(context, table)
    for value_set in layout.value_sets.values():
        emit_membership(context, value_set)


def declare_state(context: Context) -> None:
    """Declare the packet being processed: its fields, its headers, which of them have changed and where they are."""
    layout, out = context.layout, context.out
    for record in {record.name: record for record in layout.state.values()}.values():
        record.declare(out)
    names = ", ".join(
        layout.names.of(header.name) for header in context.program.headers.values() if not header.metadata
    )
    with out.block("struct state", ";"):
        for header, record in layout.state.items():
            out.line(f"struct {record.name} {layout.names.of(header)};")
        out.line(f"struct {{ u8 {names}; }} valid;")
        if layout.rebuilt:
            out.line(
                "u32 head, current_length; // bytes of headers in front of the payload; of the packet as it would leave"
            )
        if layout.in_place:
            out.line(f"struct {{ u16 {names}; }} at;")
            out.line(f"struct {{ u8 {names}; }} dirty;")
        if layout.moving:
            out.line("u8 moved; // whether a header has been added or removed")
        out.line("u32 length;")
        if layout.claims:
            out.line("u32 failed;")
        if layout.digesting:
            out.line("u32 digest;")
    out.line("WHOLE struct state state;")
    declare_saved(context)


C_FOLDER = Path(__file__).parents[1] / "c"
"""The folder of the headers that the generated C includes."""

LIBRARY = replace(c_library.LIBRARY, headers=C_FOLDER)
EBPF = Compiler(
    ".o", ("clang",), ("-O2", "-g", "-w", "-target", "bpf", "-mcpu=v3", "-c", "-fno-strict-aliasing"), C_FOLDER
)
