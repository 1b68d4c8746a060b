"""Random packets for any program, and two targets that are compared on them."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from single_targets import PROGRAMS
from typer.testing import CliRunner

from experiments.cli.app import app
from switch.control.entry_check import check_entries
from switch.interpret.interpreted_switch import InterpretedSwitch
from switch.program.read import read_program
from switch.standalone.devices import InProcessDevice
from switch.testing.random_packets import Draw
from switch.testing.target_comparison import ComparedSwitches, compare, compare_devices
from topo.errors import InputError

ROUTER = PROGRAMS / "router.json"


def test_packets_are_such_as_the_parser_goes_through_and_entries_such_as_they_match() -> None:
    program = read_program(ROUTER)
    draw = Draw(program, Random(1))
    entries = draw.entries(8)
    check_entries(program, entries)
    draw.know(entries)
    packets = list(draw.packets(400))
    routed = sum(packet[12:14] == b"\x08\x00" for _, packet in packets)
    assert 100 < routed < 300
    switch = InterpretedSwitch(program)
    switch.install(entries)
    left = [sent for port, packet in packets for sent in switch.inject(port, packet)]
    assert 5 < len(left) < 400
    assert len({len(packet) for _, packet in packets}) > 50


def test_limits_and_headers_hold() -> None:
    draw = Draw(read_program(ROUTER), Random(2), {"ipv4.ttl": 3}, ["ipv4"])
    for _, packet in draw.packets(100):
        assert packet[12:14] == b"\x08\x00"
        assert packet[22] <= 3


def test_the_same_seed_draws_the_same() -> None:
    draws = [Draw(read_program(ROUTER), Random(seed)) for seed in (5, 5, 6)]
    entries = [draw.entries(4) for draw in draws]
    packets = [list(draw.packets(20)) for draw in draws]
    assert entries[0] == entries[1] != entries[2]
    assert packets[0] == packets[1] != packets[2]


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.parametrize("name", ["router", "clones"])
def test_bmv2_does_the_same(name: str) -> None:
    found = compare(PROGRAMS / f"{name}.json", ("interpreted", "bmv2"), 500)
    assert (found.packets, found.difference) == (500, None)
    assert found.left > 10 or name == "clones"


def test_the_first_difference_is_told(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(ROUTER.read_text().replace('"value" : "0xff"', '"value" : "0xfe"'))  # the -1 of ttl - 1
    program = read_program(ROUTER)
    one, other = (InProcessDevice(InterpretedSwitch(each)) for each in (program, read_program(wrong)))
    draw = Draw(program, Random(0), headers=["ipv4"])
    entries = draw.entries(8)
    draw.know(entries)
    found = compare_devices(
        ComparedSwitches(program, ("right", "wrong"), one, other), draw, entries, 3000, lambda _: None
    )
    assert found.packets < 3000
    assert re.search(r"packet \d+ to leave port \d differs\n  right  .*\n  wrong  ", found.difference or "")


@pytest.mark.parametrize(
    ("options", "reason"),
    {
        "--targets fast": "expected two",
        "--targets fast,nothing": "unknown target",
        "--limit ttl": "HEADER.FIELD=MOST",
        "--limit ipv4.tll=3": "did you mean 'ipv4.ttl'",
        "--with ipv6": "unknown header 'ipv6'",
    }.items(),
)
def test_what_cannot_be_is_refused(options: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        CliRunner().invoke(app, ["switch", "compare", str(ROUTER), *options.split()], catch_exceptions=False)
