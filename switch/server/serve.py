"""The programs `inakit-simple-switch` and `inakit-simple-switch-grpc`: a switch with BMv2's servers, until a signal."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from inakit.switch.server.command_line import read_options
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import Options
from inakit.switch.targets import load
from inakit.topo.c_library import cache_directory
from inakit.topo.errors import InakitError, InputError, lacking_import, writing
from inakit.topo.live.signals import ENDING
from inakit.topo.ownership import given_to_owners

FAILED = 1
"""The exit code of a switch that cannot start, as in BMv2."""
THRIFT = "inakit.switch.server.thrift.listener:ThriftServer"
P4RUNTIME = "inakit.switch.server.p4runtime.service:P4RuntimeServer"


class Door(Protocol):
    """A server of one protocol."""

    def start(self) -> None:
        """Listen. Raises `MachineError`."""

    def close(self) -> None:
        """Stop listening, and end all connections."""


def simple_switch() -> None:
    """Run simple_switch with the command line of this process."""
    raise SystemExit(main(sys.argv[1:], grpc=False))


def simple_switch_grpc() -> None:
    """Run simple_switch_grpc with the command line of this process."""
    raise SystemExit(main(sys.argv[1:], grpc=True))


def main(arguments: Sequence[str], grpc: bool) -> int:
    """Run a switch until a signal ends it, and return the exit code."""
    ended = signals_as_bytes()
    try:
        with given_to_owners(), running(read_options(arguments, grpc)):
            os.read(ended, 1)
    except InakitError as error:
        print(f"Error: {error}", file=sys.stderr, flush=True)
        return FAILED
    return 0


def signals_as_bytes() -> int:
    """A descriptor that gets a byte when a signal has come that ends this process.

    A signal just before a thread waits for a lock would not wake it up.
    """
    ended, end = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(end, False)
    signal.set_wakeup_fd(end)
    for number in ENDING:
        signal.signal(number, lambda *_: None)
    return ended


@contextmanager
def running(options: Options, made: Callable[[Options], ServedSwitch] = ServedSwitch) -> Iterator[ServedSwitch]:
    """A switch, created by `made`, with its ports, its program and its servers, while the block runs."""
    with ExitStack() as stack:
        served = made(options)
        stack.callback(served.close)
        for told in options.ignored:
            served.journal.warning(f"Ignoring {told}")
        if options.program is not None:
            served.load(text_of(options.program))
            served.swap()
        for port, interface in options.interfaces.items():
            print(f"Adding interface {interface} as port {port}", flush=True)
            served.ports.add(port, interface)
        for door in doors(served):
            door.start()
            stack.callback(door.close)
        served.journal.info("The switch is ready")
        yield served


def text_of(path: Path) -> str:
    """The text of a program. Raises `InputError`."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"JSON input file {path} cannot be opened: {error}") from error


def doors(served: ServedSwitch) -> Iterator[Door]:
    """The servers of the protocols in the options."""
    options = served.options
    if options.thrift_port is not None:
        yield opened(THRIFT, served, options.thrift_port, options.device_id, options.notifications_address)
    if options.grpc_address is not None:
        yield opened(P4RUNTIME, served, options.grpc_address, options.device_id, options.tls, options.cpu_port)


def opened(name: str, *arguments: object) -> Door:
    """The server of this name; its module is imported only now, since its packages may be missing."""
    try:
        door: Door = load(name)(*arguments)
    except ImportError as error:
        if (told := lacking_import(error, "this door of the switch")) is None:
            raise
        raise told from error
    return door


ROOT = Path(__file__).parents[3]
"""The folder with the package `inakit`."""
NAMES = ("simple_switch", "simple_switch_grpc")
"""The programs in the folder; each is the name of a function of `inakit.switch.server.serve`."""


def make_shim() -> Path:
    """The folder with both programs. Each installation of the kit has its own."""
    folder = cache_directory() / f"shim-{hashlib.sha256(f'{ROOT} {sys.executable}'.encode()).hexdigest()[:8]}"
    with writing(folder):
        folder.mkdir(exist_ok=True)
        for name in NAMES:
            lines = (f"#!{sys.executable}", "import sys", f"sys.path.insert(0, {str(ROOT)!r})")
            put(folder / name, "\n".join((*lines, f"from inakit.switch.server.serve import {name}", f"{name}()", "")))
    return folder


def put(path: Path, text: str) -> None:
    """Write a program atomically: another process may start it at any moment."""
    if path.exists() and path.read_text() == text:
        return
    whole = path.with_name(f"{path.name}.{os.getpid()}")
    whole.write_text(text)
    whole.chmod(0o755)
    whole.replace(path)
