"""What stores of entries have in common: a row for each entry, and the protocol of a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.switch.entries import KeyPart

Memory = NDArray[np.uint8]


class Row(NamedTuple):
    """One entry of a table: `number` is its own as long as it is there, `data` what the generated C reads."""

    key: tuple[KeyPart, ...]
    priority: int | None
    number: int
    data: bytes


class Store(Protocol):
    """The entries of one table. Whatever it writes, a packet that comes in between finds whole entries only."""

    def add(self, rows: Sequence[Row]) -> None:
        """Add entries that are not there yet."""
        ...

    def change(self, rows: Sequence[Row]) -> None:
        """Replace what entries with these keys and numbers do."""
        ...

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove entries that are there."""
        ...

    def rows(self) -> Iterator[Row]:
        """All entries, as the memory has them, in any order."""
        ...


def number_of(data: bytes) -> int:
    """The number of the entry with these bytes."""
    return int.from_bytes(data[:4], "little") - 1


def byte_rows(parts: Sequence[bytes]) -> NDArray[np.uint8]:
    """Bytes of equal length, a row for each."""
    return np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), -1)
