"""How much load a plan puts on this machine's processors, and how much they are known to carry.

The endpoints have one processor, and the switches share the others (`inakit.topo.live.processors`). A calibration says
how many packets per second both handled at the highest rate that stayed VALID, and how busy that kept them. The
processor time per packet follows. It holds for about as many hosts as the calibration had: with many hosts each
has few packets at a time, and an endpoint's packet costs more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inakit.planner.core.evaluate import Prediction
from inakit.planner.core.problem import Problem


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

    A gradient packet counts once at each switch that it reaches, a result packet once for each copy that leaves
    a switch.
    """
    switches, packet_bits = problem.fabric.switch_by_name, 8 * problem.fragment.wire_bytes
    gradients, results = prediction.link_loads_bps, prediction.result_loads_bps
    at_hosts = [bps for loads in (gradients, results) for (a, b), bps in loads.items() if not {a, b} <= set(switches)]
    arriving = [bps for (_, node), bps in gradients.items() if node in switches]
    leaving = [bps for (node, _), bps in results.items() if node in switches]
    return Load(sum(at_hosts) / packet_bits, (sum(arriving) + sum(leaving)) / packet_bits)


@dataclass(frozen=True)
class Use:
    """The shares of the time for which the endpoints' processor and the switches' processors are busy; 1 is always."""

    endpoint: float
    switches: float

    @property
    def most(self) -> float:
        """The greater share of the two."""
        return max(self.endpoint, self.switches)


@dataclass(frozen=True)
class Capacity:
    """What one calibration found: `target` with `hosts` hosts carried `load`, which used the shares `busy`."""

    target: str
    hosts: int
    load: Load
    busy: Use
    date: str

    def use(self, load: Load) -> Use:
        """The shares of the processors that `load` would need; a share above 1 is more than there is."""
        return Use(
            load.endpoint_pps * self.busy.endpoint / self.load.endpoint_pps,
            load.switch_pps * self.busy.switches / self.load.switch_pps,
        )

    def carried_share(self, load: Load) -> float:
        """The part of `load` that uses the busier processors as much as the calibration did; over 1 if it is light."""
        return self.busy.most / self.use(load).most


def nearest(capacities: Sequence[Capacity], target: str, hosts: int) -> Capacity | None:
    """The calibration of that target whose number of hosts is nearest, as a ratio; None if the target has none."""
    of_target = [capacity for capacity in capacities if capacity.target == target]
    return min(of_target, key=lambda capacity: abs(math.log(capacity.hosts / hosts)), default=None)


@dataclass(frozen=True)
class Forecast:
    """Whether this machine can carry a plan, and a line that says so."""

    text: str
    carried: bool


def forecast(capacity: Capacity, load: Load, scale: float) -> Forecast:
    """The forecast for a plan before its run; `scale` is the one at which `load` was planned."""
    use, share = capacity.use(load), capacity.carried_share(load)
    made = f"(calibrated {capacity.date} with {capacity.hosts} hosts)"
    if share >= 1:
        need = f"needs {use.endpoint:.0%} of the endpoint processor and {use.switches:.0%} of the switches'"
        return Forecast(f"{need} {made}", True)
    fits = f"this machine carries about {share:.2f} of the planned rates: --scale {rounded_down(scale * share):g} fits"
    return Forecast(f"{fits} {made}", False)


def rounded_down(number: float) -> float:
    """The number rounded down to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.floor(number / unit + 1e-9) * unit
