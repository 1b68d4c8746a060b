"""Target fast in this process: random numbers, assertions, header stacks in the parser."""

from __future__ import annotations

import pytest
from model_programs import fields_of
from small_programs import PROGRAMS, packet

from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.topo.errors import RunError


def chances(name: str = "switch") -> InProcessSwitch:
    """A switch of chances.p4."""
    return InProcessSwitch(read_program(PROGRAMS / "chances.json"), name)


def drawn(switch: InProcessSwitch, labels: bytes = b"", **given: int) -> dict[str, int]:
    """The header `test` of what comes back for a packet with these fields and labels."""
    program = switch.state.program
    [(_, back)] = switch.inject(1, packet(program, **given) + labels)
    return fields_of(program, back)


def numbers(switch: InProcessSwitch) -> list[int]:
    return [drawn(switch, low=3, high=9)["drawn"] for _ in range(100)]


def test_random_numbers_are_in_their_range_and_the_same_twice_for_a_switch_of_this_name() -> None:
    found = numbers(chances())
    assert set(found) == set(range(3, 10))
    assert numbers(chances()) == found
    assert numbers(chances("other")) != found


def test_an_empty_range_leaves_the_field_and_the_whole_one_has_all_numbers() -> None:
    switch = chances()
    assert drawn(switch, low=9, high=8, drawn=5)["drawn"] == 5
    wide = [drawn(switch, kind=3)["wide"] for _ in range(50)]
    assert all(any(number >> bit & 1 for number in wide) for bit in range(64))


def test_an_assertion_that_does_not_hold_is_an_error() -> None:
    switch = chances()
    switch.check()
    with pytest.raises(RunError, match=r"1 assertions of 'chances\.p4' did not hold"):
        drawn(switch, kind=200)
    with pytest.raises(RunError, match="1 assertions"):
        switch.check()


@pytest.mark.parametrize("labels", range(1, 4))
def test_the_parser_knows_the_index_of_the_last_element_of_a_stack(labels: int) -> None:
    stack = bytes(labels - 1) + b"\1"
    assert drawn(chances(), stack, kind=1)["last"] == labels - 1
