"""NumPy steps over whole batches of packets: runs of consecutive numbers, prefixes of groups."""

from __future__ import annotations

import numpy as np

from inakit.traffic.sockets.ports import BoolArray, IntArray


def ragged(starts: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """For each i, `counts[i]` consecutive integers from `starts[i]` on, all in one array.

    Returns the i that each belongs to, and the integers; both are (sum of counts,).
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return owner, np.arange(total) + np.repeat(starts - ends + counts, counts)


def before(counts: IntArray) -> IntArray:
    """How many things the groups before each group have: the row of its first thing in a flat array."""
    return np.cumsum(counts) - counts


def is_prefix(counts: IntArray, accepted: IntArray) -> BoolArray:
    """Which things of groups, `counts[i]` in group i, are among the first `accepted[i]` of theirs: (sum of counts,)."""
    return np.arange(int(counts.sum())) - np.repeat(before(counts), counts) < np.repeat(accepted, counts)
