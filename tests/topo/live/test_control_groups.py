"""Quotas of processor time are found in the control groups of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.topo.live.priority import cpu_groups, has_quota


def machine(folder: Path, groups: str, files: dict[str, str]) -> tuple[Path, Path]:
    """/proc and /sys/fs/cgroup of a machine, as a process of these groups finds them."""
    proc, cgroups = folder / "proc", folder / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text(groups)
    for name, text in files.items():
        (cgroups / name).parent.mkdir(parents=True, exist_ok=True)
        (cgroups / name).write_text(text)
    return proc, cgroups


@pytest.mark.parametrize(
    ("groups", "files", "limited"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "max 100000\n"}, False),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, True),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, True),
        ("3:cpu,cpuacct:/a\n0::/\n", {"cpu,cpuacct/a/cpu.cfs_quota_us": "-1\n"}, False),
        ("3:cpu,cpuacct:/a\n0::/\n", {"cpu,cpuacct/a/cpu.cfs_quota_us": "50000\n"}, True),
        ("1:cpu:/\n0::/\n", {"cpu/cpu.cfs_quota_us": "50000\n"}, True),
        ("3:cpuset:/a\n", {"cpuset/a/cpu.cfs_quota_us": "50000\n"}, False),
        ("", {}, False),
    ],
)
def test_a_quota_is_found_in_any_group_around_the_process(
    tmp_path: Path, groups: str, files: dict[str, str], limited: bool
) -> None:
    assert has_quota(*machine(tmp_path, groups, files)) == limited


def test_no_group_is_known_of_a_process_that_is_gone(tmp_path: Path) -> None:
    assert list(cpu_groups(1, tmp_path, tmp_path)) == []
