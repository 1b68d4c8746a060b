"""The embedded switch in the kernel, run on the same sequences as the reference."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from sequences import COUNTERS, Seen, Step, with_last_packets
from veths import PATIENCE_S, Veths

from switch.entries import SwitchEntries
from switch.fast.kernel import KernelSwitch, compile_program
from switch.program import Program


class InKernel:
    """Loads a fresh switch for every sequence, at veths that stay."""

    def __init__(self, program: Program, veths: Veths) -> None:
        self.compiled = compile_program(program)
        self.veths = veths

    def run(self, entries: SwitchEntries, steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What a switch with `entries` makes of `steps`, which arrive one after the other."""
        complete, all_steps = with_last_packets(entries, steps)
        self.veths.clear()
        with closing(KernelSwitch(self.compiled)) as switch:
            switch.install(complete)
            for port, interface in self.veths.interfaces.items():
                switch.add_port(port, interface)
            for count, step in enumerate(all_steps, start=1):
                self.veths.send(step)
                wait_until_received(switch, count)
            sent = self.veths.sent()
            values = {name: switch.read_register(name) for name in registers}
            return Seen(sent, values, {name: switch.read_counter(name) for name in COUNTERS})


def wait_until_received(switch: KernelSwitch, count: int) -> None:
    """Packets of different ports wait in one queue; this also keeps the queue short."""
    deadline = time.monotonic() + PATIENCE_S
    while int(switch.read_counter("InaIngress.received")[0].sum()) < count:
        time.sleep(0)
        assert time.monotonic() < deadline, f"the switch in the kernel did not take packet {count}"
