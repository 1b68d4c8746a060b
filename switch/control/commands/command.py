"""A command of simple_switch_CLI that makes something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Written = TypeVar("Written")


@dataclass(frozen=True)
class Command(Generic[Written]):
    """What follows a command's name, and the function that reads these words into what was written so far.

    The function raises `ValueError` for words that cannot be.
    """

    usage: str
    read: Callable[[Written, Sequence[str]], None]

    def bound(self, written: Written) -> BoundCommand:
        """The command that reads into `written`."""
        return BoundCommand(self.usage, lambda words: self.read(written, words))


@dataclass(frozen=True)
class BoundCommand:
    """A command that knows where it reads to."""

    usage: str
    read: Callable[[Sequence[str]], None]
