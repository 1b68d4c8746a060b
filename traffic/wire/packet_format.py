"""The packet format, read from the P4 program: its constants, its header fields, and whole frames of it for NumPy.

Headers come from the compiled program and constants from its source, so that they are the only definition of the
format. `inakit.traffic.wire.scapy_layers` has the same format for scapy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import FragmentFormat
from inakit.topo.errors import InputError

SOURCE = Path(__file__).resolve().parents[2] / "p4" / "ina.p4"
PROGRAM = SOURCE.parent / "build" / "ina.json"

_CONSTANT = re.compile(r"^const bit<\d+> (\w+) = (0x[0-9a-fA-F]+|\d+);", re.MULTILINE)
_HEADER_TYPES = '"header_types" : '


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn an error of reading one of the kit's own files into an `InputError` that says how to restore the file."""
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
    """The fields of every header type of the compiled program. The rest of the long file is not parsed."""
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
"""The header fields in a packet's summary line, in Wireshark and scapy."""


class Kind(IntEnum):
    """The contents of an INA packet."""

    GRADIENT = constant("KIND_GRADIENT")
    RESULT = constant("KIND_RESULT")
    NOTICE = constant("KIND_NOTICE")
    QUESTION = constant("KIND_QUESTION")


class Flag(IntFlag):
    """The flags of an INA packet: events on its way."""

    ECN = constant("FLAG_ECN")
    COLLISION = constant("FLAG_COLLISION")
    OVERFLOW = constant("FLAG_OVERFLOW")
    PARTIAL = constant("FLAG_PARTIAL")
    RETRANSMITTED = constant("FLAG_RETRANSMITTED")
    DIRECT = constant("FLAG_DIRECT")


class Event(IntEnum):
    """The events of a packet in a switch; the number is the index in the counter `InaIngress.events`."""

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
"""The outcomes; each packet that a switch receives has exactly one."""


# -- Whole frames for NumPy: their types, and new ones with given addresses and INA header.

Frames = NDArray[np.void]


def packed_dtype(name: str) -> np.dtype[np.void]:
    """The big-endian structured type of header type `name`.

    Fields that share a byte become one item, whose name joins their names (`version_ihl`); a field that no integer type
    fits is an array of bytes.
    """
    items: list[tuple[Any, ...]] = []
    names: list[str] = []
    bits = 0
    for field in header(name):
        names.append(field.name)
        bits += field.bits
        if bits % 8 == 0:
            size = bits // 8
            items.append(("_".join(names), *((f">u{size}",) if size in (1, 2, 4, 8) else ("u1", (size,)))))
            names, bits = [], 0
    return np.dtype(items)


BARE_FRAME = np.dtype([(part, packed_dtype(f"{part}_t")) for part in ("ethernet", "ipv4", "udp", "ina")])
"""All headers of a packet: a whole notice, or the head of a gradient or a result."""
FRAME = np.dtype([*BARE_FRAME.descr, ("values", ">i4", (len(header("values_t")),))])
"""A gradient or a result."""
FRAGMENT = FragmentFormat(values=len(header("values_t")), wire_bytes=FRAME.itemsize)


def offset_of(*path: str) -> int:
    """The offset in bytes of a header of a frame, or of a field of it: `offset_of("ipv4", "dst")`."""
    offset, dtype = 0, FRAME
    for name in path:
        dtype, start = dtype.fields[name][:2]  # type: ignore[index]
        offset += start
    return offset


def new_frames(
    count: int,
    *,
    src_mac: str,
    dst_mac: str,
    src_ip: str,
    dst_ip: str,
    ina: Mapping[str, int] | None = None,
    dtype: np.dtype[np.void] = FRAME,
    capable: bool = False,
) -> Frames:
    """`count` frames of `dtype`, (count,), from one host to another.

    `ina` has fields of the INA header by name; the others and the values are zero. `capable`: links may mark them.
    """
    frames = np.zeros(count, dtype)
    for field, value in (ina or {}).items():
        frames["ina"][field] = value
    frames["ethernet"]["dst"] = mac_bytes(dst_mac)
    frames["ethernet"]["src"] = mac_bytes(src_mac)
    frames["ethernet"]["ethertype"] = constant("ETHERTYPE_IPV4")
    udp_length = dtype.itemsize - offset_of("udp")
    frames["udp"]["src_port"] = frames["udp"]["dst_port"] = UDP_PORT
    frames["udp"]["length"] = udp_length
    frames["ipv4"] = ipv4_header(src_ip, dst_ip, udp_length, constant("ECN_CAPABLE") if capable else 0)
    return frames


def ipv4_header(src: str, dst: str, payload_bytes: int, tos: int = 0) -> Frames:
    """The IPv4 header, (1,), of a UDP packet from one address to another."""
    ip = np.zeros(1, BARE_FRAME["ipv4"])
    ip["version_ihl"], ip["tos"] = 0x45, tos
    ip["total_length"] = ip.itemsize + payload_bytes
    ip["ttl"] = 64
    ip["protocol"] = constant("PROTOCOL_UDP")
    ip["src"], ip["dst"] = int(IPv4Address(src)), int(IPv4Address(dst))
    # The Internet checksum: the complement of the sum of all 16-bit words, whose carries are added again.
    total = int(np.frombuffer(ip.tobytes(), ">u2").sum(dtype=np.int64))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    ip["checksum"] = ~total & 0xFFFF
    return ip


def mac_bytes(address: str) -> NDArray[np.uint8]:
    """The six bytes of a MAC address written with colons."""
    return np.frombuffer(bytes.fromhex(address.replace(":", "")), np.uint8)


def pick(templates: Frames, index: NDArray[np.int64]) -> Frames:
    """`templates[index]`, copied as whole rows: NumPy's own indexing copies field by field."""
    whole: Frames = templates.view(np.dtype((np.void, templates.itemsize)))[index].view(templates.dtype)
    return whole


def head_of(frames: Frames) -> Frames:
    """The heads (`BARE_FRAME`) of whole frames, (frames,)."""
    return np.ascontiguousarray(frames.view((np.uint8, frames.itemsize))[:, : BARE_FRAME.itemsize]).view(BARE_FRAME)[
        :, 0
    ]
