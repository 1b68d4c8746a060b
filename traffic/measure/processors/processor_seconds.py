"""The seconds of a run: how long the run waited for a processor in each, what was free, and what others took.

These are pure functions of two moments (`proc_files`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inakit.topo.live.priority import SOFTIRQ
from inakit.traffic.measure.processors.part_seconds import Part, parts_of
from inakit.traffic.measure.processors.proc_files import (
    ENDPOINTS,
    ENDPOINTS_NAME,
    Moment,
    Process,
    Thread,
    descendants,
    is_softirq,
)

SCHEDSTAT, PRESSURE, IDLE = "schedstat", "pressure", "idle"
"""What tells that a run waited: each thread's own account, that of the whole machine, or only that little was idle."""
LISTED = 8
"""How many of the others are kept of each second, the greatest first."""
UNSEEN = ""
"""The name of work that was done by no process that can be seen from here."""
LEAST = 0.005
"""Others that took a smaller share of the processors are left out."""


@dataclass(frozen=True)
class Consumer:
    """Processes of one name that are not of this run: how many, and what share of all processors they took.

    `low`: all of them are of lower priority than the run.
    """

    name: str
    processes: int
    share: float
    low: bool


@dataclass(frozen=True)
class Second:
    """What happened between two moments, a second apart.

    Shares of the time of all processors: `free`, idle or taken by others; `spare`, idle or taken by work of a low
    priority, which is known even where nobody tells who the others are; `stolen`, given by a hypervisor to other
    machines.
    Shares of the second: `endpoints` and `switches`, how long the endpoints' thread, or the worst of the threads that
    move packets, was ready to run and had no processor, None where the kernel does not tell; `somebody_waited`, how
    long any task of the machine did, which bounds both from above, None where pressure is not known; `throttled`, how
    long a quota kept the run from a processor.
    `parts`: what the parts of the kit used, and the rest of the machine.
    """

    start_s: float
    end_s: float
    processors: int
    free: float
    spare: float
    endpoints: float | None = None
    switches: float | None = None
    somebody_waited: float | None = None
    stolen: float = 0.0
    throttled: float = 0.0
    others: tuple[Consumer, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def source(self) -> str:
        """What tells whether the run waited in this second."""
        if self.endpoints is not None:
            return SCHEDSTAT
        return PRESSURE if self.somebody_waited is not None else IDLE


def second(earlier: Moment, later: Moment, owner: int) -> Second:
    """What happened between two moments in the run whose process is `owner`."""
    passed_s = max(later.at_s - earlier.at_s, 1e-9)
    capacity_s = passed_s * later.processors.online
    then, now = earlier.processors, later.processors
    took = dict(ran(earlier.processes, later.processes))
    own = descendants(later.processes, owner)
    others = {key: s for key, s in took.items() if key[0] not in own and not is_softirq(later.processes[key])}
    unseen = max(0.0, now.working - then.working - sum(took.values()))
    # The kernel charges what interrupts do, which is the run's work, also to whomever they interrupt. So others had no
    # more than what is neither idle nor the run's.
    idle = now.idle - then.idle
    own_s = sum(s for key, s in took.items() if key[0] in own) + now.softirq - then.softirq
    lent = min(sum(others.values()) + unseen, max(0.0, capacity_s - idle - own_s))
    busy_s = max(capacity_s - idle, 1e-9)
    endpoints, switches = waits(earlier.threads, later.threads, passed_s, share(sum(others.values()) + unseen, busy_s))
    return Second(
        start_s=earlier.at_s,
        end_s=later.at_s,
        processors=now.online,
        free=share(idle + lent, capacity_s),
        spare=share(idle + now.low - then.low, capacity_s),
        endpoints=endpoints,
        switches=switches,
        somebody_waited=optional_share(earlier.pressure_s, later.pressure_s, passed_s),
        stolen=share(now.stolen - then.stolen, capacity_s),
        throttled=optional_share(earlier.throttled_s, later.throttled_s, passed_s) or 0.0,
        others=consumers(others, later.processes, capacity_s, unseen),
        parts=parts_of(earlier.usages, later.usages, passed_s, now.softirq - then.softirq, lent),
    )


Processes = Mapping[tuple[int, int], Process]


def ran(earlier: Processes, later: Processes) -> Iterator[tuple[tuple[int, int], float]]:
    """How many seconds each process that still lives ran between two moments; those that did not run are left out."""
    for key, process in later.items():
        seconds = process.ran_s - (earlier[key].ran_s if key in earlier else 0.0)
        if seconds > 0:
            yield key, seconds


def consumers(
    others: Mapping[tuple[int, int], float], processes: Processes, capacity_s: float, unseen_s: float
) -> tuple[Consumer, ...]:
    """The others that took most, by name, the greatest first."""
    names: dict[str, list[tuple[int, int]]] = {}
    for key in others:
        names.setdefault(processes[key].name, []).append(key)
    found = [Consumer(UNSEEN, 0, share(unseen_s, capacity_s), low=False)]
    for name, keys in names.items():
        took = share(sum(others[key] for key in keys), capacity_s)
        found.append(Consumer(name, len(keys), took, low=all(processes[key].low for key in keys)))
    listed = sorted((each for each in found if each.share >= LEAST), key=lambda each: -each.share)
    return tuple(listed[:LISTED])


Threads = Mapping[int, Thread] | None


def waits(earlier: Threads, later: Threads, passed_s: float, by_others: float) -> tuple[float | None, float | None]:
    """The share of the time that the endpoints' thread waited, and the greatest share of a thread that moves packets.

    The run's own processes (simple_switch, tcpreplay) also wait for each other, even where nothing is wrong. Of their
    waiting only a part counts, `by_others`, which is the part of all work meanwhile that others did.
    """
    if earlier is None or later is None or ENDPOINTS not in later:
        return None, None
    found = {
        number: share(thread.waited_s - earlier[number].waited_s, passed_s) * (1 if is_alone(thread) else by_others)
        for number, thread in later.items()
        if number in earlier
    }
    return found.pop(ENDPOINTS, None), max(found.values(), default=0.0)


def is_alone(thread: Thread) -> bool:
    """Whether a thread has its processor to itself within the run, as the endpoints' and each softirq thread do."""
    return thread.name == ENDPOINTS_NAME or thread.name.startswith(SOFTIRQ)


def share(seconds: float, of_s: float) -> float:
    """A part of some time, cut to 0 to 1: the kernel's clocks are not read at one and the same moment."""
    return min(1.0, max(0.0, seconds / of_s))


def optional_share(earlier_s: float | None, later_s: float | None, of_s: float) -> float | None:
    """The share by which a count of seconds grew; None where it is not known."""
    return None if earlier_s is None or later_s is None else share(later_s - earlier_s, of_s)
