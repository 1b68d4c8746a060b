"""ARO for several tasks (SJMT, MJMT): the routes and rates that are best by Eqs. (2) and (3), proven, with real rates.

First every task is planned as if it were alone: that bounds its rate, and all these routes together are a plan already.
Then the best rates of all are searched (`boxes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

from inakit.planner.core.limits.switch_limits import Inp, most_children
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.solving import FEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.methods.aro.several.boxes import Search, with_best_rates
from inakit.planner.methods.aro.several.rates import Rates, Worth
from inakit.planner.methods.aro.several.reduced import Network, network
from inakit.planner.methods.aro.several.routing import Router, Routing, with_results
from inakit.planner.methods.aro.single.search import Least, Steps, least_t
from inakit.planner.methods.aro.task import Task, tasks_of
from inakit.planner.solvers.columns import INFEASIBLE
from inakit.planner.solvers.solve import PROVEN_GAP
from inakit.planner.trees.from_paths import Sender, Summing, plan_from_paths
from inakit.planner.trees.unfolding import Path
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric

if TYPE_CHECKING:
    from inakit.planner.core.method import Options


PATIENCE = 4
"""The time that is left, divided by the time for one question about a single task."""


def several(problem: Problem, options: Options) -> Plan:
    """The plan that is best by Eq. (3), or by (2) for one job: optimal only if proven, else with its gap.

    Raises `InputError` for a worker that cannot reach its PS, `SolverError` if no routes are found in time.
    """
    started = monotonic()
    search = searched(problem.fabric, tasks_of(problem), options.for_solver, started, results=options.with_results)
    found = search.incumbent
    gap = max(0.0, search.bound / found.value - 1)
    status, gap = (OPTIMAL, 0.0) if gap <= PROVEN_GAP else (FEASIBLE, gap)
    outcome = SolverOutcome(status, monotonic() - started, gap, "highs")
    return plan_of(problem, search.net, found.routing, found.rates, outcome, options.window)


def plan_of(
    problem: Problem, net: Network, routing: Routing, rates: Rates, outcome: SolverOutcome, window: int
) -> Plan:
    """The plan of a routing with these rates of its tasks."""
    tasks = [graph.task for graph in net.graphs]
    paths: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    for task, pieces in zip(tasks, routing.pieces, strict=True):
        paths[task.job.number] += worker_paths(net, task, pieces)
    return plan_from_paths(
        problem,
        paths,
        problem.fabric.ina_names,
        rates_bps={task.key: rate for task, rate in zip(tasks, rates, strict=True)},
        method="aro",
        outcome=outcome,
        window=window,
        results={task.key: above for task, above in zip(tasks, routing.results, strict=True)},
    )


def searched(
    fabric: Fabric, tasks: tuple[Task, ...], options: SolverOptions, started: float, *, results: bool = False
) -> Search:
    """The finished search for the best rates of all tasks; with `results`, which come back at the same rates.

    The best rates of gradients alone come first. They bound those with results, their routing is one to begin with, and
    most often there is another one where results cost nothing.
    """
    deadline = started + options.time_limit_s
    net = network(fabric, tasks)
    alone = [fastest(net.only([i]), deadline, options.seed) for i in range(len(tasks))]
    high = tuple(1 / least.bound for least in alone)
    together = Routing(tuple(least.solution.pieces[0] for least in alone), tuple({} for _ in alone))
    first_deadline = started + options.time_limit_s / 2 if results else deadline
    search = search_from(net, tasks, together, first_deadline, options)
    search.run(high)
    if not results:
        return search
    both = network(fabric, tasks, results=True)
    again = search_from(both, tasks, with_results(both, search.incumbent.routing), deadline, options)
    again.ceiling = search.bound
    if again.ceiling > again.enough:
        again.ask(search.incumbent.rates, again.patience)
    again.run(high)
    return again


def search_from(
    net: Network, tasks: tuple[Task, ...], routing: Routing, deadline: float, options: SolverOptions
) -> Search:
    """A search that begins with a known routing."""
    worth = Worth(tasks, net.access)
    return Search(Router(net, options.seed), worth, deadline, options.gap, with_best_rates(net, worth, routing))


def fastest(net: Network, deadline: float, seed: int) -> Least[Routing]:
    """The routing of a single task with the highest rate, 1 / t, or any routing where time is short."""
    graph = net.graphs[0]
    b = net.fabric.capacities_bps
    access = min(b[worker, net.fabric.tor_of(worker)] for worker in graph.task.job.workers)
    capacities = {access, *(b[link] for link in graph.links)}

    router = Router(net, seed)

    def fits(t: float) -> Routing | None:
        status, routing = router.route((1 / t,), (deadline - monotonic()) / PATIENCE)
        if routing is None and status != INFEASIBLE:
            raise SolverError("no routes were found in time: raise the time limit, or make the problem smaller")
        return routing

    leaving = (n / sum(b[link] * net.width(link) for link in graph.out_of[z]) for z, n in graph.starting.items())
    lowest = max([1 / access, *leaving])
    highest = len(graph.task.job.workers) / min(capacities)
    try:
        least = least_t(fits, Steps(capacities), lowest, highest)
    except SolverError:  # too hard for the time that is left: any routing, then
        routing = fits(highest)
        least = Least(routing, highest, lowest) if routing else None
    assert least is not None  # at the highest t a link carries all flows
    return least


def worker_paths(net: Network, task: Task, pieces: dict[Inp | str, list[Path]]) -> Iterator[Path]:
    """A path for every worker: the pieces from its switch on, joined. Those of a common switch are used up."""
    left = {start: list(paths) for start, paths in pieces.items()}
    part_of: dict[tuple[Sender, Inp], Summing] = {}
    arrived: Counter[Inp] = Counter()
    fabric = net.fabric
    for worker in task.job.workers:
        tor = fabric.tor_of(worker)
        path: Path = (worker, tor)
        if not fabric.switch_by_name[tor].ina:
            path = (worker, *left[tor].pop())
        sender: Sender = worker
        while path[-1] != task.server:
            inp = path[-1], fabric.ingress_pipeline(path[-1], path[-2])
            if (sender, inp) not in part_of:
                part_of[sender, inp] = Summing(*inp, arrived[inp] // most_children(fabric, inp[0]))
                arrived[inp] += 1
            sender = part_of[sender, inp]
            path += pieces[inp][sender.part][1:]
        yield path
