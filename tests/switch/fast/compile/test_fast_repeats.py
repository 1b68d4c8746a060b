"""What the generator of C finds again of the loops that p4c has written out, and of variables and headers in place."""

from __future__ import annotations

from itertools import pairwise

import pytest

from inakit.switch.fast.compile.repeats import Repeat, repeats
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Constant, Field, Operation, Primitive, Register
from inakit.switch.running_switch import PROGRAM

LENGTH = 20
WORDS = [Field("h", f"v{n}", 32, False, 32 * n) for n in range(LENGTH)]
CELLS = [Register(f"r{n}", 8, 32) for n in range(LENGTH)]
INDEX, KEPT = (Field("m", name, 32, False, at) for name, at in (("index", 0), ("kept", 32)))
FOLLOWING: dict[Field | Register, Field | Register] = {**dict(pairwise(WORDS)), **dict(pairwise(CELLS))}


def assign(target: Field, value: Field | Operation | Constant) -> Primitive:
    return Primitive("assign", (target, value), None)


def stored(n: int) -> Primitive:
    return Primitive("register_write", (CELLS[n], INDEX, WORDS[n]), None)


def loops(primitives: list[Primitive]) -> list[Repeat]:
    """The loops; the statements of all repeats, in order, are those that were given."""
    found = list(repeats(primitives, FOLLOWING))
    assert sum(len(each.body) * each.times for each in found) == len(primitives)
    return [each for each in found if each.times > 1]


def test_statements_along_rows_are_one_loop() -> None:
    (loop,) = loops([assign(KEPT, Constant(0)), *map(stored, range(LENGTH)), assign(KEPT, INDEX)])
    assert loop.times == LENGTH
    assert set(loop.stepping) == {WORDS[0], CELLS[0]}
    assert not loop.carried


def test_what_each_repetition_writes_anew_is_carried() -> None:
    def summed(n: int) -> list[Primitive]:
        return [assign(KEPT, Operation("+", (KEPT, WORDS[n]))), stored(n)]

    (loop,) = loops([each for n in range(LENGTH) for each in summed(n)])
    assert (len(loop.body), loop.times, loop.carried) == (2, LENGTH, [KEPT])


def test_another_statement_between_ends_a_loop() -> None:
    half = LENGTH // 2
    one, other = loops([*map(stored, range(half)), assign(INDEX, KEPT), *map(stored, range(half, LENGTH))])
    assert (one.times, other.times) == (half, half)


@pytest.mark.parametrize(
    "primitives",
    [
        pytest.param([assign(WORDS[n + 1], WORDS[n]) for n in range(LENGTH - 1)], id="what the last one wrote"),
        pytest.param([assign(WORDS[n], WORDS[n + 1]) for n in range(LENGTH - 1)], id="what the next one writes"),
        pytest.param([assign(WORDS[n], WORDS[9]) for n in range(LENGTH)], id="what one of them writes"),
        pytest.param([stored(n) for n in range(7)], id="too few"),
        pytest.param([stored(n) for n in range(0, LENGTH, 2)], id="not neighbours"),
    ],
)  # fmt: skip
def test_no_loop(primitives: list[Primitive]) -> None:
    assert not [loop for loop in loops(primitives) if loop.times >= LENGTH - 1 or loop.times < 8]


def test_sums_are_made_in_place_with_variables_of_actions() -> None:
    """Else each packet is written anew, and what p4c computes between statements takes room in every packet's state."""
    layout = ProgramLayout(read_program(PROGRAM))
    assert layout.in_place
    assert layout.moving
    assert sum(field.name.startswith("tmp") for field in layout.local) > 30
