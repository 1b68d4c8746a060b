"""Plans from plain Python values, and their display in a notebook."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from inakit.experiments.api.display import Picture, picture_of, table
from inakit.experiments.api.fabrics import Jobs, problem_of
from inakit.experiments.run.planning import describe, write_plan
from inakit.planner.core.evaluate import Prediction
from inakit.planner.core.method import AFTERWARDS, Method, Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import OfPrepared, Prepared, prepare
from inakit.planner.registry import by_name, find_method
from inakit.switch.entries import Entries
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.files.quantities import in_words

Planner = str | Method[Any] | Callable[[Problem, Options], Plan]
"""A planner's name with its options (``"soar:switches=8"``), a planner's file, a `Method`, or a planner's function."""


@dataclass(frozen=True)
class PlannedRun(OfPrepared):
    """A planner's plan for a problem, ready to run, with its prediction and its table entries."""

    name: str
    prepared: Prepared
    seed: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """The reasons why rates differ from the method's, one line each."""
        return self.prepared.notes

    @property
    def prediction(self) -> Prediction:
        """The planned figures: rates in bit/s, sizes in bytes, times in seconds, for one iteration of every job."""
        return self.prepared.prediction

    @property
    def entries(self) -> Entries:
        """The table entries of every switch."""
        return self.prepared.entries

    def picture(self) -> Picture:
        """The fabric with the plan's trees and link loads."""
        return picture_of(self.prepared, f"{self.name} on {self.problem.fabric.name}")

    def save(self, folder: str | Path) -> Path:
        """Write plan, fabric, jobs and entries as files to a folder; return its path. Raises `OutputError`."""
        write_plan(Path(folder), self.prepared)
        return Path(folder)

    @property
    def figures(self) -> dict[str, str]:
        """The planned figures with their units, by their names."""
        found = self.prediction
        return {
            "sending rate": in_words(found.sending_rate_bps, "bit/s"),
            "PS ingress": in_words(found.ps_ingress_bytes, "bytes"),
            "communication time": in_words(found.communication_time_s, "s"),
        }

    def __repr__(self) -> str:
        trees = len(self.plan.trees)
        told = ", ".join((f"{trees} tree{'s' * (trees != 1)}", *self.figures.values()))
        return f"<Plan {self.name} on {self.problem.fabric.name}: {told}; {self.plan.outcome.status}>"

    def _repr_html_(self) -> str:
        rows = [
            [str(planned.job), str(planned.tree.number), planned.tree.root, in_words(planned.rate_bps, "bit/s"),
             str(len(planned.tree.workers)),
             ", ".join(dict.fromkeys(each.switch for each in planned.tree.aggregators)) or "none"]
            for planned in self.plan.trees
        ]  # fmt: skip
        figures = "; ".join(f"{name} {text}" for name, text in self.figures.items())
        title = f"{self.name} on {self.problem.fabric.name}: {describe(self.plan.outcome)}"
        headings = ("job", "tree", "root", "rate", "workers", "aggregators")
        return table(headings, rows, title, [f"{figures}, per iteration", *self.notes])


def plan(
    fabric: Fabric,
    jobs: Jobs = None,
    planner: Planner = "aro",
    *,
    mode: str = "reliable",
    headroom: str = AFTERWARDS,
    seed: int = 0,
    **options: Any,
) -> PlannedRun:
    """Decide where gradients are aggregated and how they are routed.

    Parameters
    ----------
    fabric
        The network.
    jobs
        One job, several, or a file of jobs; by default one job on all hosts.
    planner
        A planner's name (`inakit planners` lists them), a file (``"./mine.py"``), a `Method`, or a function from a
        `Problem` and `Options` to a `Plan`.
    mode
        ``"reliable"``: results come back while gradients are sent, so rates are lowered where results need capacity;
        ``"replay"``: no results.
    headroom
        The time at which planners make room for results: ``"afterwards"``, ``"routed"`` or ``"planned"``.
    seed
        The seed of everything random.
    **options
        Further options of the method, such as ``time_limit_s=5``.

    Returns
    -------
    PlannedRun
        The plan, checked by code that is independent of all planners. A notebook displays it as a table.

    Raises
    ------
    InputError
        An unknown planner or option; the message suggests the nearest known name.
    PlanError
        A plan that breaks a rule; the message names the rule, the tree and the link.

    Examples
    --------
    >>> import inakit as ina
    >>> fabric = ina.fabric("aro-figure1")
    >>> ina.plan(fabric, ina.job(fabric), "aro")
    <Plan aro on aro-figure1: 1 tree, 20 Mbit/s, 569 kB, 227.6 ms; optimal>
    """
    return prepared(problem_of(fabric, jobs), planner, mode, headroom, seed, options)


def prepared(problem: Problem, planner: Planner, mode: str, headroom: str, seed: int, options: Any) -> PlannedRun:
    """Make the plan of a planner for a problem. Raises `InputError`, `PlanError`."""
    name, method = named_method(planner)
    known = [field.name for field in fields(method.options)]
    for option in options:
        if option not in known:
            raise unknown_name(f"option of planner '{name}'", option, known)
    made = method.plan(problem, method.options(seed=seed, headroom=headroom, **options))
    return PlannedRun(name, prepare(problem, made, mode), seed)


def named_method(planner: Planner) -> tuple[str, Method[Any]]:
    """A planner's name and method; a function keeps its name, with `-` for `_`. Raises `InputError`."""
    if isinstance(planner, str):
        ((name, text),) = by_name([planner]).items()
        return name, find_method(text)
    if isinstance(planner, Method):
        return own_name(planner.function), planner
    if not callable(planner):
        raise InputError(f"planner {planner!r:.40}: expected a name, a file, a Method or a function")
    summary = (planner.__doc__ or "a function").strip().splitlines()[0]
    return own_name(planner), Method(summary, Options, planner)


def own_name(function: Any) -> str:
    """The name of a planner's function or, if that is `plan`, of its module."""
    name = getattr(function, "__name__", type(function).__name__)
    if name == "plan":
        name = function.__module__.rpartition(".")[2]
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "planner"


def all_prepared(
    problem: Problem, planners: Iterable[Planner], mode: str, headroom: str, seed: int
) -> dict[str, PlannedRun]:
    """Make the plans of several planners, by their names. Raises `InputError` for two planners of the same name."""
    found: dict[str, PlannedRun] = {}
    for planner in planners:
        made = prepared(problem, planner, mode, headroom, seed, {})
        if made.name in found:
            raise InputError(f"two planners are called '{made.name}': give one of the functions another name")
        found[made.name] = made
    return found
