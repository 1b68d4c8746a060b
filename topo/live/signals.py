"""Handlers of Ctrl-C, SIGTERM and SIGHUP, which unwind the program after running cleanup blocks have finished."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals with which a user, a service manager or a closing terminal ends a program."""


def code_of(number: int) -> int:
    """The exit code that shells report for a program that this signal ended."""
    return 128 + number


@dataclass
class Held:
    """The number of blocks that hold signals back, the pending signal, and the last raised one."""

    blocks: int = 0
    waiting: int | None = None
    raised: int | None = None


HELD = Held()


def unwind(number: int, _frame: FrameType | None) -> None:
    """Handle a signal: leave every block, so that each cleans up. Running cleanups finish first."""
    if not HELD.blocks:
        HELD.raised = number
        raise ending(number)
    HELD.waiting = number
    text = f"inakit: still removing what the run created; `kill -9 {os.getpid()}` would leave it to the next run\n"
    os.write(2, text.encode())  # unlike `print`, it can interrupt another line


def ending(number: int) -> BaseException:
    """The exception that a signal raises."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(code_of(number))


def raise_if_lost() -> None:
    """Raise a signal's exception again if the program swallowed it. Long loops call this.

    A library that swallows every exception, as pyroute2 does while it reads a message, swallows this one too.
    """
    if HELD.raised is not None:
        raise ending(HELD.raised)


def raise_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send a signal again if Python dropped its exception, which was raised in a destructor or a C callback."""
    dropped = unraisable.exc_value
    number = next((each for each in ENDING if repr(ending(each)) == repr(dropped)), None)
    if number is None:
        sys.__unraisablehook__(unraisable)
        return
    again = threading.Timer(0.01, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


@contextmanager
def signals_unwind() -> Iterator[None]:
    """Let the signals of `ENDING` unwind the block. A signal that is ignored, as under `nohup`, stays ignored.

    A nested block has no effect, and neither has a block outside the main thread, because only the main thread can set
    handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    changed = {number: handler for number, handler in before.items() if handler not in (unwind, signal.SIG_IGN)}
    hook = sys.unraisablehook
    sys.unraisablehook = raise_again
    HELD.raised = None
    for number in changed:
        signal.signal(number, unwind)
    try:
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
        HELD.raised = None


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold the signals of `ENDING` back until the block is done, so that cleanup is never interrupted.

    They are blocked in this thread, and `unwind` defers those that another thread receives.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    HELD.blocks += 1
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)  # blocked signals arrive now, and wait like the others
        HELD.blocks -= 1
        waiting, HELD.waiting = HELD.waiting, None
        if waiting is not None and not HELD.blocks and not isinstance(sys.exception(), KeyboardInterrupt | SystemExit):
            raise ending(waiting)


def ignore_signals() -> None:
    """Ignore the signals of `ENDING` from now on: only the final report is left."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
