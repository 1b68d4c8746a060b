"""Commands of simple_switch_CLI: what `SwitchEntries.cli` writes is read back; what is wrong is refused by line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_programs import MODEL
from single_targets import PROGRAMS

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_check import identity_of
from inakit.switch.control.match_keys import parse_number
from inakit.switch.control.recorded_entries import RecordedEntries
from inakit.switch.control.simple_switch_cli import (
    CommandedSwitch,
    CommandReader,
    read_commands,
    run_command,
)
from inakit.switch.entries import (
    DefaultAction,
    Lpm,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    ProfileEntry,
    Range,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    Ternary,
    ValueSetMember,
)
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError

ROUTER = read_program(PROGRAMS / "router.json")
EXTERNS, MATCHING, PARSING, SELECTOR = (
    read_program(MODEL / f"{name}.json") for name in ("externs", "matching", "parsing", "selector")
)
WORDS = st.integers(0, 2**32 - 1)
BYTES = st.integers(0, 255)
ROUTE = st.builds(
    TableEntry,
    st.just("RouterIngress.ipv4_lpm"),
    st.tuples(st.builds(Lpm, WORDS, st.integers(0, 32))),
    st.just("RouterIngress.forward"),
    st.tuples(st.integers(0, 2**48 - 1), st.integers(0, 510)),
)
RULE = st.builds(
    TableEntry,
    st.just("RouterIngress.acl"),
    st.tuples(
        st.builds(Ternary, WORDS, WORDS),
        st.builds(Ternary, BYTES, BYTES),
        st.tuples(BYTES, BYTES).map(lambda ends: Range(min(ends), max(ends))),
    ),
    st.just("RouterIngress.drop"),
    st.just(()),
    st.integers(0, 1000),
)
GROUP = st.builds(
    MulticastGroup,
    st.integers(1, 9),
    st.sets(st.integers(0, 30), min_size=1).map(lambda ports: tuple(sorted(ports))),
    st.sampled_from([(), ((3, 1), (3, 2)), ((0, 4), (7, 4))]),
)
PRESET = st.builds(RegisterPreset, st.just("RouterIngress.routed"), st.integers(0, 511), WORDS)
SESSION = st.builds(MirrorSession, BYTES, port=BYTES) | st.builds(MirrorSession, BYTES, group=BYTES)
ENTRIES = st.builds(
    SwitchEntries,
    st.just("switch"),
    st.lists(ROUTE | RULE, unique_by=lambda entry: identity_of(ROUTER.tables[entry.table], entry.key, 0)).map(tuple),
    st.lists(GROUP, unique_by=lambda group: group.group).map(tuple),
    st.lists(PRESET, unique_by=lambda preset: preset.index).map(tuple),
    st.lists(st.just(DefaultAction("RouterIngress.acl", "RouterIngress.drop")), max_size=1).map(tuple),
    st.lists(SESSION, unique_by=lambda mirror: mirror.session).map(tuple),
)
RATES = st.builds(
    MeterRates,
    st.just("TestIngress.rate"),
    st.integers(0, 3),
    st.lists(st.tuples(st.floats(0, 1e6), BYTES), min_size=2, max_size=2).map(sorted).map(tuple),
)
PATH = st.tuples(st.sampled_from(["TestIngress.select_"]), st.tuples(BYTES))
PROFILED = st.builds(
    ProfileEntry,
    st.just("TestIngress.selected"),
    st.tuples(BYTES),
    st.just("TestIngress.paths"),
    st.lists(PATH, min_size=1, max_size=4).map(tuple),
)


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands") / "commands.txt"


@given(entries=ENTRIES)
def test_what_is_written_is_read_back(entries: SwitchEntries, commands: Path) -> None:
    commands.write_text(entries.cli())
    read = read_commands(commands, ROUTER)
    assert sorted(read.tables, key=repr) == sorted(entries.tables, key=repr)
    assert replace(read, tables=entries.tables) == entries


@given(rates=st.lists(RATES, unique_by=lambda each: each.index))
def test_rates_are_read_back(rates: list[MeterRates], commands: Path) -> None:
    entries = SwitchEntries("switch", meters=tuple(rates))
    commands.write_text(entries.cli())
    assert read_commands(commands, EXTERNS) == entries


@given(profiled=st.lists(PROFILED, unique_by=lambda entry: entry.key))
def test_entries_with_members_and_groups_are_read_back(profiled: list[ProfileEntry], commands: Path) -> None:
    entries = SwitchEntries("switch", profiled=tuple(profiled))
    commands.write_text(entries.cli())
    assert read_commands(commands, SELECTOR) == entries


def entries_of(program: Program, text: str) -> SwitchEntries:
    """The entries of commands, a line each."""
    reader = CommandReader(program)
    for line in text.splitlines():
        reader.add(line.split())
    return reader.take()


def test_names_are_as_short_as_is_clear() -> None:
    short = """
        table_add ipv4_lpm forward 10.0.1.0/24 => 02:00:00:00:00:02 2
        table_set_default acl drop
        register_write routed 3 0x10
    """
    whole = """
        table_add RouterIngress.ipv4_lpm RouterIngress.forward 10.0.1.0/24 => 02:00:00:00:00:02 2
        table_set_default RouterIngress.acl RouterIngress.drop
        register_write RouterIngress.routed 3 16
    """
    assert entries_of(ROUTER, short) == entries_of(ROUTER, whole) != SwitchEntries("switch")


def test_comments_and_what_only_reads_are_skipped_and_said(tmp_path: Path) -> None:
    path = tmp_path / "commands.txt"
    path.write_text("// a comment\n# another\n\ntable_dump acl # to see it\n  Fill the table\nset_queue_rate 1000 3\n")
    said: list[str] = []
    assert read_commands(path, ROUTER, said.append) == SwitchEntries("switch")
    assert [line.removeprefix(f"{path}:") for line in said] == [
        "4: 'table_dump' is skipped: it only reads",
        "5: 'Fill' is no command of simple_switch_CLI: the line is skipped",
        "6: 'set_queue_rate' is skipped: a switch without a network has no queues",
    ]


def test_entries_are_changed_and_deleted_by_their_handles() -> None:
    found = entries_of(
        ROUTER,
        """
        table_add ipv4_lpm forward 10.0.1.0/24 => 1 1
        table_add ipv4_lpm forward 10.0.2.0/24 => 2 2
        table_modify ipv4_lpm drop 1
        table_delete ipv4_lpm 0
        table_add ipv4_lpm forward 10.0.3.0/24 => 3 3
        table_modify ipv4_lpm forward 16777216 => 3 4
        table_set_default acl drop
        table_reset_default acl
        """,
    )
    assert [(entry.key[0], entry.action, entry.params) for entry in found.tables] == [
        (Lpm(0x0A000200, 24), "RouterIngress.drop", ()),
        (Lpm(0x0A000300, 24), "RouterIngress.forward", (3, 4)),
    ]
    assert found.defaults == ()


def test_members_and_groups_can_change_after_entries_name_them() -> None:
    found = entries_of(
        SELECTOR,
        """
        act_prof_create_member paths select_ 1
        act_prof_create_member paths select_ 2
        act_prof_create_group paths
        act_prof_add_member_to_group paths 1 0
        act_prof_add_member_to_group paths 0 0
        table_indirect_add_with_group selected 7 => 0
        act_prof_modify_member paths select_ 0 9
        table_indirect_create_member given give 5
        table_indirect_add given 3&&&3 => 0 10
        table_indirect_set_default given 0
        """,
    )
    select, give = "TestIngress.select_", "TestIngress.give"
    assert found.profiled == (
        ProfileEntry("TestIngress.selected", (7,), "TestIngress.paths", ((select, (9,)), (select, (2,)))),
        ProfileEntry("TestIngress.given", (Ternary(3, 3),), "TestIngress.shared", ((give, (5,)),), 10),
    )
    assert found.defaults == (DefaultAction("TestIngress.given", give, (5,)),)


def test_nodes_change_and_leave_their_groups() -> None:
    found = entries_of(
        ROUTER,
        """
        mc_mgrp_create 1
        mc_mgrp_create 2
        mc_node_create 1 1 2
        mc_node_create 5 3
        mc_node_associate 1 0
        mc_node_associate 1 1
        mc_node_update 0 4
        mc_node_dissociate 1 1
        mc_node_associate 2 1
        mc_mgrp_destroy 2
        mirroring_add 1 7
        mirroring_add 2 8
        mirroring_delete 1
        """,
    )
    assert found.groups == (MulticastGroup(1, (4,)),)
    assert found.mirrors == (MirrorSession(2, 8),)


def test_link_aggregation_groups_send_by_one_of_their_ports() -> None:
    commands = "mc_mgrp_create 1\nmc_node_create 1 2 | 3\nmc_node_associate 1 0\nmc_set_lag_membership 3 5"
    assert entries_of(ROUTER, commands).groups == (MulticastGroup(1, (2, 5)),)


def test_the_order_of_nodes_is_kept() -> None:
    nodes = "mc_node_create 7 4\nmc_node_create 1 2 3\nmc_node_associate 1 0\nmc_node_associate 1 1"
    (group,) = entries_of(ROUTER, f"mc_mgrp_create 1\n{nodes}").groups
    assert group.replicas == ((7, 4), (1, 2), (1, 3))
    again = entries_of(ROUTER, SwitchEntries("switch", groups=(group,)).cli())
    assert again.groups == (group,)


def test_rates_of_a_direct_meter_are_of_the_entry_with_the_handle() -> None:
    found = entries_of(
        MATCHING,
        """
        table_add metered coloured 1 =>
        table_add metered coloured 2 =>
        table_delete metered 0
        meter_set_rates rate 1 0.5:3 0.75:4
        """,
    )
    assert found.meters == (MeterRates("TestIngress.rate", 0, ((0.5, 3), (0.75, 4))),)


def test_value_sets_and_resets() -> None:
    found = entries_of(PARSING, "pvs_add numbers 1\npvs_add numbers 2\npvs_add numbers 2\npvs_remove numbers 1")
    assert found.value_sets == (ValueSetMember("TestParser.numbers", 2),)
    assert entries_of(EXTERNS, "register_write last 1 5\nregister_reset last\ncounter_reset seen").registers == ()
    assert entries_of(EXTERNS, "register_write last 1 5\nreset_state") == SwitchEntries("switch")


@pytest.mark.parametrize(
    ("line", "reason"),
    {
        "table_ad t 0": "did you mean 'table_add'",
        "table_add ipv5_lpm drop 1/2 =>": "unknown table 'ipv5_lpm'",
        "table_add ipv4_lpm dorp 1/2 =>": "unknown action 'dorp': choose from RouterIngress.drop",
        "table_add RouterIngress.ipv4_lpm RouterIngress.drop 1 2 =>": "has 1 key fields, 2 values given",
        "table_add RouterIngress.ipv4_lpm RouterIngress.drop 1 =>": "expected table_add TABLE",
        "table_add RouterIngress.ipv4_lpm RouterIngress.forward 1/2 => 3": "2 values expected behind =>, 1 given",
        "table_add acl drop 1&&&1 2&&&2 3->4 =>": "0 values and a priority expected behind =>, 0 given",
        "table_delete ipv4_lpm 3": "has no entry of handle 3",
        "table_indirect_add ipv4_lpm 1/2 => 0": "has no action profile",
        "mc_node_associate 1 0": "there is no multicast node 0",
        "mirroring_delete 3": "there is no mirror session 3",
        "table_set_timeout ipv4_lpm 0 1000": "support_timeout",
        "mirroring_add 1": "expected mirroring_add SESSION PORT",
        "register_write RouterIngress.routed 0 0x": "expected register_write",
        "register_write RouterIngress.routed 0 1.2.3": "expected register_write",
        "register_write routed 512 1": "has no cell 512",
        "table_set_default acl forward 1 2": "unknown action 'forward'",
        "set_crc32_parameters c 1 2 3 4 5": "unknown calculation 'c'",
        "swap_configs": "the program is the one",
    }.items(),
)
def test_what_is_wrong_is_refused_with_its_line(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "commands.txt"
    path.write_text(f"# first\n{line}\n")
    with pytest.raises(InputError, match=rf"commands\.txt:2: .*{reason}"):
        read_commands(path, ROUTER)


def test_numbers_are_also_addresses() -> None:
    given = {"010": 10, "0x0A": 10, "0b11": 3, "10.0.0.1": 0x0A000001, "02:00:00:00:00:0a": 0x02000000000A, "::1": 1}
    assert {text: parse_number(text) for text in given} == given


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.txt"):
        read_commands(tmp_path / "no.txt", ROUTER)


class NotedQueues:
    """Queues that note what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def set_rate(self, packets_per_s: int, port: int | None = None, priority: int | None = None) -> None:
        self.asked.append(("rate", packets_per_s, port, priority))

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        self.asked.append(("depth", packets, port, priority))


def test_queues_are_set_where_there_are_any() -> None:
    queues = NotedQueues()
    switch = CommandedSwitch(ControlPlane(RecordedEntries(ROUTER)), queues)
    for line in ("set_queue_rate 1000 3", "set_queue_depth 64", "set_queue_rate 5 1 7"):
        assert run_command(switch, line.split()) is None
    assert queues.asked == [("rate", 1000, 3, None), ("depth", 64, None, None), ("rate", 5, 1, 7)]
    with pytest.raises(InputError, match="expected set_queue_depth PACKETS"):
        run_command(switch, ["set_queue_depth", "1", "2", "3", "4"])


def test_a_file_from_windows_is_read(tmp_path: Path) -> None:
    path, plain = tmp_path / "windows.txt", tmp_path / "plain.txt"
    line = b"table_add ipv4_lpm forward 10.0.1.0/24 => 02:00:00:00:00:02 2"
    path.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n")
    plain.write_bytes(line + b"\n")
    assert read_commands(path, ROUTER) == read_commands(plain, ROUTER)
