"""Jumps within actions, as p4c writes an `if`, a `return`, an `exit` and a loop of an action since November 2024."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_programs import PROGRAMS, packet

from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import program_of
from inakit.switch.program.program import Program
from inakit.topo.errors import RunError, UnsupportedError

Json = Any
KINDS = pytest.mark.parametrize("kind", [InterpretedSwitch, pytest.param(InProcessSwitch, marks=pytest.mark.compiler)])
Kind = type[InterpretedSwitch | InProcessSwitch]

FIRST = 7
"""The number of the action of control.p4 that every packet meets first."""

KEY, INDEX = ({"type": "field", "value": ["test", name]} for name in ("key", "index"))


def expression(operator: str, left: Json, right: Json) -> Json:
    return {"type": "expression", "value": {"op": operator, "left": left, "right": right}}


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def add(value: int) -> Json:
    """`hdr.test.index = hdr.test.index + value`."""
    total = expression("&", expression("+", INDEX, number(value)), number(0xFFFFFFFF))
    return {"op": "assign", "parameters": [INDEX, total]}


def unless(condition: Json, target: int) -> Json:
    """A jump where the condition does not hold."""
    return {"op": "_jump_if_zero", "parameters": [expression("b2d", None, condition), number(target)]}


def jump(target: int) -> Json:
    return {"op": "_jump", "parameters": [number(target)]}


def key_is(value: int) -> Json:
    return expression("==", KEY, number(value))


def with_action(*statements: Json) -> Program:
    """control.p4, in which the first action of every packet consists of these statements."""
    document = json.loads((PROGRAMS / "control.json").read_text())
    (action,) = [each for each in document["actions"] if each["id"] == FIRST]
    action["primitives"] = list(statements)
    return program_of(document)


def sent(kind: Kind, program: Program, key: int) -> tuple[int, int]:
    """The port by which a packet leaves, and its field `index`, of which 0 came in."""
    ((port, data),) = kind(program).inject(1, packet(program, key=key))
    return port, int.from_bytes(data[16:20], "big")


# if (key == 1) { add(1); exit; } else if (key == 2) { add(2); } else { add(4); } add(8);
BRANCHES = (
    unless(key_is(1), 4), add(1), {"op": "exit", "parameters": []}, jump(9),
    unless(key_is(2), 7), add(2), jump(8), add(4), add(8),
)  # fmt: skip


@KINDS
@pytest.mark.parametrize(("key", "expected"), [(1, (0, 1)), (2, (9, 10)), (3, (9, 12))])
def test_an_action_runs_what_its_ifs_choose(kind: Kind, key: int, expected: tuple[int, int]) -> None:
    """An `exit` under an `if` leaves the pipeline only where it runs: later tables choose port 9."""
    assert sent(kind, with_action(*BRANCHES), key) == expected


@KINDS
def test_a_jump_beyond_the_last_statement_ends_the_action(kind: Kind) -> None:
    assert sent(kind, with_action(unless(key_is(1), 0x40), add(1)), key=2) == (9, 0)


# for (index = 0; index < key; index = index + 1) { index = index + 2; }
LOOP = (unless(expression("<", INDEX, KEY), 4), add(2), add(1), jump(0))


def test_a_loop_runs_interpreted() -> None:
    assert sent(InterpretedSwitch, with_action(*LOOP), key=7) == (9, 9)


def test_a_loop_is_refused_where_packets_must_come_to_an_end() -> None:
    with pytest.raises(UnsupportedError, match="a loop in action 'control36'"):
        InProcessSwitch(with_action(*LOOP))


def test_a_loop_without_end_is_an_error_of_the_packet() -> None:
    with pytest.raises(RunError, match="action 'control36' has run 1048576 statements"):
        sent(InterpretedSwitch, with_action(jump(0)), key=1)


@KINDS
def test_a_jump_whose_target_is_computed_is_refused(kind: Kind) -> None:
    computed = {"op": "_jump", "parameters": [INDEX]}
    with pytest.raises(UnsupportedError, match=r"a jump .*computed"):
        kind(with_action(computed))


@KINDS
def test_a_jump_of_the_parser_is_refused(kind: Kind) -> None:
    document = json.loads((PROGRAMS / "control.json").read_text())
    document["parsers"][0]["parse_states"][0]["parser_ops"].append({"op": "primitive", "parameters": [jump(1)]})
    with pytest.raises(UnsupportedError, match="_jump"):
        kind(program_of(document))
