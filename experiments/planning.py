"""What can be done with a plan without running it: show it, write it, draw it, check it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from planner.check import check
from planner.entries import entries
from planner.evaluate import Prediction, evaluate
from planner.files import load_jobs, load_plan, save_entries, save_jobs, save_plan
from planner.methods import Options, find_method
from planner.plan import AggregationTree, Plan, SolverOutcome
from planner.problem import Problem
from topo.draw import draw
from topo.fabric import Fabric
from topo.files import load_fabric, save_fabric
from traffic.packet import FRAGMENT

BUSIEST_LINKS = 5


def make_plan(problem: Problem, planner: str, seed: int) -> Plan:
    """The plan of the method of that name, checked."""
    return find_method(planner).plan(problem, Options(seed=seed))


def print_plan(console: Console, problem: Problem, plan: Plan) -> None:
    """The trees, the busiest links, and what to expect."""
    prediction = evaluate(problem, plan)
    console.print(f"{plan.method} on {problem.fabric.name}: {describe(plan.outcome)}", highlight=False)
    console.print(trees_table(plan))
    console.print(links_table(problem, prediction))
    console.print(
        f"sending rate {prediction.sending_rate_bps / 1e6:.3f} Mbit/s, "
        f"PS ingress {prediction.ps_ingress_bytes / 1e3:.1f} kB, "
        f"communication time {prediction.communication_time_s * 1e3:.1f} ms per iteration",
        highlight=False,
    )


def print_comparison(console: Console, problem: Problem, plans: Mapping[str, Plan]) -> None:
    """What to expect of several planners' plans for one problem, a row for each."""
    table = Table("planner", "rate (Mbit/s)", "of the best", "PS ingress (kB)", "time (ms)", "found")
    predictions = {name: evaluate(problem, plan) for name, plan in plans.items()}
    best = max(prediction.sending_rate_bps for prediction in predictions.values())
    for name, prediction in predictions.items():
        table.add_row(
            name,
            f"{prediction.sending_rate_bps / 1e6:.3f}",
            f"{prediction.sending_rate_bps / best:.0%}",
            f"{prediction.ps_ingress_bytes / 1e3:.1f}",
            f"{prediction.communication_time_s * 1e3:.1f}",
            describe(plans[name].outcome),
        )
    console.print(table)


def describe(outcome: SolverOutcome) -> str:
    """The status in words; a gap is never left out."""
    gap = f", gap {outcome.gap:.2%}" if outcome.gap else ""
    solver = f" ({outcome.solver})" if outcome.solver else ""
    return f"{outcome.status}{gap}{solver} in {outcome.seconds:.2f} s"


def trees_table(plan: Plan) -> Table:
    """One row per aggregator; a tree without one has a row of its own."""
    table = Table("job", "tree", "root", "rate (Mbit/s)", "aggregator", "pipeline", "sums", "slots")
    for shard in plan.shards:
        for tree in shard.trees:
            common = (str(shard.job), str(tree.number), tree.root, f"{shard.rate_bps / len(shard.trees) / 1e6:.3f}")
            for aggregator in tree.aggregators:
                children = ", ".join(sender_name(tree, label) for label in aggregator.children)
                slots = f"{aggregator.first_slot}-{aggregator.first_slot + aggregator.slots - 1}"
                table.add_row(*common, aggregator.switch, str(aggregator.pipeline), children, slots)
            if not tree.aggregators:
                table.add_row(*common, "none", "", f"{len(tree.workers)} workers, at the PS", "")
    return table


def sender_name(tree: AggregationTree, label: int) -> str:
    return tree.workers[label] if label in tree.workers else tree.aggregator_of[label].switch


def links_table(problem: Problem, prediction: Prediction) -> Table:
    table = Table("busiest links", "load (Mbit/s)", "of capacity")
    capacities = problem.fabric.capacities_bps
    shares = {link: load / capacities[link] for link, load in prediction.link_loads_bps.items()}
    for link in sorted(shares, key=lambda link: -shares[link])[:BUSIEST_LINKS]:
        table.add_row(" → ".join(link), f"{prediction.link_loads_bps[link] / 1e6:.3f}", f"{shares[link]:.0%}")
    return table


def write_plan(folder: Path, problem: Problem, plan: Plan) -> None:
    """`plan.json`, `fabric.yml`, `jobs.yml`, and the entries: one command file per switch, and `entries.json`."""
    installed = entries(problem, plan)
    folder.mkdir(parents=True, exist_ok=True)
    save_plan(plan, folder / "plan.json")
    save_fabric(problem.fabric, folder / "fabric.yml")
    save_jobs(problem.jobs, folder / "jobs.yml")
    save_entries(installed, folder / "entries")


def draw_fabric(fabric: Fabric, problem: Problem | None, plan: Plan | None, output: Path) -> list[Path]:
    """The picture as PNG and SVG and the fabric as YAML; with a plan, its trees and link loads."""
    paths = [output.with_suffix(suffix) for suffix in (".png", ".svg")]
    output.parent.mkdir(parents=True, exist_ok=True)
    if problem is None or plan is None:
        draw(fabric, paths)
    else:
        trees = [tree for shard in plan.shards for tree in shard.trees]
        owners = [shard.job for shard in plan.shards for _ in shard.trees]
        loads = evaluate(problem, plan).link_loads_bps
        draw(fabric, paths, loads=loads, trees=trees, roles=roles(problem), owners=owners, jobs=jobs_of(problem))
    save_fabric(fabric, output.with_suffix(".yml"))
    return [*paths, output.with_suffix(".yml")]


def roles(problem: Problem) -> dict[str, str]:
    """What every host is to the jobs."""
    servers = {host: "ps" for job in problem.jobs for host in job.servers}
    return {host: "worker" for job in problem.jobs for host in job.workers} | servers


def jobs_of(problem: Problem) -> dict[str, list[int]]:
    """The numbers of the jobs that every host takes part in."""
    found: dict[str, list[int]] = {}
    for job in problem.jobs:
        for host in dict.fromkeys((*job.workers, *job.servers)):
            found.setdefault(host, []).append(job.number)
    return found


def check_files(plan: Path, fabric: Path, jobs: Path) -> None:
    """Raise `PlanError` unless the plan in a file obeys every rule on that fabric for those jobs."""
    check(Problem(load_fabric(fabric), load_jobs(jobs), FRAGMENT), load_plan(plan))
