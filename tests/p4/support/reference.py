"""`simple_switch` as a function: a sequence of packets goes in, what leaves each port in order comes out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sequences import COUNTERS, PORTS, Seen, Step, with_last_packets
from veths import PATIENCE_S, Veths, veth_pairs

from inakit.planner.install.ina_program import EVENTS
from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port
from inakit.switch.bmv2.thrift_client import Runtime
from inakit.switch.entries import SwitchEntries
from inakit.switch.running_switch import PROGRAM
from inakit.traffic.wire.packet_format import TERMINAL


class Reference:
    """A running `simple_switch` with veths at `PORTS`."""

    def __init__(self, process: SimpleSwitchProcess, veths: Veths, program: Path = PROGRAM) -> None:
        process.wait_until_ready()
        self.process = process
        self.veths = veths
        self.runtime = Runtime(process.control_port, program)
        self.singly = "recirculate" in program.read_text()

    def run(self, entries: SwitchEntries, steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What a freshly started switch with `entries` makes of `steps`, which arrive one after the other."""
        complete, all_steps = with_last_packets(entries, steps)
        self.runtime.reset()
        self.runtime.install(complete)
        return self.play(all_steps, registers)

    def play(self, all_steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What the switch, with what it holds now, makes of `all_steps`, which end with the last packets."""
        self.veths.clear()
        received = dict.fromkeys(PORTS, 0)
        for step in all_steps:
            self.veths.send(step)
            received[step.port] += 1
            self._wait_until_received(step.port, received[step.port])
            if self.singly:
                self._wait_for_outcomes(sum(received.values()))
        sent = self.veths.sent()
        values = {name: self.runtime.read_register(name) for name in registers}
        return Seen(sent, values, {name: self.runtime.read_counter(name) for name in COUNTERS})

    def _wait_until_received(self, port: int, count: int) -> None:
        """Wait until the switch has taken so many packets: it takes those of several ports in any order."""
        deadline = time.monotonic() + PATIENCE_S
        while self.runtime.read_counter_at("InaIngress.received", port)[0] < count:
            self.process.check()
            assert time.monotonic() < deadline, f"simple_switch did not take packet {count} of port {port}"

    def _wait_for_outcomes(self, count: int) -> None:
        """Wait until so many packets have come to their ends: the next one may overtake one that recirculates."""
        deadline = time.monotonic() + PATIENCE_S
        while sum(self.runtime.read_counter_at(EVENTS, event)[0] for event in TERMINAL) < count:
            self.process.check()
            assert time.monotonic() < deadline, f"packet {count} has not come to its end"


@contextmanager
def running_reference(folder: Path, program: Path = PROGRAM) -> Iterator[Reference]:
    """A `simple_switch` that runs `program`, with a veth at each port, which leaves nothing behind."""
    with veth_pairs() as veths:
        control_port = free_port()
        attached = [part for port, interface in veths.interfaces.items() for part in ("-i", f"{port}@{interface}")]
        command = ["simple_switch", *attached, "--thrift-port", str(control_port), str(program)]
        process = SimpleSwitchProcess(
            "reference", [*command, "--log-console", "-L", "warn"], control_port, folder / "bmv2.log"
        )
        veths.ledger.record("pid", process.pid)
        try:
            yield Reference(process, veths, program)
        finally:
            process.stop()
