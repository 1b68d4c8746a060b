"""What the tests of target fast share: packets by hand, a program's switch, and wires to a switch in the kernel."""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from pyroute2 import IPRoute

from switch.entries import KeyPart, Lpm, MulticastGroup, Range, SwitchEntries, TableEntry, Ternary
from switch.fast.load.in_process_switch import InProcessSwitch
from switch.fast.load.kernel_switch import KernelSwitch
from switch.program.program import Program
from switch.program.read import read_program

INA = Path(__file__).resolve().parents[2] / "p4" / "build" / "ina.json"
PROGRAMS = Path(__file__).parent / "programs"
CONTROL = "InaIngress"
ETHERNET = bytes(range(12))
GRADIENT, RESULT, NOTICE = 1, 2, 3
ECN, COLLISION, OVERFLOW, PARTIAL, RETRANSMITTED = 1, 2, 4, 8, 16
PS = 0x0A000001
PROGRAM_NAMES = ("arithmetic", "bits", "parser", "control", "headers", "lengths", "lists")
PROGRAM_PORTS = (1, 2, 4, 9)  # of the small programs
Packets = list[tuple[int, bytes]]


def ina_program() -> Program:
    return read_program(INA)


def ina_packet(
    label: int, *, kind: int = GRADIENT, flags: int = 0, job: int = 1, tree: int = 1, seq: int = 0, slot: int = 0,
    bitmap: int = 0, workers: int = 1, values: Sequence[int] = range(64), destination: int = PS, udp_port: int = 0x494E,
) -> bytes:  # fmt: skip
    """A packet of the INA protocol, as the P4 program describes it."""
    body = struct.pack(">BBHHHIIQHBB", kind, flags, job, tree, label, seq, slot, bitmap, workers, 0, 0)
    if kind != NOTICE:
        body += struct.pack(">64i", *values)
    udp = struct.pack(">HHHH", 1, udp_port, 8 + len(body), 0) + body
    return ipv4_packet(udp, destination)


def ipv4_packet(payload: bytes, destination: int, protocol: int = 17) -> bytes:
    head = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0, 0x0A000002, destination)
    return ethernet_packet(head + payload, 0x0800)


def ethernet_packet(payload: bytes, ethertype: int) -> bytes:
    return b"\2\0\0\0\0\1" + b"\2\0\0\0\0\2" + struct.pack(">H", ethertype) + payload


def ina_header(packet: bytes) -> dict[str, int]:
    names = ("kind", "flags", "job", "tree", "label", "seq", "slot", "bitmap", "workers", "priority", "part")
    return dict(zip(names, struct.unpack(">BBHHHIIQHBB", packet[42:70]), strict=True))


def ina_values(packet: bytes) -> list[int]:
    return list(struct.unpack(">64i", packet[70:326]))


def entry(table: str, key: tuple[int, ...], action: str, *params: int) -> TableEntry:
    return TableEntry(f"{CONTROL}.{table}", key, f"{CONTROL}.{action}", params)


def small_tree(slots: int = 16, pipelines: Sequence[int] = (0, 0, 0, 1), policy: int = 0) -> SwitchEntries:
    """Workers 2, 3 at ports 1, 2 sum as label 9 towards port 3; worker 4 is at port 4; the PS is behind port 3.

    Tree 1 of job 1 sums 2 and 3 in the pipeline of port 1. Label 5, behind port 2, is a descendant further down.
    """
    tables = [entry("pipeline", (port,), "set_pipeline", p) for port, p in enumerate(pipelines, start=1)]
    for port, label in ((1, 2), (2, 3), (4, 4), (2, 5)):
        tables.append(entry("admission", (port, GRADIENT, 1, 1, label), "admit"))
    tables += [entry("admission", (3, kind, 1, 1, 0), "admit") for kind in (RESULT, NOTICE)]
    for label, child in ((2, 1), (3, 2)):
        key = (pipelines[0], 1, 1, label)
        tables.append(entry("aggregation", key, "aggregate", child, 3, 5, slots, 9, slots, policy))
    tables.append(entry("aggregation", (pipelines[0], 1, 1, 5), "aggregate", 0, 3, 5, slots, 9, slots, policy))
    tables += [entry("forward", (1, 1, label), "send", 3) for label in (2, 3, 4, 5, 9)]
    tables.append(entry("ipv4_route", (PS,), "send", 3))
    tables.append(entry("results", (1, 1), "replicate", 7))
    return SwitchEntries("s1", tuple(tables), (MulticastGroup(7, (4, 2, 1)),))


def packet(program: Program, ethertype: int = 0, **fields: int) -> bytes:
    """An Ethernet header and the header `test` with some of its fields set."""
    header, value = program.headers["test"], 0
    for field in header.fields:
        value = value << field.bits | fields.get(field.name, 0) & (1 << field.bits) - 1
    return ETHERNET + ethertype.to_bytes(2, "big") + value.to_bytes(header.size, "big")


# For parser.p4: what is sent, the port it leaves by (100 more after an error), and what leaves if it differs.
PARSED: dict[str, tuple[str, int, str | None]] = {
    "no state follows": ("0800 0000", 1, None),
    "masked ethertype": ("9234 0141", 1, "9234 0142"),
    "a field that wraps": ("9234 01ff", 1, "9234 0100"),
    "start of a range": ("9200 0300 00000000", 1, "9200 0301 01020304"),
    "end of a range": ("9200 0900 00000000", 1, "9200 0901 01020304"),
    "after a range": ("9200 0a00 00000000", 1, "9200 0a01 00000000"),
    "masked byte": ("9200 8f00 ffffffff", 1, "9200 8f01 01020303"),
    "one byte too few": ("9200 8f00 ffffff", 101, "9200 8f01 ffffff"),
    "second offset": ("9100 0007 9200 0300 00000000 ee", 2, "9100 0007 9200 0301 01020304 ee"),
    "second offset, end too early": ("9100 0007 9200 03", 102, "9100 0007 9200 03"),
    "tag of another type": ("9100 0007 9300 0300 00000000", 2, None),
}


def control_entries() -> SwitchEntries:
    return SwitchEntries(
        "s",
        tables=(
            TableEntry("TestIngress.by_key", (7, 1), "TestIngress.to_port", (4, 20)),
            TableEntry("TestIngress.by_key", (8, 1), "TestIngress.to_group", (3,)),
            TableEntry("TestIngress.by_key", (9, 1), "TestIngress.to_group", (4,)),
            TableEntry("TestIngress.by_key", (10, 1), "TestIngress.to_port", (511, 0)),
            TableEntry("TestIngress.by_port", (1,), "TestIngress.add", (1,)),
        ),
        groups=(MulticastGroup(3, (6, 5, 4, 6)),),
    )


def headers_entries() -> SwitchEntries:
    return SwitchEntries("s", groups=(MulticastGroup(3, (2, 4, 9)),))


# Values of lists.p4 that its entries tell apart.
ADDRESSES = (7, 0x100020003, 0x100020004, 1 << 127, (1 << 127) + 0x100020003, 0xABCD << 64)
LIST_PORTS = (3, 80, 0x101, 0x110, 0x211, 300)
KINDS = (1, 5, 0x11, 0x15)


def lists_entries() -> SwitchEntries:
    """More entries than one block of a list has, in another order than they win."""
    draw = random.Random(6)
    tables: list[TableEntry] = []

    def entry(table: str, key: tuple[KeyPart, ...], action: str, priority: int | None = None) -> None:
        value = len(tables) % 256
        tables.append(TableEntry(f"TestIngress.{table}", key, f"TestIngress.{action}", (value,), priority))

    for kind in KINDS[:3]:
        for prefix in (0, 1, 60, 97, 126, 128):
            entry("by_prefix", (kind, Lpm(ADDRESSES[draw.randrange(6)], prefix)), "prefix")
    for priority in draw.sample(range(1, 500), 150):
        address = Ternary(draw.choice(ADDRESSES), draw.choice((0, 0xF, 1 << 127, (1 << 128) - 1)))
        port = Ternary(draw.choice(LIST_PORTS), draw.choice((0, 0xFF, 0xFFFF)))
        entry("by_mask", (address, port, 1), "mask", priority)
    for priority, low in enumerate((300, 80, 1, 0), start=1):
        entry("by_range", (Range(low, low + 220), draw.choice(KINDS)), "range_", priority)
    for priority, (port_given, kind_given) in enumerate(((80, 5), (80, None), (None, 1), (None, None)), start=1):
        entry("if_given", (optional(port_given, 0xFFFF), optional(kind_given, 0xFF)), "given", priority)
    return SwitchEntries("s", tuple(tables))


def optional(value: int | None, mask: int) -> Ternary:
    """What p4c makes of a part of a key that may be left open."""
    return Ternary(0, 0) if value is None else Ternary(value, mask)


def lists_packets(program: Program) -> Packets:
    draw = random.Random(7)
    drawn = [(draw.choice(ADDRESSES), draw.choice(LIST_PORTS), draw.choice(KINDS)) for _ in range(150)]
    return [(draw.choice(PROGRAM_PORTS), packet(program, address=a, port=p, kind=k)) for a, p, k in drawn]


ENTRIES = {"control": control_entries, "headers": headers_entries, "lists": lists_entries}


def random_packets(program: Program, seed: int) -> Packets:
    """Packets of the header `test` with any content, at any port."""
    draw, fields = random.Random(seed), program.headers["test"].fields
    drawn = [{field.name: draw.getrandbits(field.bits) for field in fields} for _ in range(40)]
    return [(draw.choice(PROGRAM_PORTS), packet(program, **values)) for values in drawn]


def control_packets(program: Program, indexes: Sequence[int]) -> Packets:
    draw = random.Random(4)
    drawn = [(draw.choice((1, 2)), draw.randrange(7, 12), draw.choice(indexes)) for _ in range(80)]
    return [(port, packet(program, key=key, index=index)) for port, key, index in drawn]


def headers_packets() -> Packets:
    """Packets of headers.p4 with every choice of headers, whole or cut short, for each of its kinds of change."""
    draw, packets = random.Random(5), []
    bodies = {0: b"", 1: b"", 2: draw.randbytes(47), 4: b"\x05\x06", 8: b"\1\2\3\4", 16: b"\x15\x07", 32: b"\0\1\2\7\7"}
    for kind in range(17):
        for flags, body in bodies.items():
            tags = b"".join(draw.randbytes(3) + bytes([draw.choice((0, 0, 1))]) for _ in range(flags & 1 and 4))
            test = bytes([kind, flags | draw.choice((0, 0, 0x80)) | bool(tags)]) + draw.randbytes(8)
            packet = ETHERNET + b"\0\0" + test + tags + body + draw.randbytes(draw.choice((14, 15, 30, 700)))
            cut = len(packet) if draw.randrange(4) else draw.choice((15, 23, *range(28, len(packet))))
            packets.append((draw.choice(PROGRAM_PORTS), packet[:cut]))
    return packets


def lengths_packets() -> Packets:
    """Packets of lengths.p4: fitting lengths and others, and everything cut short at times."""
    draw, packets = random.Random(8), []
    for number in range(160):
        kind, octets = draw.choice((0, 1, 2, 3, 4, 10, 11, 12)), draw.choice((0, 1, 4, 40, 41))
        test = bytes([kind, 4 * octets % 256 if number % 16 else 3])
        options = draw.randbytes(1 + octets) + bytes([draw.choice((0, 0x10, 0x20)), 7]) if 1 <= kind < 10 else b""
        lists = [bytes([count]) + draw.randbytes(count) for count in draw.choices((0, 1, 2, 32), k=3)]
        body = test + options + b"".join(lists) + draw.randbytes(draw.choice((14, 50, 60)))
        packet = ETHERNET + b"\0\0" + body
        packets.append(
            (draw.choice(PROGRAM_PORTS), packet if number % 5 else packet[: draw.randrange(30, len(packet))])
        )
    return packets


# The packets for a small program; of others they are random.
PACKETS: dict[str, Callable[[Program], Packets]] = {
    "headers": lambda _program: headers_packets(),
    "lengths": lambda _program: lengths_packets(),
    "lists": lists_packets,
}


def packets_for(name: str, program: Program, indexes: Sequence[int] = (0, 7)) -> Packets:
    """Packets for a small program; those of control.p4 use its registers at `indexes`."""
    if name == "parser":
        return [(1, ETHERNET + bytes.fromhex(sent)) for sent, _, _ in PARSED.values()]
    if name in PACKETS:
        return PACKETS[name](program)
    return control_packets(program, indexes) if name == "control" else random_packets(program, seed=3)


def program_entries(name: str) -> SwitchEntries:
    return ENTRIES[name]() if name in ENTRIES else SwitchEntries("s")


@contextmanager
def shown_when_wrong(source: str) -> Iterator[None]:
    """Print the generated C when a test of it fails."""
    try:
        yield
    except AssertionError:
        print(source)
        raise


class Wires:
    """Pairs of virtual Ethernet: a switch's ports on one side, raw sockets on the other."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.exits = ExitStack()
        self.names = {port: f"ikt{os.getpid() % 100000}p{port}" for port in ports}
        self.sockets: dict[int, socket.socket] = {}

    def __enter__(self) -> Wires:
        with ExitStack() as stack:
            netlink = stack.enter_context(IPRoute())
            for port, name in self.names.items():
                netlink.link("add", ifname=name, kind="veth", peer={"ifname": f"{name}h"})
                self.exits.callback(remove, name)
                for end in (name, f"{name}h"):
                    Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                    netlink.link("set", index=netlink.link_lookup(ifname=end)[0], state="up")
                self.sockets[port] = raw_socket(f"{name}h")
                self.exits.callback(self.sockets[port].close)
        return self

    def __exit__(self, *_error: object) -> None:
        self.exits.close()

    def attach(self, switch: KernelSwitch) -> None:
        for port, name in self.names.items():
            switch.add_port(port, name)
        self.exits.callback(switch.close)

    def send(self, port: int, packet: bytes) -> None:
        self.sockets[port].send(packet)

    def receive(self, port: int, count: int, patience_s: float = 2.0) -> list[bytes]:
        """Up to `count` packets; fewer if they do not come. With a count of 0, those that are there already."""
        receiver = self.sockets[port]
        packets: list[bytes] = []
        end = time.monotonic() + patience_s
        while len(packets) < count or count == 0:
            receiver.settimeout(max(end - time.monotonic(), 0.001) if count else 0.001)
            try:
                packets.append(receiver.recv(65536))
            except TimeoutError:
                break
        return packets


def raw_socket(interface: str) -> socket.socket:
    """Sees what arrives at an interface and nothing that leaves it."""
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # hears nothing until it is bound
    found.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    found.bind((interface, 3))  # ETH_P_ALL
    return found


def remove(interface: str) -> None:
    with IPRoute() as netlink:
        for index in netlink.link_lookup(ifname=interface):
            netlink.link("del", index=index)


def in_kernel(wires: Wires, packets: Packets, expected: Packets) -> dict[int, list[bytes]]:
    """Send packets one after the other; gives what came, by port.

    One sender's packets keep their order, whatever their ports: all wait in the queue of the switch's CPU.
    """
    for port, packet in packets:
        wires.send(port, packet)
    counts = {port: sum(out == port for out, _ in expected) for port in wires.sockets}
    came = {port: wires.receive(port, count) if count else [] for port, count in counts.items()}
    return {port: [*packets, *wires.receive(port, 0)] for port, packets in came.items()}


def received(switch: KernelSwitch | InProcessSwitch) -> int:
    """Packets that have entered a switch of ina.p4."""
    return int(switch.read_counter(f"{CONTROL}.received")[0].sum())


def wait_for(condition: object, what: str, patience_s: float = 5.0) -> None:
    end = time.monotonic() + patience_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, f"waited {patience_s} s for {what}"
        time.sleep(0)


def by_port(packets: Packets, ports: Sequence[int]) -> dict[int, list[bytes]]:
    return {port: [packet for out, packet in packets if out == port] for port in ports}


def same_state(one: KernelSwitch | InProcessSwitch, other: KernelSwitch | InProcessSwitch, program: Program) -> bool:
    """Whether all registers and counters of two switches agree."""
    registers = all(np.array_equal(one.read_register(name), other.read_register(name)) for name in program.registers)
    counters = all(np.array_equal(one.read_counter(name), other.read_counter(name)) for name in program.counters)
    return registers and counters
