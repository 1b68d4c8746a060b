"""What a switch's chip allows an aggregator to do, as immutable data.

A chip changes nothing by itself. Planners plan within its limits, `inakit.planner.core.check` holds plans to them, and
worlds give each pipeline its recirculation bandwidth. Profiles are read by `inakit.topo.files.chip_profiles`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from inakit.topo.errors import FabricError

VALUES_PER_PACKET = 64
"""The values of an INA packet, as `p4/ina.p4` has them."""

ROUNDING = 1e-9


@dataclass(frozen=True)
class Chip:
    """The limits of a chip. What is said of a pipeline holds for each one. Constructing one checks it.

    - `values_per_pass`: the values that a packet can have summed while it passes a pipeline once
    - `slots_per_pipeline`: the slots of an aggregator's registers, all versions counted
    - `children_per_slot`: the bits of a slot's bitmap
    - `recirculation_bps`: what a pipeline takes back in, in bit/s; None: packets are never recirculated
    - `pipelines`, and `ports_per_pipeline`: by their rate in bit/s, how many ports a pipeline has if all are alike
    - `table_entries`: the entries of each exact table; `multicast_groups`: the groups of all trees
    - `register_bytes`: the memory of a pipeline for registers and tables; None: not known
    """

    name: str
    values_per_pass: int
    slots_per_pipeline: int
    children_per_slot: int
    pipelines: int
    table_entries: int
    multicast_groups: int
    recirculation_bps: float | None = None
    ports_per_pipeline: tuple[tuple[float, int], ...] = ()
    register_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.passes > 1 and self.recirculation_bps is None:
            raise FabricError(
                f"chip '{self.name}': {self.values_per_pass} values per pass make {self.passes} passes of a packet's "
                f"{VALUES_PER_PACKET} values: give its recirculation rate"
            )

    @property
    def passes(self) -> int:
        """How often a packet passes its pipeline until all its values are summed."""
        return -(-VALUES_PER_PACKET // self.values_per_pass)

    @property
    def summing_bps(self) -> float:
        """The most bit/s that a pipeline sums: each packet is recirculated once for every pass after the first."""
        if self.passes == 1 or self.recirculation_bps is None:
            return math.inf
        return self.recirculation_bps / (self.passes - 1)

    def at_scale(self, factor: float) -> Chip:
        """The chip with every rate multiplied by `factor`."""
        ports = tuple((rate * factor, count) for rate, count in self.ports_per_pipeline)
        recirculation = self.recirculation_bps and self.recirculation_bps * factor
        return replace(self, recirculation_bps=recirculation, ports_per_pipeline=ports)

    def share_of_pipeline(self, rate_bps: float) -> float:
        """The part of a pipeline's ports that a link of this rate takes; infinite for a link faster than any port.

        Ports are broken out: where a pipeline has 16 of 100 Gbit/s or 64 of 25, a link of 25 Gbit/s takes 1/64 of it.
        """
        if not self.ports_per_pipeline:
            return 0.0
        counts = [count for rate, count in self.ports_per_pipeline if rate >= rate_bps * (1 - ROUNDING)]
        return 1 / max(counts) if counts else math.inf

    def fill(self, rates_bps: Mapping[int, float]) -> tuple[tuple[int, ...], ...]:
        """Ports, given with their rates, as pipelines that are filled one after the other in the order of numbers."""
        pipelines: list[list[int]] = [[]]
        taken = 0.0
        for port, rate_bps in sorted(rates_bps.items()):
            share = self.share_of_pipeline(rate_bps)
            if taken + share > 1 + ROUNDING and pipelines[-1]:
                pipelines.append([])
                taken = 0.0
            pipelines[-1].append(port)
            taken += share
        return tuple(map(tuple, pipelines))
