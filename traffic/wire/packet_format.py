"""The packet format, read from the P4 program: its constants and its header fields.

Headers come from the compiled program and constants from its source, so that the format is written down only there.
`inakit.traffic.wire.frames` makes whole frames of it for NumPy, `inakit.traffic.wire.scapy_layers` has it for scapy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cache
from pathlib import Path
from typing import Any

from inakit.topo.errors import InputError

SOURCE = Path(__file__).resolve().parents[2] / "p4" / "ina.p4"
PROGRAM = SOURCE.parent / "build" / "ina.json"

_CONSTANT = re.compile(r"^const bit<\d+> (\w+) = (0x[0-9a-fA-F]+|\d+);", re.MULTILINE)
_HEADER_TYPES = '"header_types" : '


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn an error of reading one of the kit's own files into an `InputError` that says how to get the file back."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError) as error:
        undo = f"git checkout p4/{file.relative_to(SOURCE.parent)}"
        raise InputError(f"{file} cannot be read ({error}): undo that ({undo}), or run `make p4`") from error


@cache
def constants() -> dict[str, int]:
    """Every `const bit<n> NAME = number;` of the P4 source."""
    with reading(SOURCE):
        return {name: int(value, 0) for name, value in _CONSTANT.findall(SOURCE.read_text())}


def constant(name: str) -> int:
    """The value of one constant of the P4 source."""
    if name not in constants():
        raise InputError(f"{SOURCE.name} defines no constant '{name}', which the packet format needs: define it there")
    return constants()[name]


@dataclass(frozen=True)
class Field:
    """A header field of `bits` bits."""

    name: str
    bits: int


@cache
def headers() -> dict[str, tuple[Field, ...]]:
    """The fields of every header type of the compiled program, of which nothing else is parsed: it is long."""
    with reading(PROGRAM):
        text = PROGRAM.read_text()
        before = text.index(_HEADER_TYPES)
        types: list[dict[str, Any]]
        types, _ = json.JSONDecoder().raw_decode(text, before + len(_HEADER_TYPES))
        return {each["name"]: tuple(Field(field, bits) for field, bits, *_ in each["fields"]) for each in types}


def header(name: str) -> tuple[Field, ...]:
    """The fields of header type `name` in the compiled program."""
    if name not in headers():
        raise InputError(f"{PROGRAM.name} has no header type '{name}': compile the P4 program that defines it")
    return headers()[name]


UDP_PORT = constant("INA_UDP_PORT")
TOLD = ("job", "tree", "label", "seq", "workers")
"""The header fields that tell a packet in one line, in Wireshark and of scapy."""


class Kind(IntEnum):
    """What an INA packet carries."""

    GRADIENT = constant("KIND_GRADIENT")
    RESULT = constant("KIND_RESULT")
    NOTICE = constant("KIND_NOTICE")


class Flag(IntFlag):
    """What happened to an INA packet on its way."""

    ECN = constant("FLAG_ECN")
    COLLISION = constant("FLAG_COLLISION")
    OVERFLOW = constant("FLAG_OVERFLOW")
    PARTIAL = constant("FLAG_PARTIAL")
    RETRANSMITTED = constant("FLAG_RETRANSMITTED")
    DIRECT = constant("FLAG_DIRECT")


class Event(IntEnum):
    """What may happen to a packet in a switch; the number is its index in the counter `InaIngress.events`."""

    MALFORMED = constant("EVENT_MALFORMED")
    REJECTED = constant("EVENT_REJECTED")
    UNROUTABLE = constant("EVENT_UNROUTABLE")
    ABSORBED = constant("EVENT_ABSORBED")
    DUPLICATE = constant("EVENT_DUPLICATE")
    SENT_UNICAST = constant("EVENT_SENT_UNICAST")
    SENT_MULTICAST = constant("EVENT_SENT_MULTICAST")
    ADDED = constant("EVENT_ADDED")
    COMPLETED = constant("EVENT_COMPLETED")
    FLUSHED = constant("EVENT_FLUSHED")
    COLLISION = constant("EVENT_COLLISION")
    RECLAIMED = constant("EVENT_RECLAIMED")
    EVICTED = constant("EVENT_EVICTED")
    NOTIFIED = constant("EVENT_NOTIFIED")
    ANSWERED = constant("EVENT_ANSWERED")
    RELEASED = constant("EVENT_RELEASED")
    LOST = constant("EVENT_LOST")
    HELD = constant("EVENT_HELD")
    OVERTAKEN = constant("EVENT_OVERTAKEN")
    DOUBLED = constant("EVENT_DOUBLED")


TERMINAL = (*(event for event in Event if event <= Event.SENT_MULTICAST), Event.LOST, Event.HELD)
"""The outcomes of which each packet that a switch receives has exactly one."""
