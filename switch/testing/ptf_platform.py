"""Runs PTF on a folder of tests: the ports belong to a switch in PTF's own process, or in the kernel.

PTF finds the platform by this file's name and folder, and gives it `PtfOptions` as JSON.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from inakit.switch.control.entry_files import fill_switch
from inakit.switch.control.simple_switch_cli import CommandedSwitch
from inakit.switch.program.program import Program
from inakit.switch.server.engines import Engine, InterpretedEngine
from inakit.switch.server.packet_sockets import BATCH, MAX_PACKET, PacketSocket
from inakit.switch.server.serve import running
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import LogOptions, Options
from inakit.switch.testing.devices import HEAD, open_wires
from inakit.topo.errors import lacking

MOST_BYTES = 1 << 16
Ends = Mapping[str, socket.socket]


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets: each packet that one sends arrives at the other."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.setblocking(False)
    return one, other


class MemorySocket(PacketSocket):
    """The switch's end of a pair. It outlives the programs that are loaded one after the other."""

    def __init__(self, interface: str, end: socket.socket) -> None:
        self.interface, self.socket = interface, end
        self.unsent: deque[bytes] = deque()

    def receive(self) -> Iterator[tuple[bool, bytes]]:
        """Up to `BATCH` packets that have arrived."""
        for _ in range(BATCH):
            try:
                yield False, self.socket.recv(MOST_BYTES)
            except BlockingIOError:
                return

    def is_there(self) -> bool:
        """True, while the process runs."""
        return True

    def close(self) -> None:
        """Keep the pair for the next program."""


class MemoryEngine(InterpretedEngine):
    """Interprets a program on `ends`, by the names of its ports."""

    ends: Ends = MappingProxyType({})

    def opened(self, interface: str) -> PacketSocket:
        """The socket of a port."""
        return MemorySocket(interface, self.ends[interface])


class MemorySwitch(ServedSwitch):
    """A served switch on `ends`; its programs are interpreted."""

    def __init__(self, options: Options, ends: Ends) -> None:
        self.ends = ends
        super().__init__(options)

    def engine_for(self, program: Program) -> Engine:
        return self.interpreted(program)

    def interpreted(self, program: Program) -> InterpretedEngine:
        options, to_cpu = self.options, self.ports.to_cpu
        engine = MemoryEngine(program, self.journal, self.clock, self.target, options.cpu_port, to_cpu, self.pcaps)
        engine.ends = self.ends
        return engine


NO_ADDRESS = b"\2\0\0\0\0"


@dataclass(frozen=True)
class PtfOptions:
    """The switch for PTF's tests. Files are absolute paths, since PTF may change its folder.

    `grpc_address` and `thrift_port` are for its controllers, if it has any; `commands` fill it at the start.
    """

    program: str | None = None
    commands: str | None = None
    ports: tuple[int, ...] = tuple(range(8))
    cpu_port: int | None = None
    grpc_address: str | None = None
    thrift_port: int | None = None
    kernel: bool = False


class PtfEnd(NamedTuple):
    """The test's end of a port: a descriptor that is readable when a packet has come, and how to receive and send."""

    descriptor: int
    recv: Callable[[], bytes]
    send: Callable[[bytes], int]


def memory_end(end: socket.socket) -> PtfEnd:
    """An end of a pair of sockets."""
    return PtfEnd(end.fileno(), lambda: end.recv(MOST_BYTES), end.send)


def tun_end(descriptor: int) -> PtfEnd:
    """The descriptor behind an interface of the switch."""
    return PtfEnd(
        descriptor,
        lambda: os.read(descriptor, MAX_PACKET)[len(HEAD) :],
        lambda packet: os.write(descriptor, HEAD + packet) - len(HEAD),
    )


class Port:
    """A port for PTF's data plane, found by the name of its interface in `ends`."""

    def __init__(self, ends: Mapping[str, PtfEnd], interface: str, device: int, port: int, _config: object) -> None:
        self.end, self.device, self.port = ends[interface], device, port

    def get_packet_source(self) -> Port:
        """The object on which PTF waits for packets."""
        return self

    def fileno(self) -> int:
        return self.end.descriptor

    def recv(self) -> tuple[int, int, bytes, float]:
        """The next packet, with its device, port and time."""
        return self.device, self.port, self.end.recv(), time.time()

    def send(self, packet: bytes) -> int:
        return self.end.send(bytes(packet))

    def mac(self) -> bytes:
        return NO_ADDRESS + bytes([self.port % 256])

    def up(self) -> None:
        """Do nothing: the port is up."""

    def down(self) -> None:
        """Refuse: these ports have no carrier that could go down."""
        raise NotImplementedError("ports of inakit's PTF platform cannot go down: use simple_switch_grpc on veths")


def start(config: dict[str, Any], options: PtfOptions, stack: ExitStack) -> None:
    """Start a switch, which runs until `stack` is closed, and add its ports to PTF's `config`."""
    made: Callable[[Options], ServedSwitch] = ServedSwitch
    if options.kernel:
        wires = stack.enter_context(open_wires(options.ports))
        names = wires.interfaces
        ends = {names[port]: tun_end(descriptor) for port, descriptor in wires.descriptors.items()}
    else:
        names = {port: f"port{port}" for port in options.ports}
        pairs = {name: pair() for name in names.values()}
        ends = {name: memory_end(end) for name, (_, end) in pairs.items()}
        made = partial(MemorySwitch, ends={name: end for name, (end, _) in pairs.items()})
    given = Options(
        program=None if options.program is None else Path(options.program),
        interfaces=names,
        thrift_port=options.thrift_port,
        grpc_address=options.grpc_address,
        cpu_port=options.cpu_port,
        swap=True,
        log=LogOptions(level="warn"),
    )
    served = stack.enter_context(running(given, made))
    if options.commands is not None:
        fill_switch(Path(options.commands), CommandedSwitch(served.control, served.queues))
    config["port_map"] = {(0, port): name for port, name in names.items()}
    config["dataplane"] = {"portclass": partial(Port, ends)}


def platform_config_update(config: dict[str, Any]) -> None:
    """Start the switch for the tests; it ends with PTF, which calls this function of its platform."""
    stack = ExitStack()
    atexit.register(stack.close)
    start(config, PtfOptions(**json.loads(config["platform_args"] or "{}")), stack)


def run_ptf(tests: Path, options: PtfOptions, more: Sequence[str] = ()) -> int:
    """Run PTF's tests in a folder against a switch with these options, and return PTF's exit code.

    `more` are further arguments of PTF, such as `--test-params` and the names of tests.
    """
    here, given = Path(__file__), json.dumps(asdict(options))
    platform = ["--platform", here.stem, "--platform-dir", str(here.parent), "--platform-args", given]
    command = [sys.executable, ptf_script(), "--test-dir", str(tests), "--allow-user", *platform, *more]
    return subprocess.run(command, check=False).returncode


def ptf_script() -> str:
    """The file of the command `ptf`; `MachineError` if it is not installed."""
    beside = Path(sys.executable).with_name("ptf")
    found = str(beside) if beside.is_file() else shutil.which("ptf")
    if found is None:
        raise lacking("ptf", "inakit switch ptf")
    return found
