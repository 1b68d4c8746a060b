"""Requests for learning lists: how digests are batched, and which may come again."""

from __future__ import annotations

from collections.abc import Sequence

from inakit.switch.server.thrift.handlers.handler import Handler
from inakit.switch.server.thrift.values import unsigned


class LearningRequests(Handler):
    """A digest is not sent again until it is acknowledged."""

    def bm_learning_ack(self, list_id: int, buffer_id: int, samples: Sequence[int]) -> None:
        """Acknowledge some samples of a batch."""
        self.control.acknowledge(list_id, unsigned(buffer_id, 64), samples)

    def bm_learning_ack_buffer(self, list_id: int, buffer_id: int) -> None:
        """Acknowledge all samples of a batch."""
        self.control.acknowledge_buffer(list_id, unsigned(buffer_id, 64))

    def bm_learning_set_timeout(self, list_id: int, timeout_ms: int) -> None:
        """Send a batch that is not full after this time."""
        self.control.set_learning_timeout(list_id, unsigned(timeout_ms))

    def bm_learning_set_buffer_size(self, list_id: int, samples: int) -> None:
        """Send a batch when it has this many samples."""
        self.control.set_learning_size(list_id, unsigned(samples))
