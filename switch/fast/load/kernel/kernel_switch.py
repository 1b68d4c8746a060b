"""A switch whose ports are network interfaces and whose program runs in the kernel, on one CPU.

The program is at tc's ingress of every port and lets nothing through to the host's own network stack.
All ports are steered to one CPU (RPS), so that one packet at a time passes through the switch, as in
BMv2: registers need no lock. Whoever changes entries does so on that CPU as well, between two packets.
"""

from __future__ import annotations

import errno
import mmap
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from inakit.switch.fast.compile.generate import GeneratedC, generate
from inakit.switch.fast.layout.layout import ARRIVALS, GROUPS
from inakit.switch.fast.load.build import EBPF
from inakit.switch.fast.load.kernel.attach import Attachment, attach
from inakit.switch.fast.load.kernel.libbpf import (
    BpfObject,
    failure,
    map_info,
    map_items,
    remove_from_map,
    update_map,
    verified_instructions,
)
from inakit.switch.fast.load.kernel.needs import explanation, lacking, needs_of
from inakit.switch.fast.load.kernel.switch_cpu import Steering, next_cpu, on_cpu, steer
from inakit.switch.fast.load.state.shared_state import StatefulSwitch, SwitchState
from inakit.switch.program.program import Program
from inakit.switch.program.expressions import DROP_PORT
from inakit.topo.c_library import build
from inakit.topo.errors import InputError, MachineError, RunError

MEMORY_MAP = ".bss.memory"
PORT_MAP = "port_of_ifindex"
PROGRAM = "from_port"


class KernelTables:
    """Hash maps in the kernel; `map_fd` gives the descriptor of each by its symbol."""

    def __init__(self, map_fd: Callable[[str], int]) -> None:
        self.map_fd = map_fd

    def put(self, symbol: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Add (key, entry) pairs to a map with one call."""
        update_map(self.map_fd(symbol), entries)

    def remove(self, symbol: str, keys: Sequence[bytes]) -> None:
        """Remove the entries with these keys, which are there, with one call."""
        remove_from_map(self.map_fd(symbol), keys)

    def items(self, symbol: str) -> Iterator[tuple[bytes, bytes]]:
        """All (key, entry) pairs of a map, in no order."""
        return map_items(self.map_fd(symbol))


@dataclass(frozen=True)
class Compiled:
    """A program ready for the kernel, of which any number of switches can be made."""

    generated: GeneratedC
    path: Path


def compile_program(program: Program) -> Compiled:
    """`program` as an eBPF object file: the work that all of its switches share."""
    generated = generate(program)
    return Compiled(generated, build(generated.source, EBPF))


def load(path: Path) -> BpfObject:
    """Load the object into the kernel; the error names what the kernel lacks, or quotes its verifier."""
    opened = BpfObject(path)
    code = opened.load()
    if code == 0:
        return opened
    try:
        if code == -errno.EPERM:
            raise MachineError("the kernel does not let this process load eBPF programs: run as root")
        refused = failure("the kernel refuses the generated program", code)
        if missing := lacking(needs_of(opened.handle)):
            raise MachineError(explanation(missing)) from refused
        raise refused
    finally:
        opened.close()


class KernelSwitch(StatefulSwitch):
    """Runs a program on the interfaces given to `add_port`, on `cpu`, until `close`.

    `loaded` is the program in the kernel, for this switch only; without it, it is loaded now.
    """

    def __init__(
        self, compiled: Compiled, name: str = "switch", cpu: int | None = None, loaded: BpfObject | None = None
    ) -> None:
        self.name = name
        self.cpu = next_cpu() if cpu is None else cpu
        self.interfaces: dict[int, str] = {}
        self.attached: dict[int, Attachment] = {}
        self.steered: dict[int, Steering] = {}
        layout = compiled.generated.layout
        self.source = compiled.generated.source
        self.loaded = loaded or load(compiled.path)
        self.shared = mmap.mmap(self.loaded.map_fd(MEMORY_MAP), layout.memory_bytes)
        memory = np.frombuffer(self.shared, np.uint8)
        self.state = SwitchState(layout, memory, KernelTables(self.loaded.map_fd), partial(on_cpu, self.cpu))

    def add_port(self, port: int, interface: str) -> None:
        """Make `interface` the switch's port number `port`: what arrives there goes nowhere else."""
        if not 0 <= port < DROP_PORT:
            raise InputError(f"switch '{self.name}': port {port}; ports are 0 to {DROP_PORT - 1}")
        if port in self.interfaces:
            raise InputError(f"switch '{self.name}': port {port} is '{self.interfaces[port]}' already")
        ifindex = socket.if_nametoindex(interface)
        self.steered[port] = steer(interface, self.cpu)
        update_map(self.loaded.map_fd(PORT_MAP), [(ifindex.to_bytes(4, "little"), port.to_bytes(4, "little"))])
        self.state.layout.view(self.state.memory, "ports")["ifindex"][port] = ifindex
        arrival = self.state.layout.view(self.state.memory, "arrivals")[ifindex % ARRIVALS]
        if not arrival["ifindex"]:
            arrival["port"], arrival["ifindex"] = port, ifindex
        self.attached[port] = attach(ifindex, self.loaded.program_fd(PROGRAM))
        self.interfaces[port] = interface

    def remove_port(self, port: int) -> None:
        """Give the interface of a port back to the host; nothing leaves by the port any more."""
        self.attached.pop(port).remove()
        self.steered.pop(port).undo()
        del self.interfaces[port]
        ports, arrivals = (self.state.layout.view(self.state.memory, name) for name in ("ports", "arrivals"))
        ifindex = int(ports["ifindex"][port])
        ports["ifindex"][port] = 0
        arrival = arrivals[ifindex % ARRIVALS]
        if arrival["ifindex"] == ifindex:
            arrival["port"], arrival["ifindex"] = 0, 0
        remove_from_map(self.loaded.map_fd(PORT_MAP), [ifindex.to_bytes(4, "little")])

    @property
    def instructions(self) -> int:
        """How many instructions the kernel's verifier walked through, of at most 1,000,000."""
        return verified_instructions(self.loaded.program_fd(PROGRAM))

    def map_ids(self) -> dict[str, int]:
        """The kernel's ids of the memory, the groups and, by its name, each table that is a map."""
        tables = self.state.layout.tables
        symbols = {name: table.symbol for name, table in tables.items() if table.hashed}
        maps = {MEMORY_MAP: MEMORY_MAP, GROUPS: GROUPS} | symbols
        return {name: map_info(self.loaded.map_fd(symbol)).id for name, symbol in maps.items()}

    def check(self) -> None:
        """Raise `RunError` if a port lost its interface or its program, or if the program lost a packet."""
        self.check_claims()
        if lost := self.state.read_lost():
            why = "which the kernel cannot make as short as their headers say"
            if self.state.layout.copying:
                why += ", or of which more copies waited than there is room for, or that went in a loop"
            raise RunError(f"switch '{self.name}' lost {lost} packets, {why}")
        for port, interface in self.interfaces.items():
            if not Path("/sys/class/net", interface).exists():
                raise RunError(f"switch '{self.name}': interface '{interface}' of port {port} is gone")
            if not self.attached[port].is_there():
                raise RunError(f"switch '{self.name}': somebody removed the program from '{interface}' (port {port})")

    def close(self) -> None:
        """Remove the program from its interfaces and from the kernel."""
        for each in self.attached.values():
            each.remove()
        for steering in self.steered.values():
            steering.undo()
        self.interfaces, self.attached, self.steered = {}, {}, {}
        self.loaded.close()
