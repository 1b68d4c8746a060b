"""Priorities of threads: for the time of a run the emulation goes before other work that wants the same processor.

The thread of the endpoints sleeps most of the time and must run soon after it wakes. The kernel's softirq threads
move the switches' packets when that takes longer than an interrupt may. Behind other work of equal priority both would
wait for milliseconds at a time, which no network does.

In a real-time class a thread goes before all ordinary work, whatever session or control group that belongs to; a nice
value counts only within its own group. Real-time threads cannot stop the machine: the kernel leaves ordinary work 5 %
of each second (/proc/sys/kernel/sched_rt_runtime_us), and softirq threads go before the endpoints, as interrupts do
anyway. Threads that a raised thread starts are ordinary again. Where the kernel refuses a real-time class, the lowest
nice value is the next best.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from inakit.topo.live.control_groups import PROC, has_quota

BESIDE_PRIORITY, ENDPOINTS_PRIORITY, SOFTIRQ_PRIORITY = 1, 2, 3
"""The lowest priorities of the real-time class SCHED_RR. Other threads of this process come after the endpoints'
thread but before other work: one of them may hold the interpreter, for which the endpoints wait.
"""
LEAST_NICE = -20
REAL_TIME_LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")
"""Microseconds of each second that all real-time threads of a processor may take; -1 where they may take all."""
SOFTIRQ = "ksoftirqd/"


@dataclass(frozen=True)
class Priority:
    """How a thread is scheduled."""

    policy: int
    level: int
    nice: int

    @classmethod
    def of(cls, thread: int) -> Priority:
        """The present priority of a thread. Raises `ProcessLookupError` when the thread is gone."""
        level = os.sched_getparam(thread).sched_priority
        return cls(os.sched_getscheduler(thread), level, os.getpriority(os.PRIO_PROCESS, thread))


ORDINARY = Priority(os.SCHED_OTHER, 0, 0)
"""What the kernel gives its softirq threads."""


def wanted(level: int) -> tuple[Priority, ...]:
    """The priorities to try for a thread of the emulation, the best first. Threads that it starts are ordinary.

    Real-time threads are not bound by a quota of a control group, so they are not used under one: it would be evaded.
    """
    nice = Priority(os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, 0, LEAST_NICE)
    real_time = Priority(os.SCHED_RR | os.SCHED_RESET_ON_FORK, level, 0)
    return (real_time, nice) if keeps_some_for_others() and not has_quota() else (nice,)


def keeps_some_for_others(limit: Path = REAL_TIME_LIMIT) -> bool:
    """Whether the kernel keeps real-time threads from taking all of a processor's time."""
    try:
        return int(limit.read_text()) >= 0
    except OSError:
        return False


@contextmanager
def ahead_of_others() -> Iterator[None]:
    """Let this thread, those beside it and the kernel's softirq threads go before other work during the block."""
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
    """Give `thread` the first of the priorities that the kernel allows, and `before` again after the block."""
    if not any(given(thread, choice) for choice in choices):
        yield
        return
    try:
        yield
    finally:
        given(thread, before)


def send_ahead(process: int) -> None:
    """Let a helper process that sends for an endpoint go before other work, as far as the kernel allows it."""
    any(given(process, choice) for choice in wanted(ENDPOINTS_PRIORITY))


def given(thread: int, priority: Priority) -> bool:
    """Whether the kernel let `thread` have the priority."""
    try:
        os.sched_setscheduler(thread, priority.policy, os.sched_param(priority.level))
        os.setpriority(os.PRIO_PROCESS, thread, priority.nice)
    except (PermissionError, ProcessLookupError):
        return False
    return True


def softirq_threads(proc: Path = PROC) -> list[int]:
    """The kernel's softirq threads, one per processor; none in a container that sees only its own processes."""
    found = (folder for folder in proc.iterdir() if folder.name.isdigit())
    return sorted(int(folder.name) for folder in found if is_softirq(folder))


def is_softirq(folder: Path) -> bool:
    """Whether a folder of /proc is that of a softirq thread: a thread of the kernel has no command line."""
    try:
        name = (folder / "comm").read_text()
        return name.startswith(SOFTIRQ) and not (folder / "cmdline").read_bytes()
    except OSError:
        return False
