"""A program in this process is compiled where it can be, and interpreted where it must be."""

from __future__ import annotations

import pytest
from small_programs import PROGRAMS, control_entries, control_packets, packet

from inakit.switch.entries import MulticastGroup, SwitchEntries, ValueSetMember
from inakit.switch.fast.layout.layout import LEAST_VALUES
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.testing.either_switch import EitherSwitch
from inakit.topo.errors import MachineError, UnsupportedError


def either(name: str) -> EitherSwitch:
    return EitherSwitch(read_program(PROGRAMS / f"{name}.json"))


def test_the_generator_is_used_where_it_has_c_for_all() -> None:
    assert either("control").compiled
    assert not either("model/numbers").compiled


def test_without_a_compiler_programs_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_given: object) -> None:
        raise MachineError("clang is not installed")

    monkeypatch.setattr("inakit.switch.testing.either_switch.InProcessSwitch", missing)
    assert either("control").inject(1, packet(either("control").program, key=7)) is not None


def test_both_do_the_same() -> None:
    compiled, interpreted = either("control"), either("control")
    for switch in (compiled, interpreted):
        switch.install(control_entries())
    interpreted.interpret()
    packets = control_packets(compiled.program, (0, 7))
    assert compiled.compiled
    assert compiled.inject_all(packets) == interpreted.inject_all(packets)
    for name in compiled.program.registers:
        assert compiled.read_register(name).tolist() == interpreted.read_register(name).tolist()
    for table in ("TestIngress.by_key", "TestIngress.by_port"):
        assert compiled.read_table(table) == interpreted.read_table(table)
    assert compiled.read_groups() == interpreted.read_groups()


def too_many_values() -> SwitchEntries:
    """More values for the value set of counted.p4 than compiled code keeps."""
    return SwitchEntries("s", value_sets=tuple(ValueSetMember("TestParser.pairs", n) for n in range(LEAST_VALUES + 1)))


def test_entries_that_compiled_code_does_not_take_are_interpreted_from_then_on() -> None:
    switch = either("model/counted")
    assert switch.compiled
    switch.install(SwitchEntries("s", groups=(MulticastGroup(3, (1, 2)),)))
    switch.install(too_many_values())
    assert not switch.compiled
    assert switch.read_groups() == [MulticastGroup(3, (1, 2))]


def test_they_must_come_before_the_first_packet() -> None:
    switch = either("model/counted")
    switch.inject(1, bytes(60))
    with pytest.raises(UnsupportedError, match="keeps no more"):
        switch.install(too_many_values())


def test_a_trace_is_told_by_the_interpreter() -> None:
    switch = either("control")
    switch.install(control_entries())
    assert "Table 'TestIngress.by_key': hit" in switch.trace(1, packet(switch.program, key=7, index=1)).lines
