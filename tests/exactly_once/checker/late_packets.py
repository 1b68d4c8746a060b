"""Packets that a fault has held back, as one word per state: they may arrive at any later time, in any order.

An entry is the number of a channel and the number of a packet. Entries are sorted, the greatest first, so that each set
of late packets is one word.
"""

from __future__ import annotations

import numpy as np
from automata import BYTE, Words
from numpy.typing import NDArray

ENTRIES = 4
"""The most packets that are held back at once."""
BITS = np.uint64(16)
MASK = np.uint64(0xFFFF)
PLACES = [BITS * np.uint64(position) for position in range(ENTRIES)]

Entries = NDArray[np.uint64]
"""(ENTRIES, states), 0 where there is none."""


def entries_of(words: Words) -> Entries:
    """The entries of each word."""
    return np.stack([words >> place & MASK for place in PLACES])


def words_of(entries: Entries) -> Words:
    """The word of each column of entries, in whatever order they are."""
    ordered = np.sort(entries, axis=0)[::-1]
    words: Words = np.bitwise_or.reduce([entry << place for entry, place in zip(ordered, PLACES, strict=True)], axis=0)
    return words


def with_entry(words: Words, channel: int, packets: Words) -> Words:
    """The words after one more packet of a channel, `packets[state]`, has been held back in every state."""
    entries = entries_of(words)
    if entries[-1].any():
        raise OverflowError(f"more than {ENTRIES} packets are late: give them a wider word")
    entries[-1] = np.uint64(channel) << BYTE | packets
    return words_of(entries)
