"""The CPU of each switch: its choice, and the steering of all packets of the switch's ports to it."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from inakit.topo.errors import MachineError
from inakit.topo.live.priority import steer_packets, steering_file, switch_processors

turns = itertools.count()


def next_cpu() -> int:
    """The processor of the next switch: `switch_processors` in turn."""
    cpus = switch_processors()
    return cpus[next(turns) % len(cpus)]


@dataclass(frozen=True)
class Steering:
    """Steers the packets of an interface to a CPU; `before` is the kernel's earlier setting."""

    file: Path
    before: str

    def undo(self) -> None:
        """Restore the interface's earlier steering, if the interface still exists."""
        with suppress(OSError):
            self.file.write_text(self.before)


def steer(interface: str, cpu: int) -> Steering:
    """Make `cpu` process all packets that arrive at an interface, whichever CPU sent them."""
    file = steering_file(interface)
    try:
        steering = Steering(file, file.read_text())
        steer_packets(interface, cpu)
    except OSError as error:
        raise MachineError(no_steering(file, error.errno or 0)) from error
    return steering


def no_steering(file: Path, code: int) -> str:
    """The message for a kernel that cannot steer packets, by its error number."""
    read_only = code in {errno.EROFS, errno.EACCES, errno.EPERM}
    way = "mount -o remount,rw /sys, or start the container with --privileged" if read_only else "use a kernel with it"
    return (
        f"{file}: {os.strerror(code)}; target 'fast' needs receive packet steering (CONFIG_RPS) to keep a switch on "
        f"one CPU: {way}, or run on BMv2 (SWITCH=bmv2)"
    )


@contextmanager
def on_cpu(cpu: int) -> Iterator[None]:
    """Run the calling thread on `cpu` only.

    The kernel processes each packet there from beginning to end before the thread continues: while the thread runs, no
    packet is in the switch.
    """
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        raise MachineError(
            f"processor {cpu} of the switch is closed to this process: give it one of {allowed}"
        ) from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
