"""Queues in front of the ports of a switch in the kernel, whose rates and depths are in packets, as in simple_switch.

The kernel shapes by bytes. Its size table (`stab`) counts every packet as `UNIT_BYTES`, so that a token bucket of one
such packet releases a packet every 1 / rate seconds. simple_switch's queues are in front of egress, these are behind
it: the two are equivalent if the program's egress does nothing.
"""

from __future__ import annotations

import shutil
import subprocess

from inakit.switch.fast.layout.field_usage import statements_of
from inakit.switch.program.program import QUEUE_DEPTH, Program, Table
from inakit.topo.errors import UnsupportedError

UNIT_BYTES = 16_000
"""More bytes than any packet has, except a large segment."""
HANDLE = "1aa7:"
"""The qdisc handle that identifies a queue left behind by a killed switch."""
SIZE_TABLE = ("stab", "mtu", "16384", "tsize", "512", "mpu", str(UNIT_BYTES), "linklayer", "ethernet")
NO_QUEUES = "a program in the kernel has no queues in front of egress"


def egress_does_nothing(program: Program) -> bool:
    """Whether egress changes and counts nothing, so that packets can wait behind it instead of in front of it."""
    counted = any(isinstance(node, Table) and (node.counted or node.meter) for node in program.egress.nodes.values())
    return not statements_of(program.egress) and not counted


class PortQueues:
    """The queues of a program's ports. Rates are in packets/s (0: no limit), depths in packets."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.interfaces: dict[int, str] = {}
        self.rates: dict[int | None, int] = {None: 0}
        self.depths: dict[int | None, int] = {None: QUEUE_DEPTH}
        self.shaped: set[str] = set()

    def set_rate(self, packets_per_s: int, port: int | None) -> None:
        """Set the rate of a port's queue, or of all (None). `UnsupportedError` if simple_switch behaves otherwise."""
        if packets_per_s and not egress_does_nothing(self.program):
            raise UnsupportedError(f"a rate of {packets_per_s} packets/s for {named(port)}: {NO_QUEUES}")
        self.put(self.rates, packets_per_s, port)

    def set_depth(self, packets: int, port: int | None) -> None:
        """Set the depth of one port's queue, or of all (None)."""
        self.put(self.depths, packets, port)

    def put(self, values: dict[int | None, int], value: int, port: int | None) -> None:
        if port is None:
            values.clear()
        values[port] = value
        for number in self.interfaces if port is None else {port} & self.interfaces.keys():
            self.shape(number)

    def add(self, port: int, interface: str) -> None:
        self.interfaces[port] = interface
        self.shape(port)

    def remove(self, port: int) -> None:
        """Remove the queue from the interface of a port."""
        self.release(self.interfaces.pop(port))

    def shape(self, port: int) -> None:
        """Apply the rate and the depth of a port to its interface."""
        interface = self.interfaces[port]
        rate, depth = (values.get(port, values[None]) for values in (self.rates, self.depths))
        if not rate:
            self.release(interface)
            return
        if interface not in self.shaped and not is_free(interface):
            raise UnsupportedError(f"a rate for {named(port)}: '{interface}' has a shaper of its own")
        bucket = ("rate", f"{rate * UNIT_BYTES * 8}bit", "burst", f"{UNIT_BYTES}b", "limit", f"{depth * UNIT_BYTES}b")
        self.shaped.add(interface)
        tc("qdisc", "replace", "dev", interface, "root", "handle", HANDLE, *SIZE_TABLE, "tbf", *bucket)

    def release(self, interface: str) -> None:
        """Remove the queue of an interface; do nothing if the queue or the interface is gone."""
        if interface in self.shaped:
            self.shaped.remove(interface)
            subprocess.run(["tc", "qdisc", "del", "dev", interface, "root"], capture_output=True, check=False)

    def close(self) -> None:
        """Remove the queues from all interfaces."""
        for port in list(self.interfaces):
            self.remove(port)


def is_free(interface: str) -> bool:
    """Whether an interface has only the kernel's own queue, or one left behind by a killed switch."""
    shown = tc("qdisc", "show", "dev", interface, "root")
    return " 0: root" in shown or f"tbf {HANDLE}" in shown


def tc(*words: str) -> str:
    """The output of tc; `UnsupportedError` if tc fails."""
    if shutil.which("tc") is None:
        raise UnsupportedError("the rate of a queue: the kernel sets it by the command tc, which is not installed")
    done = subprocess.run(["tc", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnsupportedError(f"the rate of a queue: tc {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def named(port: int | None) -> str:
    return "the queues of all ports" if port is None else f"the queue of port {port}"
