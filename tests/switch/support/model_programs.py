"""The programs of tests/switch/programs/model in the interpreter, and what several tests know of them."""

from __future__ import annotations

from small_programs import PROGRAMS, packet

from inakit.switch.entries import DefaultAction, Lpm, ProfileEntry, Range, SwitchEntries, TableEntry, Ternary
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program

MODEL = PROGRAMS / "model"


class Ticks:
    """A clock that the test sets, in microseconds."""

    now = 0

    def __call__(self) -> int:
        return self.now


def switch_of(name: str, clock: Ticks | None = None) -> InterpretedSwitch:
    """An interpreted switch with the program of this name."""
    return InterpretedSwitch(read_program(MODEL / f"{name}.json"), clock=clock)


def fields_of(program: Program, data: bytes) -> dict[str, int]:
    """The fields of the header `test`, without signs."""
    header = program.headers["test"]
    value = int.from_bytes(data[14 : 14 + header.size], "big")
    return {
        field.name: value >> header.bits - field.offset - field.bits & (1 << field.bits) - 1 for field in header.fields
    }


def result(switch: InterpretedSwitch, **fields: int) -> dict[str, int]:
    """The fields of the header `test` in the one packet that comes back, sent with these fields."""
    ((out, data),) = switch.inject(1, packet(switch.program, **fields))
    assert out == 1
    return fields_of(switch.program, data)


# What comes behind the Ethernet addresses; what leaves there, `failure`, `labels` and `ahead` and `sum` of the header
# `test` at its end; and the payload behind it.
PARSING: dict[str, tuple[str, str, str]] = {
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


def row(table: str, key: tuple[object, ...], action: str, value: int, priority: int | None = None) -> TableEntry:
    """An entry of matching.p4 whose action has one parameter."""
    return TableEntry(f"TestIngress.{table}", key, f"TestIngress.{action}", (value,), priority)  # type: ignore[arg-type]


EXACTLY_443 = Ternary(443, 0xFFFF)  # p4c writes optional keys as ternary ones
MATCHING_ENTRIES = SwitchEntries(
    "s",
    (
        row("by_prefix", (5, Lpm(0x0A000000, 8)), "prefix", 10),
        row("by_prefix", (5, Lpm(0x0A0B0000, 16)), "prefix", 11),
        row("by_prefix", (5, Lpm(0, 0)), "prefix", 12),
        row("by_mask", (Ternary(0x0A000000, 0xFF000000), Ternary(0, 0), 1), "mask", 20, 2),
        row("by_mask", (Ternary(0, 0), Ternary(80, 0xFFFF), 1), "mask", 21, 1),
        row("by_mask", (Ternary(0, 0), Ternary(80, 0x00FF), 1), "mask", 22, 1),
        row("by_range", (Range(100, 200), 5), "range_", 30, 1),
        row("by_range", (Range(150, 300), 5), "range_", 31, 0),
        row("if_given", (EXACTLY_443, Ternary(5, 0xFF)), "given", 40, 1),
        row("if_given", (EXACTLY_443, Ternary(0, 0)), "given", 41, 2),
    ),
)

SELECTED, GIVEN = ("TestIngress.selected", "TestIngress.paths"), ("TestIngress.given", "TestIngress.shared")
SEVERAL = tuple(("TestIngress.select_", (value,)) for value in (50, 51, 52))
SELECTOR_ENTRIES = SwitchEntries(
    "s",
    defaults=(DefaultAction(SELECTED[0], "TestIngress.select_", (9,)),),
    profiled=(
        ProfileEntry(SELECTED[0], (5,), SELECTED[1], SEVERAL),
        ProfileEntry(SELECTED[0], (6,), SELECTED[1], SEVERAL[:1]),
        ProfileEntry(GIVEN[0], (Ternary(4, 0xFC),), GIVEN[1], (("TestIngress.give", (60,)),), 1),
    ),
)
