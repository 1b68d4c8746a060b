"""The load of every interface of a network, from samples of its counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class LinkSample:
    """Bytes that have left each interface so far, at `at_s`."""

    at_s: float
    sent_bytes: Mapping[str, int]


def link_rows(samples: Sequence[LinkSample], ends: Mapping[str, tuple[str, str]]) -> Iterator[dict[str, object]]:
    """A row of a table for each interface and each two successive samples: bytes between them, and bit/s.

    `ends`: by interface, the node that sends there and the node that it sends to.
    """
    for earlier, later in pairwise(samples):
        for interface, sent in later.sent_bytes.items():
            grown = sent - earlier.sent_bytes.get(interface, 0)
            rate = 8 * grown / (later.at_s - earlier.at_s)
            sender, receiver = ends.get(interface, ("", ""))
            row = {"at_s": later.at_s, "interface": interface, "bytes": grown, "rate_bps": rate}
            yield row | {"sender": sender, "receiver": receiver}
