"""Room for results: rates at which gradients, and the results that come back meanwhile, fit every link and chip.

The papers plan the way to the PS only. A job with one PS most often needs no more, because its results flow where no
gradient does. With several PSs, or several jobs, results of one share links with gradients of another (ARO, footnote
3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inakit.planner.core.evaluate import Prediction, TreeLoad, evaluate, tree_loads
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.used_limits import UsedLimit, used_windows
from inakit.topo.errors import unknown_name
from inakit.topo.fabric.fabric import DirectedLink

RESULTS_RETURN = {"reliable": True, "replay": False}
"""By the mode of a run, whether results flow back while gradients still come."""
ROUNDING = 1e-9
"""A factor so near to 1 counts as 1, since a plan may fill a link with gradients alone."""


@dataclass(frozen=True)
class AsRun:
    """A plan with the rates at which it runs in a mode: those of its method times `factor`.

    `said` says in a line why the factor is not 1; it is empty where it is 1. `prediction` is the plan's, where it had
    to be made.
    """

    plan: Plan
    mode: str
    factor: float = 1.0
    said: str = ""
    prediction: Prediction | None = None


def as_run(problem: Problem, plan: Plan, mode: str = "reliable") -> AsRun:
    """The plan with the rates of a run in this mode. All planned rates that are shown or stored come from here.

    Raises `InputError` for an unknown mode.
    """
    if mode not in RESULTS_RETURN:
        raise unknown_name("mode", mode, RESULTS_RETURN)
    if not RESULTS_RETURN[mode]:
        return AsRun(plan, mode)
    prediction = evaluate(problem, plan)
    (factor, links), window = tightest(problem, prediction), fullest_window(problem, plan)
    least = factor if window is None else min(factor, 1 / window.share)
    if least >= 1 - ROUNDING:
        return AsRun(plan, mode, prediction=prediction)
    lowered = plan.with_rates_times(least)
    why = sharing(problem, plan, links) if window is None or least == factor else too_few_slots(window)
    with_room = evaluate(problem, lowered)
    rates = (each.sending_rate_bps / 1e6 for each in (with_room, prediction))
    change = "rates are x{:.3g}, {:.3f} instead of {:.3f} Mbit/s".format(least, *rates)
    return AsRun(lowered, mode, least, f"{why}: {change}", with_room)


def fullest_window(problem: Problem, plan: Plan) -> UsedLimit | None:
    """The slots of a chip of which the plan's fragments on their way need most; None where no tree uses a chip's."""
    used = (window for window in used_windows(problem, plan) if window.used > 0)
    return max(used, key=lambda window: window.share, default=None)


def too_few_slots(window: UsedLimit) -> str:
    """A line that says whose slots are too few for the fragments on their way."""
    return f"{window.used:.0f} fragments are on their way, and slots at {window.where} hold {window.limit:.0f}"


def with_room_for_results(problem: Problem, plan: Plan) -> Plan:
    """The plan with every rate lowered by one factor, as far as its results need it. Most often that is the plan
    itself.
    """
    return as_run(problem, plan).plan


def tightest(problem: Problem, prediction: Prediction) -> tuple[float, list[DirectedLink]]:
    """The factor at which gradients and results fit every link, and the links that are full at it."""
    capacities, loads = problem.fabric.capacities_bps, prediction.loads_with_results_bps
    factors = {link: capacities[link] / load for link, load in loads.items() if load > 0}
    least = min(factors.values(), default=1.0)
    return least, [link for link, factor in factors.items() if factor <= least * (1 + ROUNDING)]


def sharing(problem: Problem, plan: Plan, links: list[DirectedLink]) -> str:
    """A line that says whose results share the first of these links with whose gradients."""
    loads, link = list(tree_loads(problem, plan)), links[0]
    results = [load for load in loads if link in {(above, node) for node, above in load.tree.result_parents.items()}]
    gradients = [load for load in loads if any(link in branch.links for branch in load.tree.branches)]
    counted = "1 more link is" if len(links) == 2 else f"{len(links) - 1} more links are"
    more = f" (and {counted} as full)" if len(links) > 1 else ""
    return f"results of {owners(results)} share link {' → '.join(link)} with gradients of {owners(gradients)}{more}"


def owners(loads: Iterable[TreeLoad]) -> str:
    """The jobs and roots of trees as text, such as "job 1 (root h24) and job 3 (root h12)"."""
    roots: dict[int, list[str]] = {}
    for load in loads:
        roots.setdefault(load.job, []).append(load.tree.root)
    return " and ".join(f"job {job} (root {', '.join(dict.fromkeys(found))})" for job, found in roots.items())
