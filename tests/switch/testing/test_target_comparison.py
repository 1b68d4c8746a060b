"""Random packets for any program, and two targets that are compared on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random

import pytest
from model_programs import MODEL
from single_targets import PROGRAMS
from typer.testing import CliRunner

from inakit.experiments.cli.app import app
from inakit.switch.control.entry_check import check_entries
from inakit.switch.entries import Ternary
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.devices import Device, InProcessDevice, open_device
from inakit.switch.testing.random_packets import Draw
from inakit.switch.testing.target_comparison import (
    Batch,
    Comparison,
    Contest,
    Outcome,
    batches,
    comes_again,
    compare,
    decide,
    whole_limits,
)
from inakit.topo.errors import InputError

ROUTER = PROGRAMS / "router.json"
TIMES = MODEL.parent / "times.json"
Packets = list[tuple[int, bytes]]


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


@pytest.mark.parametrize("path", [ROUTER, MODEL / "parsing.json", MODEL / "meter.json"])
def test_packets_are_such_as_interfaces_carry(path: Path) -> None:
    lengths = {len(packet) for _, packet in Draw(read_program(path), Random(4)).packets(2000)}
    assert min(lengths) == 14, "the header of Ethernet"
    assert max(lengths) <= 1514


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
    assert (found.packets, found.outcome, found.difference) == (500, Outcome.IDENTICAL, None)
    assert found.left > 10 or name == "clones"


Opened = Callable[[], AbstractContextManager[Device]]


def contest(one: Opened, other: Opened, program: Program) -> Contest:
    """Two kinds of switches with the same random entries."""
    return Contest(program, ("one", "other"), (one, other), Draw(program, Random(0)).entries(8))


def opened(program: Program) -> AbstractContextManager[Device]:
    """A fresh switch."""
    return nullcontext(InProcessDevice(InterpretedSwitch(program)))


def given(program: Program, count: int) -> list[Batch]:
    """Random packets, many of which leave."""
    draw = Draw(program, Random(0), headers=["ipv4"])
    draw.know(draw.entries(8))
    return list(batches(draw, count))


class Meddling(InProcessDevice):
    """A switch that gives `meddle` all that leaves, with how many packets have arrived at any switch of its kind."""

    arrived = 0

    def __init__(self, program: Program, meddle: Callable[[int, Packets], Packets]) -> None:
        super().__init__(InterpretedSwitch(program))
        self.meddle, self.through = meddle, self.inject
        self.inject = self.meddled

    def meddled(self, port: int, packet: bytes) -> Packets:
        Meddling.arrived += 1
        return self.meddle(Meddling.arrived, self.through(port, packet))


def decided(meddle: Callable[[int, Packets], Packets]) -> Comparison:
    """The outcome for a router and one that is meddled with."""
    program = read_program(ROUTER)
    Meddling.arrived = 0
    meddling = lambda: nullcontext(Meddling(program, meddle))  # noqa: E731
    return decide(contest(lambda: opened(program), meddling, program), given(program, 600), lambda _: None)


def test_the_first_difference_is_told(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(ROUTER.read_text().replace('"value" : "0xff"', '"value" : "0xfe"'))  # the -1 of ttl - 1
    program = read_program(ROUTER)
    pair = contest(lambda: opened(program), lambda: opened(read_program(wrong)), program)
    found = decide(pair, given(program, 3000), lambda _: None)
    assert found.outcome is Outcome.DIFFERENT
    assert found.packets < 3000
    assert re.search(r"packet \d+ to leave port \d differs\n  one  .*\n  other  ", found.difference or "")


def test_packets_that_are_lost_once_are_no_difference() -> None:
    found = decided(lambda arrived, sent: [] if 20 < arrived < 100 else sent)
    assert (found.outcome, found.packets, found.difference) == (Outcome.IDENTICAL, 600, None)
    assert found.left > 50


def test_packets_that_are_lost_in_every_trial_are_no_difference_either() -> None:
    found = decided(lambda arrived, sent: [] if arrived % 101 > 80 else sent)
    assert found.outcome is Outcome.LOST
    assert re.search(r"other, (once|again) +nothing", found.difference or "")


def test_a_switch_that_never_does_the_same_twice_is_noticed() -> None:
    found = decided(lambda arrived, sent: [(port, packet + arrived.to_bytes(4, "big")) for port, packet in sent])
    assert found.outcome is Outcome.UNSTEADY
    assert re.search(r"other, once  .*\n  other, again ", found.difference or "")


def test_packets_that_come_again_keep_their_order() -> None:
    program = read_program(MODEL / "copies.json")
    assert comes_again(program)
    assert not comes_again(read_program(ROUTER))


@pytest.mark.root
@pytest.mark.bmv2
def test_packets_that_come_again_are_the_same_on_bmv2() -> None:
    found = compare(MODEL / "copies.json", ("interpreted", "bmv2"), 200, limits={"todo": 11}, headers=["test"])
    assert (found.outcome, found.difference) == (Outcome.IDENTICAL, None)
    assert found.left > 100


@pytest.mark.root
@pytest.mark.bmv2
def test_clocks_make_bmv2_unsteady() -> None:
    found = compare(TIMES, ("interpreted", "bmv2"), 40)
    assert found.outcome is Outcome.UNSTEADY
    assert "bmv2, once" in (found.difference or "") or "interpreted, once" in (found.difference or "")


@pytest.mark.root
@pytest.mark.bmv2
def test_two_bmv2_run_at_once() -> None:
    with open_device("bmv2", ROUTER, [1, 2]) as one, open_device("bmv2", ROUTER, [1, 2]) as other:
        for device, port in ((one, 1), (other, 2)):
            device.install(Draw(read_program(ROUTER), Random(port)).entries(2))
        assert not one.read_register("RouterIngress.routed").any()
        assert not other.read_register("RouterIngress.routed").any()


def test_limits_hold_for_keys_and_parameters() -> None:
    program = read_program(ROUTER)
    limits = whole_limits(program, {"protocol": 3, "forward.port": 2, "ipv4.src": 9})
    entries = [entry for seed in range(9) for entry in Draw(program, Random(seed), limits).entries(8).tables]
    ports = {entry.params[1] for entry in entries if entry.action == "RouterIngress.forward"}
    sources = {entry.key[0].value for entry in entries if isinstance(entry.key[0], Ternary)}
    assert ports == {0, 1, 2}
    assert max(sources) <= 9


@pytest.mark.parametrize(
    ("options", "reason"),
    {
        "--between fast": "expected two",
        "--between fast,nothing": "unknown target",
        "--limit ttl": "HEADER.FIELD=MOST",
        "--limit ipv4.tll=3": "did you mean 'ipv4.ttl'",
        "--with ipv6": "unknown header 'ipv6'",
    }.items(),
)
def test_what_cannot_be_is_refused(options: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        CliRunner().invoke(app, ["switch", "compare", str(ROUTER), *options.split()], catch_exceptions=False)
