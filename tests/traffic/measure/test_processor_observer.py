"""The process that looks at the processors: what it sees of this process, of others, and how it ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hogs import NAME, hogs

from inakit.topo.errors import RunError
from inakit.traffic.measure.contention import overload_reasons
from inakit.traffic.measure.processor_observer import Observer, from_json
from inakit.traffic.measure.processors import Consumer
from inakit.traffic.measure.verdict import Limits


def work(seconds: float) -> None:
    """Keep this thread's processor busy."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@contextmanager
def called(name: str) -> Iterator[None]:
    """Give this process another name in /proc during the block."""
    comm = Path("/proc/self/comm")
    before = comm.read_text()
    comm.write_text(name)
    try:
        yield
    finally:
        comm.write_text(before)


def test_every_second_is_told_and_this_process_is_not_among_the_others() -> None:
    with called("own-run"), Observer(period_s=0.1) as observer:
        work(0.3)
    assert len(observer.seconds) >= 2
    assert all(second.endpoints is not None for second in observer.seconds)
    assert observer.seconds == sorted(observer.seconds, key=lambda second: second.start_s)
    assert all("workers and PS" in {part.name for part in second.parts} for second in observer.seconds)
    assert sum(part.processors for second in observer.seconds for part in second.parts) > 0
    assert "own-run" not in {each.name for second in observer.seconds for each in second.others}


@pytest.mark.alone
def test_others_are_told_by_name_number_and_priority() -> None:
    with hogs(2, nice=19), Observer(period_s=0.3) as observer:
        time.sleep(0.5)
    (found,) = [each for each in observer.seconds[0].others if each.name == NAME]
    assert (found.processes, found.low) == (2, True)


GROUPS = Path("/sys/fs/cgroup/cpu")


@contextmanager
def quota(share: float) -> Iterator[None]:
    """Let this process run for a share of each period only, in a control group of its own."""
    own = GROUPS / f"inakit-{os.getpid()}"
    own.mkdir()
    try:
        (own / "cpu.cfs_quota_us").write_text(str(round(share * 100_000)))
        (own / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (GROUPS / "cgroup.procs").write_text(str(os.getpid()))
        own.rmdir()


@pytest.mark.root
@pytest.mark.skipif(not (GROUPS / "cgroup.procs").is_file(), reason="no CPU groups of version 1")
def test_a_quota_is_felt_and_named() -> None:
    with quota(0.3), Observer(period_s=0.5) as observer:
        work(0.25)
    found = [each for each in overload_reasons(observer.seconds, Limits()) if "quota" in each]
    assert found[0].startswith("a quota of CPU time kept the emulation waiting")


def test_a_run_whose_observer_died_is_not_judged() -> None:
    with (
        pytest.raises(RunError, match="the process that observes the processors ended with -9"),
        Observer() as observer,
    ):
        os.kill(observer.process.pid, signal.SIGKILL)


def test_an_error_of_the_run_is_not_hidden_by_the_observers_end() -> None:
    with pytest.raises(ValueError, match="of the run"), Observer() as observer:
        os.kill(observer.process.pid, signal.SIGKILL)
        raise ValueError("of the run")


def test_a_second_is_read_as_it_was_written() -> None:
    with Observer(period_s=0.05) as observer:
        time.sleep(0.1)
    assert all(isinstance(consumer, Consumer) for second in observer.seconds for consumer in second.others)
    assert from_json('{"start_s": 0, "end_s": 1, "processors": 2, "free": 1, "spare": 1, "others": []}').others == ()
