"""The kernel's counters of traffic: interfaces, queueing disciplines, and the time of each processor."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inakit.topo.errors import RunError
from inakit.traffic.measure.counters.queue_drops import QueueReader


@dataclass(frozen=True)
class InterfaceCounters:
    """Counters of one interface. A drop on receipt is counted at the receiver of a veth pair."""

    received_bytes: int
    received_packets: int
    receive_drops: int
    sent_bytes: int
    sent_packets: int
    send_drops: int


@dataclass(frozen=True)
class CpuTime:
    """The time of one processor, in ticks since some moment. What a hypervisor takes away counts as busy.

    `softirq`, in which switches of target fast work, is only sampled by the kernel, and so no more than an indication.
    """

    idle: int
    total: int
    softirq: int = 0

    def idle_since(self, earlier: CpuTime) -> float:
        """The share of the time since `earlier` that was idle, 0 to 1."""
        passed = self.total - earlier.total
        return min(1.0, (self.idle - earlier.idle) / passed) if passed else 1.0


def interfaces(pid: int | None = None) -> dict[str, InterfaceCounters]:
    """Every interface, by name, of the network namespace of process `pid`, or of this one's. Raises `RunError`."""
    path = Path("/proc", "self" if pid is None else str(pid), "net", "dev")
    try:
        lines = path.read_text().splitlines()[2:]
    except (FileNotFoundError, ProcessLookupError) as error:
        raise RunError(f"process {pid} is gone, and its host with it: start the network again") from error
    return {name.strip(): interface(numbers) for name, _, numbers in (line.partition(":") for line in lines)}


def interface(numbers: str) -> InterfaceCounters:
    """The counters in a row of /proc/net/dev: eight received (bytes, packets, errors, drops, ...), eight sent."""
    columns = [int(number) for number in numbers.split()]
    return InterfaceCounters(columns[0], columns[1], columns[3], columns[8], columns[9], columns[11])


def processor_times() -> dict[int, CpuTime]:
    """The time of each processor by its number, from /proc/stat: user nice system idle iowait irq softirq steal ...

    The kernel measures idle time. Busy time it only samples, which misses what interrupts do between two ticks of its
    clock. So all time that is not idle is taken for busy.
    """
    passed = round(time.monotonic() * os.sysconf("SC_CLK_TCK"))
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    return {
        int(name[3:]): CpuTime(int(numbers[3]) + int(numbers[4]), passed, int(numbers[6]))
        for name, *numbers in rows
        if re.fullmatch(r"cpu\d+", name)
    }


def queue_drops(pid: int | None = None) -> Mapping[str, int]:
    """Packets that the queueing disciplines of each interface dropped, in the namespace of `pid` or in this one's."""
    with QueueReader(pid) as queues:
        return queues.drops()
