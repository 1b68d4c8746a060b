"""How long each virtual port will be busy at best: the ideal active windows of Algorithm 3, for all ports at once.

A unit has two virtual ports, one to its servers and one to the interconnect. Where a job's update takes a while, its
transfer has to end that much earlier, and the port is busy for longer than its data takes at full rate. The scan's line
9 divides by t_0 - tau_j, which is constant throughout; the middle of the range is meant, as lines 8, 10 and 12 say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inakit.planner.methods.p4inc_aoi.online.matching import FloatArray
from inakit.planner.methods.p4inc_aoi.problem.resources import Shape
from inakit.planner.methods.p4inc_aoi.problem.system import DataCenter

THRESHOLD_S = 1e-3
"""t_th, the width in s of the range at which the bisection ends."""

VirtualPort = tuple[str, str]
"""A unit, and where the port leads: SERVERS or OPTICS."""
SERVERS, OPTICS = "servers", "optics"


def ports_of(shape: Shape) -> dict[VirtualPort, int]:
    """The virtual ports that a job uses, and how many times a worker's data goes through each."""
    found: dict[VirtualPort, int] = {(unit, SERVERS): load for unit, load in shape.loads}
    for units, weight in shape.flows:
        for unit in units:
            found[unit, OPTICS] = found.get((unit, OPTICS), 0) + weight
    return found


def capacities(center: DataCenter) -> dict[VirtualPort, float]:
    """The bit/s of each virtual port."""
    servers = {(unit.name, SERVERS): unit.switch_bps for unit in center.units}
    return servers | {(unit.name, OPTICS): unit.optical_ports * center.port_bps for unit in center.units}


def windows(
    center: DataCenter, uses: Sequence[Mapping[VirtualPort, int]], bits: FloatArray, update_s: FloatArray
) -> dict[VirtualPort, float]:
    """The end of each port's window, in seconds from now. `uses`, `bits` (of a worker) and `update_s` are by job."""
    capacity = capacities(center)
    number = {port: place for place, port in enumerate(capacity)}
    entries = [(number[port], job, weight) for job, use in enumerate(uses) for port, weight in use.items()]
    port, job, weight = (np.array(column, dtype=int) for column in zip(*entries, strict=True))
    rate = np.array(list(capacity.values())).clip(1e-9)
    data, tau = weight * bits[job], update_s[job]
    low = np.bincount(port, data, len(rate)) / rate
    longest = np.zeros(len(rate))
    np.maximum.at(longest, port, tau)
    high = low + longest
    while (high - low).max() >= THRESHOLD_S:
        middle = (low + high) / 2
        spare = middle[port] - tau
        wanted = np.divide(data, spare, out=np.full(len(data), np.inf), where=spare > 0)
        enough = np.bincount(port, wanted, len(rate)) <= rate
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return {port: float(high[place]) for port, place in number.items()}
