"""Refuses, by name and before anything runs, what the generator would not do exactly as BMv2 does.

Limits of arithmetic and of the packet's layout show only while C is written, and are refused there.
"""

from __future__ import annotations

from switch.fast.actions import PRIMITIVES
from switch.fast.layout import STANDARD
from switch.fast.usage import used_fields
from switch.program import Argument, Operation, Pipeline, Primitive, Program, Table, Unknown
from topo.errors import UnsupportedError

MAX_FIELD_BITS = 64

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
        unknown = unknown_in(argument)
        if unknown is not None:
            raise refusal(program, f"{unknown.kind} '{unknown.name}'{where}")


def unknown_in(argument: Argument) -> Unknown | None:
    """The first part of an argument that the program's representation has no word for."""
    if isinstance(argument, Unknown):
        return argument
    if isinstance(argument, Operation):
        found = (unknown_in(operand) for operand in argument.operands)
        return next((each for each in found if each is not None), None)
    return None


def check_pipeline(program: Program, pipeline: Pipeline) -> None:
    for node in pipeline.nodes.values():
        if isinstance(node, Table):
            check_table(program, node)
        elif unknown_in(node.condition) is not None:
            raise refusal(program, f"the condition '{node.source or node.name}'")


def check_table(program: Program, table: Table) -> None:
    for extra in table.extras:
        raise refusal(program, f"{extra.kind} '{extra.name}' of table '{table.name}'")
    for part in table.key:
        if part.match != "exact":
            raise refusal(program, f"match kind '{part.match}' of '{part.name}' in table '{table.name}'")
        if isinstance(part.value, Unknown):
            raise refusal(program, f"{part.value.kind} '{part.name}' in table '{table.name}'")
    if table.default is None:
        raise refusal(program, f"table '{table.name}' without a default action")
