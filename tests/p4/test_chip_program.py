"""The chip's program makes the same of the same random packets on every switch, and holds to its own rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from comparison import differences
from hypothesis import HealthCheck, Phase, given, settings
from inkernel import running_in_kernel
from inprocess import InProcess
from reduction import reduced
from scenario_packets import columns, events, first_value, gradient
from scenarios import ROOT_PORT, example_entries
from sequences import PacketSwitch, Seen, Step
from strategies import Case, cases

from inakit.planner.install.ina_program import AGGREGATION, ARRIVAL_FAULTY, ARRIVING, INA_HW
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.traffic.wire.packet_format import TERMINAL, Event, Flag, Kind

pytestmark = pytest.mark.compiler

STATE = ("slot_owner", "slot_seq", "slot_bitmap", "slot_seen", "slot_marks", "sum0", "sum31")
REGISTERS = tuple(f"InaIngress.{name}" for name in STATE)
AGAIN = int(Flag.RETRANSMITTED)
USUAL = settings(
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def for_chip(entries: SwitchEntries) -> SwitchEntries:
    """The entries with bitmaps of as many bits as a chip has, without presets, and without actions that it lacks."""
    program = read_program(INA_HW.path)
    known = [each for each in entries.tables if each.action in {a.name for a in program.table(each.table).actions}]
    return replace(entries, tables=tuple(map(narrowed, known)), registers=())


def narrowed(entry: TableEntry) -> TableEntry:
    if entry.table != AGGREGATION or not entry.params:
        return entry
    child, full, *others = entry.params
    bits = (1 << INA_HW.bitmap_bits) - 1
    return replace(entry, params=(child & bits, full & bits, *others))


@pytest.fixture(scope="module")
def chip() -> InProcess:
    return InProcess(read_program(INA_HW.path))


@pytest.fixture(scope="module")
def interpreted() -> InProcess:
    return InProcess(read_program(INA_HW.path), InterpretedSwitch)


@pytest.fixture(scope="module")
def in_kernel() -> Iterator[PacketSwitch]:
    with running_in_kernel(read_program(INA_HW.path)) as switch:
        yield switch


@pytest.fixture(scope="module")
def bmv2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PacketSwitch]:
    from reference import running_reference  # noqa: PLC0415, needs p4-utils, as only this fixture does

    with running_reference(tmp_path_factory.mktemp("bmv2"), INA_HW.path) as reference:
        yield reference


def compare(reference: PacketSwitch, other: PacketSwitch, case: Case) -> None:
    """Fail, with the fewest packets that show it, unless both make the same of a case."""

    def difference(case: Case) -> str:
        entries = for_chip(case.entries)  # whoever reduces a case puts entries of `ina` back
        expected, seen = (each.run(entries, case.steps, REGISTERS) for each in (reference, other))
        return "\n".join(differences(expected, seen))

    if difference(case):
        small = reduced(case, lambda smaller: bool(difference(smaller)))
        pytest.fail(f"the switches differ:\n{difference(small)}\nfor{small!r}", pytrace=False)


@settings(USUAL, max_examples=1)
@given(case=cases())
def test_random_packets_in_this_process(chip: PacketSwitch, interpreted: PacketSwitch, case: Case) -> None:
    compare(interpreted, chip, case)


@pytest.mark.long
@settings(USUAL, max_examples=40)
@given(case=cases())
def test_more_random_packets_in_this_process(chip: PacketSwitch, interpreted: PacketSwitch, case: Case) -> None:
    compare(interpreted, chip, case)


@pytest.mark.root
@settings(USUAL, max_examples=10)
@given(case=cases())
def test_random_packets_in_the_kernel(chip: PacketSwitch, in_kernel: PacketSwitch, case: Case) -> None:
    compare(in_kernel, chip, case)


@pytest.mark.long
@pytest.mark.root
@pytest.mark.bmv2
@settings(USUAL, max_examples=20)
@given(case=cases())
def test_random_packets_on_bmv2(bmv2: PacketSwitch, chip: PacketSwitch, case: Case) -> None:
    compare(bmv2, chip, case)


def run(switch: PacketSwitch, *steps: Step, more: tuple[TableEntry, ...] = ()) -> Seen:
    entries = for_chip(example_entries())
    seen = switch.run(replace(entries, tables=(*entries.tables, *more)), steps, REGISTERS)
    assert sum(events(seen).get(event, 0) for event in TERMINAL) == len(steps)
    return seen


def below(port: int, seq: int, value: int, **ina: int) -> Step:
    return gradient(port, 10 + port, seq, value, job=4, tree=2, **ina)


def root(port: int, seq: int, value: int, **ina: int) -> Step:
    return gradient(port, 10 + port, seq, value, job=4, **ina)


def test_each_half_of_a_fragment_has_a_slot(chip: PacketSwitch) -> None:
    seen = run(chip, below(1, 5, 10))
    assert events(seen)[Event.ABSORBED] == events(seen)[Event.ADDED] == 1
    assert np.count_nonzero(seen.registers["InaIngress.slot_bitmap"]) == 2
    assert np.count_nonzero(seen.registers["InaIngress.slot_owner"]) == 2


def test_the_sum_of_both_halves_leaves_as_one_packet(chip: PacketSwitch) -> None:
    seen = run(chip, below(1, 5, 10), below(2, 5, 32))
    assert columns(seen.sent[ROOT_PORT], "label", "workers", "flags", "bitmap") == [(20, 0, 0, 0)]
    assert first_value(seen, ROOT_PORT) == [42]
    assert events(seen)[Event.COMPLETED] == 1


def test_no_fault_happens_to_a_packet_that_ends_in_its_second_half(chip: PacketSwitch) -> None:
    held = TableEntry(ARRIVING, (1,), ARRIVAL_FAULTY, (0, 2**32 - 1))
    step = below(1, 5, 10)
    seen = run(chip, Step(1, step.packet[:-16]), step, more=(held,))
    assert events(seen)[Event.MALFORMED] == events(seen)[Event.HELD] == 1


def test_a_finished_sum_is_kept_for_who_asks_again(chip: PacketSwitch) -> None:
    seen = run(chip, root(1, 5, 10), root(2, 5, 32), root(2, 5, 32, flags=AGAIN), root(2, 5, 32))
    assert columns(seen.sent[2], "kind", "flags") == [(Kind.RESULT, 0), (Kind.RESULT, AGAIN)]
    assert first_value(seen, 2) == [42, 42]
    assert events(seen)[Event.ANSWERED] == events(seen)[Event.DUPLICATE] == 1


def test_a_sum_beyond_32_bits_is_flagged_and_stays_so(chip: PacketSwitch) -> None:
    largest = 2**31 - 1
    of_three = [gradient(port, 10 + port, 5, value) for port, value in ((1, largest), (2, 1), (3, -5))]
    seen = run(chip, *of_three)
    assert columns(seen.sent[ROOT_PORT], "label", "flags") == [(20, int(Flag.OVERFLOW))]


def test_an_overflow_at_a_root_is_a_notice(chip: PacketSwitch) -> None:
    seen = run(chip, root(1, 5, 2**31 - 1), root(2, 5, 1))
    assert columns(seen.sent[1], "kind", "flags") == [(Kind.NOTICE, int(Flag.OVERFLOW))]
