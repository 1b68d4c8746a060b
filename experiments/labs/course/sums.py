"""Why a sum is wrong: which gradients are in it how often, found by trying."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from inakit.experiments.labs.course.packets import MODULUS, Values, summed

MOST_TIMES = 2
MOST_TRIED = 3**8
TIMES = {0: "is not in it", 2: "is in it twice"}


def explain_sum(got: Values, wanted: Mapping[str, Values], others: Mapping[str, Values] | None = None) -> str:
    """Why `got` is not the sum of the gradients of `wanted`, by their names; empty if it is.

    `others` are what might be in it by mistake.
    """
    right = summed(list(wanted.values()))
    wrong = [number for number, (one, other) in enumerate(zip(got, right, strict=True)) if one != other]
    if not wrong:
        return ""
    where = "the sum is wrong" if len(wrong) == len(got) else f"{elements(wrong)} wrong, the others right"
    if all(got[number] == saturated(number, wanted) for number in wrong):
        return f"{where}: it stops at the greatest number where it has to wrap around, modulo 2^32"
    times = times_of(got, wrong, wanted, others or {})
    if times is None:
        return f"{where}, and is no sum of gradients that were sent"
    return f"{where}: {'; '.join(said(times, wanted))}"


def saturated(element: int, wanted: Mapping[str, Values]) -> int:
    """The sum of an element if it stopped at the greatest number."""
    return min(MODULUS - 1, sum(values[element] for values in wanted.values()))


def elements(numbers: list[int]) -> str:
    """Elements by name, and the verb."""
    return f"{', '.join(f'v{number}' for number in numbers)} of the sum {'is' if len(numbers) == 1 else 'are'}"


def times_of(
    got: Values, wrong: list[int], wanted: Mapping[str, Values], others: Mapping[str, Values]
) -> dict[str, int] | None:
    """How often each gradient is in the wrong elements of a sum; None if no few times make it."""
    known = {**wanted, **others}
    if (MOST_TIMES + 1) ** len(known) > MOST_TRIED:
        known = dict(wanted)
    usual = [(1, 0, 2) if name in wanted else (0, 1, 2) for name in known]
    for times in product(*usual):
        if all(
            sum(n * values[e] for n, values in zip(times, known.values(), strict=True)) % MODULUS == got[e]
            for e in wrong
        ):
            return dict(zip(known, times, strict=True))
    return None


def said(times: Mapping[str, int], wanted: Mapping[str, Values]) -> list[str]:
    """What is unusual about how often gradients are in a sum."""
    return [
        f"{name} {TIMES.get(count, 'is in it')}"
        for name, count in times.items()
        if count != (1 if name in wanted else 0)
    ]
