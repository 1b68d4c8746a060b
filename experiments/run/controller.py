"""InArt's second phase while a run goes on: a controller reads counters between iterations and installs other plans.

`Replanner` decides. The controller gives it what the network's counters say, and installs its plan before the next
iteration begins. Trees of the new plan have numbers of their own: entries are only added, so that what still moves of
the last iteration keeps its way. Registers are set to 0, because slots still hold the last sums of other trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from inakit.experiments.run.dilation import options_for
from inakit.experiments.run.record import InterferenceRecord
from inakit.experiments.worlds.world import LiveNetwork
from inakit.planner.core.method import Options
from inakit.planner.prepared import Prepared
from inakit.planner.replan import Reading, Replanner, routes_of, shares_of
from inakit.switch.entries import Entries, SwitchEntries
from inakit.topo.fabric.fabric import QUEUE_PACKETS, DirectedLink
from inakit.traffic.closed_loop import Following, ReliableOptions
from inakit.traffic.measure.measured import Iteration
from inakit.traffic.measure.monitor import carried_bytes

KIND = "new plans"
"""The controller's kind in `run.json`."""
LARGEST_FRAME_BYTES = 1514
"""The largest frame of other traffic."""


@dataclass(frozen=True)
class Change:
    """Another plan from `iteration` on: with other trees or another split, or only at another rate.

    The rate and the time of an iteration are the plan's. `background_bps`: the most that others send on a link.
    """

    iteration: int
    routes: bool
    split: bool
    sending_rate_bps: float
    communication_time_s: float
    background_bps: float

    def __str__(self) -> str:
        what = "another split" if self.split else "other routes" if self.routes else "another rate"
        beside = f"beside up to {self.background_bps / 1e6:.3g} Mbit/s on a link" if self.background_bps else "alone"
        return f"from iteration {self.iteration} on {what}: {self.sending_rate_bps / 1e6:.3g} Mbit/s {beside}"


class Controller:
    """The `Replanning` of one run. `endpoints` are the options of the run."""

    def __init__(
        self,
        network: LiveNetwork,
        first: Prepared,
        installed: Entries,
        options: Options,
        endpoints: ReliableOptions | None,
    ) -> None:
        """Raises `InputError` for a plan that `Replanner` does not take."""
        self.network, self.watched = network, network.watched()
        self.endpoints = endpoints or options_for(first.problem)
        self.replanner, self.presets = Replanner(first, options), installed
        self.held = {each.switch: set(each.tables) for each in installed.switches}
        self.current, self.installed = first, 1
        self.changes: list[Change] = []
        self.before: Mapping[DirectedLink, int] = {}
        self.read_at = 0.0
        self.drain_s = 8 * LARGEST_FRAME_BYTES * QUEUE_PACKETS / min(network.fabric.capacities_bps.values())

    # -- as `inakit.traffic.closed_loop.Replanning`

    def begin(self, now: float) -> None:
        """Read the counters with which those of the next iteration are compared."""
        self.before, self.read_at = carried_bytes(self.watched, self.watched.links()), now

    def pause_s(self, iteration: Iteration) -> float:
        """The time in which a full queue empties if the iteration was slow, and hence queues can be full."""
        return self.drain_s if self.replanner.is_slow(iteration.communication_time_s) else 0.0

    def following(self, iteration: Iteration, now: float) -> Following | None:
        """Read what links carried since the last time, and let the replanner decide."""
        carried = carried_bytes(self.watched, self.watched.links())
        reading = Reading(
            carried={link: count - self.before[link] for link, count in carried.items()},
            sent=iteration.sent_bytes,
            received=iteration.ps_ingress_bytes,
            time_s=now - self.read_at,
            sending_s=iteration.communication_time_s,
        )
        self.before, self.read_at = carried, now
        before, after = self.current, self.replanner.decide(reading)
        if after is None:
            return None
        self.current = after
        background = self.replanner.considered.links.values()
        self.changes.append(
            Change(
                iteration=iteration.number + 1,
                routes=routes_of(before.plan) != routes_of(after.plan),
                split=shares_of(before) != shares_of(after),
                sending_rate_bps=after.prediction.sending_rate_bps,
                communication_time_s=after.prediction.communication_time_s,
                background_bps=max(background, default=0.0),
            )
        )
        return Following(after.plan, self.endpoints)

    def install(self, now: float) -> None:
        """Add the current plan's entries that switches do not have, and set all registers as before the run."""
        for name, switch in self.network.switches.items():
            own, held = self.current.entries.of(name), self.held.setdefault(name, set())
            new = [entry for entry in own.tables if entry not in held]
            held.update(new)
            switch.wipe()
            groups = own.groups if len(self.replanner.known) > self.installed else ()
            switch.install(SwitchEntries(name, tuple(new), groups, self.presets.of(name).registers))
        self.installed = len(self.replanner.known)
        self.begin(now)  # planning and installing took time in which other traffic may have begun or ended

    # -- for the record

    def as_record(self) -> InterferenceRecord:
        """The plans that followed the first one."""
        said = [str(each) for each in self.changes] or ["the plan was kept"]
        return InterferenceRecord(kind=KIND, said=said, details={"changes": [asdict(each) for each in self.changes]})
