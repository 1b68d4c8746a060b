"""Operators on numbers as functions of a packet. Numbers are Python's integers: of any width, and never rounded."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.state.packets.packet import Packet, Value
from inakit.topo.errors import RunError

WIDEST_SHIFT = 1 << 16
"""A wider shift to the left changes nothing: p4c keeps at most 2048 bits of a shifted number."""


def shift_left(left: Value, right: Value) -> Value:
    """`<<`, up to `WIDEST_SHIFT` bits."""
    return lambda packet: left(packet) << min(right(packet), WIDEST_SHIFT)


def whole_quotient(left: Value, right: Value) -> Value:
    """`/`, of what is not negative by what is greater than 0; with other numbers BMv2 ends."""

    def divide(packet: Packet) -> int:
        return divided(left(packet), right(packet))[0]

    return divide


def remainder(left: Value, right: Value) -> Value:
    """`%`, of what is not negative by what is greater than 0; with other numbers BMv2 ends."""

    def divide(packet: Packet) -> int:
        return divided(left(packet), right(packet))[1]

    return divide


def divided(number: int, by: int) -> tuple[int, int]:
    """Quotient and remainder; `RunError` where BMv2 ends."""
    if number < 0 or by <= 0:
        raise RunError(f"the program divides {number} by {by}: BMv2 ends here")
    return divmod(number, by)


def two_complement(operand: Value, width: Value) -> Value:
    """`two_comp_mod`: the low `width` bits as a signed number."""

    def cast(packet: Packet) -> int:
        half = 1 << width(packet) - 1
        return ((operand(packet) + half) & (2 * half - 1)) - half

    return cast


def saturate_unsigned(operand: Value, width: Value) -> Value:
    """`usat_cast`: the nearest unsigned number of `width` bits."""
    return lambda packet: min(max(operand(packet), 0), (1 << width(packet)) - 1)


def saturate_signed(operand: Value, width: Value) -> Value:
    """`sat_cast`: the nearest signed number of `width` bits."""

    def cast(packet: Packet) -> int:
        half = 1 << width(packet) - 1
        return min(max(operand(packet), -half), half - 1)

    return cast


# {"op": "+", "left": ..., "right": ...}; operands in the order condition, left, right.
OPERATORS: dict[str, Callable[..., Value]] = {
    "+": lambda left, right: lambda packet: left(packet) + right(packet),
    "-": lambda left, right: lambda packet: left(packet) - right(packet),
    "/": whole_quotient,
    "%": remainder,
    "*": lambda left, right: lambda packet: left(packet) * right(packet),
    "&": lambda left, right: lambda packet: left(packet) & right(packet),
    "|": lambda left, right: lambda packet: left(packet) | right(packet),
    "^": lambda left, right: lambda packet: left(packet) ^ right(packet),
    "~": lambda operand: lambda packet: ~operand(packet),
    "<<": shift_left,
    ">>": lambda left, right: lambda packet: left(packet) >> right(packet),
    "==": lambda left, right: lambda packet: left(packet) == right(packet),
    "!=": lambda left, right: lambda packet: left(packet) != right(packet),
    "<": lambda left, right: lambda packet: left(packet) < right(packet),
    "<=": lambda left, right: lambda packet: left(packet) <= right(packet),
    ">": lambda left, right: lambda packet: left(packet) > right(packet),
    ">=": lambda left, right: lambda packet: left(packet) >= right(packet),
    "and": lambda left, right: lambda packet: left(packet) and right(packet),
    "or": lambda left, right: lambda packet: left(packet) or right(packet),
    "not": lambda operand: lambda packet: not operand(packet),
    "?": lambda condition, left, right: lambda packet: left(packet) if condition(packet) else right(packet),
    "two_comp_mod": two_complement,
    "usat_cast": saturate_unsigned,
    "sat_cast": saturate_signed,
    "d2b": lambda operand: lambda packet: operand(packet) != 0,
    "b2d": lambda operand: lambda packet: int(operand(packet)),
}
