"""The packet-hops per second that world `virtual` simulates: in a whole run, and in the engine with its switches alone.

A packet-hop is a packet that has crossed a link. One run gives both figures, so they are of the same packets: a thread
looks every 0.1 ms at what the engine does (`parts.h`). `SIMULATED` is the curve of `inakit calibrate --curve --switch
virtual`: time and memory over the size of a fat-tree.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.table import Table

from inakit.experiments.bench.switch_rates import WORKLOADS, Measurement
from inakit.experiments.calibrate.limit import Curve, Quantity
from inakit.experiments.run.console import figures
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.virtual import LiveVirtualNetwork, VirtualWorld
from inakit.experiments.worlds.world import Wiring
from inakit.planner.core.problem import Problem
from inakit.switch.entries import Entries
from inakit.topo.errors import RunError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.virtual.engine import PARTS

K, CAPACITY = 8, "100G"
GRADIENT_BYTES, ITERATIONS = 548_000, 3


def datacentre(k: int = K) -> Problem:
    """A fat-tree; all hosts but one are workers."""
    jobs = JobChoice(workers=k**3 // 4 - 1, gradient_bytes=GRADIENT_BYTES, iterations=ITERATIONS)
    return build_problem(FabricChoice("fattree", k, capacity=CAPACITY), jobs)


@dataclass(frozen=True)
class Speed:
    """A run of `hops` packet-hops: the seconds of one processor that it took, and the share of each of `PARTS`.

    `plan_s` and `setup_s`: the seconds for the plan and its table entries, and the rest of the time before the run.
    """

    problem: Problem
    hops: int
    run_s: float
    shares: Mapping[str, float]
    plan_s: float = 0.0
    setup_s: float = 0.0

    @property
    def engine_s(self) -> float:
        """The seconds of the engine and its switches, without endpoints."""
        return self.run_s * sum(self.shares[part] for part in PARTS if part not in OF_ENDPOINTS)


OF_ENDPOINTS = ("Python", "endpoints")


@dataclass(frozen=True)
class TimedWorld(VirtualWorld):
    """Virtual time in which `spent` has the hops, the seconds of this thread and the shares of each network."""

    spent: list[tuple[int, float, Mapping[str, float]]] = field(default_factory=list)

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[LiveVirtualNetwork]:
        """Yield the network, until the block ends."""
        with super().up(fabric, installed, wiring, progress) as network:
            started = time.thread_time()
            with network.engine.sampled() as shares:
                yield network
            self.spent.append((network.engine.hops, time.thread_time() - started, shares))


def bench_virtual(problem: Problem, planner: str = "aro", seed: int = 0) -> Speed:
    """Plan a problem and run it in virtual time. Raises `RunError` if sums are not exact."""
    world, started = TimedWorld(), time.thread_time()
    run = Run(plan_to_run(problem, planner, seed))
    assert run.installed
    planned = time.thread_time()
    outcome = run_plan(run, world)
    ended = time.thread_time()
    if not outcome.measured.exact:
        raise RunError(f"sums in virtual time are wrong: {'; '.join(outcome.measured.wrong)}")
    hops, run_s, shares = world.spent[0]
    return Speed(problem, hops, run_s, shares, planned - started, ended - planned - run_s)


def hops_table(speed: Speed, rates: Sequence[Measurement]) -> Table:
    """A row for the engine with its switches, one for the whole run, and a column for each target's ratio."""
    best = most_hops(rates)
    columns, title = figures("virtual", *best, *(f"virtual : {target}" for target in best)), "Packet-hops per second"
    table = Table("of it", *columns, title=title, caption=caption(speed), caption_justify="left", min_width=88)
    for part, seconds in (("engine and switches", speed.engine_s), ("with the endpoints", speed.run_s)):
        rate = speed.hops / seconds
        ratios = (f"{rate / most:.1f}" for most in best.values())
        table.add_row(part, f"{rate:,.0f}", *(f"{most:,.0f}" for most in best.values()), *ratios)
    return table


def parts_table(speed: Speed) -> Table:
    """The time of a packet-hop by part."""
    table = Table("part", *figures("ns", "share"), title="Time per packet-hop by part", min_width=50)
    for part, share in [*speed.shares.items(), ("all", 1.0)]:
        table.add_row(part, f"{speed.run_s * share / speed.hops * 1e9:.0f}", f"{share:.1%}")
    return table


@dataclass(frozen=True)
class PublishedSpeed:
    """Packet-hops that another simulator carried in `wall_s` seconds, as its authors published; `how`: the setting."""

    simulator: str
    hops: int
    wall_s: float
    how: str

    def __str__(self) -> str:
        return f"{self.simulator}, {self.how}: {self.hops / self.wall_s:,.0f} packet-hops per second"


P4SIM = PublishedSpeed(
    "P4sim",
    hops=3_749_999 + 3_577_117,  # packets sent to the switch and received from it
    wall_s=1742.556,
    how="as published (artifact of its paper at ICNS3 2025: IPv4 forwarding, two hosts, one switch, packets of 1,000 "
    "bytes at 10 Gbit/s for 3 s; ns-3's debug build, another machine)",
)


def most_hops(rates: Sequence[Measurement]) -> dict[str, float]:
    """The highest packet-hops per second of each target that carried any packet, over all chains and loss limits."""
    yields = {workload.name: workload.yield_per_packet for workload in WORKLOADS}
    best: dict[str, float] = {}
    for each in rates:
        hops = (each.rate_pps or 0.0) * (1 + each.switches * yields[each.workload])
        best[each.target] = max(best.get(each.target, 0.0), hops)
    return {target: most for target, most in best.items() if most}


def caption(speed: Speed) -> str:
    """A text about the run, and about the rate of each target that it is compared with."""
    fabric, (job,) = speed.problem.fabric, speed.problem.jobs
    rate_bps = min(fabric.capacities_bps.values())
    return (
        f"{fabric.name}, {len(job.workers)} workers, links of {rate_bps / 1e9:g} Gbit/s, gradients of "
        f"{job.gradient_bytes / 1e3:g} kB, {job.iterations} iterations: {speed.hops:,} packet-hops on one "
        "processor. A target's figure is its highest on any chain, with all processors. "
        f"Not measured here: {P4SIM}."
    )


@dataclass(frozen=True)
class Simulated:
    """The cost of a run in virtual time: seconds of a processor, and this process's peak memory so far."""

    speed: Speed
    memory_bytes: int

    @property
    def fabric(self) -> Fabric:
        return self.speed.problem.fabric

    @property
    def workers(self) -> int:
        return sum(len(job.workers) for job in self.speed.problem.jobs)


def simulate(problem: Problem, planner: str, seed: int) -> Simulated:
    """Plan a problem and run it. Raises `RunError` if sums are not exact."""
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
