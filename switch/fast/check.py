"""Refuses, by name and before anything runs, what the generator would not do exactly as BMv2 does.

Limits of arithmetic and of the packet's layout show only while C is written, and are refused there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from switch.fast.actions import PRIMITIVES
from switch.fast.layout import STANDARD
from switch.fast.usage import used_fields
from switch.program import (
    Argument,
    Boolean,
    Constant,
    Counter,
    Field,
    Header,
    HeaderReference,
    Operation,
    Parameter,
    Pipeline,
    Primitive,
    Program,
    Register,
    Table,
    Unknown,
    Validity,
)
from topo.errors import UnsupportedError

MAX_FIELD_BITS = 64

# Parts of a program that the generator has no place for, by what one of them is called.
DECLARED: dict[str, Callable[[Program], Iterable[str]]] = {
    "checksum": lambda program: (checksum.name for checksum in program.checksums),
    "header stack": lambda program: program.stacks,
    "header union": lambda program: program.unions,
    "stack of header unions": lambda program: program.union_stacks,
    "parser value set": lambda program: program.value_sets,
    "meter": lambda program: [*program.meters, *program.direct_meters],
    "digest": lambda program: (digest.name for digest in program.digests.values()),
    "hash calculation": lambda program: program.calculations,
    "extern instance": lambda program: program.externs,
    "direct counter": lambda program: program.direct_counters,
    "header of variable length": lambda program: (h.name for h in program.headers.values() if has_variable(h)),
    "statement in the deparser": lambda program: (each.name for each in program.deparser_statements),
}

# What an argument or an expression may be.
WRITTEN = Constant | Boolean | Validity | Parameter | Field | Operation | Register | Counter | HeaderReference

# Metadata that BMv2 fills from its clock and queues, which the kernel has not got.
UNAVAILABLE = frozenset(
    (
        "enq_timestamp",
        "enq_qdepth",
        "deq_timedelta",
        "deq_qdepth",
        "ingress_global_timestamp",
        "egress_global_timestamp",
        "checksum_error",
    )
)


def check(program: Program) -> None:
    """Raise `UnsupportedError` for the first construct that target 'fast' does not run."""
    for extra in program.extras:
        raise refusal(program, f"{extra.kind} '{extra.name}'")
    for kind, names in DECLARED.items():
        for name in names(program):
            raise refusal(program, f"{kind} '{name}'")
    check_fields(program)
    check_state(program)
    for action in program.actions:
        for primitive in action.primitives:
            check_primitive(program, primitive)
    for pipeline in (program.ingress, program.egress):
        check_pipeline(program, pipeline)


def refusal(program: Program, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"program '{program.name}' uses {what}, which target 'fast' does not support: "
        "run it on BMv2 (SWITCH=bmv2), or take it out of the program"
    )


def check_fields(program: Program) -> None:
    for field in sorted(used_fields(program), key=str):
        if field.bits > MAX_FIELD_BITS:
            raise refusal(program, f"field '{field}' of {field.bits} bits (more than {MAX_FIELD_BITS})")
        if field.header == STANDARD and field.name in UNAVAILABLE:
            raise refusal(program, f"metadata field '{field}'")


def check_state(program: Program) -> None:
    for register in program.registers.values():
        if register.bits > MAX_FIELD_BITS:
            raise refusal(program, f"register '{register.name}' of {register.bits} bits (more than {MAX_FIELD_BITS})")
    for action in program.actions:
        for parameter in action.parameters:
            if parameter.bits > MAX_FIELD_BITS:
                name = f"{action.name}.{parameter.name}"
                raise refusal(program, f"parameter '{name}' of {parameter.bits} bits (more than {MAX_FIELD_BITS})")


def check_primitive(program: Program, primitive: Primitive) -> None:
    where = f" ({primitive.source})" if primitive.source else ""
    if primitive.name not in PRIMITIVES:
        raise refusal(program, f"primitive '{primitive.name}'{where}")
    for argument in primitive.arguments:
        foreign = foreign_in(argument)
        if foreign is not None:
            raise refusal(program, f"{foreign}{where}")


def has_variable(header: Header) -> bool:
    return any(field.variable for field in header.fields)


def foreign_in(argument: Argument) -> str | None:
    """The first part of an argument that the generator has no C for, as the message names it."""
    if isinstance(argument, Unknown):
        return f"{argument.kind} '{argument.name}'"
    if not isinstance(argument, WRITTEN):
        return f"'{argument}'"
    if isinstance(argument, Operation):
        header = next((each for each in argument.operands if isinstance(each, HeaderReference)), None)
        if header is not None:
            return f"operand '{header.header}'"
        return next(filter(None, map(foreign_in, argument.operands)), None)
    return None


def check_pipeline(program: Program, pipeline: Pipeline) -> None:
    for node in pipeline.nodes.values():
        if isinstance(node, Table):
            check_table(program, node)
        elif foreign_in(node.condition) is not None:
            raise refusal(program, f"the condition '{node.source or node.name}'")


def check_table(program: Program, table: Table) -> None:
    for what, present in properties_of(table).items():
        if present:
            raise refusal(program, f"{what} of table '{table.name}'")
    for part in table.key:
        if part.match != "exact":
            raise refusal(program, f"match kind '{part.match}' of '{part.name}' in table '{table.name}'")
        if isinstance(part.value, Unknown):
            raise refusal(program, f"{part.value.kind} '{part.name}' in table '{table.name}'")
        if part.mask is not None:
            raise refusal(program, f"masked key '{part.name}' in table '{table.name}'")
    if table.default is None:
        raise refusal(program, f"table '{table.name}' without a default action")


def properties_of(table: Table) -> dict[str, bool]:
    """Properties of tables that the generator does not know, and whether `table` has them."""
    return {
        "action profile": table.profile is not None,
        "'const entries'": bool(table.entries),
        "direct counter": table.counted,
        "direct meter": table.meter is not None,
        "idle timeout": table.idle_timeout,
    }
