"""The packets of the labs, built from numbers and described in words, and a search for the cause of a wrong sum."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from itertools import product

TYPE_IPV4, TYPE_AGG = 0x0800, 0x88B5
GRADIENT, RESULT = 1, 2
KINDS = {GRADIENT: "gradient", RESULT: "result"}
VALUES = 8
MODULUS = 1 << 32

ETHERNET = struct.Struct("!6s6sH")
IPV4 = struct.Struct("!BBHHHBBH4s4s")
AGG = struct.Struct("!BBBBHI")
ELEMENTS = struct.Struct(f"!{VALUES}I")
SENDER, RECEIVER = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")

Values = tuple[int, ...]


@dataclass(frozen=True)
class Agg:
    """A packet of an aggregation: a gradient or a result, with 8 values of 32 bits.

    Only packets of lab 5 have a job; `worker` is their label. `ethernet` has the Ethernet addresses, and `rest` the
    bytes behind the values: two packets are equal only if all their bytes are.
    """

    kind: int
    worker: int
    slot: int
    round: int
    values: Values
    job: int = 0
    version: int = 0
    ethernet: bytes = RECEIVER + SENDER
    rest: bytes = b""

    def packed(self) -> bytes:
        """The packet, from its Ethernet header on."""
        head = AGG.pack(self.kind, self.worker, self.job, self.version, self.slot, self.round)
        return self.ethernet + TYPE_AGG.to_bytes(2, "big") + head + ELEMENTS.pack(*self.values) + self.rest

    def result(self, values: Values) -> Agg:
        """The result that this gradient completes."""
        return replace(self, kind=RESULT, values=values)

    def __str__(self) -> str:
        kind = KINDS.get(self.kind, f"kind {self.kind}")
        whose = f"job {self.job} label {self.worker}" if self.job else f"worker {self.worker}"
        version = f" version {self.version}" if self.version else ""
        values = " ".join(f"{value:08x}" for value in self.values)
        rest = f" and {len(self.rest)} bytes behind" if self.rest else ""
        return f"{kind} {whose} slot {self.slot}{version} round {self.round} values {values}{rest}"


def agg_in(packet: bytes) -> Agg | None:
    """The packet of an aggregation in these bytes, or None."""
    size = ETHERNET.size + AGG.size + ELEMENTS.size
    if len(packet) < size or ETHERNET.unpack_from(packet)[2] != TYPE_AGG:
        return None
    kind, worker, job, version, slot, number = AGG.unpack_from(packet, ETHERNET.size)
    values = ELEMENTS.unpack_from(packet, ETHERNET.size + AGG.size)
    return Agg(kind, worker, slot, number, values, job, version, packet[:12], packet[size:])


def ipv4(source: int, destination: int, ttl: int = 64, payload: bytes = b"", ethernet: bytes = b"") -> bytes:
    """An IPv4 packet with a correct checksum. `ethernet` has the Ethernet addresses; default: those of the labs."""
    addresses = source.to_bytes(4, "big"), destination.to_bytes(4, "big")
    without = IPV4.pack(0x45, 0, IPV4.size + len(payload), 0, 0, ttl, 253, 0, *addresses)
    head = without[:10] + checksum(without).to_bytes(2, "big") + without[12:]
    return (ethernet or RECEIVER + SENDER) + TYPE_IPV4.to_bytes(2, "big") + head + payload


def checksum(header: bytes) -> int:
    """The Internet checksum of a header of an even number of bytes; 0 if the header's own checksum is correct."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def summed(gradients: Sequence[Values]) -> Values:
    """The sum of gradients, element by element, modulo 2^32."""
    return tuple(sum(elements) % MODULUS for elements in zip(*gradients, strict=True))


def described(packet: bytes) -> str:
    """A packet in words, or in hexadecimal digits if it is not a packet of the labs."""
    found = agg_in(packet)
    if found is not None:
        return str(found)
    if len(packet) >= ETHERNET.size + IPV4.size and packet[12:14] == TYPE_IPV4.to_bytes(2, "big"):
        fields = IPV4.unpack_from(packet, ETHERNET.size)
        addresses = f"{IPv4Address(fields[8])} to {IPv4Address(fields[9])}"
        ethernet = f"{packet[6:12].hex(':')} to {packet[:6].hex(':')}"
        return f"IPv4 {addresses} ttl {fields[5]} checksum {fields[7]:04x}, Ethernet {ethernet}"
    return f"{len(packet)} bytes {packet[:40].hex()}{'...' if len(packet) > 40 else ''}"


MOST_TRIED = 3**8


def explain_sum(got: Values, wanted: Mapping[str, Values], others: Mapping[str, Values] = {}) -> str:
    """The reason why `got` is not the sum of the gradients of `wanted`, by their names; empty if it is the sum.

    `others` can be in it by mistake. The search tries each gradient in the sum zero times, once or twice.
    """
    right = summed(list(wanted.values()))
    wrong = [number for number, (one, other) in enumerate(zip(got, right, strict=True)) if one != other]
    if not wrong:
        return ""
    names, verb = ", ".join(f"v{number}" for number in wrong), "is" if len(wrong) == 1 else "are"
    where = "the sum is wrong" if len(wrong) == len(got) else f"{names} of the sum {verb} wrong, the others right"
    if all(got[number] == min(MODULUS - 1, sum(values[number] for values in wanted.values())) for number in wrong):
        return f"{where}: it stops at the greatest number where it has to wrap around, modulo 2^32"
    known = {**wanted, **others} if 3 ** (len(wanted) + len(others)) <= MOST_TRIED else dict(wanted)
    counts = {0: "is not in it", 1: "is in it", 2: "is in it twice"}
    for times in product(*((1, 0, 2) if name in wanted else (0, 1, 2) for name in known)):
        sums = (sum(n * values[e] for n, values in zip(times, known.values(), strict=True)) % MODULUS for e in wrong)
        if all(found == got[e] for found, e in zip(sums, wrong, strict=True)):
            unusual = [(name, n) for name, n in zip(known, times, strict=True) if n != (name in wanted)]
            return f"{where}: {'; '.join(f'{name} {counts[n]}' for name, n in unusual)}"
    return f"{where}, and is not a sum of gradients that were sent"
