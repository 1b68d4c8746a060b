"""The comparison with the corpus can fail: it notices when the program is another one by one statement."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from comparison import differences
from inprocess import InProcess
from recorded import read_corpus
from reduction import changes_of, reduced
from strategies import EXAMPLE, Case

from switch.read import read_program
from traffic.packet import PROGRAM

Mutation = Callable[[Any], None]
COMPILED = json.loads(PROGRAM.read_text())


def drop(action: str, line: str, program: Any) -> None:
    """Take out of an action the statement that the P4 source calls `line`."""
    for each in named(program["actions"], action):
        kept = [statement for statement in each["primitives"] if not source_of(statement).startswith(line)]
        assert len(kept) == len(each["primitives"]) - 1, f"{action} has not one statement '{line}'"
        each["primitives"] = kept


def swap(line: str, old: str, new: str, program: Any) -> None:
    """Another operator in the condition that the P4 source calls `line`."""
    conditions = [each for pipeline in program["pipelines"] for each in pipeline["conditionals"]]
    found = [each["expression"] for each in conditions if source_of(each).startswith(line)]
    operations = [operation for each in found for operation in operations_in(each) if operation["op"] == old]
    assert len(operations) == 1, f"not one '{old}' in '{line}', but {len(operations)}"
    operations[0]["op"] = new


def delete(action: int, number: int, program: Any) -> None:
    """Take out statement `number` of the action with this id."""
    del next(each for each in program["actions"] if each["id"] == action)["primitives"][number]


def named(parts: list[Any], name: str) -> list[Any]:
    found = [part for part in parts if part["name"] == name]
    assert found, f"the program has no '{name}'"
    return found


def source_of(part: Any) -> str:
    return str(part.get("source_info", {}).get("source_fragment", ""))


def operations_in(node: Any) -> Iterator[Any]:
    """Every operation in an expression."""
    if isinstance(node, dict):
        if "op" in node:
            yield node
        for child in node.values():
            yield from operations_in(child)


def mutant(mutate: Mutation, folder: Path) -> InProcess:
    """A switch with the mutated program."""
    program = json.loads(PROGRAM.read_text())
    mutate(program)
    path = folder / "mutant.json"
    path.write_text(json.dumps(program))
    return InProcess(read_program(path))


def notices(mutate: Mutation, folder: Path) -> bool:
    """Whether a switch with the mutated program gives another answer than simple_switch did to the true one."""
    switch = mutant(mutate, folder)
    try:
        return any(recording.replay(switch) for recording in read_corpus().recordings)
    except AssertionError:  # even the last packets are lost
        return True


MUTANTS: dict[str, Mutation] = {
    "collisions are not flagged": partial(drop, "InaIngress.collide", "hdr.ina.flags ="),
    "a full slot stays": partial(drop, "InaIngress.free", "slot_bitmap.write"),
    "an overflow is forgotten": partial(drop, "InaIngress.save", "slot_overflow.write"),
    "workers are not counted": partial(drop, "InaIngress.add", "meta.slot_workers ="),
    "one slot too many": partial(swap, "hdr.ina.slot >= meta.slots", ">=", ">"),
    "repeated results are multicast": partial(swap, "(hdr.ina.flags & FLAG_RETRANSMITTED) == 0", "==", "!="),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name: str, tmp_path: Path) -> None:
    assert notices(MUTANTS[name], tmp_path)


def test_a_difference_is_reduced_to_the_packets_that_it_takes(tmp_path: Path) -> None:
    true, wrong = InProcess(read_program(PROGRAM)), mutant(MUTANTS["collisions are not flagged"], tmp_path)

    def differ(case: Case) -> bool:
        asked = (case.entries, case.steps, ())
        return any(differences(true.run(*asked), wrong.run(*asked)))

    cases = [Case(recording.entries, recording.steps) for recording in read_corpus().recordings]
    found = next(
        case for case in cases if len(case.steps) > 50 and case.entries.tables != EXAMPLE.tables and differ(case)
    )
    small = reduced(found, differ)
    assert differ(small)
    assert len(small.steps) <= 4
    assert len(changes_of(small.entries)) <= 2


# Statements that change nothing: when a single child completes its sum, the workers are the packet's and no element
# has overflown; and a temporary of the compiler that is 0 before it is set to 0.
WITHOUT_EFFECT = {"31 InaIngress.become_complete 2", "31 InaIngress.become_complete 3", "38 act_0 0"}


def statements() -> Iterator[Any]:
    """Every statement of every action; of the long ones, which do the same to each value, the head and some more."""
    for action in COMPILED["actions"]:
        count = len(action["primitives"])
        for number in sorted({*range(min(count, 16)), *range(16, count, 37)}):
            label = f"{action['id']} {action['name']} {number}"
            if label not in WITHOUT_EFFECT:
                yield pytest.param(partial(delete, action["id"], number), id=label)


@pytest.mark.long
@pytest.mark.parametrize("mutate", list(statements()))
def test_no_statement_can_be_missing(mutate: Mutation, tmp_path: Path) -> None:
    assert notices(mutate, tmp_path)
