"""Use of the processors and waits for them during a run: at a moment, between two moments, by the run's own parts."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from inakit.topo.live.priority import SOFTIRQ, cpu_groups

# -- The kernel's accounts at one moment of use of and waits for processors: threads, processes, quotas.
#
# A separate process reads this during a run (`processor_observer`). It reads one file of every process of the machine
# directly: psutil would take four times as long, and lacks the scheduling class of a process. The use by the run's own
# processes comes from psutil (`UsageReader`). Every source except /proc/stat and /proc/<pid>/stat is optional, and None
# if the kernel does not offer it.

KERNEL_THREADS = 2
"""The number of the process that is the parent of all threads of the kernel."""
IDLE_POLICY, BATCH_POLICY = 5, 3
"""Scheduling policies of work with a lower priority than ordinary work."""
LOWER = 5
"""A nice value from which on a process counts as of lower priority than the endpoints, whose nice value is 0."""


class Processors(NamedTuple):
    """Seconds of all processors together since the machine's start, from /proc/stat.

    `working` is the time of threads, and `low` the part of it in programs with a nice value above 0. `softirq` is the
    time of interrupts on the switches' processors, where they move packets. `stolen` is the time that a hypervisor gave
    to other machines. `online` is the number of processors.
    """

    idle: float
    working: float
    low: float
    softirq: float
    stolen: float
    online: int


class Thread(NamedTuple):
    """The time for which a thread has run, and for which it was ready and waited for a processor, in seconds."""

    name: str
    ran_s: float
    waited_s: float


class Process(NamedTuple):
    """A process: its name, its parent, its running time in seconds, and whether its priority is low."""

    name: str
    parent: int
    ran_s: float
    low: bool


@dataclass(frozen=True)
class Moment:
    """The kernel's accounts at `at_s` of the monotonic clock.

    `processes` are found by their id and start time, `threads` by their id: the endpoints' thread under 0, the kernel's
    softirq threads, and all threads of child processes. `throttled_s`: the total time for which a quota has kept the
    run from its processors. `pressure_s`: the total time for which at least one task of the machine has waited for a
    processor.
    """

    at_s: float
    processors: Processors
    processes: Mapping[tuple[int, int], Process] = field(default_factory=dict)
    threads: Mapping[int, Thread] | None = None
    throttled_s: float | None = None
    pressure_s: float | None = None
    usages: Usages | None = None


ENDPOINTS, ENDPOINTS_NAME = 0, "endpoints"
"""The number and the name of the endpoints' thread among the threads of a moment."""


@dataclass(frozen=True)
class Sources:
    """The sources of a moment. `owner` is the process of the run, `thread` its thread that drives the endpoints.

    `processor` is the endpoints'. Interrupts on it count as work of that thread, because the kernel charges them to the
    thread. `usage`, if given, reads the use by the run's own processes.
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
        """The use by the run's own processes; None if `usage` is not given."""
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
        """Yield every visible process, with its id and start time."""
        for name in os.listdir(self.proc):  # noqa: PTH208, an object per entry costs more than the rest
            if name.isdigit() and (text := read(f"{self.proc}/{name}/stat")) is not None:
                started, process = parse_process(text)
                yield (int(name), started), process

    def threads(self, processes: Mapping[tuple[int, int], Process]) -> dict[int, Thread] | None:
        """The threads that do the run's work, by id; None if the kernel does not report waits of threads."""
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
        """The time for which a quota has kept the run from its processors: the most of all control groups around it."""
        found = []
        for folder in cpu_groups(self.owner, self.proc, self.cgroups):
            for line in (read(f"{folder}/cpu.stat") or "").splitlines():
                name, _, value = line.partition(" ")
                if name in THROTTLED:
                    found.append(int(value) / THROTTLED[name])
        return max(found, default=None)

    def pressure_s(self) -> float | None:
        """The time for which some task has waited, from the microseconds in /proc/pressure/cpu, total of `some`."""
        text = read(f"{self.proc}/pressure/cpu")
        return int(text.split("total=")[1].split()[0]) / 1e6 if text else None


TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def read(path: str) -> str | None:
    """A small file's text; None if it is missing or cannot be read."""
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
    """Start time in ticks, and the process, from its /proc/<pid>/stat. Its name can contain blanks and brackets."""
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    ran, nice, policy = int(fields[11]) + int(fields[12]), int(fields[16]), int(fields[38])
    low = nice >= LOWER or policy in {IDLE_POLICY, BATCH_POLICY}
    return int(fields[19]), Process(name, int(fields[1]), ran / TICKS_PER_S, low)


THROTTLED = {"throttled_usec": 1e6, "throttled_time": 1e9}
"""The keys of throttled time in cpu.stat of control groups of version 2 and 1, and their units in a second."""


def is_softirq(process: Process) -> bool:
    """Whether it is a softirq thread, which moves packets when an interrupt would take too long."""
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


# -- The seconds of a run: its waits for a processor, the free time, and the time of other programs in each.
#
# These are pure functions of two moments.

SCHEDSTAT, PRESSURE, IDLE = "schedstat", "pressure", "idle"
"""The evidence of waits: each thread's own account, the account of the whole machine, or only little idle time."""
LISTED = 8
"""The number of other programs recorded in each second, the greatest first."""
UNSEEN = ""
"""The name of work by no visible process."""
LEAST = 0.005
"""Other programs with a smaller share of the processors are omitted."""


@dataclass(frozen=True)
class Consumer:
    """Processes of one name outside this run: their number, and their share of all processors.

    `low`: all of them are of lower priority than the run.
    """

    name: str
    processes: int
    share: float
    low: bool


@dataclass(frozen=True)
class Second:
    """The events between two moments, a second apart.

    Shares of the time of all processors: `free`, idle or taken by others; `spare`, idle or taken by work of a low
    priority, which is known even if the other programs are not; `stolen`, given by a hypervisor to other machines.
    Shares of the second: `endpoints` and `switches`, how long the endpoints' thread, or the worst of the threads that
    move packets, was ready to run and had no processor, None if the kernel does not report it; `somebody_waited`, how
    long any task of the machine waited, an upper bound of both, None if pressure is not known; `throttled`, how long a
    quota kept the run from a processor. `parts`: the use by the parts of the kit, and by the rest of the machine.
    """

    start_s: float
    end_s: float
    processors: int
    free: float
    spare: float
    endpoints: float | None = None
    switches: float | None = None
    somebody_waited: float | None = None
    stolen: float = 0.0
    throttled: float = 0.0
    others: tuple[Consumer, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def source(self) -> str:
        """The evidence of the run's waits in this second."""
        if self.endpoints is not None:
            return SCHEDSTAT
        return PRESSURE if self.somebody_waited is not None else IDLE


def second(earlier: Moment, later: Moment, owner: int) -> Second:
    """The second between two moments of the run whose process is `owner`."""
    passed_s = max(later.at_s - earlier.at_s, 1e-9)
    capacity_s = passed_s * later.processors.online
    then, now = earlier.processors, later.processors
    took = dict(ran(earlier.processes, later.processes))
    own = descendants(later.processes, owner)
    others = {key: s for key, s in took.items() if key[0] not in own and not is_softirq(later.processes[key])}
    unseen = max(0.0, now.working - then.working - sum(took.values()))
    # The kernel charges interrupts, which are the run's work, also to the interrupted processes. So other programs had
    # at most the time that is neither idle nor the run's.
    idle = now.idle - then.idle
    own_s = sum(s for key, s in took.items() if key[0] in own) + now.softirq - then.softirq
    lent = min(sum(others.values()) + unseen, max(0.0, capacity_s - idle - own_s))
    busy_s = max(capacity_s - idle, 1e-9)
    endpoints, switches = waits(earlier.threads, later.threads, passed_s, share(sum(others.values()) + unseen, busy_s))
    return Second(
        start_s=earlier.at_s,
        end_s=later.at_s,
        processors=now.online,
        free=share(idle + lent, capacity_s),
        spare=share(idle + now.low - then.low, capacity_s),
        endpoints=endpoints,
        switches=switches,
        somebody_waited=optional_share(earlier.pressure_s, later.pressure_s, passed_s),
        stolen=share(now.stolen - then.stolen, capacity_s),
        throttled=optional_share(earlier.throttled_s, later.throttled_s, passed_s) or 0.0,
        others=consumers(others, later.processes, capacity_s, unseen),
        parts=parts_of(earlier.usages, later.usages, passed_s, now.softirq - then.softirq, lent),
    )


Processes = Mapping[tuple[int, int], Process]


def ran(earlier: Processes, later: Processes) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the running time in seconds between two moments of each live process that ran."""
    for key, process in later.items():
        seconds = process.ran_s - (earlier[key].ran_s if key in earlier else 0.0)
        if seconds > 0:
            yield key, seconds


def consumers(
    others: Mapping[tuple[int, int], float], processes: Processes, capacity_s: float, unseen_s: float
) -> tuple[Consumer, ...]:
    """The other programs with the most time, by name, the greatest first."""
    names: dict[str, list[tuple[int, int]]] = {}
    for key in others:
        names.setdefault(processes[key].name, []).append(key)
    found = [Consumer(UNSEEN, 0, share(unseen_s, capacity_s), low=False)]
    for name, keys in names.items():
        took = share(sum(others[key] for key in keys), capacity_s)
        found.append(Consumer(name, len(keys), took, low=all(processes[key].low for key in keys)))
    listed = sorted((each for each in found if each.share >= LEAST), key=lambda each: -each.share)
    return tuple(listed[:LISTED])


Threads = Mapping[int, Thread] | None


def waits(earlier: Threads, later: Threads, passed_s: float, by_others: float) -> tuple[float | None, float | None]:
    """The share of time that the endpoints' thread waited, and the greatest share of a thread that moves packets.

    The run's own processes (simple_switch, tcpreplay) also wait for each other, even in a good run. Only the part
    `by_others` of their waits counts, which is the share of other programs in all work meanwhile.
    """
    if earlier is None or later is None or ENDPOINTS not in later:
        return None, None
    found = {
        number: share(thread.waited_s - earlier[number].waited_s, passed_s) * (1 if is_alone(thread) else by_others)
        for number, thread in later.items()
        if number in earlier
    }
    return found.pop(ENDPOINTS, None), max(found.values(), default=0.0)


def is_alone(thread: Thread) -> bool:
    """Whether a thread has its processor to itself within the run, as the endpoints' and each softirq thread do."""
    return thread.name == ENDPOINTS_NAME or thread.name.startswith(SOFTIRQ)


def share(seconds: float, of_s: float) -> float:
    """A share of some time, clipped to 0 to 1, because the kernel's clocks are not read at the same moment."""
    return min(1.0, max(0.0, seconds / of_s))


def optional_share(earlier_s: float | None, later_s: float | None, of_s: float) -> float | None:
    """The growth of a count of seconds as a share of time; None if it is not known."""
    return None if earlier_s is None or later_s is None else share(later_s - earlier_s, of_s)


# -- The use by each part of the kit, and by the rest of the machine, in each second of a run.


@dataclass(frozen=True)
class Part:
    """A part in a second: its mean number of processors, and its memory at the end, in bytes."""

    name: str
    processors: float
    memory_bytes: int


def parts_of(
    earlier: Usages | None, later: Usages | None, passed_s: float, kernel_s: float, rest_s: float
) -> tuple[Part, ...]:
    """The use by each existing part between two moments; empty if it was not read.

    `kernel_s` and `rest_s`: the processor time of moving packets in the kernel, and of all but the run's live
    processes.
    """
    if earlier is None or later is None:
        return ()
    ran_s = dict.fromkeys((KERNEL, REST, *(usage.part for usage in later.processes.values())), 0.0)
    ran_s |= {KERNEL: kernel_s, REST: rest_s}
    memory = Counter({KERNEL: later.kernel_bytes})
    for pid, usage in later.processes.items():
        before = earlier.processes.get(pid)
        ran_s[usage.part] += usage.ran_s - (before.ran_s if before else 0.0)
        memory[usage.part] += usage.memory_bytes
    gone_s = sum(usage.ran_s for pid, usage in earlier.processes.items() if pid not in later.processes)
    # Processes that begin and end within a second, such as a tcpreplay, appear only in their parent's reaped time.
    ended_s = max(0.0, later.ended_s - earlier.ended_s - gone_s)
    ran_s[HOSTS] = ran_s.get(HOSTS, 0.0) + ended_s
    ran_s[REST] -= ended_s
    memory[REST] = max(0, later.machine_bytes - memory.total())
    return tuple(Part(name, max(0.0, ran_s[name]) / passed_s, memory[name]) for name in PARTS if name in ran_s)


def part_series(seconds: Sequence[Second], since_s: float) -> dict[str, Any] | None:
    """The series of all parts for `run.json`, in seconds from `since_s`; None if nothing was read."""
    told = [second for second in seconds if second.parts]
    if not told:
        return None
    found = [{part.name: part for part in second.parts} for second in told]
    none = Part("", 0.0, 0)
    return {
        "processors": told[-1].processors,
        "starts_s": [round(second.start_s - since_s, 3) for second in told],
        "ends_s": [round(second.end_s - since_s, 3) for second in told],
        "parts": {
            name: {
                "processors": [round(parts.get(name, none).processors, 4) for parts in found],
                "memory_bytes": [parts.get(name, none).memory_bytes for parts in found],
            }
            for name in PARTS
            if any(name in parts for parts in found)
        },
    }


# -- The processor time and memory of a run's processes, from psutil, each as a part of the kit.
#
# Of memory a process has what it shares with no file or other process, so that a library counts for nobody and
# nothing counts twice.

WORKERS_AND_PS = "workers and PS"
KERNEL = "switches and links in the kernel"
SIMPLE_SWITCH = "simple_switch"
HOSTS = "tcpreplay and hosts' shells"
MEASURING = "measuring"
REST = "the rest of the machine"
PARTS = (WORKERS_AND_PS, KERNEL, SIMPLE_SWITCH, HOSTS, MEASURING, REST)
"""The parts of the kit, and the rest of the machine."""


class Usage(NamedTuple):
    """The part of a process, its running time in seconds, and its memory in bytes."""

    part: str
    ran_s: float
    memory_bytes: int


@dataclass(frozen=True)
class Usages:
    """The use by a run at a moment: each process by its id, and the programs in the kernel.

    `ended_s`: the running time of ended processes that the owner has reaped. `machine_bytes`: the used memory of the
    whole machine.
    """

    processes: Mapping[int, Usage]
    ended_s: float = 0.0
    kernel_bytes: int = 0
    machine_bytes: int = 0


class UsageReader:
    """Reads the use by the processes of a run. `owner` is the process of the run and its endpoints."""

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.known: dict[int, psutil.Process] = {}
        self.kernel_bytes = locked_bytes(owner)
        """The programs and maps in the kernel, which do not change during a run."""

    def read(self, names: Mapping[int, str]) -> Usages:
        """The present use by these processes, all of the run, given by their ids and names."""
        self.known = {pid: process for pid in names if (process := self.known.get(pid) or process_of(pid))}
        processes, ended_s = dict[int, Usage](), 0.0
        for pid, process in self.known.items():
            with suppress(psutil.Error):  # it has ended meanwhile
                times, memory = process.cpu_times(), process.memory_info()
                part = self.part_of(pid, names[pid])
                processes[pid] = Usage(part, times.user + times.system, memory.rss - memory.shared)
                if pid == self.owner:
                    ended_s = times.children_user + times.children_system
        return Usages(processes, ended_s, self.kernel_bytes, psutil.virtual_memory().used)

    def part_of(self, pid: int, name: str) -> str:
        """The part of the kit that a process of the run belongs to."""
        if pid == self.owner:
            return WORKERS_AND_PS
        if pid == os.getpid() or name == "tcpdump":
            return MEASURING
        return SIMPLE_SWITCH if name.startswith(SIMPLE_SWITCH) else HOSTS


def process_of(pid: int) -> psutil.Process | None:
    """The process with this id; None if it is gone."""
    with suppress(psutil.Error):
        return psutil.Process(pid)
    return None


def locked_bytes(pid: int) -> int:
    """The memory that the kernel keeps for the eBPF maps and programs to which a process has descriptors."""
    total = 0
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/fdinfo").iterdir():
            with suppress(OSError):
                lines = (line.partition(":") for line in file.read_text().splitlines())
                total += sum(int(value) for key, _, value in lines if key == "memlock")
    return total
