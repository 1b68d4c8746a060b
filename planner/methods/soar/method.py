"""SOAR on a fabric: a static tree for each task, and the best k switches of it.

SOAR is given a tree. In a fabric with several ways it takes, of the static trees towards the parameter server (PS), the
one whose optimum is the least; tasks take turns among trees that are as good. Link rates are the fabric's. SOAR
minimises the time that links are busy in sum, not the time of the busiest link, which gives the rate: a small k serves
it best. A switch that several tasks choose serves all of them (SOAR's bound on workloads of a switch is the planner's
option `workloads`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.soar.optimum import best_switches
from inakit.planner.methods.soar.reduction_tree import DESTINATION, ReductionTree, reduction_tree
from inakit.planner.trees.equal_rate import plan_at_equal_rate
from inakit.planner.trees.from_paths import tree_from_paths
from inakit.planner.trees.static import static_paths, turns
from inakit.planner.trees.unfolding import Path, unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric


@dataclass(frozen=True)
class SoarOptions(Options):
    """`switches`: the most that aggregate for a task, SOAR's k. `workloads`: the most tasks that a switch serves."""

    switches: int = 4
    workloads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.switches < 0:
            raise InputError(f"switches {self.switches}: at least 0 that aggregate are expected")
        if self.workloads is not None and self.workloads < 1:
            raise InputError(f"workloads {self.workloads}: a switch serves at least 1, or any number without it")


@dataclass(frozen=True)
class Choice:
    """A static tree of a task: its workers' paths, the switches that aggregate, the utilisation in seconds per bit."""

    paths: Sequence[Path]
    aggregating: frozenset[str]
    utilisation_s: float


def plan(problem: Problem, options: SoarOptions) -> Plan:
    """SOAR's plan: one tree for each task, one after another, all flows at the best equal rate."""
    serving: Counter[str] = Counter()
    trees = []
    tasks = [(job, server) for job in problem.jobs for server in job.servers]
    for turn, (job, server) in enumerate(tasks):
        full = {name for name, tasks in serving.items() if tasks == options.workloads}
        chosen = choose(problem.fabric, job, server, options, turn, full)
        serving.update(chosen.aggregating)
        tree = tree_from_paths(problem.fabric, job.servers.index(server) + 1, chosen.paths, chosen.aggregating)
        trees.append((job.number, 1 / len(job.servers), tree))
    return plan_at_equal_rate("soar", problem, trees, options.window)


def choose(fabric: Fabric, job: Job, server: str, options: SoarOptions, turn: int, full: Collection[str]) -> Choice:
    """The best static tree of a task, by the optimum of each, without the switches that are `full`.

    Of several as good it is the first from number seed + `turn` on.
    """
    found = list(choices(fabric, job, server, options.switches, full))
    first = (options.seed + turn) % len(found)
    return min(found[first:] + found[:first], key=lambda choice: choice.utilisation_s)


def choices(fabric: Fabric, job: Job, server: str, k: int, full: Collection[str]) -> Iterator[Choice]:
    """Each static tree towards the PS, with its best switches. Raises `InputError` for a worker that misses the PS."""
    unfolded = unfold(fabric, server)
    for turn in range(turns(unfolded)):
        paths = static_paths(unfolded, job.workers, turn)
        names, tree = tree_of_paths(fabric, paths, full)
        best = best_switches(tree, k)
        yield Choice(paths, frozenset(names[switch] for switch in best), tree.utilisation_s(best))


def tree_of_paths(fabric: Fabric, paths: Sequence[Path], full: Collection[str] = ()) -> tuple[list[str], ReductionTree]:
    """The switches of the paths, which form a tree, and that tree for messages of one bit.

    A switch that aggregates sends a message for each of its pipelines that it receives from. SOAR takes no account of
    the 64 flows that one aggregator can sum.
    """
    parents = {node: following for path in paths for node, following in pairwise(path[1:])}
    names, server = list(parents), paths[0][-1]
    index = {name: number for number, name in enumerate(names)} | {server: DESTINATION}
    entered = {(node, fabric.ingress_pipeline(node, before)) for path in paths for before, node in pairwise(path[:-1])}
    load = Counter(path[1] for path in paths)
    sums = Counter(node for node, _ in entered)
    tree = reduction_tree(
        parent=[index[parents[name]] for name in names],
        load=[load[name] for name in names],
        cost=[1 / fabric.capacities_bps[name, parents[name]] for name in names],
        sums=[sums[name] for name in names],
        available=[fabric.switch_by_name[name].ina and name not in full for name in names],
    )
    return names, tree
