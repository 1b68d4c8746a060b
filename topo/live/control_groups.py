"""The control groups that limit a process: where they are in the file system, and whether one has a quota."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def cpu_groups(process: int | str = "self", proc: Path = PROC, cgroups: Path = CGROUPS) -> Iterator[Path]:
    """The folders of a process's CPU groups that may exist, its own first, then those around it, of both versions."""
    return groups("cpu", process, proc, cgroups)


def groups(controller: str, process: int | str, proc: Path, cgroups: Path) -> Iterator[Path]:
    """The same for any controller: `cpu`, `pids`."""
    for line in lines(proc / str(process) / "cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0" or controller in controllers.split(","):
            own, at = Path(path.lstrip("/")), bases(number, controllers, controller, cgroups)
            yield from (base / part for base in at for part in (own, *own.parents))


def bases(number: str, controllers: str, controller: str, cgroups: Path) -> list[Path]:
    """The folders where a hierarchy may be mounted.

    Hierarchy 0 is version 2, mounted alone or as `unified`; version 1 has a hierarchy per set of controllers.
    """
    if number == "0":
        return [cgroups, cgroups / "unified"]
    return [path for path in (cgroups / controllers, cgroups / controller) if path.is_dir()][:1]


def has_quota(proc: Path = PROC, cgroups: Path = CGROUPS) -> bool:
    """Whether a group around this process limits it to a part of each period."""
    return bool(quotas(proc, cgroups))


def quotas(proc: Path = PROC, cgroups: Path = CGROUPS) -> tuple[str, ...]:
    """The quotas of the groups around this process, as the kernel writes them: "microseconds period"."""
    return tuple(quota for folder in cpu_groups("self", proc, cgroups) for quota in quota_of(folder))


def quota_of(folder: Path) -> Iterator[str]:
    """The quota of a group, if it has one.

    Without a quota, `cpu.max` of version 2 is "max 100000" and `cpu.cfs_quota_us` of version 1 is -1.
    """
    for line in (*lines(folder / "cpu.max"), *lines(folder / "cpu.cfs_quota_us")):
        if line.split()[0] not in {"max", "-1"}:
            period = lines(folder / "cpu.cfs_period_us")
            yield " ".join((line, *period))


def free_processes(proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """How many more processes and threads the groups around this process may have; None without a limit."""
    found = []
    for folder in groups("pids", "self", proc, cgroups):
        limit, now = lines(folder / "pids.max"), lines(folder / "pids.current")
        if limit and now and limit[0] != "max":
            found.append(int(limit[0]) - int(now[0]))
    return min(found, default=None)


def lines(path: Path) -> list[str]:
    """The lines of a file; none where the file cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
