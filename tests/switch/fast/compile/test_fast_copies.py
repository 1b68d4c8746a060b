"""Target fast: clones, packets that come in again or are cut short, and digests; in this process and in the kernel."""

from __future__ import annotations

from functools import partial
from itertools import count
from random import Random

import pytest
from model_programs import MODEL
from random_copies import COPIES, RandomCopies
from same_switches import by_port, same_state, shown_when_wrong, wait_for
from small_programs import Packets, packet
from veth_wires import Wires, in_kernel

from inakit.switch.entries import MirrorSession, MulticastGroup, SwitchEntries
from inakit.switch.fast.layout.layout import RING
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import program_of, read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.random_packets import Draw
from inakit.topo.errors import RunError, UnsupportedError

PORTS = (2, 3, 5, 6, 8, 9)
SENT = [(todo, length) for length in (15, 40, 1400) for todo in range(11)] * 2
PAYLOAD = bytes(range(256)) * 6
ENTRIES = SwitchEntries(
    "s", groups=(MulticastGroup(4, (5, 6), ((7, 6),)),), mirrors=(MirrorSession(7, port=8, group=4),)
)


def copies() -> Program:
    """The program copies.p4, whose packets say what is to be done with them."""
    return read_program(MODEL / "copies.json")


def copies_packets(program: Program) -> Packets:
    """Packets of every kind and of several lengths."""
    return [(9, packet(program, todo=todo) + PAYLOAD[:length]) for todo, length in SENT]


def test_every_kind_of_copy_is_as_interpreted() -> None:
    program = copies()
    switch, model = InProcessSwitch(program), InterpretedSwitch(program)
    for each in (switch, model):
        each.install(ENTRIES)
    with shown_when_wrong(switch.source):
        for port, sent in copies_packets(program):
            assert switch.inject(port, sent) == model.inject(port, sent), sent.hex()
        assert switch.state.read_digests() == model.state.read_digests() != []
        assert switch.state.read_digests() == []


@pytest.mark.root
def test_every_kind_of_copy_is_the_same_in_the_kernel() -> None:
    program = copies()
    model, switch = InProcessSwitch(program), KernelSwitch(compile_program(program))
    packets = copies_packets(program)
    with Wires(PORTS) as wires, shown_when_wrong(switch.source):
        wires.attach(switch)
        for each in (model, switch):
            each.install(ENTRIES)
        expected = model.inject_all(packets)
        assert in_kernel(wires, packets, expected) == by_port(expected, PORTS)
        switch.check()
        assert switch.state.read_digests() == model.state.read_digests() != []


@pytest.mark.root
@pytest.mark.parametrize("seed", range(5))
def test_random_copies_are_the_same_in_the_kernel(seed: int) -> None:
    program = program_of(RandomCopies(seed).document)
    model, switch = InProcessSwitch(program), KernelSwitch(compile_program(program))
    packets = [(port, data.ljust(60, b"x")) for port, data in Draw(program, Random(seed)).packets(60)]
    with Wires(range(5)) as wires, shown_when_wrong(switch.source):
        wires.attach(switch)
        for each in (model, switch):
            each.install(COPIES)
        expected = model.inject_all(packets)
        assert in_kernel(wires, packets, expected) == by_port(expected, range(5))
        wait_for(partial(same_state, model, switch, program), "the same registers and counters")


@pytest.mark.root
def test_the_kernel_takes_programs_whose_clones_keep_no_fields() -> None:
    keepless = next(made for made in map(RandomCopies, count()) if not made.keeps)
    switch = KernelSwitch(compile_program(program_of(keepless.document)))
    with shown_when_wrong(switch.source):
        assert switch.instructions > 0
    switch.close()


def test_a_session_that_is_removed_gets_no_clones() -> None:
    switch = InProcessSwitch(copies())
    switch.install(SwitchEntries("s", mirrors=(MirrorSession(7, port=8),)))
    sent = packet(switch.state.program, todo=1)
    assert [port for port, _ in switch.inject(9, sent)] == [8, 2]
    switch.state.remove_session(7)
    assert [port for port, _ in switch.inject(9, sent)] == [2]


def test_a_session_that_cuts_its_clones_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="does not cut clones"):
        InProcessSwitch(copies()).install(SwitchEntries("s", mirrors=(MirrorSession(7, port=8, size_bytes=40),)))


def test_digests_that_nobody_reads_make_room_for_new_ones() -> None:
    switch = InProcessSwitch(copies())
    sent = packet(switch.state.program, todo=6)
    for number in range(RING + 10):
        switch.inject(number % 8, sent)
    found = switch.state.read_digests()
    assert len(found) == RING - 1
    assert [values for _, values in found[-3:]] == [(6, number % 8) for number in range(RING + 7, RING + 10)]


def test_a_packet_that_goes_in_a_loop_is_an_error() -> None:
    document = RandomCopies(0).document
    for pipeline in document["pipelines"]:
        for conditional in pipeline["conditionals"]:
            if conditional["name"].endswith(".begin"):
                conditional["expression"] = {"type": "expression", "value": {"type": "bool", "value": True}}
    again = {"op": "resubmit", "parameters": [{"type": "hexstr", "value": "0x1"}]}
    for action in document["actions"]:
        action["primitives"].append(again)
    program = program_of(document)
    switch = InProcessSwitch(program)
    with pytest.raises(RunError, match="a packet loops"):
        switch.inject(1, packet_of(program))


def packet_of(program: Program) -> bytes:
    """A packet with the header `test`, all of whose fields are 0."""
    return bytes(14 + program.headers["test"].size + 20)
