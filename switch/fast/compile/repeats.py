"""Statements that p4c repeats for each of a row of fields or registers, found again and written as one loop.

A program that sums the 64 integers of a packet has its statements 64 times. In a loop the compiler of a process uses
vector instructions; the kernel's gets the loop unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from inakit.switch.fast.layout.field_usage import parts_of, written_by
from inakit.switch.program.program import Argument, Field, Operation, Primitive, Register

Stepping = Field | Register
"""What one repetition has, and the next one has the following of."""

REPEATED = frozenset(("assign", "register_read", "register_write"))
LONGEST_BODY, FEWEST_TIMES = 8, 8


@dataclass(frozen=True)
class Repeat:
    """The statements `body`, run `times` times: each time with those that follow `stepping` in memory."""

    body: tuple[Primitive, ...]
    times: int = 1
    stepping: tuple[Stepping, ...] = ()

    def overlaps(self, following: Mapping[Stepping, Stepping]) -> bool:
        """Whether one repetition uses what is another's too, or all use what is one's."""
        stepped = [self.stepping]
        while len(stepped) < self.times:
            stepped.append(tuple(following[each] for each in stepped[-1]))
        own = [each for stepping in stepped for each in stepping]
        shared = used_by(self.body).difference(self.stepping)
        return len(own) > len(set(own)) or not shared.isdisjoint(own)

    @property
    def carried(self) -> list[Field]:
        """The fields that each repetition writes anew."""
        return sorted(written_by(self.body).difference(self.stepping), key=str)


def used_by(primitives: Sequence[Primitive]) -> set[Stepping]:
    """The fields and registers of some statements."""
    return {part for part in parts_in(primitives) if isinstance(part, Field | Register)}


def repeats(primitives: Sequence[Primitive], following: Mapping[Stepping, Stepping]) -> Iterator[Repeat]:
    """The statements in order; those that are no part of a loop are bodies that run once.

    `following`: for each field and register, its neighbour in memory, if they are of the same size.
    """
    at, single = 0, 0
    while at < len(primitives):
        found = longest(primitives, at, following)
        if found is None:
            at += 1
            continue
        yield Repeat(tuple(primitives[single:at]))
        yield found
        at += len(found.body) * found.times
        single = at
    yield Repeat(tuple(primitives[single:]))


def longest(primitives: Sequence[Primitive], at: int, following: Mapping[Stepping, Stepping]) -> Repeat | None:
    """The loop that begins with the statement at `at`, or None."""
    for size in range(1, LONGEST_BODY + 1):
        body = tuple(primitives[at : at + size])
        if len(body) < size or body[-1].name not in REPEATED:
            return None
        found = [steps(body, primitives[at + size :], following)]
        while found[-1]:
            start = at + len(found) * size
            more = steps(primitives[start : start + size], primitives[start + size :], following)
            found.append(more if more == {following.get(each) for each in found[-1]} else None)
        repeat = Repeat(body, len(found), tuple(sorted(found[0] or (), key=str)))
        if repeat.stepping and repeat.times >= FEWEST_TIMES and not repeat.overlaps(following):
            return repeat
    return None


def steps(
    body: Sequence[Primitive], others: Sequence[Primitive], following: Mapping[Stepping, Stepping]
) -> set[Stepping] | None:
    """What of `body` is replaced at the beginning of `others` by what follows it; None if there is another change."""
    if [each.name for each in body] != [each.name for each in others[: len(body)]]:
        return None
    stepping: set[Stepping] = set()
    fixed: set[Stepping] = set()
    for one, other in zip(parts_in(body), parts_in(others[: len(body)]), strict=True):
        match one, other:
            case Operation(operator, operands), Operation(name, more) if (operator, len(operands)) == (name, len(more)):
                continue  # their parts follow
            case (Field() | Register(), _) if following.get(one) == other:
                stepping.add(one)
            case (Field() | Register(), _) if one == other:
                fixed.add(one)
            case _ if one != other:
                return None
    return None if stepping & fixed else stepping


def parts_in(primitives: Sequence[Primitive]) -> Iterator[Argument]:
    """The arguments of statements, each in front of its parts."""
    return (part for each in primitives for argument in each.arguments for part in parts_of(argument))
