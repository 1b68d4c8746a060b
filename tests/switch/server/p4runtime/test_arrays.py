"""Counters, meters, registers and value sets, of cells and of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from p4runtime_client import Client, Refusal, exact, octets, update

from inakit.switch.control.codecs import Code
from inakit.switch.server.p4runtime.messages import Message, v1

if TYPE_CHECKING:
    from inakit.switch.server.served_switch import ServedSwitch

pytest_plugins = ["p4runtime_fixtures"]

CONFIG = v1.MeterConfig(cir=1_000_001, cburst=8, pir=2_000_000, pburst=16)


def code(client: Client, kind: int, **entity: Message) -> int:
    """The code with which an update is refused."""
    with pytest.raises(Refusal) as raised:
        client.write(update(kind, **entity))
    return raised.value.codes[0]


def index(number: int) -> Message:
    """An index."""
    return v1.Index(index=number)


def test_counters_are_written_and_read_by_cell_and_as_a_whole(client: Client) -> None:
    number = client.id("counters", "counted")
    cell = v1.CounterEntry(counter_id=number, index=index(3), data=v1.CounterData(packet_count=5, byte_count=6))
    client.modify(counter_entry=cell)
    assert client.read(counter_entry=v1.CounterEntry(counter_id=number, index=index(3))) == [cell]
    cells = client.read(counter_entry=v1.CounterEntry())
    assert [each.data.packet_count for each in cells] == [0, 0, 0, 5, 0, 0, 0, 0]
    client.modify(counter_entry=v1.CounterEntry(counter_id=number, data=v1.CounterData(packet_count=1)))
    assert {each.data.packet_count for each in client.read(counter_entry=v1.CounterEntry())} == {1}
    client.modify(counter_entry=v1.CounterEntry(counter_id=number))  # without data, nothing is written
    for place, expected in ((-1, Code.INVALID_ARGUMENT), (8, Code.OUT_OF_RANGE)):
        assert code(client, 2, counter_entry=v1.CounterEntry(counter_id=number, index=index(place))) == expected
    assert code(client, 1, counter_entry=cell) == Code.INVALID_ARGUMENT
    assert code(client, 3, counter_entry=cell) == Code.INVALID_ARGUMENT


def test_meters_are_read_as_they_were_written_and_reset(server: tuple[ServedSwitch, str], client: Client) -> None:
    number = client.id("meters", "metered")
    cell = v1.MeterEntry(meter_id=number, index=index(1), config=CONFIG)
    client.modify(meter_entry=cell)
    assert server[0].control.meters.rates("ServedIngress.metered", 1) == ((1.000001, 8), (2.0, 16))
    assert [each.HasField("config") for each in client.read(meter_entry=v1.MeterEntry())] == [False, True, False, False]
    assert client.read(meter_entry=v1.MeterEntry(meter_id=number, index=index(1))) == [cell]
    client.modify(meter_entry=v1.MeterEntry(meter_id=number, index=index(1)))
    assert server[0].control.meters.rates("ServedIngress.metered", 1) == ()
    huge = v1.MeterConfig(cir=(1 << 63) - 1, cburst=1, pir=(1 << 63) - 1, pburst=1)
    client.modify(meter_entry=v1.MeterEntry(meter_id=number, config=huge))  # all cells
    assert {each.config.cir for each in client.read(meter_entry=v1.MeterEntry())} == {huge.cir}
    for wrong in (v1.MeterConfig(cir=2, pir=1), v1.MeterConfig(cir=-1), v1.MeterConfig(eburst=1)):
        assert code(client, 2, meter_entry=v1.MeterEntry(meter_id=number, config=wrong)) == Code.INVALID_ARGUMENT
    colours = v1.MeterEntry(meter_id=number, counter_data=v1.MeterCounterData())
    assert code(client, 2, meter_entry=colours) == Code.UNIMPLEMENTED


def test_registers_of_any_width_are_written_and_read(server: tuple[ServedSwitch, str], client: Client) -> None:
    number = client.id("registers", "wide")
    value = (1 << 96) - 3
    cell = v1.RegisterEntry(register_id=number, index=index(2), data=v1.P4Data(bitstring=octets(value)))
    client.modify(register_entry=cell)
    assert server[0].control.registers.read("ServedIngress.wide", 2) == value
    found = client.read(register_entry=v1.RegisterEntry(register_id=number))
    assert [each.data.bitstring for each in found] == [b"\0", b"\0", octets(value), b"\0"]
    assert len(client.read(register_entry=v1.RegisterEntry())) == 20  # those of `kept` as well
    client.modify(register_entry=v1.RegisterEntry(register_id=number, data=v1.P4Data(bitstring=b"\7")))
    assert {each.data.bitstring for each in client.read(register_entry=v1.RegisterEntry(register_id=number))} == {b"\7"}
    cell.data.bitstring = octets(1 << 96)
    assert code(client, 2, register_entry=cell) == Code.OUT_OF_RANGE
    assert code(client, 2, register_entry=v1.RegisterEntry(register_id=number)) == Code.INVALID_ARGUMENT
    wrong = v1.RegisterEntry(register_id=number, data=v1.P4Data(bool=True))
    assert code(client, 2, register_entry=wrong) == Code.INVALID_ARGUMENT


def test_entries_have_counters_that_are_written_with_them_or_apart(client: Client) -> None:
    entry = client.entry("counting", exact(1), call=client.action("counted_send", 1))
    entry.counter_data.packet_count, entry.counter_data.byte_count = 3, 4
    client.insert(table_entry=entry)
    request = client.entry("counting")
    assert not client.read(table_entry=request)[0].HasField("counter_data")
    request.counter_data.SetInParent()
    assert client.read(table_entry=request) == [entry]
    key = client.entry("counting", exact(1))
    direct = v1.DirectCounterEntry(table_entry=key, data=v1.CounterData(packet_count=9))
    client.modify(direct_counter_entry=direct)
    assert client.read(direct_counter_entry=v1.DirectCounterEntry(table_entry=key)) == [direct]
    assert client.read(direct_counter_entry=v1.DirectCounterEntry()) == [direct]
    missing = v1.DirectCounterEntry(table_entry=client.entry("counting", exact(2)))
    assert code(client, 2, direct_counter_entry=missing) == Code.NOT_FOUND
    assert code(client, 1, direct_counter_entry=direct) == Code.INVALID_ARGUMENT
    with pytest.raises(Refusal) as raised:
        client.read(direct_counter_entry=missing)
    assert raised.value.codes == [Code.NOT_FOUND]
    other = client.entry("exact_match", exact(1), call=client.action("drop"), counter_data=v1.CounterData())
    assert code(client, 1, table_entry=other) == Code.INVALID_ARGUMENT


def test_entries_have_meters_that_a_modification_without_them_resets(client: Client) -> None:
    entry = client.entry("metering", exact(1), call=client.action("metered_send", 1), meter_config=CONFIG)
    client.insert(table_entry=entry)
    request = client.entry("metering", meter_config=v1.MeterConfig())
    assert client.read(table_entry=request) == [entry]
    key = client.entry("metering", exact(1))
    found = v1.DirectMeterEntry(table_entry=key, config=CONFIG)
    assert client.read(direct_meter_entry=v1.DirectMeterEntry(table_entry=key)) == [found]
    client.modify(table_entry=client.entry("metering", exact(1), call=client.action("metered_send", 2)))
    assert not client.read(table_entry=request)[0].HasField("meter_config")
    client.modify(direct_meter_entry=found)
    assert client.read(table_entry=request)[0].meter_config == CONFIG
    client.modify(direct_meter_entry=v1.DirectMeterEntry(table_entry=key))
    assert not client.read(direct_meter_entry=v1.DirectMeterEntry())[0].HasField("config")


def test_a_new_entry_has_no_meter_of_the_one_before(client: Client) -> None:
    request = client.entry("metering", meter_config=v1.MeterConfig())
    entry = client.entry("metering", exact(1), call=client.action("metered_send", 1), meter_config=CONFIG)
    client.insert(table_entry=entry)
    client.delete(table_entry=entry)
    client.insert(table_entry=client.entry("metering", exact(2), call=client.action("metered_send", 1)))
    assert not client.read(table_entry=request)[0].HasField("meter_config")


def test_a_value_set_is_written_as_a_whole(server: tuple[ServedSwitch, str], client: Client) -> None:
    schema = client.info.value_sets[0]

    def values(*numbers: int) -> Message:
        members = [v1.ValueSetMember(match=[field(number)]) for number in numbers]
        return v1.ValueSetEntry(value_set_id=schema.preamble.id, members=members)

    def field(number: int) -> Message:
        return v1.FieldMatch(field_id=schema.match[0].id, exact=v1.FieldMatch.Exact(value=octets(number)))

    client.modify(value_set_entry=values(0x800, 0x806))
    assert client.read(value_set_entry=v1.ValueSetEntry()) == [values(0x800, 0x806)]
    client.modify(value_set_entry=values(0x806, 0x86DD))
    assert server[0].control.value_sets.values("ServedParser.known") == [0x806, 0x86DD]
    assert code(client, 2, value_set_entry=values(1, 1)) == Code.ALREADY_EXISTS
    assert code(client, 2, value_set_entry=values(1, 2, 3, 4, 5)) == Code.RESOURCE_EXHAUSTED
    assert code(client, 2, value_set_entry=values(1 << 16)) == Code.OUT_OF_RANGE
    assert code(client, 1, value_set_entry=values(1)) == Code.INVALID_ARGUMENT
    client.modify(value_set_entry=values())
    assert server[0].control.value_sets.values("ServedParser.known") == []
