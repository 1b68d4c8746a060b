"""`inakit design`: ATRO's network for a cluster, as files that the other commands read, and as a picture."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from inakit.experiments.run.planning import draw_fabric, print_plan, write_plan
from inakit.experiments.run.printed.progress import working
from inakit.planner.core.design import Design
from inakit.planner.core.method import Options
from inakit.planner.core.problem import Job
from inakit.planner.methods.atro.bound import most_workers_bound
from inakit.planner.methods.atro.cluster import Cluster
from inakit.planner.methods.atro.method import design
from inakit.planner.trees.headroom import as_run
from inakit.traffic.wire.frames import FRAGMENT


def run_design(cluster: Cluster, job: Job, options: Options, output: Path | None, console: Console) -> Design:
    """Find the network, print what it is worth, and write it to the folder `output`."""
    with working(console, "designing the network"):
        designed = design(cluster, FRAGMENT, options, job)
    run = as_run(designed.problem, designed.plan)
    print_plan(console, designed.problem, run)
    console.print(why(cluster, designed), highlight=False)
    spare = cluster.aggregators + cluster.common - len(designed.fabric.switches)
    console.print(f"{len(designed.fabric.switches)} switches in use, {spare} spare", highlight=False)
    if output is not None:
        write_plan(output, designed.problem, run.plan)
        draw_fabric(designed.fabric, designed.problem, run.plan, output / "fabric")
        console.print(f"run it: inakit emulate --topo {output}/fabric.yml --jobs {output}/jobs.yml --planners aro")
    return designed


def why(cluster: Cluster, designed: Design) -> str:
    """The reason why the rate is not higher, in words."""
    flows = round(cluster.capacity_bps / designed.rate_bps)
    if flows == 1:
        return "no rate is higher: it is that of a worker's link"
    rate, most = cluster.capacity_bps / (flows - 1), most_workers_bound(cluster, flows - 1)
    proof = "" if most >= cluster.workers else f": such links carry {most:.0f} workers at most"
    return f"{flows} flows share a link; the next higher rate is {rate / 1e6:.3f} Mbit/s{proof}"
