"""What `emulate` says before its runs: whether this machine can carry the plans."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from experiments.calibrate.cache import default_file, load_capacities, this_machine
from experiments.calibrate.capacity import forecast, hosts_at_work, nearest, planned_load
from planner.core.evaluate import evaluate
from planner.core.plan import Plan
from planner.core.problem import Problem

HINT = "whether this machine can carry this is not known: `inakit calibrate`, once, finds what it carries"


def announce(console: Console, problem: Problem, plans: Mapping[str, Plan], target: str, scale: float) -> None:
    """A line for each plan; `scale` is the one that the fabric was described with."""
    capacity = nearest(load_capacities(default_file(), this_machine()), target, hosts_at_work(problem))
    if capacity is None:
        console.print(HINT, style="dim", highlight=False)
        return
    for name, plan in plans.items():
        load = planned_load(problem, evaluate(problem, plan))
        said = forecast(capacity, load, scale)
        style = "dim" if said.carried else "yellow"
        console.print(f"{name}: {said.text}", style=style, highlight=False, soft_wrap=True)
