"""Lab 1: a router for IPv4.

Each item tests one part of the packet that leaves: its port, its Ethernet addresses, its time to live, its checksum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.lab import Item, Lab, scored
from inakit.experiments.labs.grading.packets import ETHERNET, IPV4, checksum, ipv4
from inakit.switch.entries import Lpm, SwitchEntries, TableEntry
from inakit.switch.interpret.interpreted_switch import Packets

COUNTER = "sent"
PORTS, HIGH_PORTS = range(1, 64), range(256, 264)
"""The ports of routes: the first route of each draw has one of more than 8 bits."""
PAYLOADS = (0, 1, 600, 1400)
"""Sizes in bytes: of the shortest and the longest packets."""
HEAD = ETHERNET.size + IPV4.size
TTL_AT, CHECKSUM_AT = ETHERNET.size + 8, ETHERNET.size + 10


@dataclass(frozen=True)
class Route:
    """A prefix, its port and its next hop."""

    value: int
    prefix: int
    mac: int
    port: int

    @property
    def entry(self) -> TableEntry:
        """The entry of the route."""
        return TableEntry("ipv4_lpm", (Lpm(self.value, self.prefix),), "forward", (self.mac, self.port))

    def address(self, random_bits: int) -> int:
        """An address of the prefix."""
        return self.value | random_bits & (1 << 32 - self.prefix) - 1

    def fits(self, address: int) -> bool:
        """Whether an address is in the prefix."""
        return address >> 32 - self.prefix == self.value >> 32 - self.prefix


def routes_of(bench: Bench, prefixes: tuple[int, ...] = (8, 16, 24, 32), first_bit: int = 1) -> list[Route]:
    """Start the program with nested prefixes, which begin so; return their routes, the longest prefix last."""
    random = bench.random
    value = random.getrandbits(31) | first_bit << 31
    ports = [random.choice(HIGH_PORTS), *random.sample(PORTS, len(prefixes) - 1)]
    routes = [
        Route(value >> 32 - prefix << 32 - prefix, prefix, random.getrandbits(48), port)
        for prefix, port in zip(prefixes, ports, strict=True)
    ]
    bench.start(SwitchEntries("switch", tuple(route.entry for route in routes)))
    return routes


def packet_to(
    bench: Bench, destination: int, ttl: int = 64, source: int | None = None, size: int | None = None
) -> bytes:
    """A packet to an address, with random Ethernet addresses, payload, type of service and, by default, sender."""
    sender = bench.random.getrandbits(32) if source is None else source
    payload = bench.random.randbytes(bench.random.randrange(6, 60) if size is None else size)
    plain = ipv4(sender, destination, ttl, payload, bench.drawn_ethernet())
    return with_checksum(plain[:15] + bytes([bench.random.getrandbits(8)]) + plain[16:24] + bytes(2) + plain[26:])


def with_random_fields(bench: Bench, packet: bytes) -> bytes:
    """An IPv4 packet with another id, other flags, another offset of a fragment and another protocol."""
    of_fragments, protocol = bench.random.randbytes(4), bench.random.randbytes(1)
    return with_checksum(packet[:18] + of_fragments + packet[TTL_AT : TTL_AT + 1] + protocol + packet[TTL_AT + 2 :])


def with_carry(packet: bytes) -> bytes:
    """An IPv4 packet with an id for which counting up the checksum by the change of the time to live has a carry."""
    tried = (with_checksum(packet[:18] + number.to_bytes(2, "big") + packet[20:]) for number in range(1 << 16))
    return next(each for each in tried if each[CHECKSUM_AT] == 0xFF)


def with_checksum(packet: bytes) -> bytes:
    """An IPv4 packet with its checksum corrected."""
    head = packet[ETHERNET.size : CHECKSUM_AT] + bytes(2) + packet[CHECKSUM_AT + 2 : HEAD]
    return packet[:CHECKSUM_AT] + checksum(head).to_bytes(2, "big") + packet[CHECKSUM_AT + 2 :]


def routed(packet: bytes, route: Route) -> Packets:
    """The expected packet for a packet that takes a route."""
    addresses = route.mac.to_bytes(6, "big") + packet[:6]
    head = packet[12:TTL_AT] + bytes([packet[TTL_AT] - 1]) + packet[TTL_AT + 1 :]
    return [(route.port, with_checksum(addresses + head))]


def through(
    bench: Bench, route: Route, ttl: int = 64, change: Callable[[bytes], bytes] = bytes
) -> tuple[bytes, int, bytes]:
    """Send a packet by a route after a `change` of it; return it with the port and bytes that leave.

    Both addresses are of the route: which one is looked up is tested by another item. Raises `WrongError` unless one
    packet leaves.
    """
    source, destination = (route.address(bench.random.getrandbits(32)) for _ in range(2))
    packet = change(packet_to(bench, destination, ttl, source))
    got = bench.send(route.port + 64, packet)
    if len(got) != 1:
        cause = f"{len(got) or 'no'} packets leave where one has to, for an address that a route has"
        raise bench.wrong(cause, routed(packet, route), "port" if got else "drop")
    return packet, *got[0]


def check_parse(bench: Bench) -> None:
    """IPv4 packets leave with their contents; other packets, and packets with options, are dropped."""
    (route,) = routes_of(bench, (12,))
    packet, _, left = through(bench, route, change=partial(with_random_fields, bench))
    kept = (slice(12, TTL_AT), slice(TTL_AT + 1, CHECKSUM_AT), slice(CHECKSUM_AT + 2, None))
    if any(left[part] != packet[part] for part in kept):
        raise bench.wrong("a packet leaves with other contents than it came with", routed(packet, route), "ipv4.dst")
    for size in PAYLOADS:
        other = packet_to(bench, route.value, source=route.value, size=size)
        if not bench.send(route.port + 64, other):
            raise bench.wrong(f"a packet with {size} bytes behind its header is dropped", routed(other, route), "drop")
    for protocol in range(256):
        other = with_checksum(packet[: TTL_AT + 1] + bytes([protocol]) + packet[TTL_AT + 2 :])
        if not bench.send(route.port + 64, other):
            raise bench.wrong(f"a packet of protocol {protocol} is dropped", routed(other, route), "drop")
    others = {"IPv6": 0x86DD, "ARP": 0x0806, "an unknown type": bench.random.randrange(0x9000, 0xFFFF)}
    for kind, number in others.items():
        other = packet[:12] + number.to_bytes(2, "big") + packet[14:]
        bench.same(bench.send(1, other), [], f"a packet of {kind} is not dropped")
    for ihl in (6, 15, 4):
        other = packet[:14] + bytes([0x40 | ihl]) + packet[15:]
        bench.same(bench.send(1, other), [], f"a packet of IPv4 with ihl {ihl} is not dropped")


def check_lpm(bench: Bench) -> None:
    """The longest matching prefix decides the port, and a packet without one is dropped."""
    routes = routes_of(bench)
    for number, route in enumerate(routes):
        longer = routes[number + 1 :]
        drawn = [route.address(bench.random.getrandbits(32)) for _ in range(64)]
        address = next(each for each in drawn if not any(other.fits(each) for other in longer))
        packet = packet_to(bench, address)
        ports = [port for port, _ in bench.send(64, packet)]
        if ports != [route.port]:
            by = f"by port {', '.join(map(str, ports))}" if ports else "nowhere"
            cause = f"a packet leaves {by}, where the longest prefix leads to port {route.port}"
            raise bench.wrong(cause, routed(packet, route))
    nowhere = packet_to(bench, bench.random.getrandbits(31))
    bench.same(bench.send(64, nowhere), [], "a packet that no prefix fits is not dropped")
    routes_of(bench, (8,), first_bit=0)
    nowhere = packet_to(bench, bench.random.getrandbits(31) | 1 << 31)
    bench.same(bench.send(64, nowhere), [], "a packet that no prefix fits is not dropped")
    (route,) = routes_of(bench, (0,))
    for first in range(16):
        packet = packet_to(bench, first << 28 | bench.random.getrandbits(28))
        if [port for port, _ in bench.send(route.port, packet)] != [route.port]:
            cause = f"a packet does not leave by port {route.port}, where the only prefix, which fits all, leads"
            raise bench.wrong(cause, routed(packet, route))


def check_addresses(bench: Bench) -> None:
    """The new receiver is the entry's; the new sender is the router, the previous receiver."""
    for route in routes_of(bench):
        packet, _, left = through(bench, route)
        wanted = {"receiver (dst)": (slice(0, 6), route.mac.to_bytes(6, "big"), "ethernet.dst")}
        wanted["sender (src)"] = (slice(6, 12), packet[:6], "ethernet.src")
        for name, (part, value, field) in wanted.items():
            if left[part] != value:
                old = {packet[:6]: "the receiver that it came with", packet[6:12]: "the sender that it came with"}
                is_now = old.get(left[part], left[part].hex(":"))
                cause = f"the Ethernet {name} of what leaves is {is_now}, not {value.hex(':')}"
                raise bench.wrong(cause, routed(packet, route), field)


def check_ttl(bench: Bench) -> None:
    """The time to live is one less."""
    (route,) = routes_of(bench, (16,))
    for ttl in (255, 128, bench.random.randrange(3, 100)):
        packet, _, left = through(bench, route, ttl)
        if left[TTL_AT] != ttl - 1:
            cause = f"the time to live is {left[TTL_AT]} where {ttl - 1} is expected, of a packet that came with {ttl}"
            raise bench.wrong(cause, routed(packet, route), "ipv4.ttl")


def check_expired(bench: Bench) -> None:
    """Only packets that would leave with a time to live of 0 are dropped."""
    (route,) = routes_of(bench, (16,))
    for ttl in (2, 128, 255):
        through(bench, route, ttl)
    for ttl in (1, 0):
        packet = packet_to(bench, route.address(bench.random.getrandbits(32)), ttl)
        bench.same(bench.send(64, packet), [], f"a packet that came with a time to live of {ttl} is not dropped")


def check_checksum(bench: Bench) -> None:
    """The checksum of the packet that leaves is correct, also where counting it up by the change has a carry."""
    for number, route in enumerate(routes_of(bench)):
        change = with_carry if route.prefix == 8 else partial(with_random_fields, bench)
        ttl = bench.random.randrange(4, 128) + 128 * (number % 2)
        packet, _, left = through(bench, route, ttl, change)
        if checksum(left[ETHERNET.size : HEAD]):
            has, came, right = (
                each[CHECKSUM_AT : CHECKSUM_AT + 2].hex() for each in (left, packet, with_checksum(left))
            )
            same = " (as it came)" if has == came else ""
            cause = f"the checksum of what leaves is {has}{same}, and {right} would be right"
            raise bench.wrong(cause, routed(packet, route), "ipv4.checksum")


def check_counts(bench: Bench) -> None:
    """The counter has the packets that left by each port, and their bytes."""
    routes = routes_of(bench)
    left: dict[int, list[int]] = {}
    for _ in range(3):
        for route in routes:
            packet, port, _ = through(bench, route)
            left.setdefault(port, []).append(len(packet))
    judge_counts(bench, left, {})
    nowhere, expired = packet_to(bench, bench.random.getrandbits(31)), packet_to(bench, routes[0].value, ttl=1)
    astray: dict[int, list[int]] = {}
    for packet in (nowhere, expired, bytes(12) + b"\x86\xdd" + bytes(60)):
        for port, _ in bench.send(64, packet):
            astray.setdefault(port, []).append(len(packet))
    judge_counts(bench, left, astray)


def judge_counts(bench: Bench, left: dict[int, list[int]], astray: dict[int, list[int]]) -> None:
    """Raise `WrongError` unless the counter has the packets that left by each port, with or without `astray`.

    The arguments have the sizes of packets by port.
    """
    for port, counted in enumerate(bench.switch.counter(COUNTER)):
        sizes, more = left.get(port, []), astray.get(port, [])
        units = {"packets": (len(sizes), len(more)), "bytes": (sum(sizes), sum(more))}
        for (unit, (least, beside)), count in zip(units.items(), counted, strict=True):
            if not least <= count <= least + beside:
                cause = f"counter '{COUNTER}' has {count} {unit} for port {port}, by which {least} have left"
                expected, got = (
                    f"{COUNTER}[{port}]: {packets} packets, {octets} bytes"
                    for packets, octets in ((len(sizes), sum(sizes)), counted)
                )
                raise bench.wrong(cause, expected, got=got)


LAB = Lab(
    name="1-forward",
    title="A router: the tools",
    hours="3 to 5",
    files=("forward.p4",),
    items=scored(
        "1-forward",
        Item("parse", "IPv4 and nothing else", "Step 1", check_parse),
        Item("lpm", "the longest prefix", "Step 2", check_lpm),
        Item("addresses", "Ethernet addresses", "Step 3", check_addresses),
        Item("ttl", "time to live", "Step 4", check_ttl),
        Item("expired", "expired packets", "Step 5", check_expired),
        Item("checksum", "the checksum", "Step 6", check_checksum),
        Item("counts", "counting", "Step 7", check_counts),
    ),
)
