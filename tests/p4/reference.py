"""`simple_switch` as a function: a sequence of packets in, what leaves each port in order out."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sequences import COUNTERS, PORTS, Seen, Step, last_packets, with_last_packets

from switch.bmv2.process import Process, free_port
from switch.bmv2.runtime import Runtime
from switch.entries import SwitchEntries
from switch.target import PROGRAM
from topo.ledger import Ledger
from topo.netlink import End, create_pair, index_of, inside, set_up, silence

PATIENCE_S = 20.0
RECEIVE_BUFFER_BYTES = 1 << 24
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3


class Reference:
    """A running `simple_switch` with veths at `PORTS`."""

    def __init__(self, process: Process, sockets: dict[int, socket.socket]) -> None:
        process.wait_until_ready()
        self.process = process
        self.runtime = Runtime(process.control_port, PROGRAM)
        self._sockets = sockets

    def run(self, entries: SwitchEntries, steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What a freshly started switch with `entries` makes of `steps`, which arrive one after the other."""
        complete, all_steps = with_last_packets(entries, steps)
        self.runtime.reset()
        self.runtime.install(complete)
        return self.play(all_steps, registers)

    def play(self, all_steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What the switch as it is makes of `all_steps`, which end with the last packets."""
        received = dict.fromkeys(PORTS, 0)
        for port, packet in all_steps:
            self._sockets[port].send(packet)
            received[port] += 1
            self._wait_until_received(port, received[port])
        sent = {port: list(self._until_last(port)) for port in PORTS}
        values = {name: self.runtime.read_register(name) for name in registers}
        return Seen(sent, values, {name: self.runtime.read_counter(name) for name in COUNTERS})

    def _wait_until_received(self, port: int, count: int) -> None:
        """Packets of different ports are otherwise taken in any order."""
        deadline = time.monotonic() + PATIENCE_S
        while self.runtime.read_counter_at("InaIngress.received", port)[0] < count:
            self.process.check()
            assert time.monotonic() < deadline, f"simple_switch did not take packet {count} of port {port}"

    def _until_last(self, port: int) -> Iterator[bytes]:
        last = last_packets()[port]
        while (packet := self._sockets[port].recv(65536)) != last:
            yield packet


@contextmanager
def running_reference(folder: Path) -> Iterator[Reference]:
    """Start `simple_switch` with a veth at each port; leave nothing behind."""
    with Ledger.open() as ledger:
        sockets = {port: port_socket(ledger, port) for port in PORTS}
        control_port = free_port()
        attached = [part for port in PORTS for part in ("-i", f"{port}@{ledger.id}-s{port}")]
        command = ["simple_switch", *attached, "--thrift-port", str(control_port), str(PROGRAM)]
        process = Process("reference", [*command, "--log-console", "-L", "warn"], control_port, folder / "bmv2.log")
        ledger.record("pid", process.pid)
        try:
            yield Reference(process, sockets)
        finally:
            process.stop()
            for end in sockets.values():
                end.close()


def port_socket(ledger: Ledger, port: int) -> socket.socket:
    """A veth pair whose one end is for the switch; a socket on the other."""
    inner, outer = f"{ledger.id}-s{port}", f"{ledger.id}-t{port}"
    ledger.record("interface", inner)
    create_pair(End(inner, f"06:00:00:00:00:{port:02x}", None), End(outer, f"06:00:00:00:01:{port:02x}", None),
                random.randrange(1 << 16, 1 << 31))  # fmt: skip
    with inside(None) as netlink:
        for name in (inner, outer):
            silence(name)
            set_up(netlink, index_of(name))
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # hears nothing before it is bound
    end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    end.settimeout(PATIENCE_S)
    end.bind((outer, ETH_P_ALL))
    return end
