"""Interferences: everything that is done to a run on purpose. A run has a list of them, and knows none of the kinds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import reduce
from math import inf
from typing import Self

from inakit.experiments.run.record import InterferenceRecord
from inakit.experiments.worlds.world import Feature, LiveNetwork
from inakit.planner.prepared import Prepared
from inakit.switch.entries import Entries
from inakit.topo.errors import RunError
from inakit.traffic.closed_loop import ClosedLoop
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.sockets.ports import Ports


@dataclass(frozen=True)
class Scene:
    """A run that is interfered with: its network, its plan, and the entries that the network's switches have."""

    network: LiveNetwork
    prepared: Prepared
    installed: Entries


class Interference:
    """Something that is done to a run on purpose. A kind overrides what it does; all else stays as it is.

    A value says what is to be done, and can be used in several runs. `acting` makes the copy that does it in one.
    """

    scene: Scene
    needs: Collection[Feature] = ()
    """The features of a world without which this kind cannot be carried out."""

    def entries(self, prepared: Prepared, installed: Entries) -> Entries:
        """The table entries to install, given those of the plan and of the interferences before this one."""
        _ = prepared
        return installed

    def excuses(self, scene: Scene) -> Excuses:
        """What this explains, so that it does not count against the run's verdict."""
        _ = scene
        return Excuses(rates=True)

    @contextmanager
    def acting(self, scene: Scene) -> Iterator[Self]:
        """The copy that interferes with one run, from its begin to its end."""
        own = copy(self)
        own.scene = scene
        yield own

    # -- as `inakit.traffic.closed_loop.Interfering`

    def prepare(self, layout: StreamLayout, ports: Ports) -> tuple[StreamLayout, Ports]:
        """The layout and the ports that the run is to use instead of these."""
        return layout, ports

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Do what is due at `now`."""

    def next_due(self, loop: ClosedLoop) -> float:
        """Before this time, to within roundings, `act` does nothing unless packets come."""
        _ = loop
        return inf

    # -- for the record

    def happened(self) -> Sequence[str]:
        """What has been done so far, in words, for the error of a run that fails."""
        return ()

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The entry in the record."""
        raise NotImplementedError


@dataclass
class Interferences:
    """The interferences of one run, which act one after another."""

    chosen: Sequence[Interference]
    scene: Scene
    own: Sequence[Interference] = field(default=(), init=False)

    def excuses(self) -> Excuses | None:
        """What they explain together; None without any."""
        found = [each.excuses(self.scene) for each in self.chosen]
        return reduce(Excuses.__or__, found) if found else None

    @contextmanager
    def acting(self) -> Iterator[Interferences | None]:
        """Let all act until the block ends; None without any. An error of the run says what had been done before."""
        try:
            with ExitStack() as stack:
                self.own = [stack.enter_context(each.acting(self.scene)) for each in self.chosen]
                yield self if self.own else None
        except RunError as error:
            happened = [text for each in self.own for text in each.happened()]
            if not happened:
                raise
            raise RunError(f"{error}. The run was interfered with before: {'; '.join(happened)}") from error

    def prepare(self, layout: StreamLayout, ports: Ports) -> tuple[StreamLayout, Ports]:
        """The layout and the ports that all of them leave."""
        for each in self.own:
            layout, ports = each.prepare(layout, ports)
        return layout, ports

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Do what is due at `now`."""
        for each in self.own:
            each.act(loop, now)

    def next_due(self, loop: ClosedLoop) -> float:
        """When the first of them has something to do next."""
        return min(each.next_due(loop) for each in self.own)
