"""What a sandboxed process may use, and the part of it that the kernel's resource limits hold."""

from __future__ import annotations

import resource
from dataclasses import asdict, dataclass, fields
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a process may use.

    `cpu_s` is processor time, `wall_s` the time that one answer may take, `written_bytes` the size of each file that it
    writes. It reads what is below the paths of `readable` and writes below those of `writable`. Where `programs`, it
    may start `processes` others.
    """

    cpu_s: int = 10
    wall_s: float = 20.0
    memory_bytes: int = 512 * MIB
    written_bytes: int = MIB
    open_files: int = 64
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    programs: bool = False
    processes: int = 0

    def to_json(self) -> dict[str, Any]:
        """The limits as JSON, for the process itself."""
        return asdict(self)


def limits_from(document: dict[str, Any]) -> Limits:
    """The limits that `to_json` wrote."""
    values: dict[str, Any] = {each.name: document[each.name] for each in fields(Limits)}
    for name in ("readable", "writable"):
        values[name] = tuple(values[name])
    return Limits(**values)


def set_limits(limits: Limits) -> None:
    """Give this process its resource limits; it cannot raise them again."""
    set_limit(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1)
    set_limit(resource.RLIMIT_AS, limits.memory_bytes)
    set_limit(resource.RLIMIT_FSIZE, limits.written_bytes)
    set_limit(resource.RLIMIT_NOFILE, limits.open_files)
    set_limit(resource.RLIMIT_CORE, 0)
    if not limits.programs:
        set_limit(resource.RLIMIT_NPROC, 0)


def set_limit(what: int, soft: int, hard: int | None = None) -> None:
    """Set a resource limit, or leave the one that is there if it is lower."""
    _, present = resource.getrlimit(what)
    most = hard if hard is not None else soft
    if present != resource.RLIM_INFINITY:
        most = min(most, present)
    resource.setrlimit(what, (min(soft, most), most))
