"""`inakit calibrate --curve --switch virtual`: how time and memory grow with a fat-tree that runs in virtual time."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from inakit.experiments.bench.virtual_time import Speed, bench_virtual
from inakit.experiments.calibrate.curve import Curve, Quantity
from inakit.planner.core.problem import Problem
from inakit.topo.fabric.fabric import Fabric


@dataclass(frozen=True)
class Simulated:
    """What a run in virtual time took: seconds of a processor, and the most memory of this process until then."""

    speed: Speed
    memory_bytes: int

    @property
    def fabric(self) -> Fabric:
        """The fabric."""
        return self.speed.problem.fabric

    @property
    def workers(self) -> int:
        """The number of workers of all jobs."""
        return sum(len(job.workers) for job in self.speed.problem.jobs)


def simulate(problem: Problem, planner: str, seed: int) -> Simulated:
    """Plan a problem and run it. Raises `RunError` for sums that are not exact."""
    speed = bench_virtual(problem, planner, seed)
    return Simulated(speed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


SIMULATED: Curve[Simulated] = Curve(
    "fat-trees in virtual time, on one processor",
    lambda found: found.fabric.name,
    (
        Quantity("switches", lambda found: len(found.fabric.switches), "switches", "d"),
        Quantity("hosts", lambda found: len(found.fabric.hosts)),
        Quantity("workers", lambda found: found.workers, "workers", "d"),
        Quantity("link_mbps", lambda found: max(found.fabric.capacities_bps.values()) / 1e6),
        Quantity("hops", lambda found: found.speed.hops, "packet-hops", ",d"),
        Quantity("plan_s", lambda found: found.speed.plan_s, "plan\ns", ".1f"),
        Quantity("setup_s", lambda found: found.speed.setup_s, "set-up\ns", ".1f"),
        Quantity("run_s", lambda found: found.speed.run_s, "run\ns", ".1f"),
        Quantity("hops_per_s", lambda found: found.speed.hops / found.speed.run_s, "packet-hops/s", ",.0f"),
        Quantity("memory_mb", lambda found: found.memory_bytes / 1e6, "memory\nMB", ",.0f"),
    ),
    (("run_s",), ("plan_s", "setup_s"), ("hops_per_s",), ("memory_mb",)),
)
