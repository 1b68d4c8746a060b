"""Handles, refusals and rules of a control plane, and what packets meet after each request."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from random_requests import RandomRequests, asked
from served_program import INGRESS, SERVED, Served, entry

from inakit.switch.control.digests import DigestBatch
from inakit.switch.control.recorded_entries import transfer
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.entries import Lpm, MirrorSession, Ternary
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program

EXACT, CHOSEN, MEMBERS, GROUPS = (INGRESS + name for name in ("exact_match", "chosen", "members", "groups"))
METERING = INGRESS + "metering"
SEND, MARK = INGRESS + "send", INGRESS + "mark"


def test_rates_of_a_direct_meters_cells_outlast_entries() -> None:
    served, slow, fast = Served(), ((0.001, 1), (0.002, 2)), ((1.0, 9), (2.0, 9))
    served.control.tables.add_entry(entry("by_colour", (2,), 9))
    first = served.control.tables.add_entry(entry("metering", (7,), 2))
    served.control.meters.set_rates(INGRESS + "speed", None, slow)
    second = served.control.tables.add_entry(entry("metering", (8,), 2))
    assert [served.control.meters.entry_rates(METERING, handle) for handle in (first, second)] == [slow, slow]
    served.control.meters.set_rates(INGRESS + "speed", 1, fast)
    served.control.tables.delete(METERING, second)
    third = served.control.tables.add_entry(entry("metering", (9,), 2))
    assert (
        served.control.meters.entry_rates(METERING, third) == served.control.meters.rates(INGRESS + "speed", 1) == fast
    )
    assert [served.ports("metering", 7) for _ in range(4)] == [[2], [2], [9], [9]]
    served.control.reset_state()
    assert (
        served.control.meters.entry_rates(METERING, served.control.tables.add_entry(entry("metering", (7,), 2))) == ()
    )


def test_a_handle_comes_back_with_another_version() -> None:
    served = Served()
    first = served.control.tables.add_entry(entry("exact_match", (7,), 2))
    second = served.control.tables.add_entry(entry("exact_match", (8,), 3))
    served.control.tables.delete(EXACT, first)
    again = served.control.tables.add_entry(entry("exact_match", (9,), 4))
    assert (first, second, again) == (0, 1, 1 << 24)
    with pytest.raises(Refused) as refused:
        served.control.tables.modify(EXACT, first, SEND, (5,))
    assert refused.value.kind is RefusalKind.EXPIRED_HANDLE
    assert [served.ports("exact_match", key) for key in (7, 8, 9)] == [[], [3], [4]]


def test_entries_are_added_all_or_none() -> None:
    served = Served()
    wanted = [entry("exact_match", (1,), 2), entry("exact_match", (2,), 2), entry("exact_match", (1,), 3)]
    with pytest.raises(Refused, match="has an entry for the key"):
        served.control.tables.add_entries(wanted)
    assert served.control.tables.count(EXACT) == 0
    assert served.control.tables.add_entries(wanted[:2]) == [0, 1]


def test_entries_are_added_each_on_its_own() -> None:
    served = Served()
    answers = served.control.tables.add_each([entry("exact_match", (1,), 2), entry("exact_match", (1,), 3)])
    assert answers[0] == 0
    assert isinstance(answers[1], Refused) and answers[1].kind is RefusalKind.DUPLICATE_ENTRY
    assert served.ports("exact_match", 1) == [2]


def test_ten_thousand_entries_are_added_by_one_request() -> None:
    served = Served()
    served.control.tables.add_entries([entry("exact_match", (key,), 1 + key % 4) for key in range(10_000)])
    assert served.ports("exact_match", 9_999) == [1 + 9_999 % 4]


def test_removed_entries_are_found_by_no_packet() -> None:
    served = Served()
    wide = served.control.tables.add_entry(entry("longest_prefix", (Lpm(0x0A000000, 8),), 2))
    narrow = served.control.tables.add_entry(entry("longest_prefix", (Lpm(0x0A010000, 16),), 3))
    assert served.ports("longest_prefix", 0x0A010203) == [3]
    served.control.tables.delete(INGRESS + "longest_prefix", narrow)
    assert served.ports("longest_prefix", 0x0A010203) == [2]
    served.control.tables.delete(INGRESS + "longest_prefix", wide)
    assert served.ports("longest_prefix", 0x0A010203) == []


def test_of_entries_with_one_priority_the_lowest_index_wins() -> None:
    """As in BMv2, where an index that was freed is taken again by the next entry."""
    served, any_port = Served(), Ternary(0, 0)
    low = served.control.tables.add_entry(entry("masked", (Ternary(1, 1), any_port), 2, priority=5))
    served.control.tables.add_entry(entry("masked", (Ternary(2, 2), any_port), 3, priority=5))
    assert served.ports("masked", 3) == [2]
    served.control.tables.delete(INGRESS + "masked", low)
    served.control.tables.add_entry(entry("masked", (Ternary(3, 3), any_port), 4, priority=5))
    assert served.ports("masked", 3) == [4]


def test_a_default_is_set_and_reset() -> None:
    served = Served()
    served.control.tables.set_default(EXACT, SEND, (6,))
    assert served.ports("exact_match", 1) == [6]
    served.control.tables.reset_default(EXACT)
    assert served.ports("exact_match", 1) == []
    with pytest.raises(Refused) as refused:
        served.control.tables.set_default(INGRESS + "given", SEND, (6,))
    assert refused.value.kind is RefusalKind.DEFAULT_ENTRY_IS_CONST


def test_entries_follow_the_members_of_their_profile() -> None:
    served = Served()
    member = served.control.profiles.add_member(MEMBERS, SEND, (2,))
    served.control.tables.add(INGRESS + "shared", (7,), member=member)
    assert served.ports("shared", 7) == [2]
    served.control.profiles.modify_member(MEMBERS, member, MARK, (3, 99))
    assert [(answer.port, answer.value) for answer in served.ask("shared", 7)] == [(3, 99)]
    with pytest.raises(Refused) as refused:
        served.control.profiles.delete_member(MEMBERS, member)
    assert refused.value.kind is RefusalKind.MBR_STILL_USED


def test_a_group_spreads_packets_over_its_members() -> None:
    served = Served()
    group = served.control.profiles.create_group(GROUPS)
    members = [served.control.profiles.add_member(GROUPS, SEND, (port,)) for port in (2, 3, 4)]
    for member in members:
        served.control.profiles.add_to_group(GROUPS, member, group)
    served.control.tables.add(CHOSEN, (7,), group=group)
    assert {served.ports("chosen", 7, value)[0] for value in range(50)} == {2, 3, 4}
    served.control.profiles.remove_from_group(GROUPS, members[0], group)
    assert {served.ports("chosen", 7, value)[0] for value in range(50)} == {3, 4}


def test_an_entry_whose_group_is_empty_runs_nothing() -> None:
    served = Served()
    group, member = served.control.profiles.create_group(GROUPS), served.control.profiles.add_member(GROUPS, SEND, (2,))
    served.control.profiles.add_to_group(GROUPS, member, group)
    served.control.tables.add(CHOSEN, (7,), group=group)
    served.control.profiles.remove_from_group(GROUPS, member, group)
    assert served.ports("chosen", 7) == [0]
    served.control.profiles.delete_member(GROUPS, member)


def test_a_group_is_the_default_of_a_table() -> None:
    served = Served()
    group, member = served.control.profiles.create_group(GROUPS), served.control.profiles.add_member(GROUPS, SEND, (5,))
    served.control.profiles.add_to_group(GROUPS, member, group)
    served.control.tables.set_default(CHOSEN, group=group)
    assert served.ports("chosen", 1) == [5]
    assert served.control.tables.default(CHOSEN).group == group


def test_copies_leave_in_the_order_of_nodes_with_a_port_of_each_lag() -> None:
    served = Served()
    served.control.tables.add_entry(entry("exact_match", (7,), 0))
    served.control.tables.modify(EXACT, 0, INGRESS + "spread", (9,))
    served.control.replication.create_group(9)
    for replica, ports, lags in ((5, (4, 2), (0,)), (1, (2,), ())):
        served.control.replication.associate(9, served.control.replication.create_node(replica, ports, lags))
    served.control.replication.set_lag(0, (6, 7))
    copies = [(answer.port, answer.value) for answer in served.ask("exact_match", 7)]
    assert copies == [(2, 5), (4, 5), (7, 5), (2, 1)]  # 0xff modulo 2 is 1: the second port of the LAG


def test_a_clone_keeps_what_its_list_of_fields_says() -> None:
    served = Served()
    served.control.replication.put_session(MirrorSession(3, port=8))
    served.control.tables.add_entry(entry("exact_match", (7,), 0))
    served.control.tables.modify(EXACT, 0, INGRESS + "copy", (3, 2))
    assert sorted((answer.port, answer.value) for answer in served.ask("exact_match", 7, 40)) == [(2, 40), (8, 41)]


def test_counts_and_rates_belong_to_entries() -> None:
    served = Served()
    counted = served.control.tables.add_entry(entry("counting", (7,), 2))
    for _ in range(3):
        served.ask("counting", 7)
    assert served.control.counters.read_entry(INGRESS + "counting", counted) == (3, 3 * 29)
    metered = served.control.tables.add_entry(entry("metering", (7,), 2))
    served.control.meters.set_entry_rates(INGRESS + "metering", metered, ((0.001, 1), (0.002, 2)))
    served.control.tables.add_entry(entry("by_colour", (2,), 9))
    assert [served.ports("metering", 7) for _ in range(4)] == [[2], [2], [9], [9]]


def test_idle_entries_are_told_every_second_sweep() -> None:
    """BMv2's sweep leaves out what the one before has told, and forgets that."""
    served, table = Served(), INGRESS + "ageing"
    handle = served.control.tables.add_entry(entry("ageing", (7,), 2))
    served.control.tables.set_timeout(table, handle, 1500)
    served.pass_us(1_000_000)
    assert served.control.tables.expired() == []
    served.pass_us(1_000_000)
    assert [served.control.tables.expired() for _ in range(3)] == [[(table, handle)], [], [(table, handle)]]
    served.ask("ageing", 7)
    assert served.control.tables.expired() == []
    assert served.control.tables.entry(table, handle).idle_s == 0.0


def test_digests_come_in_batches_and_not_twice_before_they_are_acknowledged() -> None:
    served, batches = Served(), list[DigestBatch]()
    served.control.tables.add_entry(entry("exact_match", (7,), 0))
    served.control.tables.modify(EXACT, 0, INGRESS + "learn", ())
    served.control.digests.subscribers.append(batches.append)
    served.control.digests.set_size(1, 2)
    for port in (1, 1, 2, 3):
        served.ask("exact_match", 7, port=port)
    served.control.digests.report()
    assert [(batch.list_id, batch.buffer, batch.samples) for batch in batches] == [(1, 0, ((1, 7), (2, 7)))]
    served.pass_us(1_000_000)
    served.control.digests.report()
    assert batches[-1].samples == ((3, 7),)
    served.control.digests.acknowledge(1, 0, [0])
    for port in (1, 2, 3):
        served.ask("exact_match", 7, port=port)
    assert served.control.digests.report() == []
    served.pass_us(1_000_000)
    served.control.digests.report()
    assert (batches[-1].buffer, batches[-1].samples) == (2, ((1, 7),))


def test_a_value_of_a_value_set_is_known_to_the_parser() -> None:
    served = Served()
    served.control.tables.add_entry(entry("exact_match", (7,), 2))
    packet = b"".join((bytes(12), b"\x12\x34", bytes(4), b"\x07", bytes(10)))
    assert served.switch.inject(1, packet) == []
    served.control.value_sets.add("ServedParser.known", 0x1234)
    assert [port for port, _ in served.switch.inject(1, packet)] == [2]
    served.control.value_sets.remove("ServedParser.known", 0x1234)
    assert served.switch.inject(1, packet) == []


def test_a_reset_leaves_what_the_program_gives() -> None:
    served = Served()
    served.control.tables.add_entry(entry("exact_match", (7,), 2))
    served.control.registers.write(INGRESS + "kept", 3, 44)
    served.control.tables.set_default(INGRESS + "masked", SEND, (2,))
    served.control.reset_state()
    assert served.ports("exact_match", 7) == served.ports("masked", 7) == []
    assert served.ports("given", 1) == [1]
    assert served.control.registers.read(INGRESS + "kept", 3) == 0
    assert served.control.tables.add_entry(entry("exact_match", (7,), 2)) == 0


def test_another_data_plane_takes_over_all_that_is_held() -> None:
    """After many requests, packets meet the same in a data plane that has taken over."""
    served, requests = Served(), RandomRequests(Random(5))
    for _ in range(800):
        asked(served.control, requests.request())
    other = Served()
    other.switch = InterpretedSwitch(read_program(SERVED), clock=lambda: served.time_us)
    questions = [
        (table, key, value)
        for table in ("exact_match", "masked", "shared", "chosen")
        for key in range(6)
        for value in (0, 1)
    ]
    before = [served.ask(*each) for each in questions]
    registers = served.control.registers.read_all(INGRESS + "kept").tolist()
    transfer(served.control, other.switch.state)
    assert [other.ask(*each) for each in questions] == before
    assert served.control.registers.read_all(INGRESS + "kept").tolist() == registers
    assert all(one.handle < two.handle for one, two in pairwise(served.control.tables.entries(EXACT)))
