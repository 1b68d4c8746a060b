"""One way of comparing a measurement with what was expected."""

from __future__ import annotations


def assert_within(measured: float, expected: float, tolerance: float, what: str, unit: str = "") -> None:
    """Fail, with the measurement and both bounds, unless `measured` is within `tolerance` (a share) of `expected`."""
    low, high = expected * (1 - tolerance), expected * (1 + tolerance)
    assert low <= measured <= high, (
        f"{what}: measured {measured:g} {unit}, expected {expected:g} {unit}, "
        f"which allows {low:g} to {high:g} (off by {measured / expected - 1:+.2%})"
    )
