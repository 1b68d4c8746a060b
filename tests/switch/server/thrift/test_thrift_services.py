"""The Thrift services of a switch, called by clients over a socket of this machine."""

from __future__ import annotations

from binascii import crc32, crc_hqx
from collections.abc import Iterator
from hashlib import md5
from typing import Any

import pytest
from thrift_clients import client, exact
from thrift_stations import COMMANDED, DEVICE, Station, stationed
from thriftpy2.thrift import TApplicationException

from inakit.switch.entries import MirrorSession
from inakit.switch.server.thrift.listener import SERVICES
from inakit.switch.server.thrift.services import FUNCTIONS, description

TYPES = description()
TABLE = "TestIngress.exact_table"
ANY = TYPES.Options()


@pytest.fixture
def station() -> Iterator[Station]:
    with stationed() as found:
        yield found


def add(station: Station, ethernet: int, port: int = 1) -> int:
    """Add an entry of the exact table for packets of port 1."""
    handle: int = station.standard.bm_mt_add_entry(
        0, TABLE, exact((1, 2), (ethernet, 6)), "TestIngress.to_port", [port.to_bytes(2, "big")], ANY
    )
    return handle


def code_of(exception: str, code: str) -> Any:
    """What `pytest.raises` has to see: the exception with this code."""
    codes = {"InvalidTable": "TableCode", "InvalidMeter": "MeterCode", "InvalidReplication": "ReplicationCode"}
    number = getattr(getattr(TYPES, codes[exception]), code)
    return pytest.raises(getattr(TYPES, exception), match=f"code={number}")


def packet(address: str = "000000000005") -> bytes:
    """An Ethernet frame for this address."""
    return bytes.fromhex(f"{address} 00000000000a 0800") + bytes(46)


def test_every_function_of_every_service_is_there() -> None:
    missing = [
        f"{name}:{function}"
        for name, service in SERVICES.items()
        for function in getattr(TYPES, service).thrift_services
        if function not in FUNCTIONS[name]
    ]
    assert missing == []


def test_packets_see_an_entry_that_a_client_adds(station: Station) -> None:
    assert add(station, ethernet=5, port=9) == 0
    assert [port for port, _ in station.inject(1, packet())] == [9]


def test_an_entry_is_told_as_it_was_given(station: Station) -> None:
    handle = add(station, ethernet=5, port=300)
    (entry,) = station.standard.bm_mt_get_entries(0, TABLE)
    assert entry == station.standard.bm_mt_get_entry(0, TABLE, handle)
    assert [part.exact.key for part in entry.match_key] == [b"\x00\x01", b"\x00\x00\x00\x00\x00\x05"]
    assert (entry.action_entry.action_name, entry.action_entry.action_data) == ("TestIngress.to_port", [b"\x01\x2c"])
    assert (entry.options.priority, entry.life) == (-1, None)


def test_refusals_have_the_codes_of_bmv2(station: Station) -> None:
    add(station, ethernet=5)
    with code_of("InvalidTable", "DUPLICATE_ENTRY"):
        add(station, ethernet=5)
    with code_of("InvalidTable", "INVALID_TABLE_NAME"):
        station.standard.bm_mt_delete_entry(0, "nothing", 0)
    with code_of("InvalidTable", "INVALID_HANDLE"):
        station.standard.bm_mt_delete_entry(0, TABLE, 3)
    with code_of("InvalidTable", "BAD_MATCH_KEY"):
        station.standard.bm_mt_add_entry(0, TABLE, exact((1, 1), (5, 6)), "TestIngress.to_port", [b"\1"], ANY)
    with code_of("InvalidTable", "BAD_ACTION_DATA"):
        station.standard.bm_mt_add_entry(0, TABLE, exact((1, 2), (6, 6)), "TestIngress.to_port", [], ANY)
    with code_of("InvalidMeter", "INVALID_INDEX"):
        station.standard.bm_meter_get_rates(0, "TestIngress.rate", 99)
    with code_of("InvalidReplication", "INVALID_L1_HANDLE"):
        station.clients.simple_pre_lag.bm_mc_node_destroy(0, 4)


def test_an_entry_that_was_deleted_leaves_its_index_to_another_handle(station: Station) -> None:
    first = add(station, ethernet=5)
    for _ in range(200):
        station.standard.bm_mt_delete_entry(0, TABLE, first)
        first = add(station, ethernet=5)
    assert first < 0  # the version has grown into the sign
    station.standard.bm_mt_modify_entry(0, TABLE, first, "TestIngress.to_port", [b"\4"])
    assert [port for port, _ in station.inject(1, packet())] == [4]


def test_there_is_one_context(station: Station) -> None:
    with pytest.raises(TApplicationException, match="no context 1"):
        station.standard.bm_mt_get_num_entries(1, TABLE)


def test_a_function_that_is_not_there_is_an_error_of_the_protocol(station: Station) -> None:
    of_another = client(TYPES.SimpleSwitch, "standard", station.standard._iprot.trans)
    with pytest.raises(TApplicationException, match="no function 'standard:get_time_elapsed_us'"):
        of_another.get_time_elapsed_us()
    assert station.standard.bm_mt_get_num_entries(0, TABLE) == 0


def test_a_key_of_every_kind_comes_back(station: Station) -> None:
    lpm = TYPES.KeyPart(1, lpm=TYPES.LpmPart(b"\x0a\x00\x01\x07", 24))
    ternary = TYPES.KeyPart(2, ternary=TYPES.TernaryPart(b"\x0a\x00\x00\x01", b"\xff\xff\xff\x00"))
    wide = TYPES.KeyPart(4, range=TYPES.RangePart(b"\x00\x0a", b"\x00\x14"))
    kind = TYPES.KeyPart(2, ternary=TYPES.TernaryPart(b"\x05", b"\xff"))
    none: tuple[str, list[bytes]] = ("NoAction", [])
    for table, key, action in (
        ("TestIngress.prefixes", [lpm], none),
        ("TestIngress.masked", [ternary, *exact((1, 1))], none),
        ("TestIngress.ranges", [wide, kind], ("TestIngress.to_port", [b"\1"])),
    ):
        station.standard.bm_mt_add_entry(0, table, key, *action, TYPES.Options(6))
        (found,) = station.standard.bm_mt_get_entries(0, table)
        assert found == station.standard.bm_mt_get_entry_from_key(0, table, key, TYPES.Options(6))
    (found,) = station.standard.bm_mt_get_entries(0, "TestIngress.masked")
    assert found.match_key[0].ternary == TYPES.TernaryPart(b"\x0a\x00\x00\x00", b"\xff\xff\xff\x00")
    assert found.options.priority == 6


def test_members_and_groups_run(station: Station) -> None:
    standard, paths, table = station.standard, "TestIngress.paths", "TestIngress.by_group"
    member = standard.bm_mt_act_prof_add_member(0, paths, "TestIngress.to_port", [b"\x00\x08"])
    group = standard.bm_mt_act_prof_create_group(0, paths)
    standard.bm_mt_act_prof_add_member_to_group(0, paths, member, group)
    any_kind = [TYPES.KeyPart(2, ternary=TYPES.TernaryPart(b"\0", b"\0"))]
    handle = standard.bm_mt_indirect_ws_add_entry(0, table, any_kind, group, TYPES.Options(1))
    assert standard.bm_mt_get_entry(0, table, handle).action_entry == TYPES.Action(3, grp_handle=group)
    assert standard.bm_mt_act_prof_get_members(0, paths) == [TYPES.HeldMember(0, "TestIngress.to_port", [b"\x08"])]
    assert standard.bm_mt_act_prof_get_group(0, paths, group) == TYPES.HeldGroup(group, [member])
    with code_of("InvalidTable", "MBR_STILL_USED"):
        standard.bm_mt_act_prof_delete_member(0, paths, member)


def test_defaults_are_set_told_and_reset(station: Station) -> None:
    standard, table = station.standard, "TestIngress.keyless"
    standard.bm_mt_set_default_action(0, table, "TestIngress.to_port", [b"\6"])
    assert standard.bm_mt_get_default_entry(0, table).action_data == [b"\6"]
    assert [port for port, _ in station.inject(1, packet())] == [6]
    standard.bm_mt_reset_default_entry(0, table)
    assert standard.bm_mt_get_default_entry(0, table).action_data == [b"\3"]
    assert standard.bm_mt_get_default_entry(0, "TestIngress.by_member").action_type == TYPES.ActionKind.NONE


def test_registers_give_the_greatest_number_for_those_above_it(station: Station) -> None:
    standard = station.standard
    standard.bm_register_write(0, "TestIngress.words", 1, -1)
    standard.bm_register_write_range(0, "TestIngress.long_words", 0, 2, -1)
    assert standard.bm_register_read_all(0, "TestIngress.words")[:3] == [0, (1 << 32) - 1, 0]
    assert standard.bm_register_read(0, "TestIngress.long_words", 1) == (1 << 63) - 1
    standard.bm_register_reset(0, "TestIngress.words")
    assert set(standard.bm_register_read_all(0, "TestIngress.words")) == {0}


def test_counters_and_meters_are_read_back(station: Station) -> None:
    standard, rates = station.standard, [TYPES.Rate(0.25, 5), TYPES.Rate(0.5, 10)]
    standard.bm_counter_write(0, "TestIngress.seen", 2, TYPES.Count(bytes=700, packets=5))
    assert standard.bm_counter_read(0, "TestIngress.seen", 2) == TYPES.Count(bytes=700, packets=5)
    standard.bm_meter_array_set_rates(0, "TestIngress.rate", rates)
    assert standard.bm_meter_get_rates(0, "TestIngress.rate", 3) == rates


def test_a_hash_function_divides_by_another_polynomial(station: Station) -> None:
    standard = station.standard
    standard.bm_parse_vset_add(0, "TestParser.tested", b"\x12\x34")
    anything = [
        TYPES.KeyPart(4, range=TYPES.RangePart(b"\0\0", b"\xff\xff")),
        TYPES.KeyPart(2, ternary=TYPES.TernaryPart(b"\0", b"\0")),
    ]
    standard.bm_mt_add_entry(0, "TestIngress.ranges", anything, "TestIngress.counted", [b"\1"], TYPES.Options(1))
    standard.bm_set_crc16_custom_parameters(0, "calc", TYPES.Crc16(0x1021, -1, 0, False, False))
    standard.bm_set_crc32_custom_parameters(0, "calc_0", TYPES.Crc32(0x04C11DB7, 0, -1, True, True))
    address, kind = bytes.fromhex("0a000001"), b"\x05"
    ((_, sent),) = station.inject(1, bytes(12) + b"\x12\x34" + address + bytes(2) + kind + bytes(20))
    assert sent[18:20] == crc_hqx(address, 0xFFFF).to_bytes(2, "big")
    assert sent[14:18] == crc32(kind, 0xFFFFFFFF).to_bytes(4, "big")


def test_only_a_custom_hash_function_takes_parameters(station: Station) -> None:
    crc = TYPES.Crc16(0x1021, -1, 0, False, False)
    with pytest.raises(TYPES.InvalidCrc, match=f"code={TYPES.CrcCode.WRONG_TYPE_CALCULATION}"):
        station.standard.bm_set_crc16_custom_parameters(0, "calc_0", crc)
    with pytest.raises(TYPES.InvalidCrc, match=f"code={TYPES.CrcCode.INVALID_CALCULATION_NAME}"):
        station.standard.bm_set_crc16_custom_parameters(0, "nothing", crc)
    with pytest.raises(TYPES.InvalidToeplitz, match=f"code={TYPES.ToeplitzCode.INVALID_CALCULATION_NAME}"):
        station.standard.bm_set_toeplitz_hash_key(0, "nothing", b"1234")


def test_multicast_with_and_without_link_aggregation(station: Station) -> None:
    lag, plain = station.clients.simple_pre_lag, station.clients.simple_pre
    assert lag.bm_mc_mgrp_create(0, 3) == 3
    lag.bm_mc_node_associate(0, 3, lag.bm_mc_node_create(0, 7, "1010", ""))
    plain.bm_mc_node_associate(0, 3, plain.bm_mc_node_create(0, 8, "100000"))
    station.standard.bm_mt_add_entry(0, TABLE, exact((1, 2), (5, 6)), "TestIngress.to_group", [b"\x00\x03"], ANY)
    assert [port for port, _ in station.inject(1, packet())] == [1, 3, 5]
    assert lag.bm_mc_get_entries(0) == plain.bm_mc_get_entries(0)
    with code_of("InvalidReplication", "ERROR"):
        lag.bm_mc_node_create(0, 7, "1 2", "")


def test_mirror_sessions(station: Station) -> None:
    mirrors = station.clients.simple_switch
    mirrors.mirroring_session_add(5, TYPES.Session(mgid=4))
    assert mirrors.mirroring_session_get(5) == TYPES.Session(mgid=4)
    assert station.switch.control.replication.session(5) == MirrorSession(5, group=4)
    mirrors.mirroring_session_add(1 << 20, TYPES.Session(port=4))
    with pytest.raises(TYPES.InvalidMirroring):
        mirrors.mirroring_session_get(1 << 20)
    assert [mirrors.mirroring_mapping_add(6, 2), mirrors.mirroring_mapping_get_egress_port(6)] == [1, 2]
    assert [mirrors.mirroring_mapping_delete(6), mirrors.mirroring_mapping_delete(6)] == [1, 0]
    assert mirrors.mirroring_mapping_get_egress_port(6) == -1


def test_queues_are_given_rates_and_depths_of_all_ports_of_one_and_of_one_priority(station: Station) -> None:
    queues = station.clients.simple_switch
    queues.set_all_egress_queue_depths(10)
    queues.set_egress_queue_depth(1, 20)
    queues.set_egress_priority_queue_depth(1, 0, 30)
    queues.set_all_egress_queue_rates(100)
    queues.set_egress_queue_rate(1, 200)
    queues.set_egress_priority_queue_rate(1, 0, 1 << 40)
    assert station.switch.queues.requests == [
        ("depth", 10, None, None),
        ("depth", 20, 1, None),
        ("depth", 30, 1, 0),
        ("rate", 100, None, None),
        ("rate", 200, 1, None),
        ("rate", 1 << 40, 1, 0),
    ]
    with pytest.raises(TApplicationException, match="each port has 1"):
        queues.set_egress_priority_queue_rate(1, 1, 100)


def test_values_of_a_parser_value_set(station: Station) -> None:
    standard, name = station.standard, "TestParser.tested"
    for value in (b"\x12\x34", b"\x00\x05"):
        standard.bm_parse_vset_add(0, name, value)
    standard.bm_parse_vset_remove(0, name, b"\x12\x34")
    assert standard.bm_parse_vset_get(0, name) == [b"\x00\x05"]
    for too_wide in (b"\1\0\0", b"\1" * 5000):
        with pytest.raises(TYPES.InvalidValueSet, match=f"code={TYPES.ValueSetCode.ERROR}"):
            standard.bm_parse_vset_add(0, name, too_wide)
    standard.bm_parse_vset_clear(0, name)
    assert standard.bm_parse_vset_get(0, name) == []


def test_the_switch_says_who_it_is_and_what_it_runs(station: Station) -> None:
    info = station.standard.bm_mgmt_get_info()
    assert (info.device_id, info.thrift_port, info.elogger_socket) == (DEVICE, station.server.port, None)
    config = station.standard.bm_get_config()
    assert config == COMMANDED.read_bytes()
    assert station.standard.bm_get_config_md5() == md5(config).digest()
    assert station.clients.simple_switch.get_time_since_epoch_us() > 1_600_000_000_000_000
    assert 0 <= station.clients.simple_switch.get_time_elapsed_us() < 60_000_000


def test_numbers_that_the_compiler_gave(station: Station) -> None:
    lookup = station.standard.bm_get_id_from_name
    assert lookup(0, TYPES.ResourceType.MATCH_TABLE, "TestIngress.keyless") == 0
    assert lookup(0, TYPES.ResourceType.LEARNING_LIST, "learned_t") == 1
    with pytest.raises(TYPES.InvalidLookup, match=f"code={TYPES.LookupCode.INVALID_RESOURCE_NAME}"):
        lookup(0, TYPES.ResourceType.METER, "nothing")
    with pytest.raises(TYPES.InvalidLookup, match=f"code={TYPES.LookupCode.INVALID_RESOURCE_TYPE}"):
        lookup(0, 6, "nothing")


def test_a_port_needs_an_interface(station: Station) -> None:
    for interface in ("no interface", "", "\0", "x" * 5000):
        with pytest.raises(TYPES.InvalidPort):
            station.standard.bm_dev_mgr_add_port(interface, 5, "")
    with pytest.raises(TYPES.InvalidPort):
        station.standard.bm_dev_mgr_remove_port(5)
    assert station.standard.bm_dev_mgr_show_ports() == []


def test_another_program_runs_after_a_swap() -> None:
    other = COMMANDED.parents[1].joinpath("control.json").read_text()
    with stationed(swap=True) as station:
        with pytest.raises(TYPES.InvalidSwap, match=f"code={TYPES.SwapCode.NO_ONGOING_SWAP}"):
            station.standard.bm_swap_configs()
        station.standard.bm_load_new_config(other)
        assert station.standard.bm_get_config().decode() == other
        station.standard.bm_swap_configs()
        assert station.standard.bm_get_config().decode() == other
        assert station.standard.bm_mt_get_num_entries(0, "TestIngress.by_key") == 0


def test_entries_are_installed_for_a_program_that_is_loaded_before_it_runs() -> None:
    with stationed(swap=True) as station:
        add(station, ethernet=5, port=9)
        station.standard.bm_load_new_config(COMMANDED.read_text())
        assert station.standard.bm_mt_get_num_entries(0, TABLE) == 0
        handle = add(station, ethernet=6, port=8)
        station.standard.bm_register_write(0, "TestIngress.words", 1, 7)
        assert [port for port, _ in station.inject(1, packet())] == [9]
        station.standard.bm_swap_configs()
        assert [port for port, _ in station.inject(1, packet("000000000006"))] == [8]
        assert [port for port, _ in station.inject(1, packet())] == [3]
        assert station.standard.bm_register_read(0, "TestIngress.words", 1) == 7
        station.standard.bm_mt_delete_entry(0, TABLE, handle)


def test_multicast_groups_and_mirror_sessions_outlast_programs() -> None:
    with stationed(swap=True) as station:
        lag = station.clients.simple_pre_lag
        lag.bm_mc_mgrp_create(0, 3)
        lag.bm_mc_node_associate(0, 3, lag.bm_mc_node_create(0, 7, "110", ""))
        station.clients.simple_switch.mirroring_session_add(5, TYPES.Session(port=4))
        station.standard.bm_load_new_config(COMMANDED.read_text())
        station.standard.bm_swap_configs()
        to_group = exact((1, 2), (5, 6)), "TestIngress.to_group", [b"\x00\x03"], ANY
        station.standard.bm_mt_add_entry(0, TABLE, *to_group)
        assert [port for port, _ in station.inject(1, packet())] == [1, 2]
        assert station.clients.simple_switch.mirroring_session_get(5).port == 4


def test_another_program_is_refused_unless_the_switch_allows_it(station: Station) -> None:
    with pytest.raises(TYPES.InvalidSwap, match=f"code={TYPES.SwapCode.CONFIG_SWAP_DISABLED}"):
        station.standard.bm_load_new_config(COMMANDED.read_text())
    with pytest.raises(TYPES.InvalidSwap, match=f"code={TYPES.SwapCode.CONFIG_SWAP_DISABLED}"):
        station.standard.bm_swap_configs()


def test_a_reset_switch_is_as_new(station: Station) -> None:
    add(station, ethernet=5)
    station.standard.bm_reset_state()
    assert station.standard.bm_mt_get_num_entries(0, TABLE) == 0
