"""Malformed messages, wrong numbers, sizes at the borders, many clients at once: no crash, no hang, no entry lost."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest
from own_processes import own_simple_switch
from thrift_clients import connected
from thrift_fuzzing import KEPT, Fuzz
from thrift_stations import COMMANDED

from inakit.switch.bmv2.simple_switch_process import free_port

MOST_BYTES = 400 << 20
"""What the process may take; it begins with about 100 MB."""


@pytest.mark.parametrize("seconds", [1, pytest.param(600, marks=pytest.mark.long)])
def test_a_switch_answers_whatever_clients_send(tmp_path: Path, seconds: int) -> None:
    port, log = free_port(), tmp_path / "log"
    with own_simple_switch(port, f"ipc://{tmp_path}/n", COMMANDED, log) as process:
        running = psutil.Process(process.pid)
        threads, fuzz = running.num_threads(), Fuzz(port, time.monotonic() + seconds)
        fuzz.run()
        print(f"{fuzz.calls} calls, {fuzz.broken} broken connections, {fuzz.checks} checks of all entries")
        assert fuzz.wrong == []
        assert min(fuzz.calls, fuzz.broken, fuzz.checks) > seconds
        with connected(port) as clients:
            assert clients.standard.bm_mt_get_num_entries(0, KEPT) > 0
        assert running.memory_info().rss < MOST_BYTES
        wait_for_threads(running, threads)
    assert "Traceback" not in log.read_text()


def wait_for_threads(process: psutil.Process, most: int) -> None:
    """Return once the threads of clients that are gone have ended."""
    deadline = time.monotonic() + 10
    while process.num_threads() > most:
        assert time.monotonic() < deadline, f"{process.num_threads()} threads are left"
        time.sleep(0.05)
