"""NumPy steps over whole batches: runs of consecutive numbers, the first few of each, rows of many frames."""

from __future__ import annotations

import numpy as np

from traffic.sockets.ports import BoolArray, IntArray
from traffic.wire.packet_format import BARE_FRAME, Frames


def ragged(starts: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """For each i, `counts[i]` consecutive integers from `starts[i]`: (i of each, the integers)."""
    owner = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return owner, np.arange(total) + np.repeat(starts - ends + counts, counts)


def before(counts: IntArray) -> IntArray:
    """How many come before each, in all: the row of the first."""
    return np.cumsum(counts) - counts


def is_prefix(counts: IntArray, accepted: IntArray) -> BoolArray:
    """Which of `counts[i]` things for every i are among the first `accepted[i]`."""
    return np.arange(int(counts.sum())) - np.repeat(before(counts), counts) < np.repeat(accepted, counts)


def pick(templates: Frames, index: IntArray) -> Frames:
    """`templates[index]`, without NumPy's detour through every field of every packet."""
    whole: Frames = templates.view(np.dtype((np.void, templates.itemsize)))[index].view(templates.dtype)
    return whole


def head_of(frames: Frames) -> Frames:
    """The heads of whole frames."""
    return np.ascontiguousarray(frames.view((np.uint8, frames.itemsize))[:, : BARE_FRAME.itemsize]).view(BARE_FRAME)[
        :, 0
    ]
