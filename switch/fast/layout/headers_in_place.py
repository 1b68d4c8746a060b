"""Whether all headers of a program stay where they are in the packet: then fields are changed in place."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.fast.layout.field_usage import parts_of, statements_of
from inakit.switch.program.program import Argument
from inakit.switch.program.expressions import Payload
from inakit.switch.program.expressions import HeaderReference
from inakit.switch.program.program import ParserState
from inakit.switch.program.program import Conditional, Pipeline
from inakit.switch.program.program import Program

IN_PLACE_OPERATIONS = frozenset(("extract", "set", "verify"))


def headers_stay(program: Program) -> bool:
    """Whether each extracted header is emitted once, in the order of extraction, and none comes or goes later."""
    order = program.deparser
    if program.stacks or program.unions or program.union_stacks or len(set(order)) < len(order):
        return False
    return not whole_headers_named(program) and parser_keeps_order(program)


def whole_headers_named(program: Program) -> bool:
    """Whether a statement, condition or calculation is about a header as a whole, or about the payload."""
    arguments = [each for pipeline in (program.ingress, program.egress) for each in arguments_of(pipeline)]
    named = [part for argument in arguments for part in parts_of(argument)]
    named += [part for calculation in program.all_calculations for part in calculation.input]  # type: ignore[misc]
    headers = (part.header for part in named if isinstance(part, HeaderReference))
    payload = any(isinstance(part, Payload) for part in named)
    return payload or any(not program.headers[name].metadata for name in headers)


def arguments_of(pipeline: Pipeline) -> Iterator[Argument]:
    """All arguments of a pipeline's statements, and its conditions."""
    for statement in statements_of(pipeline):
        yield from statement.arguments
    yield from (node.condition for node in pipeline.nodes.values() if isinstance(node, Conditional))


def parser_keeps_order(program: Program) -> bool:
    """Whether every way through the parser extracts headers in the order in which the deparser emits them."""
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

    None if it extracts a header out of order, or has an operation that does more than extract, set and verify.
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
