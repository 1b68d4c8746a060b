"""The lines that `emulate` prints before its runs: whether this machine can carry the plans."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from inakit.experiments.calibrate.cache import default_file, load_capacities, this_machine
from inakit.experiments.calibrate.capacity import forecast, hosts_at_work, nearest, planned_load
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem

HINT = "not known whether this machine carries these rates: run `inakit calibrate` once to find out"


def announce(console: Console, problem: Problem, plans: Mapping[str, Plan], target: str, scale: float) -> None:
    """Print a forecast for each plan, or `HINT` if there is no calibration of the target.

    The rates of the problem's fabric are the described ones times `scale`.
    """
    capacity = nearest(load_capacities(default_file(), this_machine()), target, hosts_at_work(problem))
    if capacity is None:
        console.print(HINT, style="dim", highlight=False)
        return
    for name, plan in plans.items():
        load = planned_load(problem, evaluate(problem, plan))
        said = forecast(capacity, load, scale)
        style = "dim" if said.carried else "yellow"
        console.print(f"{name}: {said.text}", style=style, highlight=False, soft_wrap=True)
