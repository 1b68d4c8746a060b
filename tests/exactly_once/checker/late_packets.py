"""Packets that a fault held back, as one word per state: they arrive at any time from then on, in any order.

An entry is a channel and the number of a packet; entries stand in order, the greatest first, so that one set of late
packets is one word.
"""

from __future__ import annotations

import numpy as np
from automata import BYTE, Words
from numpy.typing import NDArray

ENTRIES = 4
BITS = np.uint64(16)
MASK = np.uint64(0xFFFF)
PLACES = [BITS * np.uint64(position) for position in range(ENTRIES)]

Entries = NDArray[np.uint64]
"""(ENTRIES, states), 0 where there is none."""


def entries_of(words: Words) -> Entries:
    return np.stack([words >> place & MASK for place in PLACES])


def words_of(entries: Entries) -> Words:
    ordered = np.sort(entries, axis=0)[::-1]
    words: Words = np.bitwise_or.reduce([entry << place for entry, place in zip(ordered, PLACES, strict=True)], axis=0)
    return words


def with_entry(words: Words, channel: int, packets: Words) -> Words:
    """One more packet of the channel is late in every state."""
    entries = entries_of(words)
    if entries[-1].any():
        raise OverflowError(f"more than {ENTRIES} packets are late: give them a wider word")
    entries[-1] = np.uint64(channel) << BYTE | packets
    return words_of(entries)
