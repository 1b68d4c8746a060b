"""What the parts of the kit used: of the processors between two moments, of the memory, and as series."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from inakit.traffic.measure.processors import (
    HOSTS,
    KERNEL,
    MEASURING,
    REST,
    SIMPLE_SWITCH,
    WORKERS_AND_PS,
    Part,
    Second,
    Usage,
    UsageReader,
    Usages,
    part_series,
    parts_of,
)

BEFORE = Usages(
    {1: Usage(WORKERS_AND_PS, 5.0, 100), 2: Usage(SIMPLE_SWITCH, 1.0, 10), 3: Usage(HOSTS, 0.3, 7)},
    ended_s=2.0,
    kernel_bytes=50,
    machine_bytes=1000,
)
AFTER = Usages(
    {1: Usage(WORKERS_AND_PS, 6.0, 120), 2: Usage(SIMPLE_SWITCH, 1.5, 10), 4: Usage(SIMPLE_SWITCH, 0.5, 10)},
    ended_s=2.9,
    kernel_bytes=50,
    machine_bytes=1000,
)


def test_each_part_has_what_its_processes_ran_and_hold() -> None:
    found = parts_of(BEFORE, AFTER, 2.0, kernel_s=0.4, rest_s=1.4)
    assert [part.name for part in found] == [WORKERS_AND_PS, KERNEL, SIMPLE_SWITCH, HOSTS, REST]
    assert [part.processors for part in found] == pytest.approx([0.5, 0.2, 0.5, 0.3, 0.4])
    assert [part.memory_bytes for part in found] == [120, 50, 20, 0, 1000 - 120 - 50 - 20]


def test_what_was_not_read_has_no_parts() -> None:
    assert parts_of(None, AFTER, 1.0, 0.0, 0.0) == parts_of(BEFORE, None, 1.0, 0.0, 0.0) == ()


def told(start_s: float, end_s: float, parts: tuple[Part, ...]) -> Second:
    """A second of a run on a machine with two processors."""
    return Second(start_s, end_s, processors=2, free=1.0, spare=1.0, parts=parts)


def test_series_have_a_value_of_each_part_for_each_second() -> None:
    seconds = [
        told(9.9, 11.0, (Part(REST, 0.5, 7),)),
        told(11.0, 12.0, (Part(WORKERS_AND_PS, 1.0, 3), Part(REST, 0.25, 8))),
    ]
    assert part_series(seconds, 10.0) == {
        "processors": 2,
        "starts_s": [-0.1, 1.0],
        "ends_s": [1.0, 2.0],
        "parts": {
            WORKERS_AND_PS: {"processors": [0.0, 1.0], "memory_bytes": [0, 3]},
            REST: {"processors": [0.5, 0.25], "memory_bytes": [7, 8]},
        },
    }
    assert part_series([told(0.0, 1.0, ())], 0.0) is None


def test_processes_are_read_as_psutil_has_them() -> None:
    owner = os.getppid()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        reader = UsageReader(owner)
        names = {owner: "inakit", os.getpid(): "python", child.pid: "tcpreplay", 2**22 + 1: "gone"}
        found = reader.read(names)
        assert {pid: usage.part for pid, usage in found.processes.items()} == {
            **{owner: WORKERS_AND_PS, os.getpid(): MEASURING, child.pid: HOSTS}
        }
        memory = psutil.Process(child.pid).memory_info()
        assert 0 < found.processes[child.pid].memory_bytes <= memory.rss
        assert found.machine_bytes > found.processes[os.getpid()].memory_bytes
        child.communicate(b"\n")
    assert child.pid not in reader.read(names).processes


def test_what_ended_and_was_waited_for_is_counted() -> None:
    reader, work = UsageReader(os.getpid()), "import time\nwhile time.process_time() < 0.2: pass"
    before = reader.read({os.getpid(): "inakit"})
    subprocess.run([sys.executable, "-c", work], check=True)
    time.sleep(0.02)  # the kernel's clock ticks a hundred times a second
    after = reader.read({os.getpid(): "inakit"})
    ran = {part.name: part.processors for part in parts_of(before, after, 1.0, 0.0, 0.0)}
    assert ran[HOSTS] >= 0.15
