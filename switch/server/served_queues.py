"""The queues in front of egress, whatever program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.switch.server.engines.engine import Engine
from inakit.topo.errors import UnsupportedError


class QueueRequest(NamedTuple):
    """A rate (packets/s) or a depth (packets) of the queues of a port or of all, of one priority or of all."""

    what: str
    value: int
    port: int | None
    priority: int | None

    def carry_out(self, engine: Engine) -> None:
        """Let a running program have its queues so."""
        (engine.set_rate if self.what == "rate" else engine.set_depth)(self.value, self.port, self.priority)


class ServedQueues:
    """Requests for queues. Those so far are carried out anew for a program that is loaded.

    `fall_back` provides an engine that has queues, where the one that runs has none.
    """

    def __init__(self, priorities: int, fall_back: Callable[[UnsupportedError], Engine]) -> None:
        self.priorities, self.fall_back = priorities, fall_back
        self.engine: Engine | None = None
        self.requests: list[QueueRequest] = []

    def set_rate(self, packets_per_s: int, port: int | None = None, priority: int | None = None) -> None:
        """Give queues a rate, 0: none; all of them, those of a port, or one."""
        self.request(QueueRequest("rate", packets_per_s, port, priority))

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        """Let queues hold so many packets; all of them, those of a port, or one."""
        self.request(QueueRequest("depth", packets, port, priority))

    def request(self, wanted: QueueRequest) -> None:
        """Carry out a request, and keep it in place of those that it overrides."""
        if wanted.value < 0 or not 0 <= (wanted.priority or 0) < self.priorities:
            why = f"a {wanted.what} of {wanted.value} for queue {wanted.priority}: each port has {self.priorities}"
            raise Refused(RefusalKind.TABLE_ERROR, why)
        try:
            if self.engine is not None:
                wanted.carry_out(self.engine)
        except UnsupportedError as error:
            wanted.carry_out(self.fall_back(error))
        self.requests = [each for each in self.requests if not overrides(wanted, each)] + [wanted]

    def move_to(self, engine: Engine) -> None:
        """Carry out all requests so far for another engine."""
        for each in self.requests:
            each.carry_out(engine)
        self.engine = engine


def overrides(new: QueueRequest, old: QueueRequest) -> bool:
    """Whether a request leaves nothing of an older one."""
    return new.what == old.what and new.port in (None, old.port) and new.priority in (None, old.priority)
