"""How many fragments a cell of each world sends, how fast, and with which slots and timeouts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inakit.experiments.worlds.auto import AUTO, worlds_here
from inakit.experiments.worlds.registry import find_world
from inakit.traffic.endpoints.worker_options import WorkerOptions
from inakit.traffic.runs.closed_loop import TICK_S, ReliableOptions

STALL_S = 120.0
"""A run fails after this many seconds without a result, which is longer than a pause of 5 s or heavy loss takes."""


@dataclass(frozen=True)
class Scale:
    """The size of a cell in one world.

    `rate_bps`: the sending rate of each worker. `slots`: those of each switch, few enough for fragments to collide.
    `fragments`: those of a gradient. `timeouts`: a worker's shortest timeout and its first one, in seconds. Short ones
    suit short round trips; with them a run in which most packets are lost ends sooner. `tick_s`: how often endpoints
    act, in seconds; None for what fits the world. Sums do not need steps as fine as times in virtual time do.
    """

    rate_bps: float
    slots: int
    fragments: int
    timeouts: tuple[float, float]
    tick_s: float | None = None

    @property
    def options(self) -> ReliableOptions:
        """The closed loop's options."""
        shortest, longest = self.timeouts
        worker = WorkerOptions(min_timeout_s=shortest, first_timeout_s=longest)
        return ReliableOptions(worker, stall_s=STALL_S, tick_s=self.tick_s)


SLOW = Scale(rate_bps=0.5e6, slots=32, fragments=200, timeouts=(0.08, 0.25))
SCALES = {
    "fast": Scale(rate_bps=16e6, slots=256, fragments=2000, timeouts=(0.04, 0.08)),
    "virtual": Scale(rate_bps=2e6, slots=32, fragments=400, timeouts=(0.08, 0.25), tick_s=TICK_S),
    "bmv2": SLOW,
}


def scale_of(world: str) -> Scale:
    """The scale for a world. A world that has none of its own gets `SLOW`."""
    return SCALES.get(world, SLOW)


def chosen_worlds(names: Iterable[str]) -> list[str]:
    """The worlds of these names; `auto` is every world that this machine can emulate, or virtual time.

    Raises `InakitError`.
    """
    found = dict.fromkeys(each for name in names for each in (worlds_here() if name == AUTO else [name]))
    return [find_world(name).name for name in found]
