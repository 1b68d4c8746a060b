"""A compiled switch whose state changes while it runs: after each change it does what a switch set up so does."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType
from typing import Any

import pytest
from ina_by_hand import entry, ina_program
from model_programs import fields_of
from random_changes import VALUES, RandomChanges
from reference_switch import reference_switch
from same_switches import by_port, shown_when_wrong
from small_programs import ETHERNET, PROGRAM_PORTS, PROGRAMS, Packets, control_packets, lists_packets, packet
from veth_wires import Wires, in_kernel

from inakit.switch.entries import DefaultAction, Lpm, MulticastGroup, ProfileEntry, SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import program_of, read_program
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError

GROUPS: dict[str, tuple[int, ...]] = {"lists": (), "control": (3, 4), "model/counted": (), "model/selector": ()}


def packets_of(name: str, program: Program) -> Packets:
    """Packets that meet the entries that are drawn."""
    if name == "lists":
        return lists_packets(program)
    if name == "control":
        return control_packets(program, range(8))
    draw, fields = Random(name), program.headers["test"].fields
    drawn = [{each.name: draw.choice(VALUES[each.bits]) for each in fields} for _ in range(80)]
    return [(draw.choice(PROGRAM_PORTS), packet(program, **fields) + draw.randbytes(3)) for fields in drawn]


@pytest.mark.parametrize("name", GROUPS)
def test_compiled_and_interpreted_switch_do_the_same_whatever_changes(name: str) -> None:
    program = read_program(PROGRAMS / f"{name}.json")
    packets = packets_of(name, program)
    for seed in range(6):
        changes = RandomChanges(program, seed, GROUPS[name])
        switch, model = InProcessSwitch(program), InterpretedSwitch(program)
        with shown_when_wrong(switch.source):
            for _ in range(12):
                for _ in range(8):
                    changes.change(switch.state, model.state)
                assert switch.inject_all(packets) == model.inject_all(packets)
                for entry in changes.sample():
                    if program.tables[entry.table].counted:
                        assert switch.state.entry_counts(entry) == model.state.entry_counts(entry)
        for table in changes.tables:
            if table.profile is None:
                assert {*switch.read_table(table.name)} == {*changes.entries[table.name].values()}


@contextmanager
def between_lines(act: Callable[[], None]) -> Iterator[None]:
    """Do something before each line that writes tables, where in the kernel a packet can come."""
    busy = False

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal busy
        if "/fast/tables/" not in frame.f_code.co_filename:
            return trace if "/fast/" in frame.f_code.co_filename else None
        if event == "line" and not busy:
            busy = True
            act()
            busy = False
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def one_by_one(switch: InProcessSwitch | InterpretedSwitch, packets: Packets) -> list[Packets]:
    """What leaves for each packet."""
    return [switch.inject(*each) for each in packets]


@pytest.mark.parametrize("name", GROUPS)
def test_at_every_step_of_a_change_packets_see_the_old_or_the_new(name: str) -> None:
    program = read_program(PROGRAMS / f"{name}.json")
    packets, changes = packets_of(name, program)[:16], RandomChanges(program, 5, GROUPS[name], most=1)
    switch, model = InProcessSwitch(program), InterpretedSwitch(program)
    for _ in range(40):
        step, seen = changes.step(), list[list[Packets]]()
        old = one_by_one(model, packets)
        with between_lines(lambda seen=seen: seen.append(one_by_one(switch, packets))):  # type: ignore[misc]
            step(switch.state)
        step(model.state)
        new = one_by_one(model, packets)
        for sent in seen:
            assert all(each in sides for each, *sides in zip(sent, old, new, strict=True))


@pytest.mark.parametrize("name", GROUPS)
def test_a_reset_switch_is_as_one_just_started(name: str) -> None:
    program = read_program(PROGRAMS / f"{name}.json")
    switch, changes = InProcessSwitch(program), RandomChanges(program, 1)
    for _ in range(100):
        changes.change(switch.state)
    switch.state.reset()
    packets = packets_of(name, program)
    assert switch.inject_all(packets) == InProcessSwitch(program).inject_all(packets)
    assert not any(switch.read_table(table.name) for table in changes.tables)


@pytest.mark.root
@pytest.mark.parametrize("name", GROUPS)
def test_the_kernel_does_the_same_whatever_changes(name: str) -> None:
    program = read_program(PROGRAMS / f"{name}.json")
    packets, changes = packets_of(name, program), RandomChanges(program, 8, GROUPS[name])
    model, switch = InProcessSwitch(program), KernelSwitch(compile_program(program))
    with Wires(PROGRAM_PORTS) as wires, shown_when_wrong(switch.source):
        wires.attach(switch)
        for _ in range(4):
            for _ in range(20):
                changes.change(switch.state, model.state)
            expected = model.inject_all(packets)
            assert in_kernel(wires, packets, expected) == by_port(expected, PROGRAM_PORTS)
        for counter in program.direct_counters:
            for mine, theirs in zip(switch.read_counter(counter), model.read_counter(counter), strict=True):
                assert mine.tolist() == theirs.tolist()


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.parametrize("name", [name for name, groups in GROUPS.items() if not groups])
def test_bmv2_does_the_same_whatever_changes(name: str) -> None:
    path = PROGRAMS / f"{name}.json"
    program = read_program(path)
    packets, changes = packets_of(name, program), RandomChanges(program, 9, least=1)
    switch = InProcessSwitch(program)
    with reference_switch(path, PROGRAM_PORTS) as reference, shown_when_wrong(switch.source):
        for _ in range(3):
            for _ in range(20):
                changes.change(switch.state, reference.state)
            expected = switch.inject_all(packets)
            came = reference.inject_all(packets, len(expected))
            # BMv2 asks its ports in turn, so that packets which wait at several of them are taken in another order.
            assert sorted(came) == sorted(expected)
        for entry in changes.sample():
            if program.tables[entry.table].idle_timeout:
                assert switch.state.idle_s(entry) == pytest.approx(reference.state.idle_s(entry), abs=0.5)
            if program.tables[entry.table].counted:
                assert switch.state.entry_counts(entry) == reference.state.entry_counts(entry)


def test_idle_entries_are_told_from_those_that_match() -> None:
    program = read_program(PROGRAMS / "model" / "counted.json")
    switch = InProcessSwitch(program)
    used, unused = (TableEntry("TestIngress.by_exact", (80, kind), "NoAction") for kind in (1, 2))
    switch.state.add([used, unused])
    time.sleep(0.1)
    switch.inject(1, packet(program, port=80, kind=1))
    assert switch.state.idle_s(used) < 0.05
    assert 0.1 <= switch.state.idle_s(unused) < 5
    switch.state.change([used, unused])
    assert switch.state.idle_s(unused) >= 0.1
    switch.state.remove([unused])
    switch.state.add([unused])
    assert switch.state.idle_s(unused) < 0.05
    with pytest.raises(InputError, match="has no idle timeout"):
        switch.state.idle_s(TableEntry("TestIngress.by_prefix", (Lpm(0, 0),), "TestIngress.prefix", (1,)))


def test_a_table_of_prefixes_may_be_larger_than_any_list() -> None:
    program = read_program(PROGRAMS / "model" / "counted.json")
    switch, draw = InProcessSwitch(program), Random(3)
    held: dict[tuple[int, int], int] = {}
    while len(held) < 20_000:
        length = draw.choice((12, 16, 20, 24, 32))
        held[draw.getrandbits(length) << 32 - length, length] = len(held) % 256
    actions = [
        TableEntry("TestIngress.by_prefix", (Lpm(*prefix),), "TestIngress.prefix", (value,))
        for prefix, value in held.items()
    ]
    switch.state.add(actions)
    for _ in range(300):
        address = draw.choice(list(held))[0] | draw.getrandbits(9)
        matching = [length for value, length in held if value == address >> 32 - length << 32 - length]
        best = max(matching, default=0)
        expected = held[address >> 32 - best << 32 - best, best] if best else 1
        ((_, sent),) = switch.inject(1, packet(program, address=address))
        assert fields_of(program, sent)["prefix"] == expected


@pytest.mark.parametrize("kind", [InProcessSwitch, InterpretedSwitch])
def test_a_selector_goes_by_the_low_32_bits_of_its_hash(kind: type[InProcessSwitch | InterpretedSwitch]) -> None:
    document = json.loads((PROGRAMS / "model" / "selector.json").read_text())
    hashed = (("test", "kind"), ("ethernet", "src"), ("test", "given"))
    selector = document["pipelines"][0]["action_profiles"][0]["selector"]
    selector["input"] = [{"type": "field", "value": list(field)} for field in hashed]
    program = program_of(document)
    actions = tuple(("TestIngress.select_", (value,)) for value in range(3))
    switch = kind(program)
    switch.install(
        SwitchEntries("s", profiled=(ProfileEntry("TestIngress.selected", (5,), "TestIngress.paths", actions),))
    )
    for given in range(6):
        ((_, sent),) = switch.inject(1, packet(program, kind=5, given=given))
        chosen = int.from_bytes(ETHERNET[9:] + bytes([given]), "big") % 3
        assert sent == packet(program, kind=5, given=given, selected=chosen)


def test_counters_and_registers_are_written() -> None:
    program = read_program(PROGRAMS / "control.json")
    switch = InProcessSwitch(program)
    switch.state.write_register("TestIngress.seen", 3, 7)
    switch.state.write_counter("TestIngress.packets", None, 5, 500)
    assert switch.read_register("TestIngress.seen").tolist() == [0, 0, 0, 7, 0, 0, 0, 0]
    switch.inject_all(control_packets(program, (3,))[:1])
    packets, octets = switch.read_counter("TestIngress.packets")
    assert packets.tolist() == [5, 5, 5, 6, 5, 5, 5, 5]
    assert octets[2] == 500 < octets[3]


def test_a_const_default_action_stays() -> None:
    switch = InProcessSwitch(read_program(PROGRAMS / "lists.json"))
    with pytest.raises(InputError, match=r"default action of table 'TestIngress\.fixed' is const"):
        switch.install(SwitchEntries("s", defaults=(DefaultAction("TestIngress.fixed", "TestIngress.fix", (1,)),)))


def test_what_is_not_there_is_not_removed() -> None:
    switch = InProcessSwitch(ina_program())
    here, absent = entry("ipv4_route", (1,), "send", 1), entry("ipv4_route", (2,), "send", 1)
    switch.state.add([here])
    with pytest.raises(InputError, match=r"no entry for the key \(2,\)"):
        switch.state.remove([here, absent])
    assert switch.read_table("InaIngress.ipv4_route") == [here]
    switch.state.remove_group(5)
    switch.state.put_group(MulticastGroup(5, (1, 2)))
    switch.state.put_group(MulticastGroup(5, (3,)))
    assert switch.read_groups() == [MulticastGroup(5, (3,))]
    switch.state.remove_group(5)
    assert switch.read_groups() == []


def test_ten_thousand_entries_are_added_and_removed_at_once() -> None:
    switch = InProcessSwitch(ina_program())
    entries: list[TableEntry] = [entry("ipv4_route", (n,), "send", n % 7) for n in range(10_000)]
    switch.state.add(entries)
    assert switch.read_table("InaIngress.ipv4_route") == entries
    switch.state.remove(entries[::2])
    assert switch.read_table("InaIngress.ipv4_route") == entries[1::2]
