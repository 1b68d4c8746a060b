"""One second of a run after the other: how long the run waited for a processor, what was free, and what others took.

Pure functions of two moments (`traffic.measure.processor_usage`). Only the standard library is imported, as there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from topo.live.priority import SOFTIRQ
from traffic.measure.processor_usage import ENDPOINTS, ENDPOINTS_NAME, Moment, Process, Thread, descendants, is_softirq

SCHEDSTAT, PRESSURE, IDLE = "schedstat", "pressure", "idle"
"""What tells of waiting: each thread's own account; that of the whole machine; no account, but what was left idle."""
LISTED = 8
"""So many of the others, the greatest first, are kept of each second."""
UNSEEN = ""
"""The name of work that no process accounts for which can be seen from here."""
LEAST = 0.005
"""A smaller share of the processors is not worth a name."""


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
    """What happened between two moments. Shares are of all processors, unless it is said of what else.

    `free`: idle, or taken by others. `waited`: how long, of this second, the run was ready and had no processor, as
    shares of the second: `endpoints` their thread, `switches` the worst of the threads that move packets; None where
    the kernel does not tell. `somebody_waited` bounds both from above, where pressure is known. `spare` is free time
    as it is known without all that: idle, or taken by work of a low priority.
    `stolen` is the share of all processors that a hypervisor gave to others, `throttled` the share of the second in
    which a quota kept the run from a processor.
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

    @property
    def source(self) -> str:
        """What tells of waiting in this second."""
        if self.endpoints is not None:
            return SCHEDSTAT
        return PRESSURE if self.somebody_waited is not None else IDLE


def second(earlier: Moment, later: Moment, owner: int) -> Second:
    """From one moment to the next, of the run whose process is `owner`."""
    passed_s = max(later.at_s - earlier.at_s, 1e-9)
    capacity_s = passed_s * later.processors.online
    then, now = earlier.processors, later.processors
    took = dict(ran(earlier.processes, later.processes))
    own = descendants(later.processes, owner)
    others = {key: s for key, s in took.items() if key[0] not in own and not is_softirq(later.processes[key])}
    unseen = max(0.0, now.working - then.working - sum(took.values()))
    # What interrupts do, which is the run's work, the kernel also charges to whom they interrupt. So others had no more
    # than what is neither idle nor the run's.
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
    )


Processes = Mapping[tuple[int, int], Process]


def ran(earlier: Processes, later: Processes) -> Iterator[tuple[tuple[int, int], float]]:
    """How many seconds every process that still lives ran meanwhile, unless it did not."""
    for key, process in later.items():
        seconds = process.ran_s - (earlier[key].ran_s if key in earlier else 0.0)
        if seconds > 0:
            yield key, seconds


def consumers(
    others: Mapping[tuple[int, int], float], processes: Processes, capacity_s: float, unseen_s: float
) -> tuple[Consumer, ...]:
    """The others by name, the greatest first."""
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
    """The share of the time that the endpoints' thread waited, and the greatest of the threads that move packets.

    The run's own processes (simple_switch, tcpreplay) also wait for each other, as they do where nothing is wrong: of
    what they waited counts `by_others`, the part of all work that others did meanwhile.
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
    """Whether no other thread of the run is on a thread's processor: the endpoints', and each softirq thread."""
    return thread.name == ENDPOINTS_NAME or thread.name.startswith(SOFTIRQ)


def share(seconds: float, of_s: float) -> float:
    """0 to 1: the clocks of the kernel are not read at one and the same moment."""
    return min(1.0, max(0.0, seconds / of_s))


def optional_share(earlier_s: float | None, later_s: float | None, of_s: float) -> float | None:
    return None if earlier_s is None or later_s is None else share(later_s - earlier_s, of_s)
