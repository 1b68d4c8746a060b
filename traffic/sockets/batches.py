"""NumPy steps over whole batches of packets: runs of consecutive numbers, prefixes of groups, rows of many frames."""

from __future__ import annotations

import numpy as np

from traffic.sockets.ports import BoolArray, IntArray
from traffic.wire.frames import BARE_FRAME, Frames


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


def pick(templates: Frames, index: IntArray) -> Frames:
    """`templates[index]`, as whole rows: NumPy by itself would copy every field of every packet."""
    whole: Frames = templates.view(np.dtype((np.void, templates.itemsize)))[index].view(templates.dtype)
    return whole


def head_of(frames: Frames) -> Frames:
    """The heads (`BARE_FRAME`) of whole frames, (frames,)."""
    return np.ascontiguousarray(frames.view((np.uint8, frames.itemsize))[:, : BARE_FRAME.itemsize]).view(BARE_FRAME)[
        :, 0
    ]
