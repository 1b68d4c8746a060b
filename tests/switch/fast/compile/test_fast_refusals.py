"""Target fast refuses by name what it does not run; wrong entries and missing tools are named, too."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from ina_by_hand import INA, entry, ina_program, small_tree

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from inakit.switch.fast.compile.generate import EBPF, LIBRARY, generate
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import program_of, read_program
from inakit.switch.targets import choose_target
from inakit.topo.c_library import build
from inakit.topo.errors import InputError, MachineError, UnsupportedError

REFUSED = Path(__file__).parents[2] / "programs" / "refused"

# What the message about each program of the folder must name.
NAMES = {
    "advance": "advancing by a number of bits that is not a constant",
    "variable": "'a.v', which has a variable length, in an expression (variable.p4:12",
    "wide": "register 'TestIngress.last' of 96 bits (more than 64)",
}


def test_every_refused_program_is_known() -> None:
    assert sorted(NAMES) == sorted(path.stem for path in REFUSED.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_a_construct_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        generate(read_program(REFUSED / f"{name}.json"))
    assert NAMES[name] in str(refusal.value)
    assert f"program '{name}.p4'" in str(refusal.value)
    assert "SWITCH=bmv2" in str(refusal.value)


def test_a_loop_in_the_parser_is_refused() -> None:
    document = json.loads(INA.read_text())
    document["parsers"][0]["parse_states"][4]["transitions"][0]["next_state"] = "values"
    with pytest.raises(UnsupportedError, match="a parser with more than 256 states times offsets, or a loop"):
        generate(program_of(document))


def test_a_loop_in_a_pipeline_is_refused() -> None:
    document = json.loads(INA.read_text())
    egress = document["pipelines"][1]
    egress["conditionals"][0]["false_next"] = egress["init_table"]
    with pytest.raises(UnsupportedError, match="loop in pipeline 'egress'"):
        generate(program_of(document))


WRONG: dict[str, tuple[SwitchEntries, str]] = {
    "table": (SwitchEntries("s", (entry("admision", (), "admit"),)), "did you mean 'InaIngress.admission'"),
    "action": (SwitchEntries("s", (entry("forward", (1, 1, 1), "sned", 1),)), "did you mean 'InaIngress.send'"),
    "action of another table": (SwitchEntries("s", (entry("forward", (1, 1, 1), "admit"),)), "unknown action of table"),
    "key": (SwitchEntries("s", (entry("forward", (1, 1), "send", 1),)), "2 given, 3 expected (hdr.ina.job"),
    "key too wide": (SwitchEntries("s", (entry("forward", (1, 1, 65536), "send", 1),)), "65536 does not fit"),
    "parameters": (SwitchEntries("s", (entry("forward", (1, 1, 1), "send"),)), "0 given, 1 expected (port)"),
    "parameter too wide": (SwitchEntries("s", (entry("forward", (1, 1, 1), "send", 512),)), "9 bits (0 to 511)"),
    "twice": (SwitchEntries("s", (entry("forward", (1, 1, 1), "send", 1),) * 2), "already has an entry"),
    "there already": (SwitchEntries("s", (entry("forward", (1, 1, 9), "send", 1),)), "already has an entry"),
    "no key": (SwitchEntries("s", (TableEntry("tbl_drop", (), "InaIngress.drop"),)), "takes no entries"),
    "group": (SwitchEntries("s", groups=(MulticastGroup(0, (1,)),)), "multicast group 0"),
    "port of a group": (SwitchEntries("s", groups=(MulticastGroup(1, (512,)),)), "port 512"),
    "too many ports": (SwitchEntries("s", groups=(MulticastGroup(1, tuple(range(129))),)), "129 ports"),
    "replica of a group": (SwitchEntries("s", groups=(MulticastGroup(1, (1,), ((1, 2),)),)), "replica number 1"),
    "port of a replica": (SwitchEntries("s", groups=(MulticastGroup(1, (1,), ((2, 512),)),)), "port 512"),
    "register": (SwitchEntries("s", registers=(RegisterPreset("InaIngress.sum64", 0, 0),)), "unknown register"),
    "element": (SwitchEntries("s", registers=(RegisterPreset("InaIngress.sum0", 1 << 20, 0),)), "no element"),
    "value": (SwitchEntries("s", registers=(RegisterPreset("InaIngress.sum0", 0, 1 << 32),)), "does not fit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_entries_are_named_and_leave_nothing(name: str) -> None:
    entries, message = WRONG[name]
    switch = InProcessSwitch(ina_program())
    switch.install(small_tree())
    before = [switch.read_table(table) for table in switch.state.running]
    with pytest.raises(InputError) as error:
        good = entry("admission", (5, 1, 1, 1, 77), "admit")
        switch.install(SwitchEntries("s", (good, *entries.tables), entries.groups, entries.registers))
    assert message in str(error.value)
    assert [switch.read_table(table) for table in switch.state.running] == before


def test_a_full_table_is_named() -> None:
    switch = InProcessSwitch(read_program(REFUSED.parent / "control.json"))
    entries = [TableEntry("TestIngress.by_key", (key, 1), "TestIngress.add", (1,)) for key in range(5)]
    switch.install(SwitchEntries("s", tuple(entries[:4])))
    with pytest.raises(InputError, match=r"'TestIngress\.by_key' is full: the program gives it 4 entries"):
        switch.install(SwitchEntries("s", tuple(entries[4:])))


def test_registers_can_be_preset() -> None:
    switch = InProcessSwitch(ina_program())
    switch.install(SwitchEntries("s", registers=(RegisterPreset("InaIngress.sum0", 3, 2**32 - 1),)))
    assert switch.read_register("InaIngress.sum0")[:5].tolist() == [0, 0, 0, 2**32 - 1, 0]
    with pytest.raises(InputError, match=r"did you mean 'InaIngress\.sum0'"):
        switch.read_register("InaIngress.sum00")
    with pytest.raises(InputError, match=r"unknown counter"):
        switch.read_counter("InaIngress.sum0")


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"clang is not installed.*apt install clang"):
        build("int unused;", EBPF)
    assert list((tmp_path / "cache" / "inakit").iterdir()) == []


def test_a_build_is_kept_and_found_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = build("int one(void) { return 1; }", LIBRARY)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert build("int one(void) { return 1; }", LIBRARY) == first
    assert list((tmp_path / "inakit").iterdir()) == [first]


def test_many_may_build_the_same_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(build, ["int two(void) { return 2; }"] * 4, [LIBRARY] * 4))
    assert list((tmp_path / "inakit").iterdir()) == [built[0]] == list(set(built))


def test_json_that_is_none_is_named(tmp_path: Path) -> None:
    for text, what in (
        ("{", "not JSON line 1.*p4c-bm2-ss writes is expected"),
        ("{}", "not BMv2 JSON"),
        ("[]", "not BMv2 JSON"),
    ):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(InputError, match=what):
            read_program(tmp_path / "x.json")
    with pytest.raises(InputError, match="no such file"):
        read_program(tmp_path / "none.json")


def test_targets_are_chosen_by_name() -> None:
    with pytest.raises(InputError, match="unknown switch target 'fats': did you mean 'fast'"):
        choose_target("fats")


def test_the_c_of_a_program_is_made_once_and_another_program_has_its_own() -> None:
    program = read_program(INA)
    assert read_program(INA) is program
    assert generate(program) is generate(program)
    assert generate(replace(program, name="another")) is not generate(program)
