"""Sources in virtual time: frames that are sent at a steady rate, each by the C (`source.h`), not by Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inakit.topo.virtual.engine import PS_PER_S, SOURCE, Engine

WITHOUT_END = (1 << 64) - 1
"""A number of frames that no source ever has sent."""


class Source:
    """Frames that go to a link one after the other, the first one now. After the last frame comes the first again.

    While `room` packets wait before the link the source waits, too, as a sender does whose socket is full; afterwards
    it sends faster until it has caught up.
    """

    def __init__(
        self,
        engine: Engine,
        link: int,
        frames: NDArray[np.uint8],
        lengths: NDArray[np.uint32],
        *,
        rate_fps: float,
        room: int,
        count: int = WITHOUT_END,
    ) -> None:
        """Send `count` frames at so many a second. Frames are (frames, bytes), of which each has its length."""
        assert room > 0
        assert frames.strides[1] == 1
        self.engine, self.kept = engine, (frames, lengths)
        at, interval_ps = (frames.ctypes.data, lengths.ctypes.data, frames.strides[0]), round(PS_PER_S / rate_fps)
        record = np.array([(*at, link, len(frames), 0, room, count, interval_ps, engine.now_ps)], SOURCE)
        self.number = engine.library.engine_add_source(engine.handle, record.ctypes.data)
        engine.sources[self.number] = self

    @property
    def left(self) -> int:
        """How many frames are still to be sent."""
        return int(self.engine.library.engine_source_left(self.engine.handle, self.number))

    def stop(self) -> None:
        """Send nothing more, and let go of the frames."""
        self.engine.library.engine_stop_source(self.engine.handle, self.number)
        self.engine.sources.pop(self.number, None)


def as_rows(frames: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Frames of any lengths as rows of equally many bytes, (frames, bytes of the longest), and their lengths."""
    lengths = np.array([len(frame) for frame in frames], np.uint32)
    rows = np.zeros((len(frames), int(lengths.max())), np.uint8)
    for row, frame in zip(rows, frames, strict=True):
        row[: len(frame)] = np.frombuffer(frame, np.uint8)
    return rows, lengths
