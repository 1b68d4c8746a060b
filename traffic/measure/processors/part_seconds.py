"""What each part of the kit, and the rest of the machine, used in each second of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from inakit.traffic.measure.processors.own_usage import HOSTS, KERNEL, PARTS, REST, Usages


@dataclass(frozen=True)
class Part:
    """A part in a second: how many processors it had on average, and its memory at the end, in bytes."""

    name: str
    processors: float
    memory_bytes: int


def parts_of(
    earlier: Usages | None, later: Usages | None, passed_s: float, kernel_s: float, rest_s: float
) -> tuple[Part, ...]:
    """What each part used between two moments, without the parts that there are not; none where that was not read.

    `kernel_s` and `rest_s`: for how long packets were moved in the kernel, and others than the run's living processes
    had processors.
    """
    if earlier is None or later is None:
        return ()
    ran_s = dict.fromkeys((KERNEL, REST, *(usage.part for usage in later.processes.values())), 0.0)
    ran_s |= {KERNEL: kernel_s, REST: rest_s}
    memory = Counter({KERNEL: later.kernel_bytes})
    for pid, usage in later.processes.items():
        before = earlier.processes.get(pid)
        ran_s[usage.part] += usage.ran_s - (before.ran_s if before else 0.0)
        memory[usage.part] += usage.memory_bytes
    gone_s = sum(usage.ran_s for pid, usage in earlier.processes.items() if pid not in later.processes)
    # Those that begin and end within a second are seen only in what their parent has waited for, such as a tcpreplay.
    ended_s = max(0.0, later.ended_s - earlier.ended_s - gone_s)
    ran_s[HOSTS] = ran_s.get(HOSTS, 0.0) + ended_s
    ran_s[REST] -= ended_s
    memory[REST] = max(0, later.machine_bytes - memory.total())
    return tuple(Part(name, max(0.0, ran_s[name]) / passed_s, memory[name]) for name in PARTS if name in ran_s)


class PartsOfSecond(Protocol):
    """A second of a run (`processor_seconds.Second`)."""

    @property
    def start_s(self) -> float:
        """When it began."""

    @property
    def end_s(self) -> float:
        """When it ended."""

    @property
    def processors(self) -> int:
        """How many processors there were."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """What each part used."""


def part_series(seconds: Sequence[PartsOfSecond], since_s: float) -> dict[str, Any] | None:
    """The series of all parts as `run.json` has them, in seconds from `since_s`; None where nothing was read."""
    told = [second for second in seconds if second.parts]
    if not told:
        return None
    found = [{part.name: part for part in second.parts} for second in told]
    none = Part("", 0.0, 0)
    return {
        "processors": told[-1].processors,
        "starts_s": [round(second.start_s - since_s, 3) for second in told],
        "ends_s": [round(second.end_s - since_s, 3) for second in told],
        "parts": {
            name: {
                "processors": [round(parts.get(name, none).processors, 4) for parts in found],
                "memory_bytes": [parts.get(name, none).memory_bytes for parts in found],
            }
            for name in PARTS
            if any(name in parts for parts in found)
        },
    }
