"""What happens beside a run in virtual time: work is done at once, and what lasts ends at its moment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Lasting:
    """Something that lasts until a moment: `end` ends it, and `over` is then resolved."""

    until: float
    end: Callable[[], None]
    over: Future[None]


class Ends:
    """Everything that lasts, and when it ends."""

    def __init__(self) -> None:
        self.lasting: list[Lasting] = []

    @property
    def soonest(self) -> float | None:
        """The moment at which something ends next; None if nothing lasts."""
        return min((each.until for each in self.lasting), default=None)

    def add(self, until: float, end: Callable[[], None]) -> Future[None]:
        """Let something last until a moment; the future is resolved when it has ended."""
        future: Future[None] = Future()
        self.lasting.append(Lasting(until, end, future))
        return future

    def end_due(self, now: float) -> None:
        """End everything that lasts until the moment `now` or an earlier one."""
        for each in [each for each in self.lasting if each.until <= now]:
            self.lasting.remove(each)
            each.end()
            each.over.set_result(None)


class Inline(Executor):
    """Does work at once when it is submitted, so that a run is the same every time."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Do the work now, and return a future that already has its result."""
        future: Future[Any] = Future()
        future.set_result(work(*args, **named))
        return future
