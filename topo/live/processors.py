"""Which processors the parts of an emulation run on, so that packets go from one to the next side by side.

The kernel hands a packet from a sender's system call to the switches on the same processor unless told otherwise, so
that the sender would do the switches' work. So the endpoints have the first processor to themselves, and the
switches share the others: `inakit.switch.fast.load.kernel.switch_cpu` gives each of them one.
`inakit.topo.live.priority` says which thread goes first on a processor that other work wants, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inakit.topo.live.priority import ahead_of_others


def switch_processors() -> list[int]:
    """The processors of the switches: all but the first, unless there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[1:] or allowed


def endpoint_processor() -> int:
    """The processor of the endpoints: the first that this process may use."""
    return min(os.sched_getaffinity(0))


@contextmanager
def on_endpoint_processor() -> Iterator[None]:
    """Run the block, in this thread, on the processor of the endpoints and ahead of other work there."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {endpoint_processor()})
    try:
        with ahead_of_others():
            yield
    finally:
        os.sched_setaffinity(0, allowed)


def steering_file(interface: str, pid: int | None = None) -> Path:
    """Where the kernel keeps which CPUs take in what an interface receives (receive packet steering, RPS).

    The interface is in the network namespace of process `pid`, by default in this one's.
    """
    root = Path("/sys" if pid is None else f"/proc/{pid}/root/sys")
    return root / "class" / "net" / interface / "queues" / "rx-0" / "rps_cpus"


def steer_packets(interface: str, cpu: int | None, pid: int | None = None) -> None:
    """Let `cpu` take in whatever arrives at an interface, whichever CPU sent it; None leaves it to the sending CPU.

    Raises `OSError` where the kernel cannot steer packets.
    """
    steering_file(interface, pid).write_text("0" if cpu is None else cpu_mask(cpu))


def cpu_mask(cpu: int) -> str:
    """The kernel's notation of a set of one CPU: groups of 32 bits in hexadecimal, the highest first."""
    groups = [f"{1 << cpu % 32:08x}", *["00000000"] * (cpu // 32)]
    return ",".join(groups)
