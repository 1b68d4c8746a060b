"""Switches inside this process, the embedded one or the interpreter, which run the same sequences as the reference."""

from __future__ import annotations

from collections.abc import Sequence

from sequences import COUNTERS, PORTS, Seen, Step, last_packets, with_last_packets

from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.program import Program


class InProcess:
    """Makes a fresh switch for every sequence."""

    def __init__(self, program: Program, kind: type[InProcessSwitch | InterpretedSwitch] = InProcessSwitch) -> None:
        self.program, self.kind = program, kind

    def run(self, entries: SwitchEntries, steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What a switch with `entries` makes of `steps`, which arrive one after the other."""
        complete, all_steps = with_last_packets(entries, steps)
        switch = self.kind(self.program)
        switch.install(complete)
        sent: dict[int, list[bytes]] = {port: [] for port in PORTS}
        for port, packet in switch.inject_all(all_steps):
            sent.setdefault(port, []).append(packet)
        for port, packet in last_packets().items():
            assert sent[port][-1:] == [packet], f"the last packet of port {port} was lost"
            sent[port].pop()
        values = {name: switch.read_register(name) for name in registers}
        attached = {port: sent[port] for port in PORTS}
        return Seen(attached, values, {name: switch.read_counter(name) for name in COUNTERS})
