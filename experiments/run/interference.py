"""Interferences: deliberate changes to a run, such as faults. A run has a list of them and knows no kind."""

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


@dataclass(frozen=True)
class Scene:
    """The parts of a run that interferences see: its network, its plan, and the entries installed in the switches."""

    network: LiveNetwork
    prepared: Prepared
    installed: Entries


class Interference:
    """A deliberate change to a run. Each kind overrides the methods that it needs; the defaults change nothing.

    An object describes the change and can be used in several runs. `acting` makes the copy that acts in one run.
    """

    scene: Scene
    needs: Collection[Feature] = ()
    """The features of a world that this kind requires."""

    def slowed(self, scale: float) -> Interference:
        """The same change to a run whose rates are `scale` times as high. The default changes nothing."""
        _ = scale
        return self

    def entries(self, prepared: Prepared, installed: Entries) -> Entries:
        """The table entries to install, given those of the plan and of the interferences before this one."""
        _ = prepared
        return installed

    def excuses(self, scene: Scene) -> Excuses:
        """The deviations that this interference explains, so that they do not affect the run's verdict."""
        _ = scene
        return Excuses(rates=True)

    @contextmanager
    def acting(self, scene: Scene) -> Iterator[Self]:
        """Yield the copy that interferes with one run, from its beginning to its end."""
        own = copy(self)
        own.scene = scene
        yield own

    # -- as `inakit.traffic.closed_loop.Interfering`

    def prepare(self, layout: StreamLayout) -> StreamLayout:
        """The layout that the run uses instead of this one."""
        return layout

    def begin(self, loop: ClosedLoop) -> None:
        """Note that the run begins; the loop has its endpoints."""

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Act if an action is due at `now`."""

    def next_due(self, loop: ClosedLoop) -> float:
        """The time before which `act` does nothing, unless an iteration begins or ends; -inf: act now."""
        _ = loop
        return inf

    # -- for the record

    def happened(self) -> Sequence[str]:
        """The actions so far, in words, for the error of a run that fails."""
        return ()

    def as_record(self, monitor: Monitor) -> InterferenceRecord:
        """The interference's entry in the record."""
        raise NotImplementedError


@dataclass
class Interferences:
    """The interferences of one run, which act one after another."""

    chosen: Sequence[Interference]
    scene: Scene
    own: Sequence[Interference] = field(default=(), init=False)

    def excuses(self) -> Excuses | None:
        """The deviations that the interferences explain together; None if there are no interferences."""
        found = [each.excuses(self.scene) for each in self.chosen]
        return reduce(Excuses.__or__, found) if found else None

    @contextmanager
    def acting(self) -> Iterator[Interferences | None]:
        """Activate all interferences until the block ends; yield None if there are none.

        A `RunError` of the block lists the actions before it.
        """
        try:
            with ExitStack() as stack:
                self.own = [stack.enter_context(each.acting(self.scene)) for each in self.chosen]
                yield self if self.own else None
        except RunError as error:
            happened = [text for each in self.own for text in each.happened()]
            if not happened:
                raise
            raise RunError(f"{error}. Interferences before the error: {'; '.join(happened)}") from error

    def prepare(self, layout: StreamLayout) -> StreamLayout:
        """The layout after the changes of all interferences."""
        for each in self.own:
            layout = each.prepare(layout)
        return layout

    def begin(self, loop: ClosedLoop) -> None:
        """Let all interferences know that the run begins."""
        for each in self.own:
            each.begin(loop)

    def act(self, loop: ClosedLoop, now: float) -> None:
        """Act if an action is due at `now`."""
        for each in self.own:
            each.act(loop, now)

    def next_due(self, loop: ClosedLoop) -> float:
        """The earliest time at which an interference acts next."""
        return min(each.next_due(loop) for each in self.own)
