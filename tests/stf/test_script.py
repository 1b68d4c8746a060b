"""The text of STF: what each statement means, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inakit.switch.testing.stf_script import (
    Add,
    Expect,
    SendPacket,
    SetDefault,
    Statement,
    SwitchCommand,
    Wait,
    parse_script,
    read_script,
)
from inakit.topo.errors import InputError

MEANING: dict[str, Statement] = {
    "add t 5 h.f:0x1 act(a:1, b:0x2)": Add("t", 5, (("h.f", "0x1"),), "act", (("a", "1"), ("b", "0x2"))),
    "add c.t c.a()": Add("c.t", None, (), "c.a", ()),
    "add t k:10.0.0.0/8 m:02:00:00:00:00:01 act( )": Add(
        "t", None, (("k", "10.0.0.0/8"), ("m", "02:00:00:00:00:01")), "act", ()
    ),
    "add t k:1 act(a:1) = handle": Add("t", None, (("k", "1"),), "act", (("a", "1"),)),
    "setdefault c.t c.reject(rej:0, bar:1)": SetDefault("c.t", "c.reject", (("rej", "0"), ("bar", "1"))),
    "packet 0 00 0aFF": SendPacket(0, bytes([0, 10, 255])),
    "packet 510": SendPacket(510, b""),
    "expect 1 0a ** f* $": Expect(1, "0A**F*", complete=True),
    "expect 1 0a**": Expect(1, "0A**"),
    "expect 2": Expect(2, None),
    "expect 2 $": Expect(2, "", complete=True),
    "wait": Wait(),
    "mc_node_create 400 6 7": SwitchCommand(("mc_node_create", "400", "6", "7")),
}


@pytest.mark.parametrize("text", MEANING)
def test_a_statement_means(text: str) -> None:
    (line,) = parse_script(f"\n# a comment\n  {text}  # another\n")
    assert line.statement == MEANING[text]
    assert (line.number, line.text) == (3, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    {
        "remove t": "expected one of add",
        "add t": "ACTION",
        "add t k act()": "NAME:VALUE",
        "add t k:1 act(5)": "NAME:VALUE",
        "packet 0 0": "whole bytes",
        "packet 0 0g": "hexadecimal",
        "packet 511 00": "ports are 0 to 510",
        "packet x 00": "ports are",
        "packet": "",
        "expect 0 00$00": "only at its end",
        "wait 5": "takes no arguments",
    }.items(),
)
def test_what_is_wrong_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=rf"a\.stf:2: .*{reason}"):
        list(parse_script(f"wait\n{text}", "a.stf"))


@given(st.text())
def test_any_text_is_statements_or_an_input_error(text: str) -> None:
    try:
        lines = list(parse_script(text))
    except InputError:
        return
    assert all(line.text for line in lines)


def test_a_script_from_windows_is_read(tmp_path: Path) -> None:
    path = tmp_path / "test.stf"
    path.write_bytes(b"\xef\xbb\xbfpacket 1 00\r\n# nothing\r\nexpect 2 00 $\r\n")
    assert [line.statement for line in read_script(path)] == [SendPacket(1, b"\0"), Expect(2, "00", complete=True)]
