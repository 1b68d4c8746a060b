"""The small programs of tests/switch/programs: packets and entries that reach every part of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from inakit.switch.entries import KeyPart, Lpm, MulticastGroup, Range, SwitchEntries, TableEntry, Ternary
from inakit.switch.program.program import Program

PROGRAMS = Path(__file__).parents[1] / "programs"
ETHERNET = bytes(range(12))
PROGRAM_NAMES = ("arithmetic", "bits", "parser", "control", "headers", "lengths", "lists", "chances")
PROGRAM_PORTS = (1, 2, 4, 9)  # of the small programs
Packets = list[tuple[int, bytes]]


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
    """Entries and a group for control.p4."""
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
    """A group for headers.p4."""
    return SwitchEntries("s", groups=(MulticastGroup(3, (2, 4, 9)),))


# Values of lists.p4 that its entries tell apart.
ADDRESSES = (7, 0x100020003, 0x100020004, 1 << 127, (1 << 127) + 0x100020003, 0xABCD << 64)
LIST_PORTS = (3, 80, 0x101, 0x110, 0x211, 300)
KINDS = (1, 5, 0x11, 0x15)


def lists_entries() -> SwitchEntries:
    """Entries for lists.p4: more than one block of a list has, and not in the order in which they win."""
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
    """A part of a key that p4c makes of one that may be left open."""
    return Ternary(0, 0) if value is None else Ternary(value, mask)


def lists_packets(program: Program) -> Packets:
    """Packets for lists.p4, whose fields are values that its entries tell apart."""
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
    """Packets for control.p4, which uses its registers at `indexes`."""
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
    """Packets for lengths.p4: lengths that fit and that do not, and packets cut short."""
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


def chances_packets(program: Program) -> Packets:
    """Packets for chances.p4 whose random numbers are the only ones in their ranges, or whose ranges are empty."""
    draw, packets = random.Random(9), []
    for low in range(60):
        labels = bytes(2 * draw.getrandbits(7) for _ in range(draw.randrange(4))) + b"\1"
        given = {"kind": draw.choice((0, 1, 2)), "low": low, "high": low - draw.choice((0, 0, 1)), "drawn": 7}
        packets.append((draw.choice(PROGRAM_PORTS), packet(program, **given) + labels + bytes(8)))
    return packets


# The packets for a small program; of others they are random.
PACKETS: dict[str, Callable[[Program], Packets]] = {
    "chances": chances_packets,
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
    """The entries for the program of this name; most need none."""
    return ENTRIES[name]() if name in ENTRIES else SwitchEntries("s")
