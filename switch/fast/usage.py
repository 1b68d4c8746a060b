"""Which fields a program reads and writes, and where: what nobody names stays in the packet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from switch.program import (
    Action,
    Argument,
    Conditional,
    Field,
    HeaderReference,
    Node,
    Operation,
    Pipeline,
    Primitive,
    Program,
    Table,
)

# The position of the argument that each primitive writes.
WRITES = {"assign": 0, "register_read": 0, "set": 0}


def fields_in(argument: Argument) -> Iterator[Field]:
    """The fields named in an argument or expression."""
    if isinstance(argument, Field):
        yield argument
    elif isinstance(argument, Operation):
        for operand in argument.operands:
            yield from fields_in(operand)


def named_by(primitives: Iterable[Primitive]) -> set[Field]:
    """All fields that statements read or write."""
    return {field for each in primitives for argument in each.arguments for field in fields_in(argument)}


def written_by(primitives: Iterable[Primitive]) -> set[Field]:
    """The fields that statements write; `mark_to_drop` writes metadata that targets know of."""
    targets = [each.arguments[WRITES[each.name]] for each in primitives if each.name in WRITES]
    return {field for field in targets if isinstance(field, Field)}


def actions_of(node: Node) -> tuple[Action, ...]:
    return node.actions if isinstance(node, Table) else ()


def statements_of(pipeline: Pipeline) -> list[Primitive]:
    """Every statement that a pipeline can run."""
    actions = {action for node in pipeline.nodes.values() for action in actions_of(node)}
    return [primitive for action in actions for primitive in action.primitives]


def parser_statements(program: Program) -> list[Primitive]:
    return [operation for state in program.parser.states.values() for operation in state.operations]


def fields_of_node(node: Node) -> Iterator[Field]:
    """The fields that the node itself reads, its actions aside."""
    if isinstance(node, Conditional):
        yield from fields_in(node.condition)
    else:
        yield from (part.value for part in node.key if isinstance(part.value, Field))


def used_fields(program: Program) -> set[Field]:
    """Every field that the parser, a condition, a key or an action names."""
    found = named_by(parser_statements(program))
    for state in program.parser.states.values():
        found |= {field for field in state.key if isinstance(field, Field)}
    for pipeline in (program.ingress, program.egress):
        found |= named_by(statements_of(pipeline))
        found |= {field for node in pipeline.nodes.values() for field in fields_of_node(node)}
    return found


def extracted_headers(program: Program) -> list[str]:
    """The headers that some parser state extracts, in the order of the program's declarations."""
    found = {
        argument.header
        for each in parser_statements(program)
        for argument in each.arguments
        if each.name == "extract" and isinstance(argument, HeaderReference)
    }
    return [name for name in program.headers if name in found]
