"""A lock between packets and requests that lets neither wait for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock, RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

Params = ParamSpec("Params")
Answer = TypeVar("Answer")


class Turnstile:
    """Lets a packet or a request pass at a time.

    A lock alone would let a thread that passes packet after packet take it again before any other wakes up. Here
    a request waits at the entry: the next packet does not pass before it.
    """

    def __init__(self) -> None:
        self.entry, self.state = Lock(), RLock()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Hold off all others while the block runs."""
        with self.entry:
            self.state.acquire()
        try:
            yield
        finally:
            self.state.release()


class HasTurnstile(Protocol):
    """Something whose state packets and requests share."""

    turnstile: Turnstile


Owner = TypeVar("Owner", bound=HasTurnstile)


def atomic(request: Callable[Concatenate[Owner, Params], Answer]) -> Callable[Concatenate[Owner, Params], Answer]:
    """The request, during which no packet passes."""

    @wraps(request)
    def alone(self: Owner, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        with self.turnstile.passing():
            return request(self, *args, **kwargs)

    return alone
