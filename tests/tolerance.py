"""Compares a measurement with what was expected, and tells what other processes have disturbed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
BUSY = ("CPU", "processor", "behind its pace", "behind its plan")
"""Words of a verdict's reasons that come from a busy machine, and never from a fault."""


def not_of_a_busy_machine(reasons: Iterable[str]) -> list[str]:
    """The reasons of a verdict that something else than other work on this machine has."""
    return [reason for reason in reasons if not any(word in reason for word in BUSY)]


def assert_within(measured: float, expected: float, tolerance: float, what: str, unit: str = "") -> None:
    """Fail, with the measurement and both bounds, unless `measured` is within `tolerance` (a share) of `expected`."""
    low, high = expected * (1 - tolerance), expected * (1 + tolerance)
    assert low <= measured <= high, (
        f"{what}: measured {measured:g} {unit}, expected {expected:g} {unit}, "
        f"which allows {low:g} to {high:g} (off by {measured / expected - 1:+.2%})"
    )


def undisturbed(measure: Callable[[], T], near: Callable[[T], bool], tries: int = 3) -> T:
    """The first of up to `tries` measurements that is `near` what is expected, or the last of them.

    Other processes may spoil one measurement of time. A fault of the kit spoils all of them.
    """
    for _ in range(tries - 1):
        measured = measure()
        if near(measured):
            return measured
    return measure()
