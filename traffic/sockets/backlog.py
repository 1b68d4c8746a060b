"""The processors' input queues: how long they are, what they dropped, and how not to overfill them.

Every packet that crosses a veth waits in the input queue of one processor, and is dropped when a thousand
(net.core.netdev_max_backlog) wait already. A real link does not lose packets in this way, so senders wait for room.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

SOFTNET = Path("/proc/net/softnet_stat")
DROPPED, LENGTH = 1, 11

AT_ONCE = 128
"""The most packets that are put into the network between two looks at the queues, all copies of results counted."""
ROOM, ROOM_FOR_COPIES = 500, 250
"""Nothing is added to a queue of more packets. On its way to many workers one packet becomes many, so results, which
the network copies, wait for a shorter queue than gradients."""
PAUSE_S = 0.0001
"""How long a sender sleeps between two looks at queues that are too long."""
PATIENCE_S = 0.05
"""After this time a sender goes on although a queue is too long."""


def rows(text: str) -> list[list[str]]:
    """One row per processor, in hexadecimal columns."""
    return [line.split() for line in text.splitlines()]


def backlog_drops() -> tuple[int, ...]:
    """Packets that each processor dropped because its input queue was full."""
    return tuple(int(row[DROPPED], 16) for row in rows(SOFTNET.read_text()))


class Backlog:
    """Lets a sender wait until the input queues have room. A context manager.

    `waited_s`: how long it has waited in all. Kernels before 5.10 do not tell how long queues are; there nobody waits.
    """

    def __init__(self) -> None:
        self.descriptor = os.open(SOFTNET, os.O_RDONLY)
        self.unseen = 0
        self.waited_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def longest(self) -> int:
        """Packets in the longest input queue."""
        text = os.pread(self.descriptor, 1 << 16, 0).decode()
        return max(int(row[LENGTH], 16) if len(row) > LENGTH else 0 for row in rows(text))

    def admit(self, packets: int, copies: int) -> None:
        """Wait until the queues have room for `packets`, of each of which the network makes `copies`.

        Returns after `PATIENCE_S` even if they have none.
        """
        self.unseen += packets * copies
        if self.unseen < AT_ONCE:
            return
        self.unseen = packets * copies
        room = ROOM if copies == 1 else ROOM_FOR_COPIES
        if self.longest() <= room:
            return
        start = time.monotonic()
        while self.longest() > room and time.monotonic() - start < PATIENCE_S:
            time.sleep(PAUSE_S)
        self.waited_s += time.monotonic() - start
