"""INARouting-Relax: the linear relaxation, rounded by scores, as the published code does.

Tasks go one after another, the highest rate of the relaxation first. A link scores its capacity times x, halved for
each task that already takes it, and a switch the same with a, or no limit where a is 0. A flow takes the path whose
lowest score is highest. Here flows that meet stay together, so that routes are trees; in the published code they may
part again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf

from inakit.planner.core.solving import SolverOptions, SolverOutcome
from inakit.planner.methods.inarouting.model import Model, build
from inakit.planner.methods.inarouting.routes import Network, NextHops, Resource, usage
from inakit.planner.solvers.solve import solve
from inakit.planner.trees.summed_once import SplitTask

Scores = Mapping[Resource, float]


def relax_and_round(network: Network, options: SolverOptions) -> tuple[list[NextHops], SolverOutcome]:
    """The routes of the rounded relaxation, and the relaxation's outcome."""
    model = build(network, relaxed=True)
    outcome = solve(model.program, options)
    return round_by_scores(network, model), outcome


def round_by_scores(network: Network, model: Model) -> list[NextHops]:
    """A tree for every task, one after another, by the scores of the relaxation's solution."""
    taken: Counter[Resource] = Counter()
    chosen: list[NextHops] = [{} for _ in network.tasks]
    order = sorted(range(len(network.tasks)), key=lambda place: -(model.rate[place].varValue or 0))
    for place in order:
        task = network.tasks[place]
        chosen[place] = widest_tree(network, task, scores_of(network, model, place, taken))
        taken.update(set(usage(network, task, chosen[place])))
    return chosen


def scores_of(network: Network, model: Model, place: int, taken: Counter[Resource]) -> dict[Resource, float]:
    """The scores of the links that a task may use and of the switches that may sum it."""
    found: dict[Resource, float] = {}
    for variables in (model.x, model.a):
        for (owner, resource), variable in variables.items():
            part = variable.varValue or 0.0
            if owner == place and (part > 0 or variables is model.x):
                found[resource] = network.capacities_bps[resource] * part / 2 ** taken[resource]
    return found


def widest_tree(network: Network, task: SplitTask, scores: Scores) -> NextHops:
    """Next hops whose way to the PS has the highest least score, for all switches that the task may pass."""
    width: dict[str, float] = {task.server: inf}
    best: NextHops = {}
    for node in nearest_first(network, task):
        options = {
            peer: min(scores.get((node, peer), 0.0), scores.get(peer, inf), width[peer])
            for peer in task.unfolded.next_hops[node]
        }
        best[node] = max(options, key=lambda peer: options[peer])
        width[node] = options[best[node]]
    return best


def nearest_first(network: Network, task: SplitTask) -> list[str]:
    """The switches that the task may pass, each behind its next hops."""
    links = task.unfolded.links(network.entering(task))
    usable = {tail for tail, _ in links}
    return [node for node in task.unfolded.next_hops if node in usable]
