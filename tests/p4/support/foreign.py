"""Frames of other protocols, and what may have happened to any frame on its way: tags, options, wrong fields, cuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from draws import anything
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from scapy.contrib.lldp import LLDPDUChassisID, LLDPDUEndOfLLDPDU, LLDPDUPortID, LLDPDUTimeToLive
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, IPOption_RR
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, GRE, LLC, SNAP, Dot3, Ether
from scapy.packet import Packet, Raw
from scenarios import SERVER_IP, worker_ip

from traffic.wire.packet_format import BARE_FRAME, UDP_PORT

Change = Callable[[bytes], bytes]

SMALLEST_FRAME, LARGEST_FRAME = 14, 1514
ADDRESSES = 12  # bytes before the type
TAG_TYPES = (0x8100, 0x88A8)
SMALLEST_TAGGED_FRAME = 20
HEADERS_END = BARE_FRAME.itemsize
UNKNOWN_IP = "192.0.2.1"

# ---- other protocols ---------------------------------------------------------------------------


def ethernet(payload: Packet) -> bytes:
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:64") / payload)


def to_server(payload: Packet, **fields: Any) -> bytes:
    return ethernet(IP(src=worker_ip(1), dst=SERVER_IP, **fields) / payload)


def dns() -> Packet:
    return UDP(sport=53, dport=53) / Raw(bytes(26))


FOREIGN: dict[str, bytes] = {
    "UDP": to_server(dns()),
    "UDP to a worker": ethernet(IP(src=SERVER_IP, dst=worker_ip(2)) / dns()),
    "UDP to nobody": ethernet(IP(src=worker_ip(1), dst=UNKNOWN_IP) / dns()),
    "UDP from the INA port": to_server(UDP(sport=UDP_PORT, dport=9) / Raw(bytes(284))),
    "UDP without payload": to_server(UDP(dport=UDP_PORT)),
    "TCP": to_server(TCP(sport=40000, dport=80, flags="S", options=[("MSS", 1460), ("SAckOK", b"")])),
    "TCP to the INA port": to_server(TCP(dport=UDP_PORT) / Raw(bytes(284))),
    "TCP, a full frame": to_server(TCP(dport=80) / Raw(bytes(1460))),
    "ICMP echo": to_server(ICMP() / Raw(b"ping" * 14)),
    "ICMP error": to_server(ICMP(type=3, code=1) / IP(src=SERVER_IP, dst=worker_ip(1)) / UDP(dport=UDP_PORT)),
    "IGMP": ethernet(IP(dst="224.0.0.22", ttl=1, proto=2, options=[IPOption_NOP()]) / Raw(b"\x16" + bytes(7))),
    "GRE": to_server(GRE() / IP(dst=SERVER_IP) / UDP(dport=UDP_PORT)),
    "IP in IP": to_server(IP(dst=SERVER_IP) / UDP(dport=UDP_PORT) / Raw(bytes(284))),
    "first fragment": to_server(UDP(dport=UDP_PORT) / Raw(bytes(40)), flags="MF"),
    "later fragment": to_server(Raw(bytes(300)), frag=3, proto=17),
    "record route": to_server(UDP(dport=UDP_PORT) / Raw(bytes(284)), options=[IPOption_RR(routers=[UNKNOWN_IP])]),
    "ARP request": ethernet(ARP(psrc=worker_ip(1), pdst=SERVER_IP)),
    "ARP reply": ethernet(ARP(op=2, psrc=SERVER_IP, pdst=worker_ip(1)) / Raw(bytes(18))),
    "IPv6": ethernet(IPv6(dst="2001:db8::1") / UDP(dport=UDP_PORT) / Raw(bytes(284))),
    "neighbour solicitation": ethernet(IPv6(dst="ff02::1") / ICMPv6ND_NS(tgt="fe80::1")),
    "IPv6 under the type of IPv4": bytes(Ether(type=0x0800) / IPv6() / UDP(dport=UDP_PORT) / Raw(bytes(284))),
    "MPLS": ethernet(MPLS(label=3) / IP(dst=SERVER_IP) / UDP(dport=UDP_PORT)),
    "LLDP": ethernet(
        LLDPDUChassisID(subtype=4, id="02:00:00:00:00:01") / LLDPDUPortID(subtype=7, id=b"1")
        / LLDPDUTimeToLive(ttl=20) / LLDPDUEndOfLLDPDU()
    ),
    "IEEE 802.3": bytes(Dot3(src="02:00:00:00:00:01", dst="01:80:c2:00:00:00") / LLC() / SNAP() / Raw(bytes(30))),
    "PAUSE": bytes(Ether(dst="01:80:c2:00:00:01", type=0x8808) / Raw(b"\x00\x01\xff\xff" + bytes(42))),
    "nothing but addresses": bytes(ADDRESSES + 2),
}  # fmt: skip

# ---- changes -----------------------------------------------------------------------------------


def header_fields() -> Iterator[tuple[int, int]]:
    """The first byte and the length of every header field."""
    for part in BARE_FRAME.names or ():
        header, start = BARE_FRAME.fields[part][:2]  # type: ignore[index]
        for name in header.names or ():
            field, offset = header.fields[name][:2]  # type: ignore[index]
            yield start + offset, field.itemsize


def overwrite(first: int, content: bytes, frame: bytes) -> bytes:
    """Other bytes from `first` on, as far as the frame goes."""
    return (frame[:first] + content + frame[first + len(content) :])[: len(frame)]


def cut(length: int, frame: bytes) -> bytes:
    return frame[:length]


def lengthen(length: int, seed: int, frame: bytes) -> bytes:
    """More bytes than the headers say: a few, or up to `length`."""
    more = max(length - len(frame), length % 64)
    return frame + Random(seed).randbytes(more)


def tag(tags: list[tuple[int, int]], frame: bytes) -> bytes:
    """VLAN tags, each a type and its 16 bits of control information; two of them are QinQ."""
    inserted = b"".join(kind.to_bytes(2, "big") + control.to_bytes(2, "big") for kind, control in tags)
    return frame[:ADDRESSES] + inserted + frame[ADDRESSES:]


def add_options(words: int, frame: bytes) -> bytes:
    """An IPv4 header longer by `words` no-operations, whatever the frame is."""
    at = SMALLEST_FRAME
    return frame[:at] + bytes([0x45 + words]) + frame[at + 1 : at + 20] + b"\1" * 4 * words + frame[at + 20 :]


@st.composite
def wrong_fields(draw: st.DrawFn) -> Change:
    """Any header field set to a small number, its largest, or anything."""
    first, length = draw(HEADER_FIELDS)
    return partial(overwrite, first, draw(anything(8 * length)).to_bytes(length, "big"))


def with_arguments(function: Callable[..., bytes], *arguments: SearchStrategy[Any]) -> SearchStrategy[Change]:
    """`function`, which lacks only the frame."""
    return st.tuples(*arguments).map(lambda drawn: partial(function, *drawn))


HEADER_FIELDS = st.sampled_from(list(header_fields()))
LENGTHS = st.integers(SMALLEST_FRAME, HEADERS_END + 8) | st.integers(SMALLEST_FRAME, LARGEST_FRAME)
TAG = st.tuples(st.sampled_from(TAG_TYPES), st.integers(0, 2**16 - 1))
ONE_CHANGE: SearchStrategy[Change] = st.one_of(
    wrong_fields(),
    with_arguments(overwrite, st.integers(0, HEADERS_END - 1), st.binary(min_size=1, max_size=1)),
    with_arguments(cut, LENGTHS),
    with_arguments(lengthen, LENGTHS, st.integers(0, 255)),
    with_arguments(tag, st.lists(TAG, min_size=1, max_size=2)),
    with_arguments(add_options, st.integers(1, 10)),
)
CHANGES = st.lists(ONE_CHANGE, min_size=1, max_size=3)


def changed(frame: bytes, made: list[Change]) -> bytes:
    """`frame` after all changes, of a length that Ethernet carries."""
    for change in made:
        frame = change(frame)
    return deliverable(frame[:LARGEST_FRAME])


def deliverable(frame: bytes) -> bytes:
    """Zeros behind a VLAN tag with nothing behind it: the kernel discards such a frame before any switch sees it."""
    tagged = int.from_bytes(frame[ADDRESSES : ADDRESSES + 2], "big") in TAG_TYPES
    return frame.ljust(SMALLEST_TAGGED_FRAME, b"\0") if tagged else frame


def noise(length: int, seed: int) -> bytes:
    """Bytes without any order."""
    return deliverable(Random(seed).randbytes(length))


GARBAGE = st.tuples(LENGTHS, st.integers(0, 2**16 - 1)).map(lambda drawn: noise(*drawn))
# Frames that are not of the INA protocol.
FOREIGN_FRAMES = st.sampled_from(list(FOREIGN.values())) | GARBAGE
