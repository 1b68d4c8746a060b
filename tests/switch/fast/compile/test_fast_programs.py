"""Small P4 programs on target fast, in this process: what each construct does, against arithmetic in Python."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from p4c_version import NEEDS_COMMITTED_P4C, NEEDS_P4C
from same_switches import same_packets, shown_when_wrong
from small_programs import ETHERNET, PARSED, PROGRAMS, control_entries, lists_entries, packet

from inakit.switch.entries import KeyPart, Lpm, TableEntry, Ternary
from inakit.switch.fast.compile.actions import runs_of_one_index
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import (
    Constant,
    Counter,
    Field,
    HeaderReference,
    Primitive,
    Program,
    Register,
    StackReference,
)
from inakit.topo.errors import InputError

RANDOM = ("chances",)
"""Programs that draw random numbers."""

SOURCES = sorted(path for path in PROGRAMS.glob("**/*.p4") if path.with_suffix(".json").exists())


def switch_of(name: str) -> InProcessSwitch:
    return InProcessSwitch(read_program(PROGRAMS / f"{name}.json"))


def fields_of(program: Program, data: bytes) -> dict[str, int]:
    """The fields of the header `test` of a packet, without signs."""
    header = program.headers["test"]
    value = int.from_bytes(data[14 : 14 + header.size], "big")
    return {
        field.name: value >> header.bits - field.offset - field.bits & (1 << field.bits) - 1 for field in header.fields
    }


def signed(value: int, bits: int = 8) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def between(low: int, value: int, high: int) -> int:
    return max(low, min(high, value))


class Given(NamedTuple):
    """The operands of arithmetic.p4."""

    a: int
    b: int
    c: int
    d: int


# The result fields of arithmetic.p4, as P4 defines them.
ARITHMETIC: dict[str, Callable[[Given], int]] = {
    "sum": lambda v: v.a + v.b,
    "difference": lambda v: v.a - v.b,
    "product": lambda v: v.a * v.b,
    "opposite": lambda v: -v.a,
    "inverse": lambda v: ~v.a ^ ((v.a | v.b) & v.b),
    "shifted_left": lambda v: v.a << v.b,
    "shifted_right": lambda v: v.a >> v.b,
    "saturated_sum": lambda v: min(v.a + v.b, 255),
    "saturated_difference": lambda v: max(v.a - v.b, 0),
    "signed_saturated_sum": lambda v: between(-128, signed(v.a) + signed(v.b), 127),
    "signed_shifted_right": lambda v: signed(v.a) >> 3,
    "wide_sum": lambda v: v.c + v.d,
    "wide_difference": lambda v: v.c - v.d,
    "wide_product": lambda v: v.c * v.d,
    "wide_shifted_left": lambda v: v.c << v.b,
    "wide_shifted_right": lambda v: v.c >> v.b,
    "widened": lambda v: v.a + v.b,
    "sign_widened": lambda v: signed(v.a),
    "joined": lambda v: v.a << 8 | v.b,
    "slice": lambda v: (v.a >> 3 & 15) << 4 | v.b >> 4,
    "less": lambda v: v.a < v.b,
    "signed_less": lambda v: signed(v.a) < signed(v.b),
    "wide_greater": lambda v: v.c > v.d,
    "both": lambda v: (v.a > 10 and v.b != 3) or v.c != v.d,
    "chosen": lambda v: (v.a if v.a & 1 else v.b) >> 7,
    "mixed": lambda v: v.a & 7 ^ v.b >> 5,
}

# The fields of bits.p4.
BITS: dict[str, Callable[[int], int]] = {
    "three": lambda x: ~x,
    "thirteen": lambda x: x + 1,
    "twenty": lambda x: x - 1,
    "four": lambda x: x ^ 5,
    "nine": lambda x: x << 1,
    "untouched": lambda x: x,
    "thirty_three": lambda x: x + 0x1FFFFFFFF,
    "forty_eight": lambda x: ~x,
    "seven": lambda x: x * 3,
    "twenty_four": lambda x: x >> 4,
    "fifty_six": lambda x: x + 255,
    "forty": lambda x: signed(x, 40) >> 1,
}


def test_arithmetic() -> None:
    switch, draw = switch_of("arithmetic"), random.Random(1)
    program = switch.state.program
    edges = [0, 1, 2, 127, 128, 254, 255]
    wide = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
    cases = [Given(a, b, draw.choice(wide), draw.choice(wide)) for a in edges for b in edges]
    cases += [Given(a, a, c, d) for a in (3, 11, 63, 64) for c in wide for d in wide]
    cases += [Given(*(draw.getrandbits(bits) for bits in (8, 8, 64, 64))) for _ in range(200)]
    with shown_when_wrong(switch.source):
        for case in cases:
            given = case._asdict()
            [(port, out)] = switch.inject(7, packet(program, **given))
            wanted = given | {name: rule(case) for name, rule in ARITHMETIC.items()}
            assert (port, fields_of(program, out)) == (7, fields_of(program, packet(program, **wanted))), given


def test_fields_that_are_no_whole_bytes() -> None:
    switch, draw = switch_of("bits"), random.Random(2)
    program = switch.state.program
    with shown_when_wrong(switch.source):
        for _ in range(300):
            given = {field.name: draw.getrandbits(field.bits) for field in program.headers["test"].fields}
            [(_, out)] = switch.inject(1, packet(program, **given) + b"payload")
            wanted = {name: rule(given[name]) for name, rule in BITS.items()}
            assert out == packet(program, **wanted) + b"payload", given


@pytest.mark.parametrize("name", PARSED)
def test_parser(name: str) -> None:
    sent, port, back = PARSED[name]
    switch = switch_of("parser")
    with shown_when_wrong(switch.source):
        out = switch.inject(1, ETHERNET + bytes.fromhex(sent))
        assert out == [(port, ETHERNET + bytes.fromhex(back or sent))]


# key, port -> what leaves, as (port, path, copy): path counts 100 for a miss by key, 3 for a group, 1 or 50 by
# port, 20 by entry, and 1 in egress; copy is the port that egress saw.
CONTROLLED: dict[tuple[int, int], list[tuple[int, int, int]]] = {
    (7, 1): [(4, 22, 4)],
    (7, 2): [(9, 151, 9)],
    (8, 1): [(4, 5, 4), (6, 5, 6)],
    (9, 1): [],
    (10, 1): [],
}


@pytest.mark.parametrize(("key", "port"), CONTROLLED)
def test_tables_groups_and_egress(key: int, port: int) -> None:
    switch = switch_of("control")
    program = switch.state.program
    switch.install(control_entries())
    with shown_when_wrong(switch.source):
        out = [(to, fields_of(program, data)) for to, data in switch.inject(port, packet(program, key=key))]
        assert [(to, f["path"], f["copy"]) for to, f in out] == CONTROLLED[key, port]


def test_registers_and_counters_have_an_end() -> None:
    switch = switch_of("control")
    program = switch.state.program
    with shown_when_wrong(switch.source):
        for index in (0, 7, 7, 8, 2**32 - 1):
            switch.inject(1, packet(program, key=40000, index=index))
        assert switch.read_register("TestIngress.seen").tolist() == [40000, 0, 0, 0, 0, 0, 0, 80000 % 65536]
        assert switch.read_register("TestIngress.last")[7] == int.from_bytes(ETHERNET[:6], "big")
        assert switch.read_counter("TestIngress.packets")[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 2]
        assert switch.read_counter("TestIngress.packets")[1][7] == 2 * len(packet(program))


def compiled(source: Path, folder: Path) -> Program:
    """What the p4c of this machine makes of a source."""
    out = folder / "out.json"
    command = ["p4c-bm2-ss", "--std", "p4-16", "-o", str(out), source.name]
    subprocess.run(command, cwd=source.parent, check=True, capture_output=True)
    return read_program(out)


@NEEDS_COMMITTED_P4C
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_programs_are_what_their_sources_compile_to(source: Path, tmp_path: Path) -> None:
    committed = read_program(source.with_suffix(".json"))
    assert compiled(source, tmp_path) == committed, "compile it again and commit both"


@NEEDS_P4C
@pytest.mark.parametrize("source", [each for each in SOURCES if each.stem not in RANDOM], ids=lambda path: path.stem)
def test_what_any_p4c_makes_of_the_programs_sends_the_same(source: Path, tmp_path: Path) -> None:
    same_packets(read_program(source.with_suffix(".json")), compiled(source, tmp_path))


def test_times_count_from_the_start_of_the_switch() -> None:
    started = time.monotonic_ns()
    switch = switch_of("times")
    program = switch.state.program
    seen = [fields_of(program, switch.inject(1, packet(program, depth=7))[0][1]) for _ in range(3)]
    most = (time.monotonic_ns() - started) // 1000
    times = [fields[name] for fields in seen for name in ("came", "queued", "left")]
    assert times == sorted(times)
    assert 0 < times[-1] <= most
    assert [(fields["waited"], fields["depth"]) for fields in seen] == [(0, 0)] * 3


def test_a_header_that_is_not_there_is_written_nowhere() -> None:
    """The program writes to it anyway, and earlier packets have had it."""
    switch = switch_of("times")
    program = switch.state.program
    with shown_when_wrong(switch.source):
        switch.inject(1, packet(program))
        other = packet(program, ethertype=1, came=5)
        assert switch.inject(1, other) == [(1, other)]


def test_entries_of_lists_are_read_and_changed() -> None:
    switch = switch_of("lists")
    program = switch.state.program
    given = lists_entries()
    switch.install(given)
    for table in ("by_prefix", "by_mask", "by_range", "if_given"):
        mine = [entry for entry in given.tables if entry.table == f"TestIngress.{table}"]
        assert set(map(matching, switch.read_table(f"TestIngress.{table}"))) == set(map(matching, mine))
    assert [entry.priority for entry in switch.read_table("TestIngress.by_mask")] == sorted(
        entry.priority or 0 for entry in given.tables if entry.table == "TestIngress.by_mask"
    )
    best = switch.read_table("TestIngress.by_mask")[0]
    switch.change([replace(best, params=(255,))])
    assert switch.read_table("TestIngress.by_mask")[0] == replace(best, params=(255,))
    [fixed, *_] = switch.read_table("TestIngress.fixed")
    with pytest.raises(InputError, match=r"the entries of table 'TestIngress\.fixed' are const"):
        switch.change([fixed])
    assert fields_of(program, switch.inject(1, packet(program, kind=0x15, port=0x101))[0][1])["fixed"] == 2


def matching(entry: TableEntry) -> TableEntry:
    """The entry with only those bits of its key that count."""
    return replace(entry, key=tuple(significant(part) for part in entry.key))


def significant(part: KeyPart) -> KeyPart:
    match part:
        case Ternary(value, mask):
            return Ternary(value & mask, mask)
        case Lpm(value, prefix):
            return Lpm(value >> 128 - prefix << 128 - prefix, prefix)
    return part


@pytest.mark.parametrize(
    ("between", "runs"),
    [
        (Primitive("count", (Counter("c", 4), Constant(0)), None), 1),
        (Primitive("assign", (Field("h", "other", 8, False, 8), Constant(0)), None), 1),
        (Primitive("assign", (Field("h", "index", 8, False, 0), Constant(0)), None), 2),
        (Primitive("assign_header", (HeaderReference("h"), HeaderReference("g")), None), 2),
        (Primitive("pop", (StackReference("s"), Constant(1)), None), 2),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_registers_share_the_test_of_an_index_while_it_cannot_change(between: Primitive, runs: int) -> None:
    index = Field("h", "index", 8, False, 0)
    write = Primitive("register_write", (Register("r", 8, 8), index, Constant(1)), None)
    assert len(list(runs_of_one_index([write, between, write]))) == runs + 1  # the first is empty


def test_fields_without_bits_are_nothing() -> None:
    switch = switch_of("zero_width")
    ((port, left),) = switch.inject(1, packet(switch.state.program, a=0xABC, b=4))
    assert (port, left[14:].hex()) == (1, "abc5")
