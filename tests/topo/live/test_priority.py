"""The emulation goes ahead of other work for the time of a run, as far as the kernel lets it, and no longer."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from inakit.topo.live import priority
from inakit.topo.live.priority import (
    BESIDE_PRIORITY,
    ENDPOINTS_PRIORITY,
    LEAST_NICE,
    Priority,
    ahead_of_others,
    keeps_some_for_others,
    send_ahead,
    wanted,
)


def refuse_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priority, "keeps_some_for_others", lambda: False)


@pytest.mark.root
def test_the_thread_goes_first_and_gets_its_priority_back() -> None:
    before = Priority.of(0)
    with ahead_of_others():
        assert Priority.of(0).level == ENDPOINTS_PRIORITY
    assert Priority.of(0) == before


@pytest.mark.root
def test_the_priority_is_given_back_after_an_error() -> None:
    before = Priority.of(0)
    with pytest.raises(RuntimeError, match="stop"), ahead_of_others():
        raise RuntimeError("stop")
    assert Priority.of(0) == before


@pytest.mark.root
def test_what_the_thread_starts_is_ordinary() -> None:
    found: list[Priority] = []
    with ahead_of_others():
        started = threading.Thread(target=lambda: found.append(Priority.of(0)))
        started.start()
        started.join()
    assert (found[0].policy, found[0].nice) == (os.SCHED_OTHER, 0)


@pytest.mark.root
def test_threads_beside_it_come_next_and_are_ordinary_again() -> None:
    over = threading.Event()
    beside = threading.Thread(target=over.wait)
    beside.start()
    assert beside.native_id is not None
    before = Priority.of(beside.native_id)
    with ahead_of_others():
        level = Priority.of(beside.native_id).level
    after = Priority.of(beside.native_id)
    over.set()
    beside.join()
    assert (level, after) == (BESIDE_PRIORITY, before)


@pytest.mark.root
def test_where_real_time_may_stop_the_machine_the_lowest_nice_value_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_real_time(monkeypatch)
    with ahead_of_others():
        assert (Priority.of(0).level, Priority.of(0).nice) == (0, LEAST_NICE)


def test_where_the_kernel_refuses_everything_the_block_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    before = Priority.of(0)
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with ahead_of_others():
        assert Priority.of(0) == before


@pytest.mark.root
def test_a_process_that_sends_for_an_endpoint_goes_first_too() -> None:
    with subprocess.Popen(["sleep", "10"]) as process:
        send_ahead(process.pid)
        level = Priority.of(process.pid).level
        process.kill()
    assert level == ENDPOINTS_PRIORITY


@pytest.mark.root
def test_softirq_threads_go_before_the_endpoints_and_are_ordinary_again() -> None:
    threads = priority.softirq_threads()
    if not threads:
        pytest.skip("no softirq threads can be seen from here")
    with ahead_of_others():
        assert {Priority.of(thread).level for thread in threads} == {priority.SOFTIRQ_PRIORITY}
    assert {Priority.of(thread) for thread in threads} == {priority.ORDINARY}


@pytest.mark.parametrize(("text", "kept"), [("950000\n", True), ("-1\n", False)])
def test_real_time_is_used_only_where_the_kernel_keeps_some_time_for_others(
    tmp_path: Path, text: str, kept: bool
) -> None:
    limit = tmp_path / "sched_rt_runtime_us"
    limit.write_text(text)
    assert keeps_some_for_others(limit) == kept
    assert not keeps_some_for_others(tmp_path / "absent")


def test_a_quota_is_not_evaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priority, "keeps_some_for_others", lambda: True)
    monkeypatch.setattr(priority, "has_quota", lambda: True)
    assert [choice.level for choice in wanted(ENDPOINTS_PRIORITY)] == [0]
    monkeypatch.setattr(priority, "has_quota", lambda: False)
    assert [choice.level for choice in wanted(ENDPOINTS_PRIORITY)] == [ENDPOINTS_PRIORITY, 0]
