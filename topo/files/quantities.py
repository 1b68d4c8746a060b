"""Rates and times as people write them: '20M' is 20e6 bit/s, '50us' is 50e-6 s; bare numbers are bit/s and seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from topo.errors import InputError

RATE_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
"""Unit to factor, for rates in bit/s."""

TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Unit to factor, for times in seconds."""

RATE = "a rate in bit/s greater than 0, such as 20M or 100G"
"""What an error message says is expected where a rate is wrong."""

NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"


def quantity(value: object, units: Mapping[str, float]) -> float:
    """A finite number, or text that is a number and a unit of `units`. Raises `ValueError`, for true and false too."""
    if isinstance(value, str):
        parsed = re.fullmatch(NUMBER + rf" ?({'|'.join(units)})", value)
        if not parsed:
            raise ValueError
        return float(parsed[1]) * units[parsed[2]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def rate(value: object) -> float:
    """20000000, '20M' and '0.02G' alike, in bit/s, greater than 0. Raises `ValueError`."""
    bits_per_second = quantity(value, RATE_UNITS)
    if not 0 < bits_per_second < math.inf:
        raise ValueError
    return bits_per_second


def parse_rate(text: str) -> float:
    """'20M' of a command line as 20e6 bit/s. Raises `InputError`."""
    try:
        return rate(text)
    except ValueError:
        raise InputError(f"'{text}': expected {RATE}") from None


def rate_text(rate_bps: float) -> str | float:
    """20000000.0 as '20M'; a rate that no unit makes whole stays a number."""
    for unit, factor in reversed(RATE_UNITS.items()):
        whole = round(rate_bps / factor)
        if unit and 1 <= whole < 10000 and whole * factor == rate_bps:
            return f"{whole}{unit}"
    return rate_bps


def duration(value: object) -> float:
    """0.05 and '50ms' alike, in seconds; a bare number may be negative. Raises `ValueError`."""
    return quantity(value, TIME_UNITS)


def parse_duration(text: str) -> float:
    """'50ms' of a command line as 0.05 s. Raises `InputError`."""
    try:
        return duration(text)
    except ValueError:
        raise InputError(f"'{text}': expected a time, such as 2s or 50us") from None
