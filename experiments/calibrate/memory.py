"""The memory that a running network takes: that of its processes, and that of its eBPF maps in the kernel."""

from __future__ import annotations

from contextlib import suppress

import psutil

from inakit.traffic.measure.processors import locked_bytes


def memory_bytes() -> int:
    """The memory of this process, of all processes that it started, and of the eBPF maps and programs that it holds."""
    own = psutil.Process()
    return sum(process_bytes(process) for process in (own, *own.children(recursive=True))) + locked_bytes(own.pid)


def process_bytes(process: psutil.Process) -> int:
    """The memory of a process, of shared pages only its proportional part (PSS); 0 when the process is gone."""
    with suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0
