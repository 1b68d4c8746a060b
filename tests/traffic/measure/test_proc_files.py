"""What is read of /proc and of the control groups, from samples as kernels write them, and what where a file lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.traffic.measure.processors import ENDPOINTS, Process, Processors, Sources, Thread

OWNER, THREAD = 4711, 4712
STAT = """cpu  12073 41355 8736 33045 357 3 79 142 0 0
cpu0 4642 20515 3804 18810 35 1 9 75 0 0
cpu1 7431 20839 4931 14235 321 2 70 67 0 0
intr 1234 0 0
ctxt 99
"""


def process(name: str, parent: int, ran: tuple[int, int], started: int, nice: int = 0, policy: int = 0) -> str:
    """A line of /proc/<pid>/stat, as proc(5) has it."""
    return (
        f"1 ({name}) S {parent} 1 1 0 -1 4194560 100 0 0 0 {ran[0]} {ran[1]} 0 0 20 {nice} 1 0 {started} 1000 100 "
        f"18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 {policy} 0 0 0 0 0 0 0 0 0 0\n"
    )


PROCESSES = {
    2: process("kthreadd", 0, (0, 0), 1),
    14: process("ksoftirqd/0", 2, (0, 7), 2),
    OWNER: process("inakit", 1, (500, 100), 900),
    4800: process("simple_switch", OWNER, (30, 20), 950),
    5000: process("cc1 (plus) x", 1, (90, 10), 980, nice=19),
    5001: process("batch", 1, (90, 10), 981, policy=3),
}


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """A machine with everything that a kernel may offer."""
    proc = tmp_path / "proc"
    write(proc / "stat", STAT)
    for pid, text in PROCESSES.items():
        write(proc / str(pid) / "stat", text)
    write(proc / f"{OWNER}/task/{THREAD}/schedstat", "5000000000 250000000 77\n")
    write(proc / "14/task/14/schedstat", "70000000 30000000 9\n")
    write(proc / "4800/task/4800/schedstat", "10 0 1\n")
    write(proc / "4800/task/4803/schedstat", "500000000 40000000 5\n")
    write(proc / "5000/task/5000/schedstat", "1000000000 0 1\n")
    write(proc / f"{OWNER}/cgroup", "0::/user/run\n")
    write(proc / "pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 total=0\n")
    write(tmp_path / "cgroup/user/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 2500000\n")
    return Sources(OWNER, THREAD, proc=proc, cgroups=tmp_path / "cgroup")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_processors_are_in_seconds_of_all_together(sources: Sources) -> None:
    expected = Processors(idle=334.02, working=621.64, low=413.55, softirq=0.72, stolen=1.42, online=2)
    assert sources.processors() == pytest.approx(expected)


def test_on_a_single_processor_interrupts_are_beside_the_endpoints(sources: Sources) -> None:
    write(sources.proc / "stat", STAT.replace("cpu1", "xpu1"))
    assert sources.processors().softirq == pytest.approx(0.82)


def test_processes_have_their_names_parents_times_and_priorities(sources: Sources) -> None:
    found = sources.read().processes
    assert found[OWNER, 900] == Process("inakit", 1, 6.0, low=False)
    assert found[5000, 980] == Process("cc1 (plus) x", 1, 1.0, low=True)
    assert found[5001, 981] == Process("batch", 1, 1.0, low=True)


def test_the_threads_are_those_of_the_endpoints_of_the_kernel_and_of_child_processes(sources: Sources) -> None:
    assert sources.read().threads == {
        ENDPOINTS: Thread("endpoints", 5.0, 0.25),
        14: Thread("ksoftirqd/0", 0.07, 0.03),
        4800: Thread("simple_switch", 1e-8, 0.0),
        4803: Thread("simple_switch", 0.5, 0.04),
    }


def test_a_kernel_without_schedstat_does_not_tell_who_waited(sources: Sources) -> None:
    (sources.proc / f"{OWNER}/task/{THREAD}/schedstat").unlink()
    assert sources.read().threads is None


def test_a_kernel_without_pressure_does_not_tell_that_either(sources: Sources) -> None:
    assert sources.read().pressure_s == 1.5
    (sources.proc / "pressure/cpu").unlink()
    assert sources.read().pressure_s is None


def test_a_quota_is_that_of_the_group_that_was_throttled_longest(sources: Sources) -> None:
    assert sources.read().throttled_s == 2.5
    write(sources.cgroups / "user/run/cpu.stat", "throttled_usec 4000000\n")
    assert sources.read().throttled_s == 4.0


def test_a_quota_of_the_first_version_of_control_groups(sources: Sources) -> None:
    write(sources.proc / f"{OWNER}/cgroup", "4:cpu,cpuacct:/a\n0::/\n")
    write(sources.cgroups / "cpu,cpuacct/a/cpu.stat", "nr_periods 8\nnr_throttled 3\nthrottled_time 3000000000\n")
    assert sources.read().throttled_s == 3.0


def test_without_control_groups_no_quota_is_known(sources: Sources) -> None:
    (sources.proc / f"{OWNER}/cgroup").unlink()
    assert sources.read().throttled_s is None
