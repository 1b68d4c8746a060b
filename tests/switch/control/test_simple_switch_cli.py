"""Commands of simple_switch_CLI: what `SwitchEntries.cli` writes is read back; what is wrong is refused by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from single_targets import PROGRAMS

from switch.control.simple_switch_cli import parse_number, read_commands
from switch.entries import (
    DefaultAction,
    Lpm,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    Range,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    Ternary,
)
from switch.program.read import read_program
from topo.errors import InputError

ROUTER = read_program(PROGRAMS / "router.json")
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
ENTRIES = st.builds(
    SwitchEntries,
    st.just("switch"),
    st.lists(ROUTE | RULE).map(tuple),
    st.lists(GROUP, unique_by=lambda group: group.group).map(tuple),
    st.lists(st.builds(RegisterPreset, st.just("RouterIngress.routed"), st.integers(0, 511), WORDS)).map(tuple),
    st.lists(st.just(DefaultAction("RouterIngress.acl", "RouterIngress.drop"))).map(tuple),
    st.lists(st.builds(MirrorSession, BYTES, port=BYTES) | st.builds(MirrorSession, BYTES, group=BYTES)).map(tuple),
    st.lists(
        st.builds(
            MeterRates,
            st.just("m"),
            st.none() | BYTES,
            st.lists(st.tuples(st.floats(0, 1e6), BYTES), min_size=1).map(tuple),
        )
    ).map(tuple),
)


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands") / "commands.txt"


@given(entries=ENTRIES)
def test_what_is_written_is_read_back(entries: SwitchEntries, commands: Path) -> None:
    commands.write_text(entries.cli())
    assert read_commands(commands, ROUTER) == entries


@pytest.mark.parametrize(
    ("line", "reason"),
    {
        "table_delete t 0": "did you mean",
        "table_add ipv4_lpm drop 1/2 =>": "unknown table 'ipv4_lpm'",
        "table_add RouterIngress.ipv4_lpm RouterIngress.drop 1 2 =>": "has a key of 1, 2 given",
        "table_add RouterIngress.ipv4_lpm RouterIngress.drop 1 =>": "expected table_add TABLE",
        "table_add RouterIngress.ipv4_lpm RouterIngress.forward 1/2 => 3": "has 2 parameters, 1 values given",
        "mc_node_associate 1 0": "create both first",
        "mc_node_create 1 2 | 3": "link aggregation",
        "mirroring_add 1": "expected mirroring_add SESSION PORT",
        "register_write RouterIngress.routed 0 0x": "expected register_write",
        "register_write RouterIngress.routed 0 1.2.3": "expected register_write",
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
