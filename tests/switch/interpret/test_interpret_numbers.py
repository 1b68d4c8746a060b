"""The interpreter: arithmetic on numbers of any width, against arithmetic in Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from model_programs import result, switch_of


def signed(value: int, bits: int = 128) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def between(low: int, value: int, high: int) -> int:
    return max(low, min(high, value))


HALF = 1 << 127


class Given(NamedTuple):
    """The operands of numbers.p4, without signs."""

    a: int
    b: int
    c: int
    d: int


NUMBERS: dict[str, Callable[[Given], int]] = {
    "sum": lambda v: v.a + v.b,
    "difference": lambda v: v.a - v.b,
    "product": lambda v: v.a * v.b,
    "shifted": lambda v: v.a << v.b % 256,
    "saturated": lambda v: between(-HALF, signed(v.c) + signed(v.d), HALF - 1),
    "shifted_right": lambda v: signed(v.c) >> v.b % 128,
    "saturated_difference": lambda v: max(v.c - v.d, 0),
    "joined": lambda v: v.c << 128 | v.d,
    "slice": lambda v: v.a >> 1005,
    "less": lambda v: v.a < v.b,
    "signed_less": lambda v: signed(v.c) < signed(v.d),
    "same": lambda v: v.c == v.d,
}


def test_arithmetic_of_any_width() -> None:
    switch, draw = switch_of("numbers"), random.Random(5)
    widths = {field.name: field.bits for field in switch.program.headers["test"].fields}
    edges = [0, 1, HALF - 1, HALF, 2 * HALF - 1]
    cases = [Given(draw.getrandbits(2048), draw.getrandbits(2048), c, d) for c in edges for d in edges]
    cases += [Given((1 << 2048) - 1, value, 5, 5) for value in (0, 1, 127, 255, (1 << 2048) - 1)]
    for given in cases:
        found = result(switch, **given._asdict())
        for name, rule in NUMBERS.items():
            assert found[name] == int(rule(given)) & (1 << widths[name]) - 1, (name, given)
