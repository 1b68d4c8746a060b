"""The control plane on a compiled switch: answers to random requests, and packets, are as on an interpreted one."""

from __future__ import annotations

import json
from random import Random

import pytest
from random_requests import RandomRequests, asked
from same_switches import shown_when_wrong
from served_program import KINDS, SERVED, answer_of, asking

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import program_of
from inakit.switch.program.program import Program

REQUESTS = 600


def compiled_part() -> Program:
    """The program served.p4, its registers no longer than target fast takes them."""
    document = json.loads(SERVED.read_text())
    for register in document["register_arrays"]:
        register["bitwidth"] = min(register["bitwidth"], 64)
    return program_of(document)


def seen(switch: InProcessSwitch | InterpretedSwitch, port: int, packet: bytes) -> list[tuple[int, int]]:
    """Port and value of what leaves."""
    return [(out, answer_of(out, data).value) for out, data in switch.inject(port, packet)]


@pytest.mark.parametrize("seed", range(4))
def test_a_control_plane_has_the_same_answers_and_packets(seed: int) -> None:
    program, draw = compiled_part(), Random(seed)
    switch, model = InProcessSwitch(program), InterpretedSwitch(program)
    controls = ControlPlane(switch.state), ControlPlane(model.state)
    requests = RandomRequests(Random(seed))
    with shown_when_wrong(switch.source):
        for number in range(REQUESTS):
            request = requests.request()
            ours, theirs = (asked(control, request) for control in controls)
            assert ours == theirs, f"request {number}: {request}"
            for _ in range(20 if number % 20 == 0 else 0):
                port, packet = draw.randrange(4), asking(draw.choice(KINDS), draw.randrange(8), draw.randrange(5))
                assert seen(switch, port, packet) == seen(model, port, packet), f"request {number}: {packet.hex()}"


@pytest.mark.root
def test_a_control_plane_of_the_kernel_has_the_same_answers() -> None:
    program = compiled_part()
    switch, model = KernelSwitch(compile_program(program)), InProcessSwitch(program)
    try:
        controls, requests = (ControlPlane(switch.state), ControlPlane(model.state)), RandomRequests(Random(7))
        for number in range(REQUESTS):
            request = requests.request()
            ours, theirs = (asked(control, request) for control in controls)
            assert ours == theirs, f"request {number}: {request}"
        for table in program.tables.values():
            assert switch.read_table(table.name) == model.read_table(table.name)
        assert switch.read_groups() == model.read_groups()
    finally:
        switch.close()
