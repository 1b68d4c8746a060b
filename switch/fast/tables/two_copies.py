"""A value in two copies: packets read the one that a number names; the other is written, then the number changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from switch.fast.tables.rows import Memory


def write_other(copies: Memory, which: NDArray[Any], index: int, data: bytes) -> None:
    """Let packets read `data` instead of the copy that `which[index]` names; `copies` has a row for each."""
    other = which[index] % len(copies) + 1
    copies[other % len(copies)] = np.frombuffer(data, np.uint8)
    which[index] = other


def read_copy(copies: Memory, which: int) -> bytes | None:
    """The copy that packets read, or None."""
    return copies[which % len(copies)].tobytes() if which else None
