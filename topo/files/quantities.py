"""Parse quantities in files and options: '20M' is 20e6 bit/s, '50us' is 50e-6 s, '64k' is 64,000 bytes.

Bare numbers are bit/s, seconds and bytes. The functions take a value of YAML or JSON and raise `ValueError`. The types
below them are for the fields of records and dataclasses that `inakit.topo.files.reader` reads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import BeforeValidator

from inakit.topo.errors import InputError

RATE_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
"""Unit to factor, for rates in bit/s."""

TIME_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
"""Unit to factor, for times in seconds. The two Greek letters are U+00B5 of keyboards and U+03BC."""

SIZE_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
"""Unit to factor, for sizes in bytes; a B may follow."""

RATE = "a rate in bit/s greater than 0, such as 20M or 100G"
"""The expected value in error messages about rates."""

DURATION = "a time in seconds, or such as 50us or 1ms"
"""The expected value in error messages about times."""

SIZE = "a number of bytes, or such as 64k or 1.5M"
"""The expected value in error messages about sizes."""

SHOWN_UNITS = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
}
"""The units in which quantities are shown, by the unit in which they are computed: factors from the largest."""

NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"


def quantity(value: object, units: Mapping[str, float]) -> float:
    """Parse a finite number, or a number with a unit of `units`. Raises `ValueError`, also for true and false."""
    if isinstance(value, str):
        parsed = re.fullmatch(NUMBER + rf" ?({'|'.join(units)})", value)
        if not parsed:
            raise ValueError
        return float(parsed[1]) * units[parsed[2]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def rate(value: object) -> float:
    """Parse 20000000, '20M' or '0.02G' into bit/s, greater than 0. Raises `ValueError`."""
    bits_per_second = quantity(value, RATE_UNITS)
    if not 0 < bits_per_second < math.inf:
        raise ValueError
    return bits_per_second


def parse_rate(text: str) -> float:
    """Parse '20M' of a command line into 20e6 bit/s. Raises `InputError`."""
    try:
        return rate(text)
    except ValueError:
        raise InputError(f"'{text}': expected {RATE}") from None


def rate_text(rate_bps: float) -> str | float:
    """Format 20000000.0 as '20M'; a rate that is not a whole multiple of a unit stays a number."""
    for unit, factor in reversed(RATE_UNITS.items()):
        whole = round(rate_bps / factor)
        if unit and 1 <= whole < 10000 and whole * factor == rate_bps:
            return f"{whole}{unit}"
    return rate_bps


def shown_unit(unit: str, values: Iterable[float]) -> tuple[float, str]:
    """The factor and name of the largest unit in which the largest of the values is at least 1; of 0, the base unit."""
    largest, units = max(map(abs, values), default=0) or 1, SHOWN_UNITS[unit]
    return next((each for each in units if largest >= each[0]), units[-1])


def in_words(value: float, unit: str, digits: int = 4) -> str:
    """A quantity in the unit that fits it: "100 Gbit/s" for 100e9 bit/s, "56.4 µs" for 56.4e-6 s."""
    factor, name = shown_unit(unit, (value,))
    return f"{value / factor:.{digits}g} {name}"


def duration(value: object) -> float:
    """Parse 0.05, '0.05' or '50ms' into seconds; a bare number can be negative. Raises `ValueError`."""
    return quantity(value, TIME_UNITS)


def lasting(value: object) -> float:
    """A `duration` that is not negative."""
    try:
        seconds = duration(value)
    except ValueError:
        raise ValueError(f"expected {DURATION}") from None
    if seconds < 0:
        raise ValueError(f"expected {DURATION}, and not a negative one")
    return seconds


def parse_duration(text: str) -> float:
    """Parse '50ms' of a command line into 0.05 s. Raises `InputError`."""
    try:
        return duration(text)
    except ValueError:
        raise InputError(f"'{text}': expected a time, such as 2s or 50us") from None


def size(value: object) -> int:
    """Parse 548000, '548k' or '548 kB' into bytes. Raises `ValueError` unless it is a whole number."""
    spelt = value.removesuffix("B").rstrip() if isinstance(value, str) else value
    try:
        return whole(quantity(spelt, SIZE_UNITS))
    except ValueError:
        raise ValueError(f"expected {SIZE}") from None


def whole(value: object) -> int:
    """Parse 3, 3.0 or '3', which other programs write. Raises `ValueError`, also for true and false."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.0+)?", value.strip()):
        value = float(value) if "." in value else int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("expected a whole number")
    return value


def flag(value: object) -> bool:
    """Parse a boolean or its text, such as 'true' or 'True'. Raises `ValueError`."""
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower())
    if not isinstance(value, bool):
        raise ValueError
    return value


Rate = Annotated[float, BeforeValidator(rate)]
Duration = Annotated[float, BeforeValidator(lasting)]
Size = Annotated[int, BeforeValidator(size)]
Whole = Annotated[int, BeforeValidator(whole)]
Flag = Annotated[bool, BeforeValidator(flag)]
