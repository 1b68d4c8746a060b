"""Judges the seconds of a run: whether the emulation had to wait for a processor, and the programs that used it.

Time of other programs does no harm while the emulation need not wait for it. The waiting time comes from each thread's
own account (/proc/<pid>/schedstat). Without that, a second is bad if too little of it is idle or taken by work of a low
priority, unless the machine's pressure shows that nothing waited long (/proc/pressure/cpu).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from inakit.traffic.measure.processors import SCHEDSTAT, UNSEEN, Second
from inakit.traffic.measure.verdict import Limits

CLEAR_SECONDS, RECENT_SECONDS = 3, 10
"""During a run, an overload is clear when this many of this many last seconds are bad. One or two are a hiccup."""
BEHIND_S, BEHIND = 5.0, 1.25
"""A run is clearly behind its plan when it has taken this many seconds longer, and this many times as long. That is far
more than the tolerance of rates, and more than the start of a short iteration takes.
"""
OFTEN = 0.25
"""Other programs that did not make the run wait are named if they ran in at least this share of its seconds."""
NAMED, PART = 3, 0.1
"""The most other programs that are named, and each one's least share of the time of all of them."""


@dataclass(frozen=True)
class Rule:
    """A limit for a figure of every second. The figure must not be above it, or, if it is the `least`, below it.

    `text` is the template of the reason: {worst} is the worst second's figure, {limit} the limit, {often} the number of
    bad seconds and of all. `waiting`: breaking the rule means that the run had to wait.
    """

    text: str
    figure: Callable[[Second], float]
    limit: Callable[[Limits], float]
    least: bool = False
    waiting: bool = True

    def broken(self, second: Second, limits: Limits) -> bool:
        """Whether a second is beyond the limit."""
        figure, limit = self.figure(second), self.limit(limits)
        return figure < limit if self.least else figure > limit

    def words(self, bad: Sequence[Second], count: int, limits: Limits) -> str:
        """The reason in words, from the seconds that are `bad` of the `count` seconds of a run."""
        worst = (min if self.least else max)(map(self.figure, bad))
        return self.text.format(worst=worst, limit=self.limit(limits), often=often(len(bad), count))


RULES = (
    Rule(
        "the emulation's own work left too little of the processors: {worst:.1%} at worst, {often}; "
        "at least {limit:.0%} must be free",
        lambda second: second.free if second.source == SCHEDSTAT else 1.0,
        lambda limits: limits.free,
        least=True,
        waiting=False,
    ),
    Rule(
        "the endpoints had to wait for a processor: {worst:.0%} of a second at worst, {often}; {limit:.0%} is the most",
        lambda second: second.endpoints or 0.0,
        lambda limits: limits.endpoints,
    ),
    Rule(
        "the switches had to wait for a processor: {worst:.0%} of a second at worst, {often}; {limit:.0%} is the most",
        lambda second: second.switches or 0.0,
        lambda limits: limits.switches,
    ),
    Rule(
        "a quota of CPU time kept the emulation waiting: {worst:.0%} of a second at worst, {often}; {limit:.0%} is the "
        "most: raise the quota of its control group or container, or lower the rates",
        lambda second: second.throttled,
        lambda limits: limits.throttled,
    ),
    Rule(
        "the hypervisor gave the processors to other machines: {worst:.0%} of a second at worst, {often}; {limit:.0%} "
        "is the most: give this machine processors of its own, or lower the rates",
        lambda second: second.stolen,
        lambda limits: limits.stolen,
    ),
    Rule(
        "the processors had no time left, and this kernel does not tell who waited: {worst:.1%} at worst idle or with "
        "work of a low priority, {often}; at least {limit:.0%} is needed",
        lambda second: second.spare if unexplained(second) else 1.0,
        lambda limits: limits.free,
        least=True,
    ),
)


def unexplained(second: Second) -> bool:
    """Whether the kernel does not report the run's waiting time, and its pressure does not rule out a long wait."""
    if second.source == SCHEDSTAT:
        return False
    return second.somebody_waited is None or second.somebody_waited > Limits().endpoints


def overload_reasons(seconds: Sequence[Second], limits: Limits, at_least: int = 1) -> Iterator[str]:
    """Yield a reason for each rule that at least `at_least` seconds break."""
    for rule in RULES:
        bad = [second for second in seconds if rule.broken(second, limits)]
        if len(bad) >= at_least:
            yield rule.words(bad, len(seconds), limits)


def blame(seconds: Sequence[Second], limits: Limits) -> Iterator[str]:
    """Yield the reason that names the other programs on the processors of an overloaded run, if any ran for long.

    Work of a low priority is blamed only for seconds in which the emulation had to wait.
    """
    waited = [second for second in seconds if any(rule.waiting and rule.broken(second, limits) for rule in RULES)]
    guilty = [second for second in waited if taken(second, low=True) >= limits.noticed]
    present = [second for second in seconds if taken(second, low=False) >= limits.noticed]
    among = guilty or (present if len(present) >= OFTEN * len(seconds) else [])
    if among:
        busy = [second for second in seconds if taken(second, low=bool(guilty)) >= limits.noticed]
        yield accusation(busy, len(seconds), low=bool(guilty))


def taken(second: Second, low: bool) -> float:
    """The processors that other programs took in a second, with or without work of a low priority."""
    return second.processors * sum(consumer.share for consumer in second.others if low or not consumer.low)


def accusation(seconds: Sequence[Second], count: int, low: bool) -> str:
    """A text with the other programs, their mean share of the processors in these seconds, and the way out."""
    shares: dict[str, float] = {}
    numbers: dict[str, int] = {}
    for consumer in (each for second in seconds for each in second.others if low or not each.low):
        shares[consumer.name] = shares.get(consumer.name, 0.0) + consumer.share / len(seconds)
        numbers[consumer.name] = max(numbers.get(consumer.name, 0), consumer.processes)
    total = sum(shares.values())
    names = [name for name in sorted(shares, key=lambda name: -shares[name]) if shares[name] >= PART * total]
    listed = ", ".join(named(name, numbers[name]) for name in names[:NAMED])
    return f"{listed} took {total:.0%} of the processors {often(len(seconds), count)}: end them, or wait"


def named(name: str, processes: int) -> str:
    """The name of other processes: their program, and their number."""
    if name == UNSEEN:
        return "processes that cannot be seen from here (of other containers, or very short ones)"
    return f"{name} ({processes} process{'es' if processes > 1 else ''}, not of this run)"


def often(bad: int, count: int) -> str:
    """A text with the number of bad seconds and of all."""
    return f"in {bad} of {count} s"


def clear_overload(
    seconds: Sequence[Second], limits: Limits, elapsed_s: float, planned_s: float | None
) -> Iterator[str]:
    """Return the reasons why a running run is clearly overloaded after `elapsed_s`; see `Monitor.overloaded_so_far`."""
    recent = seconds[-RECENT_SECONDS:]
    found = [*overload_reasons(recent, limits, CLEAR_SECONDS)]
    if planned_s is not None and elapsed_s > planned_s + BEHIND_S and elapsed_s > planned_s * BEHIND:
        found.append(f"the run is behind its plan: what was to take {planned_s:.1f} s has taken {elapsed_s:.1f} s")
    yield from (*blame(recent, limits), *found) if found else ()
