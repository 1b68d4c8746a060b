"""The embedded switch in the kernel, run on the same sequences as the reference."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from sequences import COUNTERS, Seen, Step, with_last_packets
from veths import PATIENCE_S, Veths, veth_pairs

from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.program.program import Program


class InKernel:
    """A switch on veths, whose state is cleared before each sequence: attaching it anew takes a quarter of a second."""

    def __init__(self, switch: KernelSwitch, veths: Veths) -> None:
        self.switch = switch
        self.veths = veths

    def run(self, entries: SwitchEntries, steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What a switch with `entries` makes of `steps`, which arrive one after the other."""
        complete, all_steps = with_last_packets(entries, steps)
        self.veths.clear()
        self.switch.state.reset()
        self.switch.install(complete)
        for count, step in enumerate(all_steps, start=1):
            self.veths.send(step)
            self._wait_until_received(count)
        sent = self.veths.sent()
        values = {name: self.switch.read_register(name) for name in registers}
        return Seen(sent, values, {name: self.switch.read_counter(name) for name in COUNTERS})

    def _wait_until_received(self, count: int) -> None:
        """Wait until the switch has taken so many packets: those of all ports wait in one queue."""
        deadline = time.monotonic() + PATIENCE_S
        while int(self.switch.read_counter("InaIngress.received")[0].sum()) < count:
            time.sleep(0)
            assert time.monotonic() < deadline, f"the switch in the kernel did not take packet {count}"


@contextmanager
def running_in_kernel(program: Program) -> Iterator[InKernel]:
    """A switch with a veth at each port, which leaves nothing behind."""
    with veth_pairs() as veths, closing(KernelSwitch(compile_program(program))) as switch:
        for port, interface in veths.interfaces.items():
            switch.add_port(port, interface)
        yield InKernel(switch, veths)
