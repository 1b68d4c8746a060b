"""The interpreter: wrong entries, unknown constructs and malformed programs are errors with names."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from model_programs import MODEL, row, switch_of
from small_programs import PROGRAMS

from inakit.switch.entries import Lpm, MeterRates, MirrorSession, MulticastGroup, SwitchEntries, ValueSetMember
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import parse_program, program_of, read_program
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError, UnsupportedError

WRONG: dict[str, tuple[str, SwitchEntries, str]] = {
    "meter": ("externs", SwitchEntries("s", meters=(MeterRates("TestIngress.rat", 0, ()),)), "did you mean"),
    "cell": ("externs", SwitchEntries("s", meters=(MeterRates("TestIngress.rate", 4, ()),)), "no cell 4"),
    "rates": ("externs", SwitchEntries("s", meters=(MeterRates("TestIngress.rate", 3, ((2, 1), (1, 1))),)), "lowest"),
    "session": ("copies", SwitchEntries("s", mirrors=(MirrorSession(1 << 15, 1),)), "sessions are 0 to"),
    "mirror port": ("copies", SwitchEntries("s", mirrors=(MirrorSession(1, 512),)), "port 512"),
    "value set": ("parsing", SwitchEntries("s", value_sets=(ValueSetMember("TestParser.number", 1),)), "did you mean"),
    "value": ("parsing", SwitchEntries("s", value_sets=(ValueSetMember("TestParser.numbers", 1 << 16),)), "16 bits"),
    "kind of key": ("matching", SwitchEntries("s", (row("by_prefix", (5, 1), "prefix", 1),)), "takes Lpm, not 1"),
    "twice": ("matching", SwitchEntries("s", (row("by_prefix", (5, Lpm(1, 0)), "prefix", 1),) * 2), "already has"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_entries_are_named_and_leave_nothing(name: str) -> None:
    program, entries, message = WRONG[name]
    switch = switch_of(program)
    with pytest.raises(InputError) as error:
        switch.install(replace(entries, groups=(MulticastGroup(1, (1,)),)))
    assert message in str(error.value)
    assert switch.read_groups() == []


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
