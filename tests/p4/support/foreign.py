"""Frames of other protocols than the kit's own."""

from __future__ import annotations

from random import Random
from typing import Any

from frame_changes import ADDRESSES, LENGTHS, deliverable
from hypothesis import strategies as st
from scapy.contrib.lldp import LLDPDUChassisID, LLDPDUEndOfLLDPDU, LLDPDUPortID, LLDPDUTimeToLive
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, IPOption_RR
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, GRE, LLC, SNAP, Dot3, Ether
from scapy.packet import Packet, Raw
from scenarios import SERVER_IP, worker_ip

from inakit.traffic.wire.packet_format import UDP_PORT

UNKNOWN_IP = "192.0.2.1"


def ethernet(payload: Packet) -> bytes:
    """A frame with this payload."""
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:64") / payload)


def to_server(payload: Packet, **fields: Any) -> bytes:
    """A frame with an IPv4 packet from a worker to the server."""
    return ethernet(IP(src=worker_ip(1), dst=SERVER_IP, **fields) / payload)


def dns() -> Packet:
    """A UDP payload that is not INA's."""
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


def noise(length: int, seed: int) -> bytes:
    """Random bytes."""
    return deliverable(Random(seed).randbytes(length))


GARBAGE = st.tuples(LENGTHS, st.integers(0, 2**16 - 1)).map(lambda drawn: noise(*drawn))
# Frames that are not of the INA protocol.
FOREIGN_FRAMES = st.sampled_from(list(FOREIGN.values())) | GARBAGE
