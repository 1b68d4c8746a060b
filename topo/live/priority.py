"""An emulation's use of the processors: priorities of threads, processors of its parts, control groups."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# -- The control groups that limit a process: their folders, and their quotas.

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def cpu_groups(process: int | str = "self", proc: Path = PROC, cgroups: Path = CGROUPS) -> Iterator[Path]:
    """The possible folders of a process's CPU groups, its own first, then the enclosing ones, of both versions."""
    return groups("cpu", process, proc, cgroups)


def groups(controller: str, process: int | str, proc: Path, cgroups: Path) -> Iterator[Path]:
    """Yield the possible folders of a process's groups for a controller such as `cpu` or `pids`."""
    for line in lines(proc / str(process) / "cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0" or controller in controllers.split(","):
            own, at = Path(path.lstrip("/")), bases(number, controllers, controller, cgroups)
            yield from (base / part for base in at for part in (own, *own.parents))


def bases(number: str, controllers: str, controller: str, cgroups: Path) -> list[Path]:
    """The possible mount points of a hierarchy.

    Hierarchy 0 is version 2, mounted alone or as `unified`; version 1 has a hierarchy per set of controllers.
    """
    if number == "0":
        return [cgroups, cgroups / "unified"]
    return [path for path in (cgroups / controllers, cgroups / controller) if path.is_dir()][:1]


def has_quota(proc: Path = PROC, cgroups: Path = CGROUPS) -> bool:
    """Whether a group around this process limits its processor time."""
    return bool(quotas(proc, cgroups))


def quotas(proc: Path = PROC, cgroups: Path = CGROUPS) -> tuple[str, ...]:
    """The quotas of the groups around this process, as the kernel writes them: "microseconds period"."""
    found = []
    for folder in cpu_groups("self", proc, cgroups):
        # Without a quota, `cpu.max` of version 2 is "max 100000" and `cpu.cfs_quota_us` of version 1 is -1.
        for line in (*lines(folder / "cpu.max"), *lines(folder / "cpu.cfs_quota_us")):
            if line.split()[0] not in {"max", "-1"}:
                found.append(" ".join((line, *lines(folder / "cpu.cfs_period_us"))))
    return tuple(found)


def free_processes(proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """The number of processes and threads that the groups around this process can still start; None without a limit."""
    found = []
    for folder in groups("pids", "self", proc, cgroups):
        limit, now = lines(folder / "pids.max"), lines(folder / "pids.current")
        if limit and now and limit[0] != "max":
            found.append(int(limit[0]) - int(now[0]))
    return min(found, default=None)


def lines(path: Path) -> list[str]:
    """The lines of a file; empty if the file cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


# -- Priorities of threads: during a run the emulation takes precedence over other work on the same processor.
#
# The thread of the endpoints sleeps most of the time and must run soon after it wakes. The kernel's softirq threads
# move the switches' packets when that takes too long for an interrupt. At equal priority both would wait for
# milliseconds behind other work, unlike packets in a real network.
#
# A thread of a real-time class runs before all ordinary work of any session or control group; a nice value counts only
# within its own group. Real-time threads cannot stop the machine: the kernel reserves 5 % of each second for ordinary
# work (/proc/sys/kernel/sched_rt_runtime_us), and softirq threads run before the endpoints, as interrupts do. Threads
# that a raised thread starts are ordinary. If the kernel refuses a real-time class, the lowest nice value is used.

BESIDE_PRIORITY, ENDPOINTS_PRIORITY, SOFTIRQ_PRIORITY = 1, 2, 3
"""The lowest priorities of the real-time class SCHED_RR. Other threads of this process come after the endpoints'
thread but before other work: one of them may hold the interpreter, for which the endpoints wait.
"""
LEAST_NICE = -20
REAL_TIME_LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")
"""Microseconds of each second that real-time threads of a processor can use; -1: all."""
SOFTIRQ = "ksoftirqd/"


@dataclass(frozen=True)
class Priority:
    """The scheduling class and priority of a thread."""

    policy: int
    level: int
    nice: int

    @classmethod
    def of(cls, thread: int) -> Priority:
        """The present priority of a thread. Raises `ProcessLookupError` when the thread is gone."""
        level = os.sched_getparam(thread).sched_priority
        return cls(os.sched_getscheduler(thread), level, os.getpriority(os.PRIO_PROCESS, thread))


ORDINARY = Priority(os.SCHED_OTHER, 0, 0)
"""The default priority of the kernel's softirq threads."""


def wanted(level: int) -> tuple[Priority, ...]:
    """The priorities to try for a thread of the emulation, the best first. Threads that it starts are ordinary.

    A control group's quota does not bind real-time threads; they are not used under a quota, so as not to evade it.
    """
    nice = Priority(os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, 0, LEAST_NICE)
    real_time = Priority(os.SCHED_RR | os.SCHED_RESET_ON_FORK, level, 0)
    return (real_time, nice) if keeps_some_for_others() and not has_quota() else (nice,)


def keeps_some_for_others(limit: Path = REAL_TIME_LIMIT) -> bool:
    """Whether the kernel reserves processor time for ordinary threads."""
    try:
        return int(limit.read_text()) >= 0
    except OSError:
        return False


@contextmanager
def ahead_of_others() -> Iterator[None]:
    """Run this process's threads and the kernel's softirq threads before other work during the block."""
    with ExitStack() as stack:
        for thread in softirq_threads():
            stack.enter_context(raised(thread, wanted(SOFTIRQ_PRIORITY), ORDINARY))
        for thread, before in other_threads():
            stack.enter_context(raised(thread, wanted(BESIDE_PRIORITY), before))
        stack.enter_context(raised(0, wanted(ENDPOINTS_PRIORITY), Priority.of(0)))
        yield


def other_threads() -> list[tuple[int, Priority]]:
    """All threads of this process except the calling one, and the present priority of each."""
    numbers = {int(folder.name) for folder in Path("/proc/self/task").iterdir()} - {threading.get_native_id()}
    found = []
    for number in sorted(numbers):
        with suppress(ProcessLookupError):
            found.append((number, Priority.of(number)))
    return found


@contextmanager
def raised(thread: int, choices: Sequence[Priority], before: Priority) -> Iterator[None]:
    """Give `thread` the first priority of `choices` that the kernel allows; restore `before` after the block."""
    if not any(given(thread, choice) for choice in choices):
        yield
        return
    try:
        yield
    finally:
        given(thread, before)


def send_ahead(process: int) -> None:
    """Run a helper process that sends for an endpoint before other work, if the kernel allows it."""
    any(given(process, choice) for choice in wanted(ENDPOINTS_PRIORITY))


def given(thread: int, priority: Priority) -> bool:
    """Set the priority of `thread`; return whether the kernel allowed it."""
    try:
        os.sched_setscheduler(thread, priority.policy, os.sched_param(priority.level))
        os.setpriority(os.PRIO_PROCESS, thread, priority.nice)
    except (PermissionError, ProcessLookupError):
        return False
    return True


def softirq_threads(proc: Path = PROC) -> list[int]:
    """The kernel's softirq threads, one per processor; empty in a container that sees only its own processes."""
    found = (folder for folder in proc.iterdir() if folder.name.isdigit())
    return sorted(int(folder.name) for folder in found if is_softirq(folder))


def is_softirq(folder: Path) -> bool:
    """Whether a folder of /proc belongs to a softirq thread; kernel threads have no command line."""
    try:
        name = (folder / "comm").read_text()
        return name.startswith(SOFTIRQ) and not (folder / "cmdline").read_bytes()
    except OSError:
        return False


# -- The processors of an emulation's parts, which work in parallel.
#
# By default the kernel processes a sent packet in the switches on the sender's processor, so that the sender would do
# the switches' work. Therefore the endpoints have the first processor to themselves, and the switches share the others:
# `inakit.switch.fast.load.kernel.switch_cpu` gives each of them one.


def switch_processors() -> list[int]:
    """The processors of the switches: all but the first, unless there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[1:] or allowed


def endpoint_processor() -> int:
    """The processor of the endpoints: the first that this process may use."""
    return min(os.sched_getaffinity(0))


@contextmanager
def on_endpoint_processor() -> Iterator[None]:
    """Run the block in this thread on the endpoints' processor, before other work there."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {endpoint_processor()})
    try:
        with ahead_of_others():
            yield
    finally:
        os.sched_setaffinity(0, allowed)


def steering_file(interface: str, pid: int | None = None) -> Path:
    """The kernel's file of the CPUs that process an interface's received packets (receive packet steering, RPS).

    The interface is in the network namespace of process `pid`, by default of this process.
    """
    root = Path("/sys" if pid is None else f"/proc/{pid}/root/sys")
    return root / "class" / "net" / interface / "queues" / "rx-0" / "rps_cpus"


def steer_packets(interface: str, cpu: int | None, pid: int | None = None) -> None:
    """Let `cpu` process all packets that arrive at an interface; None leaves them to the sending CPU.

    Raises `OSError` if the kernel cannot steer packets.
    """
    steering_file(interface, pid).write_text("0" if cpu is None else cpu_mask(cpu))


def cpu_mask(cpu: int) -> str:
    """The kernel's notation of a set of one CPU: groups of 32 bits in hexadecimal, the highest first."""
    groups = [f"{1 << cpu % 32:08x}", *["00000000"] * (cpu // 32)]
    return ",".join(groups)
