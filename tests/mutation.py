"""Mistakes made on purpose in the compiled P4 program."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.traffic.wire.packet_format import PROGRAM

Mutation = Callable[[Any], None]


def mutant(mutate: Mutation, folder: Path) -> Program:
    """The compiled P4 program with a mistake, read from `mutant.json`, which is written to `folder`."""
    compiled = compiled_program()
    mutate(compiled)
    path = folder / "mutant.json"
    path.write_text(json.dumps(compiled))
    return read_program(path)


def compiled_program() -> Any:
    """The JSON of the compiled P4 program, as a copy that may be changed."""
    return json.loads(PROGRAM.read_text())


def without(action: str, line: str) -> Mutation:
    """Remove the statement whose P4 source begins with `line` from an action."""

    def mutate(program: Any) -> None:
        for each in named(program["actions"], f"InaIngress.{action}"):
            kept = [statement for statement in each["primitives"] if not source_of(statement).startswith(line)]
            assert len(kept) == len(each["primitives"]) - 1, f"{action} has not one statement '{line}'"
            each["primitives"] = kept

    return mutate


def swapped(line: str, old: str, new: str, which: int | None = None) -> Mutation:
    """Replace the operator `old` by `new` in every condition and statement whose P4 source begins with `line`.

    In each of them that is its only `old`, or the one numbered `which`, from 0.
    """

    def mutate(program: Any) -> None:
        conditions = [each for pipeline in program["pipelines"] for each in pipeline["conditionals"]]
        statements = [each for action in program["actions"] for each in action["primitives"]]
        places = [each for each in (*conditions, *statements) if source_of(each).startswith(line)]
        assert places, f"the program has no '{line}'"
        for place in places:
            operations = [each for each in operations_in(place) if each["op"] == old]
            assert which is not None or len(operations) == 1, f"not one '{old}' in '{line}', but {len(operations)}"
            assert (which or 0) < len(operations), f"not so many '{old}' in '{line}'"
            operations[which or 0]["op"] = new

    return mutate


def one_more(action: str, line: str) -> Mutation:
    """Add 1 to the 16-bit value that an action assigns in the statement whose P4 source begins with `line`."""

    def mutate(program: Any) -> None:
        for each in named(program["actions"], f"InaIngress.{action}"):
            (statement,) = [part for part in each["primitives"] if source_of(part).startswith(line)]
            added = {"op": "+", "left": statement["parameters"][1], "right": {"type": "hexstr", "value": "0x1"}}
            masked = {
                "op": "&",
                "left": {"type": "expression", "value": added},
                "right": {"type": "hexstr", "value": "0xffff"},
            }
            statement["parameters"][1] = {"type": "expression", "value": {"type": "expression", "value": masked}}

    return mutate


def unassigned(action: str, header: str, field: str) -> Mutation:
    """Remove the assignment to a field of a header from an action."""

    def mutate(program: Any) -> None:
        for each in named(program["actions"], f"InaIngress.{action}"):
            (found,) = [
                part
                for part in each["primitives"]
                if part["op"] == "assign" and part["parameters"][0]["value"] == [header, field]
            ]
            each["primitives"].remove(found)

    return mutate


def without_statement(action: int, number: int) -> Mutation:
    """Remove the statement with this number, from 0, from the action with this id."""

    def mutate(program: Any) -> None:
        del next(each for each in program["actions"] if each["id"] == action)["primitives"][number]

    return mutate


def named(parts: list[Any], name: str) -> list[Any]:
    found = [part for part in parts if part["name"] == name]
    assert found, f"the program has no '{name}'"
    return found


def source_of(part: Any) -> str:
    return str(part.get("source_info", {}).get("source_fragment", ""))


def operations_in(node: Any) -> Iterator[Any]:
    """Every operation with an operator in an expression or statement."""
    if isinstance(node, dict):
        if isinstance(node.get("op"), str) and "left" in node:
            yield node
        for child in node.values():
            yield from operations_in(child)
    elif isinstance(node, list):
        for child in node:
            yield from operations_in(child)
