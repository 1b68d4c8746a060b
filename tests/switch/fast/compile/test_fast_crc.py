"""Hash functions whose parameters are set while a compiled switch runs: the results of the interpreter, bit by bit."""

from __future__ import annotations

from random import Random

import pytest
from same_switches import shown_when_wrong
from small_programs import ETHERNET, PROGRAMS, Packets
from veth_wires import Wires, in_kernel

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.recorded_entries import transfer
from inakit.switch.entries import Range, TableEntry, Ternary
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import CrcParameters

PROGRAM = PROGRAMS / "doors" / "commanded.json"
HASHES = {"calc": 16, "calc_0": 32}
TESTED = 0x1234
HASHING = TableEntry(
    "TestIngress.ranges", (Range(0, 0xFFFF), Ternary(0, 0)), "TestIngress.counted", (1,), priority=1
)  # fmt: skip


def prepared(switch: InProcessSwitch | InterpretedSwitch | KernelSwitch) -> ControlPlane:
    """The control plane of a switch that hashes every packet's `address` and `kind`."""
    control = ControlPlane(switch.state)
    control.value_sets.add("TestParser.tested", TESTED)
    control.tables.add_entry(HASHING)
    return control


def random_crc(draw: Random, bits: int) -> CrcParameters:
    """Any parameters of a check of so many bits."""
    polynomial, first, last = (draw.getrandbits(bits) for _ in range(3))
    return CrcParameters(polynomial, first, last, reflect_data=draw.random() < 0.5, reflect_result=draw.random() < 0.5)


def random_packet(draw: Random) -> tuple[int, bytes]:
    """A packet that is hashed."""
    return 1, ETHERNET + TESTED.to_bytes(2, "big") + draw.randbytes(8)


@pytest.mark.compiler
def test_packets_are_hashed_with_the_parameters_that_are_set() -> None:
    program, draw = read_program(PROGRAM), Random(1)
    switch, model = InProcessSwitch(program), InterpretedSwitch(program)
    controls = prepared(switch), prepared(model)
    with shown_when_wrong(switch.source):
        for _ in range(100):
            packets = [random_packet(draw) for _ in range(5)]
            assert switch.inject_all(packets) == [sent for each in packets for sent in model.inject(*each)]
            name = draw.choice(list(HASHES))
            parameters = random_crc(draw, HASHES[name])
            for control in controls:
                control.calculations.set_crc(name, HASHES[name], parameters)


@pytest.mark.compiler
def test_parameters_go_to_another_data_plane_with_all_else() -> None:
    """As when a request moves a program from the kernel into the interpreter."""
    program, draw = read_program(PROGRAM), Random(2)
    switch, model = InProcessSwitch(program), InterpretedSwitch(program)
    control = prepared(switch)
    for name, bits in HASHES.items():
        control.calculations.set_crc(name, bits, random_crc(draw, bits))
    sent = [(packet, switch.inject(*packet)) for packet in (random_packet(draw) for _ in range(5))]
    transfer(control, model.state)
    assert sent == [(packet, model.inject(*packet)) for packet, _ in sent]


@pytest.mark.root
def test_the_kernel_takes_parameters() -> None:
    program, draw = read_program(PROGRAM), Random(3)
    model = InProcessSwitch(program)
    with Wires((1, 3)) as wires:
        switch = KernelSwitch(compile_program(program))
        wires.attach(switch)
        controls = prepared(switch), prepared(model)
        for _ in range(5):
            for name, bits in HASHES.items():
                parameters = random_crc(draw, bits)
                for control in controls:
                    control.calculations.set_crc(name, bits, parameters)
            packets: Packets = [random_packet(draw) for _ in range(5)]
            expected = model.inject_all(packets)
            assert in_kernel(wires, packets, expected)[3] == [packet for _, packet in expected]
