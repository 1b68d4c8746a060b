"""The queues in front of egress, as simple_switch has them: one for each port and priority, each with a rate.

A queue without a rate releases a packet at once, so that its depth is always 0. A queue with a rate releases a packet
every 1 / rate seconds; when it is full, packets are lost. The queues of a port whose interface takes no more packets
are held: packets wait there as in queues with a rate.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from inakit.switch.program.program import QUEUE_DEPTH

Packet = TypeVar("Packet")

QueueName = tuple[int, int]
"""A port and a priority; the highest priority comes first."""


class EgressQueues(Generic[Packet]):
    """Packets that wait for egress. `clock` gives microseconds; `priorities` is the number of queues per port."""

    def __init__(self, clock: Callable[[], int], priorities: int = 1) -> None:
        self.clock, self.priorities = clock, priorities
        self.default_depth, self.default_gap_us = QUEUE_DEPTH, 0.0
        self.depths: dict[QueueName, int] = {}
        self.gaps_us: dict[QueueName, float] = {}
        self.next_us: dict[QueueName, float] = {}
        self.sizes: Counter[QueueName] = Counter()
        self.ready: deque[tuple[int, int, Packet]] = deque()
        self.timed: dict[int, list[tuple[float, int, int, Packet]]] = defaultdict(list)
        self.order = count()
        self.held: set[int] = set()
        self.waiting: dict[QueueName, deque[Packet]] = defaultdict(deque)

    def hold(self, port: int) -> None:
        """Hold all packets of `port` until `release`."""
        self.held.add(port)

    def release(self, port: int) -> None:
        """Release the packets of `port`."""
        self.held.discard(port)

    def push(self, port: int, priority: int, packet: Packet) -> bool:
        """Put a packet into a queue; False if it is full."""
        queue = (port, priority)
        gap_us = self.gaps_us.get(queue, self.default_gap_us)
        waits = port in self.held or queue in self.waiting
        if not gap_us and not waits:
            self.ready.append((port, priority, packet))
            return True
        if self.sizes[queue] >= self.depths.get(queue, self.default_depth):
            return False
        self.sizes[queue] += 1
        if not gap_us:
            self.waiting[queue].append(packet)
            return True
        leaves_us = max(float(self.clock()), self.next_us.get(queue, 0.0) + gap_us)
        self.next_us[queue] = leaves_us
        heappush(self.timed[priority], (leaves_us, next(self.order), port, packet))
        return True

    def pop(self) -> tuple[int, int, Packet] | None:
        """The next packet to leave its queue now, as (port, priority, packet); None if there is none."""
        if self.ready:
            return self.ready.popleft()
        self.end_waits()
        for port, priority in sorted(self.waiting, key=lambda queue: -queue[1]):
            if port not in self.held:
                return port, priority, self.taken_out((port, priority))
        return None

    def end_waits(self) -> None:
        """Mark packets whose time has come: they wait only for their port."""
        now_us = self.clock() if self.timed else 0
        for priority, timed in self.timed.items():
            while timed and timed[0][0] <= now_us:
                _, _, port, packet = heappop(timed)
                self.waiting[port, priority].append(packet)

    def taken_out(self, queue: QueueName) -> Packet:
        """Remove the first packet of a queue and return it."""
        packet = self.waiting[queue].popleft()
        self.sizes[queue] -= 1
        if not self.waiting[queue]:
            del self.waiting[queue]
        return packet

    def due_us(self) -> float | None:
        """The time when the next packet can leave its queue; None if none waits."""
        if self.ready or any(port not in self.held for port, _ in self.waiting):
            return 0.0
        return min((waiting[0][0] for waiting in self.timed.values() if waiting), default=None)

    def size(self, port: int, priority: int) -> int:
        """The number of packets in a queue."""
        return self.sizes[port, priority]

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        """Set the depth of queues: all, those of a port, or one."""
        if port is None:
            self.default_depth = packets
            self.depths.clear()
        self.depths |= {(port, each): packets for each in self.named(priority) if port is not None}

    def set_rate(self, packets_per_s: int, port: int | None = None, priority: int | None = None) -> None:
        """Set the rate of queues; 0 means no limit. Waiting packets keep their departure times."""
        gap_us = 1e6 / packets_per_s if packets_per_s else 0.0
        if port is None:
            self.default_gap_us = gap_us
            self.gaps_us.clear()
        self.gaps_us |= {(port, each): gap_us for each in self.named(priority) if port is not None}

    def named(self, priority: int | None) -> range:
        return range(self.priorities) if priority is None else range(priority, priority + 1)

    def clear(self) -> None:
        """Remove all waiting packets."""
        self.ready.clear()
        self.timed.clear()
        self.waiting.clear()
        self.sizes.clear()
