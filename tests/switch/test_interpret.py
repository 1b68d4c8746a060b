"""The interpreter, feature by feature: what small programs make of packets, against arithmetic in Python."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from fast_helpers import ETHERNET, PROGRAMS, packet

from switch.entries import (
    DefaultAction,
    Lpm,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    ProfileEntry,
    Range,
    SwitchEntries,
    TableEntry,
    Ternary,
    ValueSetMember,
)
from switch.interpret.interpreted_switch import InterpretedSwitch
from switch.program.program import Program
from switch.program.read import parse_program, program_of, read_program
from topo.errors import InputError, RunError, UnsupportedError

MODEL = PROGRAMS / "model"


class Ticks:
    """A clock that the test sets, in microseconds."""

    now = 0

    def __call__(self) -> int:
        return self.now


def switch_of(name: str, clock: Ticks | None = None) -> InterpretedSwitch:
    return InterpretedSwitch(read_program(MODEL / f"{name}.json"), clock=clock)


def fields_of(program: Program, data: bytes) -> dict[str, int]:
    """The fields of the header `test`, without signs."""
    header = program.headers["test"]
    value = int.from_bytes(data[14 : 14 + header.size], "big")
    return {
        field.name: value >> header.bits - field.offset - field.bits & (1 << field.bits) - 1 for field in header.fields
    }


def result(switch: InterpretedSwitch, **fields: int) -> dict[str, int]:
    """The fields of the one packet that comes back."""
    ((out, data),) = switch.inject(1, packet(switch.program, **fields))
    assert out == 1
    return fields_of(switch.program, data)


# ---- numbers ----------------------------------------------------------------------------------------


def signed(value: int, bits: int = 128) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def between(low: int, value: int, high: int) -> int:
    return max(low, min(high, value))


HALF = 1 << 127


class Given(NamedTuple):
    """The operands of numbers.p4, without signs."""

    a: int
    b: int
    c: int
    d: int


NUMBERS: dict[str, Callable[[Given], int]] = {
    "sum": lambda v: v.a + v.b,
    "difference": lambda v: v.a - v.b,
    "product": lambda v: v.a * v.b,
    "shifted": lambda v: v.a << v.b % 256,
    "saturated": lambda v: between(-HALF, signed(v.c) + signed(v.d), HALF - 1),
    "shifted_right": lambda v: signed(v.c) >> v.b % 128,
    "saturated_difference": lambda v: max(v.c - v.d, 0),
    "joined": lambda v: v.c << 128 | v.d,
    "slice": lambda v: v.a >> 1005,
    "less": lambda v: v.a < v.b,
    "signed_less": lambda v: signed(v.c) < signed(v.d),
    "same": lambda v: v.c == v.d,
}


def test_arithmetic_of_any_width() -> None:
    switch, draw = switch_of("numbers"), random.Random(5)
    widths = {field.name: field.bits for field in switch.program.headers["test"].fields}
    edges = [0, 1, HALF - 1, HALF, 2 * HALF - 1]
    cases = [Given(draw.getrandbits(2048), draw.getrandbits(2048), c, d) for c in edges for d in edges]
    cases += [Given((1 << 2048) - 1, value, 5, 5) for value in (0, 1, 127, 255, (1 << 2048) - 1)]
    for given in cases:
        found = result(switch, **given._asdict())
        for name, rule in NUMBERS.items():
            assert found[name] == int(rule(given)) & (1 << widths[name]) - 1, (name, given)


# ---- parser -----------------------------------------------------------------------------------------

# What comes behind the Ethernet addresses; what leaves there, `failure`, `labels` and `ahead` and `sum` of the header
# `test` at its end; and the payload behind it.
PARSED: dict[str, tuple[str, str, str]] = {
    "too short for a type": ("00", "", "00000001 00 00 00 00"),
    "one label and a short number": ("0001 03 12", "0001 12", "00000000 01 00 01"),
    "a short number becomes a long one": ("0001 03 11", "0001 abcdef", "00000000 01 00 01"),
    "two labels are pushed up": ("0001 02 05 12 ee", "0001 aa 02 05 12", "00000000 02 00 01 ee"),
    "three labels, one is lost": ("0001 02 04 05 12", "0001 aa 02 04 12", "00000000 03 00 01"),
    "a fourth label does not fit": ("0001 02 04 06 08 11", "0001 aa 02 04", "00000002 03 00 01 08 11"),
    "labels end too early": ("0001 02", "0001", "00000001 01 00 01"),
    "a variable field": ("0002 03 aabbcc 99", "0002 03 aabbcc", "00000000 00 00 00 99"),
    "an empty variable field": ("0002 00 99", "0002 00", "00000000 00 00 00 99"),
    "a variable field that ends too early": ("0002 04 aabbcc", "0002", "00000001 00 00 00 04 aabbcc"),
    "a variable field that is too long": (
        "0002 09 112233445566778899",
        "0002",
        "00000003 00 00 00 09 112233445566778899",
    ),
    "nothing for a variable field": ("0002", "0002", "00000001 00 00 00"),
    "lookahead": ("0003 abcd", "0003", "00000000 00 bc 00 abcd"),
    "lookahead too early": ("0003 ab", "0003", "00000001 00 00 00 ab"),
    "advance": ("0110 eeee 12", "0110 12", "00000000 00 00 00"),
    "advance by half a byte": ("0104 eeee 12", "0104", "00000004 00 00 00 eeee 12"),
    "advance too far": ("0110 ee", "0110", "00000001 00 00 00 ee"),
    "a value set": ("0777 12", "0777 12", "00000000 00 00 00"),
    "not in the value set": ("0778 12", "0778", "00000000 00 00 00 12"),
    "a long number": ("0777 900002", "0777 900002", "00000000 00 00 00"),
    "a long number that goes": ("0777 800001", "0777", "00000000 00 00 00"),
}


@pytest.mark.parametrize("name", PARSED)
def test_the_parser(name: str) -> None:
    sent, headers, rest = (bytes.fromhex(part) for part in PARSED[name])
    switch = switch_of("parsing")
    switch.install(SwitchEntries("s", value_sets=(ValueSetMember("TestParser.numbers", 0x777),)))
    expected = ETHERNET + headers + rest if len(sent) > 1 else rest[:7] + ETHERNET + sent
    assert switch.inject(3, ETHERNET + sent) == [(3, expected)]


def test_a_parser_that_loops_ends() -> None:
    document = json.loads((MODEL / "parsing.json").read_text())
    states = {state["name"]: state for state in document["parsers"][0]["parse_states"]}
    states["start"]["parser_ops"] = []
    states["start"]["transition_key"] = []
    states["start"]["transitions"] = [{"type": "default", "value": None, "mask": None, "next_state": "start"}]
    with pytest.raises(RunError, match="loops"):
        InterpretedSwitch(program_of(document)).inject(1, ETHERNET)


# ---- tables -----------------------------------------------------------------------------------------


def entry(table: str, key: tuple[object, ...], action: str, value: int, priority: int | None = None) -> TableEntry:
    return TableEntry(f"TestIngress.{table}", key, f"TestIngress.{action}", (value,), priority)  # type: ignore[arg-type]


EXACTLY_443 = Ternary(443, 0xFFFF)  # p4c writes optional keys as ternary ones
ENTRIES = SwitchEntries(
    "s",
    (
        entry("by_prefix", (5, Lpm(0x0A000000, 8)), "prefix", 10),
        entry("by_prefix", (5, Lpm(0x0A0B0000, 16)), "prefix", 11),
        entry("by_prefix", (5, Lpm(0, 0)), "prefix", 12),
        entry("by_mask", (Ternary(0x0A000000, 0xFF000000), Ternary(0, 0), 1), "mask", 20, 2),
        entry("by_mask", (Ternary(0, 0), Ternary(80, 0xFFFF), 1), "mask", 21, 1),
        entry("by_mask", (Ternary(0, 0), Ternary(80, 0x00FF), 1), "mask", 22, 1),
        entry("by_range", (Range(100, 200), 5), "range_", 30, 1),
        entry("by_range", (Range(150, 300), 5), "range_", 31, 0),
        entry("if_given", (EXACTLY_443, Ternary(5, 0xFF)), "given", 40, 1),
        entry("if_given", (EXACTLY_443, Ternary(0, 0)), "given", 41, 2),
    ),
)

# The key's fields; the result fields.
MATCHED: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "longest prefix": ({"kind": 5, "address": 0x0A0B0001}, {"by_prefix": 11, "by_mask": 20}),
    "shorter prefix": ({"kind": 5, "address": 0x0A0C0001}, {"by_prefix": 10, "by_mask": 20}),
    "any prefix": ({"kind": 5, "address": 0x0B0B0001}, {"by_prefix": 12, "by_mask": 0, "after": 2}),
    "no prefix": ({"kind": 6, "address": 0x0A0B0001}, {"by_prefix": 1, "after": 101}),
    "lowest priority": ({"address": 0x0A0B0001, "port": 80}, {"by_mask": 21}),
    "equal priorities: the first": ({"address": 1, "port": 80}, {"by_mask": 21}),
    "masked": ({"address": 1, "port": 0x0150}, {"by_mask": 22}),
    "range": ({"kind": 5, "port": 100}, {"by_range": 30, "after": 2}),
    "overlapping ranges": ({"kind": 5, "port": 150}, {"by_range": 31}),
    "end of a range": ({"kind": 5, "port": 300}, {"by_range": 31}),
    "after a range": ({"kind": 5, "port": 301}, {"by_range": 99}),
    "optional, both given": ({"kind": 5, "port": 443}, {"if_given": 40}),
    "optional, one given": ({"kind": 9, "port": 443}, {"if_given": 41}),
    "optional, none": ({"kind": 9, "port": 444}, {"if_given": 0}),
    "constant entry": ({"kind": 0x15, "address": 0x100}, {"fixed": 2 + 128}),
    "constant entry behind it": ({"kind": 0x25, "address": 0x100}, {"fixed": 3 + 128}),
    "another constant entry": ({"kind": 0x11, "address": 0x200}, {"fixed": 4 + 128}),
    "no constant entry": ({"kind": 0x12, "address": 0x200}, {"fixed": 7 + 128}),
    "exit": ({"kind": 0xFF, "address": 0x100}, {"fixed": 3}),
}


@pytest.mark.parametrize("name", MATCHED)
def test_keys_of_all_kinds(name: str) -> None:
    switch = switch_of("matching")
    switch.install(ENTRIES)
    fields, expected = MATCHED[name]
    for _ in range(2):  # the second time, what was found is remembered
        found = result(switch, **fields)
        assert {field: found[field] for field in expected} == expected


def test_tables_count_and_are_read() -> None:
    switch = switch_of("matching")
    switch.install(ENTRIES)
    for _ in range(3):
        size = len(packet(switch.program))
        result(switch, address=0x0A000001)
    assert [each.params for each in switch.read_table("TestIngress.by_mask")] == [(22,), (21,), (20,)]
    packets, octets = switch.read_counter("TestIngress.hits")
    assert packets.tolist() == [0, 0, 3]
    assert octets.tolist() == [0, 0, 3 * size]


def test_default_actions_can_be_set_unless_they_are_const() -> None:
    switch = switch_of("matching")
    switch.install(SwitchEntries("s", defaults=(DefaultAction("TestIngress.by_range", "TestIngress.range_", (77,)),)))
    assert result(switch)["by_range"] == 77
    with pytest.raises(InputError, match=r"default action of table 'TestIngress\.fixed' is const"):
        switch.install(SwitchEntries("s", defaults=(DefaultAction("TestIngress.fixed", "NoAction"),)))
    with pytest.raises(InputError, match=r"entries of table 'TestIngress\.fixed' are const"):
        switch.install(SwitchEntries("s", (entry("fixed", (Ternary(0, 0), 1), "fix", 1, 1),)))


def test_action_profiles_and_selectors() -> None:
    switch = switch_of("selector")
    select, give = ("TestIngress.selected", "TestIngress.paths"), ("TestIngress.given", "TestIngress.shared")
    several = tuple(("TestIngress.select_", (value,)) for value in (50, 51, 52))
    entries = (
        ProfileEntry(select[0], (5,), select[1], several),
        ProfileEntry(select[0], (6,), select[1], several[:1]),
        ProfileEntry(give[0], (Ternary(4, 0xFC),), give[1], (("TestIngress.give", (60,)),), 1),
    )
    switch.install(SwitchEntries("s", profiled=entries))
    assert [result(switch, kind=5, port=port)["selected"] for port in (3, 4, 5)] == [50, 51, 52]
    assert [result(switch, kind=kind, port=5)["selected"] for kind in (6, 7)] == [50, 0]
    assert [result(switch, kind=kind)["given"] for kind in (3, 4, 7, 8)] == [0, 60, 60, 0]
    with pytest.raises(InputError, match="without a selector, one"):
        switch.install(SwitchEntries("s", profiled=(ProfileEntry(give[0], (Ternary(0, 0),), give[1], (), 2),)))
    with pytest.raises(InputError, match="takes a ProfileEntry"):
        switch.install(SwitchEntries("s", (entry("selected", (8,), "select_", 1),)))


def test_a_direct_meter_colours_hits() -> None:
    clock = Ticks()
    switch = switch_of("matching", clock)
    switch.install(SwitchEntries("s", (TableEntry("TestIngress.metered", (5,), "TestIngress.coloured"),)))
    assert result(switch, kind=5)["after"] == 0, "green, as long as no rates are set"
    switch.install(SwitchEntries("s", meters=(MeterRates("TestIngress.rate", None, ((0.001, 1), (0.002, 2))),)))
    assert [result(switch, kind=5)["after"] for _ in range(3)] == [0, 1, 2]
    clock.now = 1000
    assert [result(switch, kind=kind)["after"] for kind in (5, 6)] == [0, 102]


# ---- copies -----------------------------------------------------------------------------------------


def copies(todo: int, mirror: MirrorSession | None = None) -> list[tuple[int, dict[str, int], int]]:
    """Port, header and length of what leaves for one packet with a payload of 10 bytes."""
    switch = switch_of("copies")
    group = MulticastGroup(4, (5, 6), ((7, 6),))
    switch.install(SwitchEntries("s", groups=(group,), mirrors=(mirror,) if mirror else ()))
    sent = switch.inject(9, packet(switch.program, todo=todo) + bytes(10))
    return [(port, fields_of(switch.program, data), len(data)) for port, data in sent]


def test_a_packet_can_be_dropped_in_both_pipelines() -> None:
    assert copies(0) == copies(8) == []


def test_a_packet_is_dropped_in_a_copy_of_metadata_once_that_is_copied_back() -> None:
    switch = switch_of("dropping")
    left = [[port for port, _ in switch.inject(1, packet(switch.program, todo=todo))] for todo in range(4)]
    assert left == [[2], [], [2], [3]]


def test_a_clone_of_ingress_is_the_packet_that_came() -> None:
    (port, clone, _), (other, packet, _) = copies(1, MirrorSession(7, 8))
    assert (port, other) == (8, 2)
    assert (clone["instance"], clone["kept"], clone["lost"]) == (1, 11, 0)
    assert (packet["instance"], packet["kept"], packet["lost"]) == (0, 11, 22)


def test_a_clone_without_a_session_is_none() -> None:
    assert [port for port, _, _ in copies(1)] == [2]


def test_a_packet_is_resubmitted_with_the_fields_it_keeps() -> None:
    ((port, packet, _),) = copies(2)
    assert (port, packet["kept"], packet["lost"], packet["instance"]) == (2, 66, 0, 0)


def test_a_clone_of_egress_is_the_packet_that_leaves() -> None:
    (_, packet, _), (port, clone, _) = copies(3, MirrorSession(7, 8))
    assert (port, clone["instance"], clone["kept"], clone["lost"]) == (8, 2, 33, 0)
    assert (packet["kept"], packet["lost"], packet["port"]) == (33, 44, 2)


def test_a_clone_can_go_to_a_group() -> None:
    found = copies(1, MirrorSession(7, 8, 4))
    assert [(port, fields["instance"], fields["replica"]) for port, fields, _ in found] == [
        (5, 1, 1), (6, 1, 1), (6, 1, 7), (8, 1, 7), (2, 0, 0)]  # fmt: skip


def test_a_packet_is_recirculated_with_the_fields_it_keeps() -> None:
    ((port, packet, _),) = copies(4)
    assert (port, packet["kept"], packet["lost"], packet["instance"]) == (3, 55, 0, 0)


def test_replicas_leave_by_each_port_of_a_group() -> None:
    found = copies(5)
    assert [(port, fields["replica"], fields["instance"]) for port, fields, _ in found] == [
        (5, 1, 5), (6, 1, 5), (6, 7, 5)]  # fmt: skip


def test_an_added_header_makes_the_packet_longer() -> None:
    ((_, plain, length),) = copies(10)
    ((_, longer, more),) = copies(7)
    assert (longer["length"] - plain["length"], more - length) == (4, 4)


def test_a_packet_is_truncated() -> None:
    assert [length for _, _, length in copies(9)] == [20]


def test_digests_are_kept_until_they_are_read() -> None:
    switch = switch_of("copies")
    switch.inject(9, packet(switch.program, todo=6))
    assert switch.read_digests() == [("note_t", (6, 9))]
    assert switch.read_digests() == []


def test_a_packet_that_goes_round_for_ever_ends() -> None:
    document = json.loads((MODEL / "copies.json").read_text())
    document["pipelines"][0]["conditionals"][0]["expression"] = {
        "type": "expression",
        "value": {"type": "bool", "value": False},
    }
    for conditional in document["pipelines"][0]["conditionals"][1:]:
        conditional["expression"] = {"type": "expression", "value": {"type": "bool", "value": True}}
    for conditional in document["pipelines"][1]["conditionals"]:
        conditional["expression"] = {"type": "expression", "value": {"type": "bool", "value": True}}
    switch = InterpretedSwitch(program_of(document))
    switch.install(SwitchEntries("s", mirrors=(MirrorSession(7, 1),)))
    with pytest.raises(RunError, match="in a loop"):
        switch.inject(1, packet(switch.program, todo=9))


# ---- externs ----------------------------------------------------------------------------------------


def internet_checksum(data: bytes) -> int:
    total = sum(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    remainder = 0
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xA001 if remainder & 1 else 0)
    return remainder


def test_hashes() -> None:
    switch, draw = switch_of("externs"), random.Random(2)
    for _ in range(20):
        a, b, index = draw.getrandbits(24), draw.getrandbits(5), draw.randrange(4)
        whole, found = a.to_bytes(3, "big"), result(switch, a=a, b=b, index=index)
        assert found["crc16"] == crc16((a << 8 | b << 3).to_bytes(4, "big"))
        assert found["crc32"] == zlib.crc32((b << 27 | a << 3).to_bytes(4, "big"))
        assert found["sum"] == internet_checksum(whole + bytes([index]))
        assert found["exclusive"] == (a >> 8) ^ ((a & 0xFF) << 8 | 0x12) ^ 0x3400
        assert found["same"] == (a << 8 | index) << 32
        assert found["in_range"] == 100 + zlib.crc32(whole) % 10


def test_checksums_are_verified_and_updated() -> None:
    switch = switch_of("externs")
    for index, a in ((1, 0x123456), (3, 5), (4, 9), (2, 0xFFFFFF)):
        right = internet_checksum(a.to_bytes(3, "big") + bytes([index]) + b"\xab\xcd")
        found = result(switch, a=a, index=index, checksum=right)
        assert found["bad"] == 0
        assert found["with_payload"] == internet_checksum(a.to_bytes(3, "big"))
        wrong = result(switch, a=a, index=index, checksum=right ^ 1)
        assert wrong["bad"] == (index != 4)
        assert wrong["checksum"] == (right if index != 3 else right ^ 1)


def test_a_checksum_can_cover_the_payload() -> None:
    switch = switch_of("externs")
    ((_, data),) = switch.inject(1, packet(switch.program, a=7) + b"abc")
    assert fields_of(switch.program, data)["with_payload"] == internet_checksum(b"\0\0\7abc")


def test_registers_are_as_wide_as_they_are() -> None:
    switch = switch_of("externs")
    result(switch, index=2, a=0xFFFFFF)
    assert result(switch, index=2)["before"] == 0xFFFFFF << 70 & (1 << 100) - 1
    assert switch.read_register("TestIngress.last").tolist() == [0, 0, 0, 0]
    assert result(switch, index=9, before=5)["before"] == 5, "an index beyond the end skips the statement"
    assert switch.read_counter("TestIngress.seen")[0].tolist() == [0, 0, 2, 0]


def test_a_meter_by_two_rates_has_three_colours() -> None:
    clock = Ticks()
    switch = switch_of("externs", clock)
    size = len(packet(switch.program))
    switch.install(SwitchEntries("s", meters=(MeterRates("TestIngress.rate", 1, ((1.0, size), (2.0, 3 * size))),)))
    assert [result(switch, index=1)["colour"] for _ in range(4)] == [0, 1, 1, 2]
    clock.now = size
    assert [result(switch, index=1)["colour"] for _ in range(3)] == [0, 1, 2]
    assert result(switch, index=0)["colour"] == 0


def test_random_numbers_are_in_their_range_and_begin_alike() -> None:
    drawn = [[result(switch)["random"] for _ in range(200)] for switch in (switch_of("externs"), switch_of("externs"))]
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == set(range(3, 10))


def test_an_assertion_that_fails_ends_the_switch() -> None:
    with pytest.raises(RunError, match=r"externs\.p4:\d+ assert\(hdr\.test\.index != 200\)"):
        result(switch_of("externs"), index=200)


WRONG: dict[str, tuple[str, SwitchEntries, str]] = {
    "meter": ("externs", SwitchEntries("s", meters=(MeterRates("TestIngress.rat", 0, ()),)), "did you mean"),
    "cell": ("externs", SwitchEntries("s", meters=(MeterRates("TestIngress.rate", 4, ()),)), "no cell 4"),
    "rates": ("externs", SwitchEntries("s", meters=(MeterRates("TestIngress.rate", 3, ((2, 1), (1, 1))),)), "lowest"),
    "session": ("copies", SwitchEntries("s", mirrors=(MirrorSession(1 << 15, 1),)), "sessions are 0 to"),
    "mirror port": ("copies", SwitchEntries("s", mirrors=(MirrorSession(1, 512),)), "port 512"),
    "value set": ("parsing", SwitchEntries("s", value_sets=(ValueSetMember("TestParser.number", 1),)), "did you mean"),
    "value": ("parsing", SwitchEntries("s", value_sets=(ValueSetMember("TestParser.numbers", 1 << 16),)), "16 bits"),
    "kind of key": ("matching", SwitchEntries("s", (entry("by_prefix", (5, 1), "prefix", 1),)), "takes Lpm, not 1"),
    "twice": ("matching", SwitchEntries("s", (entry("by_prefix", (5, Lpm(1, 0)), "prefix", 1),) * 2), "already has"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_entries_are_named_and_leave_nothing(name: str) -> None:
    program, entries, message = WRONG[name]
    switch = switch_of(program)
    with pytest.raises(InputError) as error:
        switch.install(replace(entries, groups=(MulticastGroup(1, (1,)),)))
    assert message in str(error.value)
    assert switch.read_groups() == []


# ---- trace and refusals -----------------------------------------------------------------------------


def test_a_trace_tells_each_step() -> None:
    switch = switch_of("matching")
    switch.install(ENTRIES)
    sent = packet(switch.program, kind=5, address=0x0A0B0001)
    traced = switch.trace(1, sent)
    assert traced.sent == switch.inject(1, sent)
    expected = (
        "Processing packet received on port 1",
        "Parser 'parser' entering state 'start'",
        "Applying table 'TestIngress.by_prefix'",
        "* hdr.test.kind: 0x5",
        "Table 'TestIngress.by_prefix': hit",
        "Action TestIngress.prefix(value=0xb)",
        "Table 'TestIngress.if_given': miss",
        "Deparsing header 'test'",
        f"Transmitting packet of size {len(sent)} out of port 1",
    )
    rest = iter(traced.lines)
    assert [line for line in expected if line not in rest] == []


def test_log_messages_are_lines_of_the_trace() -> None:
    assert "index 2 of 7" in switch_of("externs").trace(1, packet(switch_of("externs").program, index=2, a=7)).lines


def altered(name: str, change: Callable[[dict[str, object]], None]) -> Program:
    document = json.loads((MODEL / f"{name}.json").read_text())
    change(document)
    return program_of(document)


def other_primitive(document: dict[str, object]) -> None:
    document["actions"][-1]["primitives"][0]["op"] = "encrypt"  # type: ignore[index]


def other_hash(document: dict[str, object]) -> None:
    document["calculations"][0]["algo"] = "sha256"  # type: ignore[index]


@pytest.mark.parametrize(("change", "names"), [(other_primitive, "primitive 'encrypt' ("), (other_hash, "'sha256' (")])
def test_what_no_table_has_is_refused_with_its_line(change: Callable[[dict[str, object]], None], names: str) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        InterpretedSwitch(altered("externs", change))
    assert names in str(refusal.value)
    assert "externs.p4:" in str(refusal.value)


def programs() -> list[Path]:
    return sorted(PROGRAMS.glob("**/*.json"))


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_every_program_of_the_folder_runs(path: Path) -> None:
    switch, draw = InterpretedSwitch(read_program(path)), random.Random(path.stem)
    for length in (0, 13, 14, 40, 200):
        switch.inject(draw.randrange(512), draw.randbytes(length))


def unknown_header(document: dict[str, object]) -> None:
    document["parsers"][0]["parse_states"][0]["parser_ops"][0]["parameters"][0]["value"] = "nothing"  # type: ignore[index]


def too_few_arguments(document: dict[str, object]) -> None:
    document["actions"][-1]["primitives"][0]["parameters"] = []  # type: ignore[index]


def a_width_that_is_none(document: dict[str, object]) -> None:
    document["header_types"][2]["fields"][0][1] = "wide"  # type: ignore[index]


def far_too_wide(document: dict[str, object]) -> None:
    document["header_types"][2]["fields"][0][1] = 1 << 40  # type: ignore[index]


@pytest.mark.parametrize("change", [unknown_header, too_few_arguments, a_width_that_is_none, far_too_wide])
def test_a_malformed_program_is_a_named_error(change: Callable[[dict[str, object]], None]) -> None:
    document = json.loads((MODEL / "externs.json").read_text())
    change(document)
    with pytest.raises(InputError, match="p4c"):
        InterpretedSwitch(parse_program(json.dumps(document).encode(), "altered"))


def test_more_cells_than_a_process_keeps_are_refused_by_name() -> None:
    def change(document: dict[str, object]) -> None:
        document["register_arrays"][0]["size"] = 1 << 30  # type: ignore[index]

    with pytest.raises(UnsupportedError, match=r"'TestIngress\.last' with 1073741824 cells"):
        InterpretedSwitch(altered("externs", change))
