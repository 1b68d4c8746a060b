"""The parser as functions of a packet: each state is one, and returns the number of the state that follows."""

from __future__ import annotations

from inakit.switch.interpret.actions.actions import statement
from inakit.switch.interpret.parser.checksums import checksums_verified
from inakit.switch.interpret.parser.parser_operations import PARSER_OPERATIONS, ParserError
from inakit.switch.interpret.parser.transitions import ACCEPT, transition_of
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, Run, Value
from inakit.switch.program.program import Primitive
from inakit.switch.program.program import ParserState
from inakit.topo.errors import RunError

MAX_STEPS = 1 << 16
"""A packet that goes through more states is in a loop."""


def parser_of(context: Context) -> Run:
    """The function that parses a packet. An error stops it and leaves what was extracted before."""
    parser = context.program.parser
    numbers = {name: number for number, name in enumerate(parser.states)}
    states = [state_of(context, state, numbers) for state in parser.states.values()]
    first, verify, note = numbers[parser.first], checksums_verified(context), context.trace.note
    names = {number: name for name, number in context.program.errors.items()}
    no_error = context.program.no_error

    def follow(packet: Packet) -> None:
        at = first
        for _ in range(MAX_STEPS):
            at = states[at](packet)
            if at == ACCEPT:
                return
        raise RunError(f"the parser of '{context.program.name}' has gone through {MAX_STEPS} states: it loops")

    def parse(packet: Packet) -> None:
        packet.parsed, packet.error = 0, no_error
        try:
            follow(packet)
        except ParserError as error:
            packet.error = error.number
            note(f"Exception while parsing: {names.get(error.number, error.number)}")
        if verify is not None:
            verify(packet)

    return parse


# {"name": "ipv4", "parser_ops": [...], "transition_key": [...], "transitions": [...]}
def state_of(context: Context, state: ParserState, numbers: dict[str, int]) -> Value:
    """The function of one state; `numbers` has the numbers of all states."""
    steps = [operation_of(context, operation) for operation in state.operations]
    following = transition_of(context, state, numbers)

    def run(packet: Packet) -> int:
        for step in steps:
            step(packet)
        return following(packet)

    return context.trace.state(state, run)


def operation_of(context: Context, operation: Primitive) -> Run:
    """The function of one operation, or of one primitive of actions that stands in a state."""
    handler = PARSER_OPERATIONS.get(operation.name)
    if handler is None:
        return statement(context, operation)
    with context.located(operation.source):
        return context.trace.statement(operation, handler(context, *operation.arguments))
