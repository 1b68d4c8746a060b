"""A switch whose ports are network interfaces and whose program runs in the kernel, on one CPU.

The program is at tc's ingress of every port and passes nothing to the host's own network stack. All ports are steered
to one CPU (RPS), so that one packet at a time passes through the switch, as in BMv2, and registers need no lock.
Entries change on that CPU too, between two packets.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import socket
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from inakit.switch.fast.compile.generate import EBPF, GeneratedC, generate
from inakit.switch.fast.layout.layout import ARRIVALS, GROUPS, ProgramLayout
from inakit.switch.fast.load.kernel_needs import explanation, lacking, needs_of
from inakit.switch.fast.load.libbpf import (
    BpfObject,
    failure,
    library,
    map_info,
    map_items,
    must,
    open_map,
    remove_from_map,
    update_map,
    verified_instructions,
)
from inakit.switch.fast.load.shared_state import CompiledSwitch, StateReader, SwitchState
from inakit.switch.fast.load.switch_cpu import Steering, next_cpu, on_cpu, steer
from inakit.switch.handle import Handle
from inakit.switch.program.program import DROP_PORT, Program
from inakit.topo.c_library import build
from inakit.topo.errors import InputError, MachineError, RunError

INGRESS, EGRESS = 1, 2  # enum bpf_tc_attach_point
REPLACE = 1  # BPF_TC_F_REPLACE
TCX_INGRESS, TCX_EGRESS = 46, 47  # enum bpf_attach_type
LINK_INFO_BYTES, LINK_IFINDEX_AT = 64, 16  # struct bpf_link_info: type, id, prog_id, padding, tcx.ifindex


class Attachment(Protocol):
    """A program on an interface."""

    def is_there(self) -> bool:
        """Whether the interface's packets still pass through the program."""

    def remove(self) -> None:
        """Detach the program; do nothing if the interface is gone."""


def attach(ifindex: int, program_fd: int) -> Attachment:
    """Make all packets that arrive at an interface pass through a program; `InputError` if it has another one."""
    count = linked(ifindex, TCX_INGRESS)
    if count is None:
        return Filter(ifindex, program_fd, INGRESS)
    if count:
        name = ctypes.create_string_buffer(16)
        ctypes.CDLL(None).if_indextoname(ifindex, name)
        raise InputError(f"interface '{name.value.decode()}' is the port of another switch: give each its own")
    return link(ifindex, program_fd, TCX_INGRESS)


def attach_egress(ifindex: int, program_fd: int) -> Attachment:
    """Make all packets that leave by an interface with an attached program pass through another one."""
    if linked(ifindex, TCX_EGRESS) is None:
        return Filter(ifindex, program_fd, EGRESS)
    return link(ifindex, program_fd, TCX_EGRESS)


def linked(ifindex: int, where: int) -> int | None:
    """The number of programs linked to an interface; None if the kernel has no such links."""
    count = ctypes.c_uint32()
    found = library().bpf_prog_query(ifindex, where, 0, None, None, ctypes.byref(count))
    return None if found < 0 else count.value


def link(ifindex: int, program_fd: int, where: int) -> Link:
    return Link(must(f"attaching to interface {ifindex}", library().bpf_link_create(program_fd, ifindex, where, None)))


class Link:
    """A program that is linked to an interface until `remove`, or until this process ends."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def is_there(self) -> bool:
        """Whether the interface's packets still pass through the program."""
        about, size = ctypes.create_string_buffer(LINK_INFO_BYTES), ctypes.c_uint32(LINK_INFO_BYTES)
        code = library().bpf_obj_get_info_by_fd(self.descriptor, about, ctypes.byref(size))
        return code == 0 and about.raw[LINK_IFINDEX_AT : LINK_IFINDEX_AT + 4] != bytes(4)

    def remove(self) -> None:
        """Detach the program."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


class TcHook(ctypes.Structure):
    """struct bpf_tc_hook"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("ifindex", ctypes.c_int),
        ("attach_point", ctypes.c_int),
        ("parent", ctypes.c_uint32),
    ]


class TcOptions(ctypes.Structure):
    """struct bpf_tc_opts"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("program_fd", ctypes.c_int),
        ("flags", ctypes.c_uint32),
        ("program_id", ctypes.c_uint32),
        ("handle", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
    ]


class Filter:
    """A program that is a filter of an interface until `remove`."""

    def __init__(self, ifindex: int, program_fd: int, where: int) -> None:
        self.ifindex, self.where = ifindex, where
        hook, options = self.hook(where), tc_options(program_fd, REPLACE)
        code = library().bpf_tc_hook_create(ctypes.byref(hook))
        if code != -errno.EEXIST:
            must(f"adding clsact to interface {ifindex}", code)
        must(f"attaching to interface {ifindex}", library().bpf_tc_attach(ctypes.byref(hook), ctypes.byref(options)))
        self.program_id = options.program_id

    def hook(self, attach_point: int) -> TcHook:
        """The place on the interface at which libbpf looks for filters."""
        return TcHook(ctypes.sizeof(TcHook), self.ifindex, attach_point, 0)

    def is_there(self) -> bool:
        """Whether the interface's packets still pass through the program."""
        hook, options = self.hook(self.where), tc_options()
        found = int(library().bpf_tc_query(ctypes.byref(hook), ctypes.byref(options))) == 0
        return found and options.program_id == self.program_id

    def remove(self) -> None:
        """Remove the program, and at ingress the qdisc too; do nothing if the interface is gone."""
        if self.where == EGRESS:
            hook, options = self.hook(EGRESS), tc_options()
            library().bpf_tc_detach(ctypes.byref(hook), ctypes.byref(options))
            return
        hook = self.hook(INGRESS | EGRESS)
        library().bpf_tc_hook_destroy(ctypes.byref(hook))


def tc_options(program_fd: int = 0, flags: int = 0) -> TcOptions:
    """The options of the switch's own filter, which has priority and handle 1."""
    return TcOptions(ctypes.sizeof(TcOptions), program_fd, flags, 0, 1, 1)


MEMORY_MAP = ".bss.memory"
PORT_MAP = "port_of_ifindex"
PROGRAM = "from_port"


class KernelTables:
    """Hash maps in the kernel; `map_fd` gives the descriptor of each, by its symbol."""

    def __init__(self, map_fd: Callable[[str], int]) -> None:
        self.map_fd = map_fd

    def put(self, symbol: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Add (key, entry) pairs to a map with one call."""
        update_map(self.map_fd(symbol), entries)

    def remove(self, symbol: str, keys: Sequence[bytes]) -> None:
        """Remove the entries with these existing keys with one call."""
        remove_from_map(self.map_fd(symbol), keys)

    def items(self, symbol: str) -> Iterator[tuple[bytes, bytes]]:
        """All (key, entry) pairs of a map, in any order."""
        return map_items(self.map_fd(symbol))


@dataclass(frozen=True)
class Compiled:
    """A program that is ready for the kernel; any number of switches can be made of it."""

    generated: GeneratedC
    path: Path


def compile_program(program: Program) -> Compiled:
    """Compile `program` to an eBPF object file, which all of its switches share."""
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


class KernelSwitch(CompiledSwitch):
    """Runs a program on the interfaces given to `add_port`, on `cpu`, until `close`.

    `loaded` is the program in the kernel, for this switch only; if it is None, the program is loaded now.
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
        """Make `interface` the switch's port number `port`; its packets reach only the switch."""
        if not 0 <= port < DROP_PORT:
            raise InputError(f"switch '{self.name}': port {port}; ports are 0 to {DROP_PORT - 1}")
        if port in self.interfaces:
            raise InputError(f"switch '{self.name}': port {port} is already '{self.interfaces[port]}'")
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
        """Return the interface of a port to the host; no packet leaves by the port any more."""
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
        """The number of instructions that the kernel's verifier checked, of at most 1,000,000."""
        return verified_instructions(self.loaded.program_fd(PROGRAM))

    def map_ids(self) -> dict[str, int]:
        tables = self.state.layout.tables
        symbols = {name: table.symbol for name, table in tables.items() if table.hashed}
        maps = {MEMORY_MAP: MEMORY_MAP, GROUPS: GROUPS} | symbols
        return {name: map_info(self.loaded.map_fd(symbol)).id for name, symbol in maps.items()}

    def check(self) -> None:
        """Raise `RunError` if a port lost its interface or its program, or the program lost a packet."""
        self.check_claims()
        if lost := self.state.read_lost():
            why = "which the kernel cannot shorten to their headers"
            if self.state.layout.copying:
                why += ", or which had more waiting copies than fit, or looped"
            raise RunError(f"switch '{self.name}' lost {lost} packets, {why}")
        for port, interface in self.interfaces.items():
            if not Path("/sys/class/net", interface).exists():
                raise RunError(f"switch '{self.name}': interface '{interface}' of port {port} is gone")
            if not self.attached[port].is_there():
                raise RunError(
                    f"switch '{self.name}': another process removed the program from '{interface}' (port {port})"
                )

    def close(self) -> None:
        """Remove the program from its interfaces and from the kernel."""
        for each in self.attached.values():
            each.remove()
        for steering in self.steered.values():
            steering.undo()
        self.interfaces, self.attached, self.steered = {}, {}, {}
        self.loaded.close()


class KernelView(StateReader):
    """The state of the switch that gave `handle` and runs `program`; each call reads it anew."""

    def __init__(self, handle: Handle, program: Program) -> None:
        layout = ProgramLayout(program)
        symbols = {GROUPS: GROUPS} | {name: table.symbol for name, table in layout.tables.items()}
        opened = {name: open_map(number) for name, number in handle["maps"].items()}
        weakref.finalize(self, lambda descriptors: [*map(os.close, descriptors)], list(opened.values()))
        shared = mmap.mmap(opened[MEMORY_MAP], layout.memory_bytes, prot=mmap.PROT_READ)
        maps = {symbols[name]: descriptor for name, descriptor in opened.items() if name != MEMORY_MAP}
        super().__init__(layout, np.frombuffer(shared, np.uint8), KernelTables(maps.__getitem__))


HOST_PROGRAM = "from_host"
SOURCE = '#include "host_packets.h"\n'


class HostPackets:
    """Makes packets that this host sends by a switch's interfaces arrive at the switch, until `close`."""

    def __init__(self) -> None:
        self.loaded = BpfObject(build(SOURCE, EBPF))
        self.attached: dict[str, Attachment] = {}
        if code := self.loaded.load():
            self.loaded.close()
            raise failure("loading what takes in the host's packets", code)

    def take_in(self, interface: str) -> None:
        """Make packets that the host sends by an interface arrive at the switch too."""
        program = self.loaded.program_fd(HOST_PROGRAM)
        self.attached[interface] = attach_egress(socket.if_nametoindex(interface), program)

    def leave(self, interface: str) -> None:
        """Stop taking in packets that the host sends by an interface."""
        self.attached.pop(interface).remove()

    def close(self) -> None:
        for interface in list(self.attached):
            self.leave(interface)
        self.loaded.close()
