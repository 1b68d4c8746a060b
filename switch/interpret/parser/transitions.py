"""How a parser state chooses the next one, as a function of a packet."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.expressions.expressions import value_of
from inakit.switch.interpret.parser.parser_operations import lookahead
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, Value
from inakit.switch.program.expressions import LastField, Lookahead, Unknown
from inakit.switch.program.expressions import Field
from inakit.switch.program.program import ParserState, Transition

ACCEPT = -1
"""The number of the state that ends the parser."""


# {"type": "hexstr", "value": "0x0800", "mask": null, "next_state": "ipv4"}
def transition_of(context: Context, state: ParserState, numbers: dict[str, int]) -> Value:
    """The function that gives the number of the next state: of the first transition that matches, or the default."""

    def number(transition: Transition) -> int:
        return ACCEPT if transition.next_state is None else numbers[transition.next_state]

    default = next((number(each) for each in state.transitions if is_default(each)), ACCEPT)
    cases = [each for each in state.transitions if not is_default(each)]
    if not state.key or not cases:
        return lambda _packet: default
    key = context.trace.key(state, key_of(context, state))
    if all(each.mask is None and each.value_set is None for each in cases):
        exact = {each.value: number(each) for each in reversed(cases)}
        return lambda packet: exact.get(key(packet), default)
    tests = [(matcher(context, each), number(each)) for each in cases]

    def choose(packet: Packet) -> int:
        value = key(packet)
        return next((following for matches, following in tests if matches(value)), default)

    return choose


def is_default(transition: Transition) -> bool:
    """Whether a transition always matches."""
    return transition.value is None and transition.value_set is None


def matcher(context: Context, transition: Transition) -> Callable[[int], bool]:
    """The function that says whether a state's key takes this transition."""
    mask = -1 if transition.mask is None else transition.mask
    if transition.value_set is not None:
        members = context.state.value_sets[transition.value_set]
        return lambda key: key in members if mask == -1 else any(key & mask == each & mask for each in members)
    wanted = (transition.value or 0) & mask
    return lambda key: key & mask == wanted


def key_of(context: Context, state: ParserState) -> Value:
    """The function that gives what transitions look at: the parts side by side, each in its bits."""
    known = [part for part in state.key if not isinstance(part, Unknown)]
    parts = [(key_part(context, part), part.bits) for part in known]
    if len(known) < len(state.key):
        raise context.refusal(f"a select of parser state '{state.name}' on something else than fields")
    if len(parts) == 1:
        return parts[0][0]

    def value(packet: Packet) -> int:
        number = 0
        for part, bits in parts:
            number = number << bits | part(packet)
        return number

    return value


def key_part(context: Context, part: Field | LastField | Lookahead) -> Value:
    """The function that gives one part of what transitions look at."""
    if isinstance(part, Lookahead):
        return lookahead(part)
    value, ones = value_of(context, part), (1 << part.bits) - 1
    return (lambda packet: value(packet) & ones) if not isinstance(part, Field) or part.signed else value
