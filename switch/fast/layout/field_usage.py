"""The fields that a program reads and writes. Fields that it never names stay in the packet.

If all headers of a program stay in place in the packet, fields are changed in place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from inakit.switch.fast.layout.records import WORD_BYTES
from inakit.switch.program.program import (
    JUMPS,
    STANDARD_METADATA,
    Action,
    Argument,
    Arguments,
    Boolean,
    Conditional,
    Constant,
    ElementField,
    Expression,
    Field,
    HeaderReference,
    Node,
    Operation,
    ParserState,
    Payload,
    Pipeline,
    Primitive,
    Program,
    Table,
)

WRITES = {
    "assign": 0,
    "execute_meter": 2,
    "modify_field_rng_uniform": 0,
    "modify_field_with_hash_based_offset": 0,
    "register_read": 0,
    "set": 0,
}
"""The position of the argument that each primitive writes."""


def parts_of(argument: Argument) -> Iterator[Argument]:
    """An argument or expression, and all of its parts."""
    yield argument
    match argument:
        case Operation(_, operands) | Arguments(operands):
            for operand in operands:
                yield from parts_of(operand)
        case ElementField(header):
            yield from parts_of(header)


def fields_in(argument: Argument) -> Iterator[Field]:
    """The fields named in an argument or expression."""
    return (part for part in parts_of(argument) if isinstance(part, Field))


def named_by(primitives: Iterable[Primitive]) -> set[Field]:
    """All fields that statements read or write."""
    return {field for each in primitives for argument in each.arguments for field in fields_in(argument)}


def written_by(primitives: Iterable[Primitive]) -> set[Field]:
    """The fields that statements write, without the metadata that `mark_to_drop` writes."""
    targets = [each.arguments[WRITES[each.name]] for each in primitives if each.name in WRITES]
    return {field for field in targets if isinstance(field, Field)}


COPYING = frozenset(
    ("clone_egress_pkt_to_egress", "clone_ingress_pkt_to_egress", "recirculate", "resubmit", "truncate")
)
"""Statements that make a packet leave more than once, return to the parser, or leave cut short."""

REPORTING = frozenset(("generate_digest",))
"""Statements that report a list of fields."""

WRITES_NOTHING = COPYING.union(
    JUMPS, ("assert", "assume", "count", "exit", "generate_digest", "log_msg", "register_write")
)
"""Statements that write no field."""

DROPPED = frozenset(("egress_spec", "mcast_grp"))
"""The metadata that `mark_to_drop` writes."""


def may_change(primitives: Iterable[Primitive], expression: Expression) -> bool:
    """Whether a statement can change a field of `expression`. A statement on whole headers can change any field."""
    read = set(fields_in(expression))
    for each in primitives:
        target = each.arguments[WRITES[each.name]] if each.name in WRITES else None
        if each.name == "mark_to_drop":
            changed = any(field.name in DROPPED for field in read)
        else:
            changed = target in read if isinstance(target, Field) else each.name not in WRITES_NOTHING
        if read and changed:
            return True
    return False


def statements_of(pipeline: Pipeline) -> list[Primitive]:
    """Every statement that a pipeline can run, in any order."""
    tables = [node for node in pipeline.nodes.values() if isinstance(node, Table)]
    actions = {action.number: action for table in tables for action in table.actions}
    return [primitive for action in actions.values() for primitive in action.primitives]


def meter_results(program: Program, pipeline: Pipeline) -> set[Field]:
    """The fields into which the direct meters of a pipeline's tables put their colours."""
    names = [node.meter for node in pipeline.nodes.values() if isinstance(node, Table) and node.meter is not None]
    return {result for name in names if (result := program.direct_meters[name].result) is not None}


def parser_statements(program: Program) -> list[Primitive]:
    return [operation for state in program.parser.states.values() for operation in state.operations]


def action_statements(program: Program) -> list[Primitive]:
    """Every statement of both pipelines' actions, in any order."""
    return [each for pipeline in program.pipelines for each in statements_of(pipeline)]


def uses(program: Program, names: Collection[str]) -> bool:
    """Whether an action has a statement of one of these names."""
    return any(each.name in names for each in action_statements(program))


def fields_of_node(node: Node) -> Iterator[Field]:
    """The fields in the node's condition or key, without those of its actions."""
    if isinstance(node, Conditional):
        yield from fields_in(node.condition)
    else:
        yield from (part.value for part in node.key if isinstance(part.value, Field))


def used_fields(program: Program) -> set[Field]:
    """Every field that the parser, a condition, a key, an action, a checksum or a calculation names."""
    return used_outside_actions(program) | named_by(action_statements(program))


def local_fields(program: Program) -> set[Field]:
    """The metadata that only actions name, each of which assigns them before it reads them: their own variables.

    p4c makes many: an operand that a statement cannot name itself, such as the index of a register.
    """
    kept = used_outside_actions(program).union(*map(read_before_assigned, program.actions))
    named = named_by(action_statements(program))
    return {field for field in named - kept if field.bits <= 8 * WORD_BYTES and is_own_metadata(program, field)}


def is_own_metadata(program: Program, field: Field) -> bool:
    """Whether a field is metadata of the program, and not of the switch."""
    return program.headers[field.header].metadata and field.header != STANDARD_METADATA


def read_before_assigned(action: Action) -> set[Field]:
    """The fields that an action may read before its first assignment of them; all, where it may jump backwards."""
    found: set[Field] = set()
    assigned: set[Field] | None = set()
    arriving: dict[int, set[Field]] = {}
    for at, each in enumerate(action.primitives):
        if at in arriving:
            assigned = arriving[at] if assigned is None else assigned & arriving[at]
        if assigned is None:
            continue
        targets = {each.arguments[0]} if each.name == "assign" and isinstance(each.arguments[0], Field) else set()
        read = named_by([replace(each, arguments=each.arguments[len(targets) :])])
        found |= read - assigned
        assigned = assigned | targets
        if each.name in JUMPS:
            target = each.arguments[JUMPS[each.name]]
            if not isinstance(target, Constant) or target.value <= at:
                return named_by(action.primitives)
            arriving[target.value] = arriving.get(target.value, assigned) & assigned
            assigned = None if each.name == "_jump" else assigned
    return found


def read_in_egress_actions_only(program: Program, field: Field) -> bool:
    """Whether egress actions read a field and nothing else reads or writes it."""
    egress = statements_of(program.egress)
    elsewhere = used_outside_actions(program) | named_by(statements_of(program.ingress)) | written_by(egress)
    return field in named_by(egress) and field not in elsewhere


def used_outside_actions(program: Program) -> set[Field]:
    """Every field that the parser, a condition, a key, a checksum or a calculation names, or that copies keep."""
    found = named_by(parser_statements(program))
    for state in program.parser.states.values():
        found |= {field for field in state.key if isinstance(field, Field)}
    for pipeline in program.pipelines:
        found |= meter_results(program, pipeline)
        found |= {field for node in pipeline.nodes.values() for field in fields_of_node(node)}
    for names, lists in ((COPYING, program.field_lists), (REPORTING, program.digests)):
        if uses(program, names):
            found |= {field for each in lists.values() for field in each.only_fields}
    for calculation in program.all_calculations:
        found |= {part for part in calculation.input if isinstance(part, Field)}
    for checksum in program.checksums:
        found |= {checksum.target, *fields_in(checksum.condition or Boolean(True))}
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


IN_PLACE_OPERATIONS = frozenset(("extract", "set", "verify"))
MOVING = frozenset(("add_header", "remove_header"))
"""Statements that make headers behind theirs move, if they change its validity."""


def headers_stay(program: Program) -> bool:
    """Whether each extracted header is emitted once, in the order of extraction, unless a statement moves it."""
    order = program.deparser
    if program.stacks or program.unions or program.union_stacks or len(set(order)) < len(order):
        return False
    return not whole_headers_named(program) and parser_keeps_order(program)


def whole_headers_named(program: Program) -> bool:
    """Whether a condition, calculation or other statement than `MOVING` concerns a whole header, or the payload."""
    nodes = [node for pipeline in program.pipelines for node in pipeline.nodes.values()]
    statements = [statement for statement in action_statements(program) if statement.name not in MOVING]
    arguments = [argument for statement in statements for argument in statement.arguments]
    arguments += [node.condition for node in nodes if isinstance(node, Conditional)]
    named = [part for argument in arguments for part in parts_of(argument)]
    named += [part for calculation in program.all_calculations for part in calculation.input]  # type: ignore[misc]
    headers = (part.header for part in named if isinstance(part, HeaderReference))
    payload = any(isinstance(part, Payload) for part in named)
    return payload or any(not program.headers[name].metadata for name in headers)


def parser_keeps_order(program: Program) -> bool:
    """Whether every path through the parser extracts headers in the order in which the deparser emits them."""
    waiting, seen = [(program.parser.first, -1)], set()
    while waiting:
        name, last = waiting.pop()
        if (name, last) in seen:
            continue
        seen.add((name, last))
        state = program.parser.states[name]
        after = last_emitted(state, program.deparser, last)
        if after is None:
            return False
        waiting += [(each.next_state, after) for each in state.transitions if each.next_state is not None]
    return True


def last_emitted(state: ParserState, order: tuple[str, ...], last: int) -> int | None:
    """The place in the deparser's order of the last header that `state` extracts, if entered at `last`.

    None if it extracts a header out of order, or has an operation other than extract, set and verify.
    """
    for operation in state.operations:
        if operation.name not in IN_PLACE_OPERATIONS:
            return None
        if operation.name == "extract":
            header = operation.arguments[0]
            if not isinstance(header, HeaderReference) or header.header not in order[last + 1 :]:
                return None
            last = order.index(header.header)
    return last
