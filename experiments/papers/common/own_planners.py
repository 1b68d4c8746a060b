"""Planners of one's own in the papers' figures: which take part, and the reasons why some figures leave them out."""

from __future__ import annotations

from rich.console import Console

from inakit.planner.registry import OWN
from inakit.topo.errors import InputError

COMPARES_SCHEDULERS = (
    "it compares schedulers of optical circuits (planner/methods/p4inc_aoi), which get a Scheduling and give a \
Schedule, while a planner gets a Problem and gives a Plan"
)
COMPARES_VARIANTS = "it compares a method's own variants"


def own_planners() -> tuple[str, ...]:
    """The names of the planners of one's own that can be used; their code is run to know that."""
    return tuple(name for name in OWN if not wrong_with(name))


def wrong_with(name: str) -> str:
    """Why a planner of one's own cannot be used; empty where it can."""
    try:
        OWN[name].method  # noqa: B018, it runs the planner's code
    except InputError as error:
        return str(error)
    return ""


def print_unusable(console: Console) -> None:
    """Print a line for each planner of one's own that cannot be used."""
    for name in OWN:
        if wrong := wrong_with(name):
            console.print(f"not in this figure: {name}: {wrong}", highlight=False, markup=False, soft_wrap=True)


def leave_out(console: Console, why: str) -> None:
    """Print that the planners of one's own are not in this figure, and why; print nothing where there are none."""
    if names := own_planners():
        console.print(f"not in this figure: {', '.join(names)} ({why})", highlight=False, soft_wrap=True)
