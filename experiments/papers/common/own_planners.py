"""Planners of one's own in the papers' figures: which take part, and the reasons why some figures leave them out."""

from __future__ import annotations

from rich.console import Console

from inakit.planner.registry import OWN

COMPARES_SCHEDULERS = (
    "it compares schedulers of optical circuits (planner/methods/p4inc_aoi), which get a Scheduling and give a \
Schedule, while a planner gets a Problem and gives a Plan"
)
COMPARES_VARIANTS = "it compares a method's own variants"


def own_planners() -> tuple[str, ...]:
    """The names of the planners in `planner/own/`."""
    return tuple(OWN)


def leave_out(console: Console, why: str) -> None:
    """Print that the planners of one's own are not in this figure, and why; print nothing where there are none."""
    if OWN:
        console.print(f"not in this figure: {', '.join(OWN)} ({why})", highlight=False, soft_wrap=True)
