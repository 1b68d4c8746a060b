"""The interpreter: keys of all kinds, counters of entries, default actions, action profiles, direct meters."""

from __future__ import annotations

import pytest
from model_programs import GIVEN, MATCHING_ENTRIES, SELECTOR_ENTRIES, Ticks, result, row, switch_of
from small_programs import packet

from inakit.switch.entries import DefaultAction, MeterRates, ProfileEntry, SwitchEntries, TableEntry, Ternary
from inakit.topo.errors import InputError

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
    switch.install(MATCHING_ENTRIES)
    fields, expected = MATCHED[name]
    for _ in range(2):  # the second time, what was found is remembered
        found = result(switch, **fields)
        assert {field: found[field] for field in expected} == expected


def test_tables_count_and_are_read() -> None:
    switch = switch_of("matching")
    switch.install(MATCHING_ENTRIES)
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
        switch.install(SwitchEntries("s", (row("fixed", (Ternary(0, 0), 1), "fix", 1, 1),)))


def test_action_profiles_and_selectors() -> None:
    switch = switch_of("selector")
    switch.install(SELECTOR_ENTRIES)
    assert [result(switch, kind=5, port=port)["selected"] for port in (3, 4, 5)] == [50, 51, 52]
    assert [result(switch, kind=kind, port=5)["selected"] for kind in (6, 7)] == [50, 9]
    assert [result(switch, kind=kind)["given"] for kind in (3, 4, 7, 8)] == [0, 60, 60, 0]
    with pytest.raises(InputError, match="without a selector, one"):
        switch.install(SwitchEntries("s", profiled=(ProfileEntry(GIVEN[0], (Ternary(0, 0),), GIVEN[1], (), 2),)))
    with pytest.raises(InputError, match="takes a ProfileEntry"):
        switch.install(SwitchEntries("s", (row("selected", (8,), "select_", 1),)))


def test_a_direct_meter_colours_hits() -> None:
    clock = Ticks()
    switch = switch_of("matching", clock)
    switch.install(SwitchEntries("s", (TableEntry("TestIngress.metered", (5,), "TestIngress.coloured"),)))
    assert result(switch, kind=5)["after"] == 0, "green, as long as no rates are set"
    switch.install(SwitchEntries("s", meters=(MeterRates("TestIngress.rate", None, ((0.001, 1), (0.002, 2))),)))
    assert [result(switch, kind=5)["after"] for _ in range(3)] == [0, 1, 2]
    clock.now = 1000
    assert [result(switch, kind=kind)["after"] for kind in (5, 6)] == [0, 102]
