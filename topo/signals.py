"""Ctrl-C, SIGTERM and SIGHUP: the first one unwinds the program, later ones wait until everything is removed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals by which a person, a service manager or a closing terminal ends a program."""


def code_of(number: int) -> int:
    """The exit code of a program that a signal has ended, as shells count."""
    return 128 + number


def unwind(number: int, _frame: FrameType | None) -> None:
    """Leave every block of the program, so that each removes what it made; from now on signals only get an answer."""
    for each in ENDING:
        if signal.getsignal(each) is unwind:
            signal.signal(each, answer)
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(code_of(number))


def answer(_number: int, _frame: FrameType | None) -> None:
    """Say that the first signal was heard. `os.write` cannot meet itself in the middle of a line, as `print` can."""
    text = f"inakit: still removing what the run created; `kill -9 {os.getpid()}` would leave it to the next run\n"
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, text.encode())


@contextmanager
def signals_unwind() -> Iterator[None]:
    """Let the signals of `ENDING` unwind the block, once. A signal that is ignored, as under `nohup`, stays so.

    Within another such block this one changes nothing. Only the main thread may set handlers; others do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = (unwind, answer, signal.SIG_IGN)
    before = {number: signal.getsignal(number) for number in ENDING}
    for number in (number for number, handler in before.items() if handler not in known):
        signal.signal(number, unwind)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler not in known:
                signal.signal(number, handler)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold the signals of `ENDING` back until the block is done: removal is never cut short."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
