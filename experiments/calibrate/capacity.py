"""What a plan asks of this machine's processors, and what they are known to carry.

The endpoints have one processor, the switches share the others (`topo.live.processors`). A calibration says how
many packets per second both handled at the highest rate that stayed VALID, and how busy that kept them; a
packet's cost follows. It holds for about as many hosts as it was made with: an endpoint's packet costs more
where each of many hosts has few at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.core.evaluate import Prediction
from planner.core.problem import Problem


@dataclass(frozen=True)
class Load:
    """Packets per second that endpoints send or receive, and that pass through switches."""

    endpoint_pps: float
    switch_pps: float


def hosts_at_work(problem: Problem) -> int:
    """Workers and parameter servers of all jobs, each counted once."""
    return len({host for job in problem.jobs for host in (*job.workers, *job.servers)})


def planned_load(problem: Problem, prediction: Prediction) -> Load:
    """The load while all jobs send.

    A gradient passes each switch that it reaches; a result passes a switch once for each copy that leaves it.
    """
    switches, packet_bits = problem.fabric.switch_by_name, 8 * problem.fragment.wire_bytes
    gradients, results = prediction.link_loads_bps, prediction.result_loads_bps
    at_hosts = [bps for loads in (gradients, results) for (a, b), bps in loads.items() if not {a, b} <= set(switches)]
    arriving = [bps for (_, node), bps in gradients.items() if node in switches]
    leaving = [bps for (node, _), bps in results.items() if node in switches]
    return Load(sum(at_hosts) / packet_bits, (sum(arriving) + sum(leaving)) / packet_bits)


@dataclass(frozen=True)
class Use:
    """Shares of the processor of the endpoints, and of the processors of the switches, that are in use."""

    endpoint: float
    switches: float

    @property
    def most(self) -> float:
        """The busier of the two."""
        return max(self.endpoint, self.switches)


@dataclass(frozen=True)
class Capacity:
    """What one calibration found: `load` was carried by `target` with `hosts` hosts, and kept processors busy."""

    target: str
    hosts: int
    load: Load
    busy: Use
    date: str

    def use(self, load: Load) -> Use:
        """What `load` would need; more than 1 is more than there is."""
        return Use(
            load.endpoint_pps * self.busy.endpoint / self.load.endpoint_pps,
            load.switch_pps * self.busy.switches / self.load.switch_pps,
        )

    def carried_share(self, load: Load) -> float:
        """The share of `load` that keeps the busier processors no busier than they were; over 1 for a light load."""
        return self.busy.most / self.use(load).most


def nearest(capacities: Sequence[Capacity], target: str, hosts: int) -> Capacity | None:
    """The calibration of that target whose number of hosts is nearest, as a ratio."""
    of_target = [capacity for capacity in capacities if capacity.target == target]
    return min(of_target, key=lambda capacity: abs(math.log(capacity.hosts / hosts)), default=None)


@dataclass(frozen=True)
class Forecast:
    """Whether this machine can carry a plan. `scale` is the emulation's; `suits` is one that would fit."""

    text: str
    carried: bool


def forecast(capacity: Capacity, load: Load, scale: float) -> Forecast:
    """In words, before a run; `scale` is the one that the load was planned with."""
    use, share = capacity.use(load), capacity.carried_share(load)
    made = f"(calibrated {capacity.date} with {capacity.hosts} hosts)"
    if share >= 1:
        need = f"needs {use.endpoint:.0%} of the endpoint processor and {use.switches:.0%} of the switches'"
        return Forecast(f"{need} {made}", True)
    fits = f"this machine carries about {share:.2f} of it: --scale {rounded_down(scale * share):g} fits"
    return Forecast(f"{fits} {made}", False)


def rounded_down(number: float) -> float:
    """To two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.floor(number / unit + 1e-9) * unit
