"""Watches a run from before its first packet until after its last: counters, links and processors."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from inakit.topo.live.priority import ahead_of_others
from inakit.traffic.measure.contention import clear_overload
from inakit.traffic.measure.counters.link_load import LinkSample
from inakit.traffic.measure.counters.snapshots import Snapshot, Watched
from inakit.traffic.measure.processors.processor_observer import Observer
from inakit.traffic.measure.processors.processor_seconds import Second
from inakit.traffic.measure.verdict import Cause, Limits

QUIET_S, PATIENCE_S = 0.1, 3.0
"""For how many seconds no interface of a quiet network counts a packet, and how many are waited for that."""


class Monitor:
    """Samples processors and link counters every second, and takes the snapshots before and after.

    with Monitor(watched) as monitor:
        measured = run_reliable(...)
    judgement = judge(monitor, measured, plan)

    The thread that enters it is taken for the one that drives the endpoints, and goes ahead of other work until it
    leaves. What it does before the first packet is watched, too.
    """

    def __init__(self, watched: Watched, period_s: float = 1.0) -> None:
        self.watched, self.period_s = watched, period_s
        self.links: list[LinkSample] = []
        self.before: Snapshot
        self.after: Snapshot
        self._observer = Observer(period_s)
        self._exits = ExitStack()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fidelity monitor", daemon=True)

    @property
    def seconds(self) -> Sequence[Second]:
        """What the processors did in each second that is over."""
        return self._observer.seconds

    def overloaded_so_far(self, planned_s: float | None = None, limits: Limits | None = None) -> tuple[Cause, ...]:
        """Why the run, which still goes on, is clearly overloaded; empty as long as that is not clear.

        A single second decides the verdict at the end; here it takes several of the last ten. `planned_s` is how long
        the plan gives what is done by now: a run that needs much longer is overloaded too. This is cheap enough to be
        asked at every report of progress.
        """
        elapsed_s = time.monotonic() - self.before.at_s
        return tuple(clear_overload(self.seconds, limits or Limits(), elapsed_s, planned_s))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._observer)
            stack.enter_context(ahead_of_others())
            self._begin()
            self._exits = stack.pop_all()
        return self

    def _begin(self) -> None:
        self.before = self.watched.snapshot()
        self._sample()
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._exits.__exit__(kind, error, trace)
        if error is None:
            self._sample()
            self.after = settled(self.watched)

    def _watch(self) -> None:
        while not self._over.wait(self.period_s):
            self._sample()

    def _sample(self) -> None:
        sent = {name: interface.sent_bytes for name, interface in self.watched.links().items()}
        self.links.append(LinkSample(time.monotonic(), sent))


def settled(watched: Watched) -> Snapshot:
    """All counters of the network once it is quiet: copies of packets may still be on their way when a run ends.

    Counters are read one after the other, so a packet that moves meanwhile would be in some of them only.
    """
    patience = time.monotonic() + PATIENCE_S
    now = watched.links()
    while time.monotonic() < patience:
        time.sleep(QUIET_S)
        earlier, now = now, watched.links()
        if now == earlier:
            break
    return watched.snapshot()
