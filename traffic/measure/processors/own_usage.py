"""What the processes of a run use of the processors and of the memory, by psutil, each as a part of the kit.

Of memory a process has what it shares with no file or other process, so that a library counts for nobody and nothing
counts twice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

ENDPOINTS = "workers and PS"
KERNEL = "switches and links in the kernel"
SIMPLE_SWITCH = "simple_switch"
HOSTS = "tcpreplay and hosts' shells"
MEASURING = "measuring"
REST = "the rest of the machine"
PARTS = (ENDPOINTS, KERNEL, SIMPLE_SWITCH, HOSTS, MEASURING, REST)
"""The parts of the kit, and what is not of the kit."""


class Usage(NamedTuple):
    """The part that a process belongs to, for how many seconds it has run, and its memory in bytes."""

    part: str
    ran_s: float
    memory_bytes: int


@dataclass(frozen=True)
class Usages:
    """What a run uses at a moment: each process by its id, and the programs in the kernel.

    `ended_s`: for how long those ran that have ended and that the owner has waited for. `machine_bytes`: the memory
    that the whole machine uses.
    """

    processes: Mapping[int, Usage]
    ended_s: float = 0.0
    kernel_bytes: int = 0
    machine_bytes: int = 0


class UsageReader:
    """Reads what the processes of a run use. `owner` is the process of the run, in which its endpoints are."""

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.known: dict[int, psutil.Process] = {}
        self.kernel_bytes = locked_bytes(owner)
        """The programs and maps in the kernel, which stay as they are during a run."""

    def read(self, names: Mapping[int, str]) -> Usages:
        """What these processes use now, which are all of the run, by their ids and names."""
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
            return ENDPOINTS
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
