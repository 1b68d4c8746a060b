"""The small programs on BMv2 itself: target fast makes the same of the same packets.

Registers are used within their bounds only: beyond them a BMv2 built for speed does anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from same_switches import by_port, shown_when_wrong
from small_programs import PROGRAM_NAMES, PROGRAM_PORTS, PROGRAMS, packets_for, program_entries
from veth_wires import Wires

from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.bmv2_json import read_program

pytestmark = [pytest.mark.root, pytest.mark.bmv2]


@contextmanager
def simple_switch(program: Path, wires: Wires, log: Path) -> Iterator[object]:
    """BMv2 on the switch's end of `wires`; gives its control connection."""
    from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port  # noqa: PLC0415
    from inakit.switch.bmv2.thrift_client import Runtime  # noqa: PLC0415

    control = free_port()
    attached = [part for port, name in wires.names.items() for part in ("-i", f"{port}@{name}")]
    command = ["simple_switch", *attached, "--thrift-port", str(control), str(program), "--log-console", "-L", "warn"]
    process = SimpleSwitchProcess("reference", command, control, log)
    try:
        process.wait_until_ready()
        yield Runtime(control, program)
    finally:
        process.stop()


@pytest.mark.parametrize("name", PROGRAM_NAMES)
def test_a_small_program_does_the_same_on_bmv2(name: str, tmp_path: Path) -> None:
    path = PROGRAMS / f"{name}.json"
    program = read_program(path)
    model = InProcessSwitch(program)
    model.install(program_entries(name))
    with Wires(PROGRAM_PORTS) as wires, simple_switch(path, wires, tmp_path / "log") as runtime:
        runtime.install(program_entries(name))  # type: ignore[attr-defined]
        with shown_when_wrong(model.source):
            for port, sent in packets_for(name, program):
                expected = by_port(model.inject(port, sent), PROGRAM_PORTS)
                wires.send(port, sent)
                came = {out: wires.receive(out, len(packets)) if packets else [] for out, packets in expected.items()}
                assert came == expected, sent.hex()
            assert {port: wires.receive(port, 0) for port in PROGRAM_PORTS} == {port: [] for port in PROGRAM_PORTS}
            for register in program.registers:
                reference = runtime.read_register(register)  # type: ignore[attr-defined]
                assert np.array_equal(model.read_register(register), reference)
            for counter in program.counters:
                reference = runtime.read_counter(counter)  # type: ignore[attr-defined]
                assert np.array_equal(model.read_counter(counter), reference)
