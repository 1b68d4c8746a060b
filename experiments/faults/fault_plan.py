"""What a run is to suffer: faults of links, events at their moments, stragglers, other traffic and hostile hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from inakit.planner.install.background_entries import Flow
from inakit.planner.install.fault_entries import Faults
from inakit.topo.errors import InputError
from inakit.traffic.faults.endpoint_faults import Stragglers
from inakit.traffic.faults.hostile import Attack

if TYPE_CHECKING:
    from inakit.traffic.runs.closed_loop import ClosedLoop

Link = tuple[str, str]
"""One direction of a link: from a node to a neighbour."""


@dataclass(frozen=True)
class Moment:
    """When an event happens: `seconds` after the start of the run or, if that is None, when an iteration begins.

    `job` is the position of the iteration's job in the problem. Iterations and positions count from 0.
    """

    seconds: float | None = None
    iteration: int = 0
    job: int = 0

    def has_come(self, loop: ClosedLoop, now: float) -> bool:
        """Whether the moment has come at the time `now` of a run's clock, in seconds."""
        if self.seconds is None:
            return (self.job, self.iteration) in loop.begun
        return now - loop.started_at >= self.seconds

    def next_due(self, loop: ClosedLoop) -> float:
        """When the moment comes, to within roundings, unless an iteration begins before that."""
        if self.seconds is None:
            return -inf if (self.job, self.iteration) in loop.begun else inf
        return loop.started_at + self.seconds


@dataclass(frozen=True)
class Event:
    """An event of a kind of `KINDS` at `nodes`: one node, or the two ends of a link.

    `lasting_s` is how many seconds it lasts, None if the file does not say.
    """

    at: Moment
    kind: str
    nodes: tuple[str, ...]
    lasting_s: float | None = None

    def __str__(self) -> str:
        ends = "" if self.lasting_s is None else f" for {self.lasting_s:g} s"
        return f"{self.kind} {'-'.join(self.nodes)}{ends}"


@dataclass(frozen=True)
class FaultPlan:
    """Everything that a faults file asks for. `document` is the content of the file as it was parsed."""

    document: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    links: Faults = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    stragglers: Stragglers | None = None
    background: tuple[Flow, ...] = ()
    hostile: tuple[Attack, ...] = ()


def check_mode(mode: str) -> None:
    """Raise `InputError` unless a run in this mode can have faults."""
    if mode != "reliable":
        raise InputError(f"faults in mode '{mode}': nothing would be sent again; choose --mode reliable")
