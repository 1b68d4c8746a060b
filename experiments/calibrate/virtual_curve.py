"""`inakit calibrate --curve --switch virtual`: how time and memory grow with a fat-tree that runs in virtual time."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass

from experiments.calibrate.curve import Curve, Quantity
from experiments.run.planning import plan_to_run
from experiments.run.run import Run, run_plan
from experiments.worlds.virtual import VirtualWorld
from planner.core.problem import Problem
from topo.errors import RunError


@dataclass(frozen=True)
class Simulated:
    """What a run in virtual time took: seconds of a processor, and the most memory of this process until then.

    `plan_s` has the table entries, too. `hops`: how many packets crossed a link.
    """

    problem: Problem
    plan_s: float
    setup_s: float
    run_s: float
    hops: int
    memory_bytes: int

    @property
    def workers(self) -> int:
        """The number of workers of all jobs."""
        return sum(len(job.workers) for job in self.problem.jobs)


def simulate(problem: Problem, planner: str, seed: int) -> Simulated:
    """Plan a problem and run it. Raises `RunError` for sums that are not exact."""
    started = time.process_time()
    run = Run(problem, plan_to_run(problem, planner, seed).plan)
    assert run.installed
    planned = time.process_time()
    outcome = run_plan(run, VirtualWorld())
    ended = time.process_time()
    if not outcome.measured.exact:
        raise RunError(f"sums in virtual time are wrong: {'; '.join(outcome.measured.wrong)}")
    interfaces = outcome.monitor.after.interfaces.values()
    return Simulated(
        problem,
        plan_s=planned - started,
        setup_s=outcome.setup_s,
        run_s=ended - planned - outcome.setup_s,
        hops=sum(counters.received_packets for counters in interfaces),
        memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


SIMULATED: Curve[Simulated] = Curve(
    "fat-trees in virtual time, on one processor",
    lambda found: found.problem.fabric.name,
    (
        Quantity("switches", lambda found: len(found.problem.fabric.switches), "switches", "d"),
        Quantity("hosts", lambda found: len(found.problem.fabric.hosts)),
        Quantity("workers", lambda found: found.workers, "workers", "d"),
        Quantity("link_mbps", lambda found: max(found.problem.fabric.capacities_bps.values()) / 1e6),
        Quantity("hops", lambda found: found.hops, "packet-hops", ",d"),
        Quantity("plan_s", lambda found: found.plan_s, "plan\ns", ".1f"),
        Quantity("setup_s", lambda found: found.setup_s, "set-up\ns", ".1f"),
        Quantity("run_s", lambda found: found.run_s, "run\ns", ".1f"),
        Quantity("hops_per_s", lambda found: found.hops / found.run_s, "packet-hops/s", ",.0f"),
        Quantity("memory_mb", lambda found: found.memory_bytes / 1e6, "memory\nMB", ",.0f"),
    ),
    (("run_s",), ("plan_s", "setup_s"), ("hops_per_s",), ("memory_mb",)),
)
