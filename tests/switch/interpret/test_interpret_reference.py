"""The programs of tests/switch/programs under random packets: the interpreter makes of them what BMv2 makes.

Registers are used within their bounds only: beyond them a BMv2 built for speed does anything.
"""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest
from model_programs import MATCHING_ENTRIES, PARSING, SELECTOR_ENTRIES, fields_of
from same_switches import by_port
from small_programs import ETHERNET, PROGRAMS, Packets, control_packets, packet, program_entries

from inakit.switch.entries import MirrorSession, MulticastGroup, SwitchEntries, ValueSetMember
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.devices import DeviceOnInterfaces, open_device

pytestmark = [pytest.mark.root, pytest.mark.bmv2]

PORTS = (0, 1, 2, 3, 4, 5, 6, 8, 9)
PACKETS = 60
QUIET_S = 0.3
PATIENCE_S = 2.0
LEFT_OUT = ("times", "commanded", "served", "zero_width")
"""The time is each switch's own; two are played by the tests of requests; fields without bits crash BMv2 1.15."""

INSTALLED: dict[str, SwitchEntries] = {
    "control": program_entries("control"),
    "matching": MATCHING_ENTRIES,
    "selector": SELECTOR_ENTRIES,
    "parsing": SwitchEntries("s", value_sets=(ValueSetMember("TestParser.numbers", 0x777),)),
    "copies": SwitchEntries("s", groups=(MulticastGroup(4, (5, 6), ((7, 6),)),), mirrors=(MirrorSession(7, 8, 4),)),
}

# Values of some fields of the header `test` that lead somewhere.
CHOICES: dict[str, dict[str, tuple[int, ...]]] = {
    "matching": {
        "address": (0x0A000001, 0x0A0B0001, 0x0B000101, 0x100, 0x200),
        "port": (3, 80, 0x150, 100, 150, 300, 443),
        "kind": (5, 6, 9, 0x11, 0x15, 0xFF),
    },
    "copies": {"todo": tuple(range(12)), "kept": (0, 1), "lost": (0,)},
    "chances": {"kind": (0, 1, 2, 3), "low": (0, 100), "high": (50, 200)},
    "dropping": {"todo": (0, 1, 2, 3)},
    "externs": {"index": (0, 1, 2, 3)},
    "selector": {"kind": (4, 5, 6, 7, 8)},
}
# What is no business of the comparison.
RANDOM = {"chances": ("drawn", "wide"), "externs": ("random",)}


def drawn(name: str, program: Program) -> Packets:
    """Random packets for the program called `name`, some of them cut short."""
    draw = random.Random(name)
    if name == "parsing":
        return [
            (draw.choice(PORTS), ETHERNET + bytes.fromhex(sent) + draw.randbytes(3)) for sent, _, _ in PARSING.values()
        ]
    if name == "control":
        return control_packets(program, (0, 7))
    return [(draw.choice(PORTS), one_of(draw, name, program)) for _ in range(PACKETS)]


def one_of(draw: random.Random, name: str, program: Program) -> bytes:
    found = program.headers.get("test")
    if found is None:
        expected = program.headers["test[0]"].size if "test[0]" in program.headers else 8
        return ETHERNET + draw.randbytes(2 + expected + draw.randrange(20))
    fields = {field.name: draw.getrandbits(field.bits) for field in found.fields}
    fields |= {field: draw.choice(values) for field, values in CHOICES.get(name, {}).items()}
    data = packet(program, draw.choice((0, 0x0800)), **fields) + draw.randbytes(draw.randrange(4))
    return data[: draw.randrange(1, len(data))] if name not in CHOICES and draw.random() < 0.1 else data


def comparable(name: str, program: Program, packets: list[bytes]) -> list[object]:
    """Packets, without the fields that may differ between switches."""
    if name not in RANDOM:
        return list(packets)
    return [{k: v for k, v in fields_of(program, data).items() if k not in RANDOM[name]} for data in packets]


def sent_by(reference: DeviceOnInterfaces, port: int, packet: bytes, count: int) -> Packets:
    """What leaves BMv2 for a packet: `count` packets, if they come in time. With 0, nothing is waited for."""
    reference.wires.send(port, packet)
    return list(islice(reference.wires.received(PATIENCE_S), count))


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PROGRAMS.glob("**/*.json")) if path.stem not in LEFT_OUT],
    ids=lambda path: path.stem,
)
def test_bmv2_makes_the_same_of_random_packets(path: Path) -> None:
    name, program = path.stem, read_program(path)
    model, entries = InterpretedSwitch(program), INSTALLED.get(path.stem, SwitchEntries("s"))
    model.install(entries)
    packets = drawn(name, program)
    with open_device("bmv2", path, PORTS) as reference:
        assert isinstance(reference, DeviceOnInterfaces)
        reference.install(entries)
        for port, sent in packets:
            expected = by_port(model.inject(port, sent), PORTS)
            came = by_port(sent_by(reference, port, sent, sum(map(len, expected.values()))), PORTS)
            for out in PORTS:
                assert comparable(name, program, came[out]) == comparable(name, program, expected[out]), sent.hex()
        assert list(reference.wires.received(QUIET_S)) == []
        for register in program.registers.values():
            if register.bits <= 64:
                assert model.read_register(register.name).tolist() == reference.read_register(register.name).tolist()
        for counter in program.counters:
            for mine, theirs in zip(model.read_counter(counter), reference.read_counter(counter), strict=True):
                assert mine.tolist() == theirs.tolist()
