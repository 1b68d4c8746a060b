"""What the kernel says at one moment of who used and who waited for the processors: threads, processes, quotas.

A process of its own reads this during a run (`processor_observer`). Of every process of the machine it reads one file
by itself: psutil would take four times as long, and does not tell the class in which a process is scheduled. What the
run's own processes use comes from psutil (`own_usage`). Every source but /proc/stat and /proc/<pid>/stat is optional,
and None where the kernel does not offer it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from inakit.topo.live.control_groups import cpu_groups
from inakit.topo.live.priority import SOFTIRQ
from inakit.traffic.measure.processors.own_usage import UsageReader, Usages

KERNEL_THREADS = 2
"""The number of the process that is the parent of all threads of the kernel."""
IDLE_POLICY, BATCH_POLICY = 5, 3
"""Scheduling policies of work that is of lower priority than ordinary work."""
LOWER = 5
"""A nice value from which on a process counts as of lower priority than the endpoints, whose nice value is 0."""


class Processors(NamedTuple):
    """Seconds of all processors together since the machine began, from /proc/stat.

    `working` is what threads took, and `low` the part of it that was in programs with a nice value above 0. `softirq`
    is what interrupts took of the switches' processors, where they move packets. `stolen` is what a hypervisor gave to
    other machines. `online` is the number of processors.
    """

    idle: float
    working: float
    low: float
    softirq: float
    stolen: float
    online: int


class Thread(NamedTuple):
    """How long a thread has run, and how long it was ready to run and waited for a processor, in seconds."""

    name: str
    ran_s: float
    waited_s: float


class Process(NamedTuple):
    """A process: its name, its parent, how long it has run in seconds, and whether its priority is a lower one."""

    name: str
    parent: int
    ran_s: float
    low: bool


@dataclass(frozen=True)
class Moment:
    """What the kernel said at `at_s` of the monotonic clock.

    `processes` are found by their id and start time, `threads` by their id: the endpoints' thread under 0, the kernel's
    softirq threads, and all threads of child processes. `throttled_s`: how long a quota has kept the run from its
    processors so far. `pressure_s`: how long at least one task of the machine has waited for a processor so far.
    """

    at_s: float
    processors: Processors
    processes: Mapping[tuple[int, int], Process] = field(default_factory=dict)
    threads: Mapping[int, Thread] | None = None
    throttled_s: float | None = None
    pressure_s: float | None = None
    usages: Usages | None = None


ENDPOINTS, ENDPOINTS_NAME = 0, "endpoints"
"""The number and the name under which the endpoints' thread stands among the threads of a moment."""


@dataclass(frozen=True)
class Sources:
    """Where a moment is read from. `owner` is the process of the run, `thread` its thread that drives the endpoints.

    `processor` is the endpoints'. What interrupts take of it counts as work of that thread, because the kernel charges
    it to the thread. `usage` reads what the run's own processes use, if that is wanted.
    """

    owner: int
    thread: int
    processor: int = 0
    usage: UsageReader | None = None
    proc: Path = Path("/proc")
    cgroups: Path = Path("/sys/fs/cgroup")

    def read(self) -> Moment:
        """Read everything now."""
        at_s = time.monotonic()
        processes = dict(self.processes())
        return Moment(
            at_s=at_s,
            processors=self.processors(),
            processes=processes,
            threads=self.threads(processes),
            throttled_s=self.throttled_s(),
            pressure_s=self.pressure_s(),
            usages=self.usages(processes),
        )

    def usages(self, processes: Mapping[tuple[int, int], Process]) -> Usages | None:
        """What the run's own processes use; None where nobody reads that."""
        own = descendants(processes, self.owner)
        names = {pid: process.name for (pid, _), process in processes.items() if pid in own}
        return None if self.usage is None else self.usage.read(names)

    def processors(self) -> Processors:
        """The processors, from /proc/stat: user nice system idle iowait irq softirq steal, in ticks."""
        rows = [line.split() for line in (self.proc / "stat").read_text().splitlines() if line.startswith("cpu")]
        ticks = {name: [int(number) / TICKS_PER_S for number in numbers[:8]] for name, *numbers in rows}
        user, low, system, idle, waiting, interrupts, softirq, stolen = ticks.pop("cpu")
        own = ticks.get(f"cpu{self.processor}") if len(ticks) > 1 else None
        return Processors(
            idle=idle + waiting,
            working=user + low + system,
            low=low,
            softirq=interrupts + softirq - (own[5] + own[6] if own else 0.0),
            stolen=stolen,
            online=len(ticks),
        )

    def processes(self) -> Iterator[tuple[tuple[int, int], Process]]:
        """Every process that can be seen from here, with its id and start time."""
        for name in os.listdir(self.proc):  # noqa: PTH208, an object per entry costs more than the rest
            if name.isdigit() and (text := read(f"{self.proc}/{name}/stat")) is not None:
                started, process = parse_process(text)
                yield (int(name), started), process

    def threads(self, processes: Mapping[tuple[int, int], Process]) -> dict[int, Thread] | None:
        """The threads that do the run's work, by id; None where the kernel does not say how long threads wait."""
        endpoints = self.thread_at(f"{self.owner}/task/{self.thread}", ENDPOINTS_NAME)
        if endpoints is None:
            return None
        children = descendants(processes, self.owner) - {self.owner, os.getpid()}
        found = {ENDPOINTS: endpoints}
        for (pid, _), process in processes.items():
            if pid in children or is_softirq(process):
                found |= self.threads_of(pid, process.name)
        return found

    def threads_of(self, pid: int, name: str) -> dict[int, Thread]:
        """All threads of a process, each under the process's name."""
        try:
            numbers = os.listdir(self.proc / str(pid) / "task")  # noqa: PTH208
        except OSError:
            return {}
        found = {int(number): self.thread_at(f"{pid}/task/{number}", name) for number in numbers}
        return {number: thread for number, thread in found.items() if thread}

    def thread_at(self, place: str, name: str) -> Thread | None:
        """A thread, from its schedstat: nanoseconds run, nanoseconds waited, times begun. None if it is gone."""
        text = read(f"{self.proc}/{place}/schedstat")
        if text is None:
            return None
        ran, waited, _ = map(int, text.split())
        return Thread(name, ran / 1e9, waited / 1e9)

    def throttled_s(self) -> float | None:
        """How long a quota has kept the run from its processors: the most of all control groups around it."""
        folders = cpu_groups(self.owner, self.proc, self.cgroups)
        found = [seconds for folder in folders for seconds in throttled_times(read(f"{folder}/cpu.stat"))]
        return max(found, default=None)

    def pressure_s(self) -> float | None:
        """How long some task has waited, from /proc/pressure/cpu: the total of `some`, in microseconds."""
        text = read(f"{self.proc}/pressure/cpu")
        return int(text.split("total=")[1].split()[0]) / 1e6 if text else None


TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def read(path: str) -> str | None:
    """A small file's text; None where it is not there, or not any more, or not to be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 1 << 12).decode(errors="replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def parse_process(text: str) -> tuple[int, Process]:
    """Start time in ticks, and the process, from its /proc/<pid>/stat. Its name may hold blanks and brackets."""
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    ran, nice, policy = int(fields[11]) + int(fields[12]), int(fields[16]), int(fields[38])
    low = nice >= LOWER or policy in {IDLE_POLICY, BATCH_POLICY}
    return int(fields[19]), Process(name, int(fields[1]), ran / TICKS_PER_S, low)


def throttled_times(text: str | None) -> Iterator[float]:
    """The seconds in a control group's cpu.stat.

    Version 2 has `throttled_usec`, in microseconds, version 1 `throttled_time`, in nanoseconds.
    """
    for line in (text or "").splitlines():
        name, _, value = line.partition(" ")
        if name in THROTTLED:
            yield int(value) / THROTTLED[name]


THROTTLED = {"throttled_usec": 1e6, "throttled_time": 1e9}
"""The units of each in a second."""


def is_softirq(process: Process) -> bool:
    """Whether it is a thread of the kernel that moves packets, which it does when an interrupt would take too long."""
    return process.parent == KERNEL_THREADS and process.name.startswith(SOFTIRQ)


def descendants(processes: Mapping[tuple[int, int], Process], owner: int) -> set[int]:
    """The ids of the owner and of all processes that it started, itself or through processes that still live."""
    children: dict[int, list[int]] = {}
    for (pid, _), process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found, fresh = {owner}, [owner]
    while fresh:
        fresh = [child for pid in fresh for child in children.get(pid, ()) if child not in found]
        found.update(fresh)
    return found
