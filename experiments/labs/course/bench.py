"""The bench of labs with a switch: it starts the student's program anew, sends packets, and keeps what happened."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from inakit.experiments.labs.grading.finding import Exchange, Packets, WrongError
from inakit.switch.entries import SwitchEntries
from inakit.switch.interpret.interpreted_switch import Traced


class GradedSwitch(Protocol):
    """A switch that runs a student's program."""

    def fresh(self) -> None:
        """Start the switch anew, without entries."""
        ...

    def install(self, entries: SwitchEntries) -> None:
        """Add entries."""
        ...

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves for a packet."""
        ...

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        ...


class TracedSwitch(GradedSwitch, Protocol):
    """A switch that says what it does."""

    def trace(self, port: int, packet: bytes) -> Traced:
        """What leaves for a packet, and what happened, line by line."""
        ...


class Bench:
    """Drives one switch for one item. What is random is drawn from `random`, which the seed and the item decide."""

    def __init__(self, switch: GradedSwitch, random: Random) -> None:
        self.switch, self.random = switch, random
        self.entries = SwitchEntries("switch")
        self.exchanges: list[Exchange] = []

    def start(self, entries: SwitchEntries) -> None:
        """Start the program anew, with these entries."""
        self.entries, self.exchanges = entries, []
        self.switch.fresh()
        self.switch.install(entries)

    def send(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; what leaves."""
        got = self.switch.inject(port, packet)
        self.exchanges.append(Exchange(port, packet, tuple(got)))
        return got

    def wrong(
        self, cause: str, expected: Sequence[tuple[int, bytes]] | str = (), field: str = "port", got: str = ""
    ) -> WrongError:
        """What to raise when the last packet shows that something is wrong; `got` is told in place of what left."""
        wanted = (expected,) if isinstance(expected, str) else tuple(expected)
        return WrongError(cause, tuple(self.exchanges), wanted, field, got=(got,) if got else ())

    def same(self, got: Packets, expected: Packets, cause: str, field: str = "port") -> None:
        """Raise `WrongError` unless the same packets left, in any order of ports."""
        if sorted(got) != sorted(expected):
            raise self.wrong(cause, expected, field)

    def drawn_values(self, count: int = 8) -> tuple[int, ...]:
        """Numbers of 32 bits; a sum of two of them overflows every second time."""
        return tuple(self.random.getrandbits(32) for _ in range(count))

    def drawn_ports(self, count: int) -> list[int]:
        """Different ports, none of them 0."""
        return self.random.sample(range(1, 64), count)
