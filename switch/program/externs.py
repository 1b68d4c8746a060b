"""State that outlives a packet, and other externs: registers, counters, meters, action profiles, value sets."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.program.calculations import Calculation
from inakit.switch.program.headers import Field
from inakit.switch.program.source import Source


@dataclass(frozen=True)
class Register:
    """An array of `size` numbers of `bits` bits, which statements read and write by index."""

    name: str
    size: int
    bits: int


@dataclass(frozen=True)
class Counter:
    """An indirect counter array: packets and bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class DirectCounter:
    """Packets and bytes of each entry of `table`."""

    name: str
    table: str
    source: Source | None = None


@dataclass(frozen=True)
class Meter:
    """A meter of `rates` rates, for packets or (`of_bytes`) bytes.

    A direct meter has a cell for each entry of the table that names it, and puts its colour into `result`.
    """

    name: str
    size: int
    rates: int
    of_bytes: bool
    result: Field | None
    source: Source | None = None


@dataclass(frozen=True)
class ActionProfile:
    """Actions that entries of several tables share; `selector` chooses among the members of a group."""

    name: str
    size: int
    selector: Calculation | None


@dataclass(frozen=True)
class ValueSet:
    """A parser value set of numbers of `bits` bits, which the control plane fills."""

    name: str
    bits: int
    size: int
    source: Source | None = None


@dataclass(frozen=True)
class Extern:
    """An instance of an extern that v1model.p4 does not declare: only some switches have it."""

    name: str
    type: str
    source: Source | None = None
