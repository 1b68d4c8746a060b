"""The memory that a running network takes: its processes', and its switches' maps in the kernel."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil


def memory_bytes() -> int:
    """Of this process and all that it started, and of the eBPF maps and programs that it holds."""
    own = psutil.Process()
    return sum(process_bytes(process) for process in (own, *own.children(recursive=True))) + locked_bytes(own.pid)


def process_bytes(process: psutil.Process) -> int:
    """Its proportional share of the pages that it shares with others; 0 when it is gone."""
    with suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0


def locked_bytes(pid: int) -> int:
    """What the kernel keeps for the eBPF objects behind a process's descriptors."""
    total = 0
    for file in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(OSError):
            lines = (line.partition(":") for line in file.read_text().splitlines())
            total += sum(int(value) for key, _, value in lines if key == "memlock")
    return total
