"""`inakit reproduce collectives planners`: collectives and the planners beside them, by packets in virtual time.

Every plan runs twice: on lossless links, where rates and times have to match the plan, and on links that lose 1 % of
all packets, where its sums have to be exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from itertools import product

from rich.table import Table

from inakit.experiments.papers.aro.setting import SJST
from inakit.experiments.papers.common.figure_engine import Findings, Part, Rows, SweptFigure, once
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.run.interference import Interference
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.problem import Job, Problem
from inakit.planner.install.fault_entries import LinkFaults
from inakit.planner.placement import QueuedJob, find_policy, place_queue
from inakit.planner.prepared import Prepared
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

GRADIENT_BYTES = 1000 * 4 * FRAGMENT.values
PLACED_JOBS, PLACED_WORKERS = 6, 15
LOSS = 0.01
RATE_NEAR, TIME_NEAR = 0.03, 0.05
"""The tolerated relative difference of the measured rate and time from the planned ones, without losses."""

PLANNERS = (
    "ring", "halving-doubling", "double-tree", "hierarchical", "ps-sharded",
    "sharp", "soar", "inarouting", "panama",
)  # fmt: skip


def whole_fabric(fabric: Fabric) -> Problem:
    """One job on all hosts; the first is the PS."""
    server, *workers = (host.name for host in fabric.hosts)
    return Problem(fabric, (Job(1, tuple(workers), (server,), GRADIENT_BYTES),), FRAGMENT)


def aro_default() -> Problem:
    """ARO's default: 200 workers on a leaf-spine of 24 leaves and 24 spines; 9 switches sum; links of 100 Gbit/s."""
    problem = SJST.problem(0)
    return replace(problem, jobs=tuple(replace(job, gradient_bytes=GRADIENT_BYTES) for job in problem.jobs))


def placed(by: str) -> Problem:
    """Equal jobs that arrive at the same time on a fat-tree of 8 ports; a placement assigns their hosts."""
    fabric = fat_tree(8)
    queue = [QueuedJob(number, PLACED_WORKERS, GRADIENT_BYTES) for number in range(1, PLACED_JOBS + 1)]
    found = place_queue(fabric, queue, find_policy(by), FRAGMENT)
    return Problem(fabric, tuple(job.planned for job in found), FRAGMENT)


NETWORKS: dict[str, Callable[[], Problem]] = {
    "leaf-spine 4x2": lambda: whole_fabric(leaf_spine(4, 2, 4)),
    "fat-tree 4": lambda: whole_fabric(fat_tree(4)),
    "fat-tree 8": lambda: whole_fabric(fat_tree(8)),
    "fat-tree 8, 6 jobs placed by netpack": partial(placed, "netpack"),
    "fat-tree 8, 6 jobs placed by mina": partial(placed, "mina"),
    "ARO's default": aro_default,
}
QUICK = ("leaf-spine 4x2", "fat-tree 4")


def losing(fabric: Fabric, share: float) -> FaultPlan:
    """The fraction of packets that each direction of each link loses."""
    return FaultPlan(links=dict.fromkeys(fabric.capacities_bps, LinkFaults(drop=share)) if share else {})


def in_virtual_time(prepared: Prepared, interferences: tuple[Interference, ...]) -> Result:
    """Run a plan; return the rates (bit/s) and times (s), planned and measured, and the judgement of the run."""
    promised = prepared.prediction
    outcome = run_plan(Run(prepared, interferences=interferences), find_world("virtual"))
    return {
        "planned_bps": promised.sending_rate_bps,
        "planned_s": promised.communication_time_s,
        "measured_bps": outcome.measured.sending_rate_bps,
        "measured_s": outcome.measured.communication_time_s,
        "exact": int(bool(outcome.measured.exact)),
        "retransmissions": outcome.measured.retransmissions,
        "judged": outcome.verdict,
        "reasons": "; ".join(outcome.reasons),
    }


def measure(trial: Trial) -> Result:
    """The run of a planner's plan on a network whose links lose some packets."""
    problem = NETWORKS[str(trial["network"])]()
    faults = losing(problem.fabric, float(trial["loss"]))
    return in_virtual_time(plan_to_run(problem, str(trial["planner"]), 0), faults.interferences)


def trial_of(network: str, planner: str, loss: float) -> Trial:
    """The trial of a planner on a network whose links lose this fraction of packets."""
    return {"network": network, "planner": planner, "loss": loss}


@dataclass(frozen=True)
class Row:
    """A planner on a network. `rate` and `time` are measured values over planned ones, without losses; `slower` is the
    time with losses over the time without. `verdict` and `lossy_verdict` belong to the two runs; `exact` is whether
    both have exact sums.
    """

    network: str
    planner: str
    planned_bps: float
    rate: float
    time: float
    verdict: str
    slower: float
    lossy_verdict: str
    exact: bool

    @property
    def holds(self) -> bool:
        """Whether both runs are VALID and exact, and the run without losses matches the plan."""
        near = abs(self.rate - 1) <= RATE_NEAR and abs(self.time - 1) <= TIME_NEAR
        return near and self.exact and (self.verdict, self.lossy_verdict) == (VALID, VALID)


def row_of(found: Findings, network: str, planner: str) -> Row:
    clean, lossy = (found.result(trial_of(network, planner, loss)) for loss in (0.0, LOSS))
    measured_s = float(clean["measured_s"])
    return Row(
        network,
        planner,
        float(clean["planned_bps"]),
        float(clean["measured_bps"]) / float(clean["planned_bps"]),
        measured_s / float(clean["planned_s"]),
        str(clean["judged"]),
        float(lossy["measured_s"]) / measured_s,
        str(lossy["judged"]),
        bool(clean["exact"] and lossy["exact"]),
    )


def networks_of(request: Request) -> tuple[str, ...]:
    return QUICK if request.quick else tuple(NETWORKS)


def show(found: Findings) -> Iterator[Part]:
    """A line for each planner on each network."""
    rows = rows_of(found)
    headings = ("network", "planner", "planned (Mbit/s)", "rate", "time", "", f"time with {LOSS:.0%} loss", "", "sums")
    table = Table(*headings)
    for row in rows:
        table.add_row(
            row.network, row.planner, f"{row.planned_bps / 1e6:,.2f}", f"{row.rate - 1:+.1%}", f"{row.time - 1:+.1%}",
            row.verdict, f"{row.slower:.2f} times", row.lossy_verdict, "exact" if row.exact else "WRONG",
        )  # fmt: skip
    yield table
    yield Rows("collectives-planners.csv", [field.name for field in fields(Row)], map(astuple, rows))


def rows_of(found: Findings) -> list[Row]:
    return [row_of(found, *each) for each in product(networks_of(found.request), PLANNERS)]


FIGURES = {
    "planners": SweptFigure(
        "collectives-planners", "collectives-planners-trials", measure,
        lambda request: [trial_of(*each) for each in product(networks_of(request), PLANNERS, (0.0, LOSS))], show,
        draws=once,
        verdict=lambda found, _: VALID if all(row.holds for row in rows_of(found)) else Verdict.DIFFERS,
    )
}  # fmt: skip
