"""Runs of plans from plain Python values: planned and measured figures, and the verdict."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

from rich.console import Console

from inakit.experiments.api.display import FIGURES, Picture, frame, table
from inakit.experiments.api.fabrics import Jobs, problem_of
from inakit.experiments.api.plans import PlannedRun, Planner, all_prepared
from inakit.experiments.emulate.emulate import Emulation
from inakit.experiments.emulate.emulate import run as emulated
from inakit.experiments.report.write import PAGE
from inakit.experiments.run.console import figure_cell
from inakit.experiments.run.faults_file import faults_from, load_faults
from inakit.experiments.run.outcome import planned_figures
from inakit.planner.core.method import AFTERWARDS
from inakit.topo.errors import InputError, unknown_name, writing
from inakit.topo.fabric.fabric import Fabric

if TYPE_CHECKING:
    import pandas

    from inakit.experiments.run.faults_file import FaultPlan
    from inakit.experiments.run.record import PlannerRecord
    from inakit.planner.core.problem import Problem

Faults = str | Path | Mapping[str, Any] | None
"""A file of faults, or its contents as a dictionary."""


class KeptFolder:
    """A folder of temporary files that is removed with the last result that refers to it, or when Python ends."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="inakit-"))
        finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True)
class Result:
    """The result of one plan: the planned figures and, if it ran, the measured ones and the verdict.

    `planned` and `measured` map names such as ``"sending_rate_bps"`` to figures: rates in bit/s, sizes in bytes, times
    in seconds, of one iteration. `verdict` is ``"VALID"`` or names the problem, which `reasons` explain; figures of a
    run that is not VALID are not results. `folder` has all files of the run.
    """

    plan: PlannedRun
    planned: Mapping[str, Any]
    measured: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = "PLANNED"
    reasons: tuple[str, ...] = ()
    folder: Path | None = None
    kept: KeptFolder | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The planner's name."""
        return self.plan.name

    @property
    def valid(self) -> bool:
        """Whether the run is VALID, so that its figures can be trusted."""
        return self.verdict == "VALID"

    @property
    def exact(self) -> bool | None:
        """Whether every worker got the exact sum of every fragment; None if this was not checked."""
        return self.measured.get("exact")

    @property
    def row(self) -> dict[str, Any]:
        """The figures as a row of a table: `planned_...`, `measured_...`, `exact`, `verdict`."""
        found: dict[str, Any] = {"planner": self.name}
        for name in FIGURES:
            found[f"planned_{name}"] = self.planned.get(name)
        if self.verdict != "PLANNED":
            for name in FIGURES:
                found[f"measured_{name}"] = self.measured.get(name)
            found |= {"exact": self.exact, "verdict": self.verdict}
        return found

    def to_frame(self) -> pandas.DataFrame:
        """The figures as a pandas data frame with one row."""
        return frame([self.row])

    def picture(self) -> Picture:
        """The fabric with the plan's trees and link loads."""
        return self.plan.picture()

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the report of the run as one page; return its path. Raises `InputError` for a plan that has not run."""
        return copied_report(self.folder, path)

    def __repr__(self) -> str:
        shown = self.measured if self.measured else self.planned
        told = ", ".join(f"{word(shown, name)} {heading}" for name, (heading, *_) in FIGURES.items())
        return f"<Result of {self.name} on {self.plan.problem.fabric.name}: {self.verdict}; {told}>"

    def _repr_html_(self) -> str:
        return results_table([self], f"{self.name} on {self.plan.problem.fabric.name}")


@dataclass(frozen=True)
class Comparison(Mapping[str, Result]):
    """The results of several planners on the same problem, by the planners' names, in the order in which they ran."""

    problem: Problem
    results: Mapping[str, Result]
    folder: Path | None = None

    def __getitem__(self, name: str) -> Result:
        if name not in self.results:
            raise UnknownResultError(str(unknown_name("planner of this comparison", name, self.results)))
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def to_frame(self) -> pandas.DataFrame:
        """The figures as a pandas data frame with one row per planner."""
        return frame([result.row for result in self.results.values()])

    def plot(self) -> Picture:
        """Bars of the planned and the measured sending rate, PS ingress and communication time."""
        from inakit.experiments.api.display import bars  # noqa: PLC0415, only pictures need matplotlib

        planned = {name: result.planned for name, result in self.results.items()}
        return Picture(bars(planned, {name: result.measured for name, result in self.results.items()}))

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the report of all runs as one page; return its path. Raises `InputError` if no plan has run."""
        return copied_report(self.folder, path)

    def __repr__(self) -> str:
        lines = "".join(f"\n  {result!r}" for result in self.results.values())
        return f"<Comparison on {self.problem.fabric.name}:{lines}>"

    def _repr_html_(self) -> str:
        return results_table(self.results.values(), self.problem.fabric.name)


class UnknownResultError(InputError, KeyError):
    """The comparison has no result of this name."""

    __str__ = InputError.__str__


def word(figures: Mapping[str, Any], name: str) -> str:
    """A figure with the unit that fits it."""
    return figure_cell(figures.get(name), FIGURES[name][1])


def results_table(results: Iterable[Result], title: str) -> str:
    """An HTML table of results: for each planner a row of planned figures and, if it ran, a row of measured ones."""
    rows, notes = [], []
    for result in results:
        rows.append([result.name, "planned", *(word(result.planned, name) for name in FIGURES), ""])
        if result.verdict != "PLANNED":
            exact = ", sums exact" if result.exact else ""
            rows.append(["", "measured", *(word(result.measured, name) for name in FIGURES), result.verdict + exact])
        notes += [f"{result.name}: {each}" for each in (*result.plan.notes, *result.reasons)]
    return table(("planner", "", *(heading for heading, *_ in FIGURES.values()), "verdict"), rows, title, notes)


def copied_report(folder: Path | None, path: str | Path) -> Path:
    """Copy the page of a run's folder to `path` and return it. Raises `InputError` without a run, `OutputError`."""
    if folder is None:
        raise InputError("this plan has not run, so there is no report: run it with inakit.run")
    with writing(Path(path)):
        shutil.copyfile(folder / PAGE, path)
    return Path(path)


def run(
    plan: PlannedRun,
    world: str = "virtual",
    *,
    faults: Faults = None,
    results: str | Path | None = None,
    program: str = "ina",
    keep_going: bool = False,
) -> Result:
    """Run a plan on real packets: build its network in a world, install its entries, send gradients, measure, judge.

    Parameters
    ----------
    plan
        A plan from `inakit.plan`.
    world
        ``"virtual"`` (virtual time: any machine, no root, the same figures every time), ``"fast"`` or ``"bmv2"`` (a
        Mininet network in real time, which need root), or ``"auto"``.
    faults
        A file of losses, failures and slow workers, or its contents as a dictionary:
        ``{"links": [{"link": "all", "drop": "1%"}]}``.
    results
        The folder for the run's files; without it, the files are removed with the result.
    program
        The data-plane program: ``"ina"``, or ``"ina_hw"``, which is limited to a chip's operations.
    keep_going
        Whether a run in real time continues even if it is clearly too slow for this machine.

    Returns
    -------
    Result

    Raises
    ------
    MachineError
        This machine lacks a tool or a resource that the world needs.
    RunError
        A switch died, or traffic stalled.
    """
    if not isinstance(plan, PlannedRun):
        raise InputError(f"{plan!r:.40}: expected a plan, such as inakit.plan(fabric, job, 'aro') returns")
    return ran({plan.name: plan}, world, faults, results, program, keep_going=keep_going)[plan.name]


def compare(
    fabric: Fabric,
    jobs: Jobs = None,
    planners: Iterable[Planner] = ("aro", "atp", "lbmm"),
    *,
    world: str | None = "virtual",
    faults: Faults = None,
    mode: str = "reliable",
    headroom: str = AFTERWARDS,
    seed: int = 0,
    results: str | Path | None = None,
    program: str = "ina",
    keep_going: bool = False,
) -> Comparison:
    """Plan the same problem with several planners, run each plan on a new network, and compare the results.

    Parameters
    ----------
    fabric, jobs
        As in `inakit.plan`.
    planners
        Each as in `inakit.plan`: a name, a file, a `Method` or a function.
    world
        As in `inakit.run`; None runs no plan, so that only planned figures are compared.
    mode, headroom, seed
        As in `inakit.plan`.
    faults, results, program, keep_going
        As in `inakit.run`.

    Returns
    -------
    Comparison
        A mapping from planners' names to results, with `.to_frame()`, `.plot()` and `.report("out.html")`.
    """
    problem = problem_of(fabric, jobs)
    if isinstance(planners, str):
        raise InputError(f"planners '{planners}': expected a list, such as ['{planners}']")
    plans = all_prepared(problem, planners, mode, headroom, seed)
    if not plans:
        raise InputError("no planner: name at least one, such as planners=['aro']")
    if world is not None:
        return ran(plans, world, faults, results, program, headroom, keep_going=keep_going)
    return Comparison(
        problem, {name: Result(plan, planned_figures(plan.prediction).as_json()) for name, plan in plans.items()}
    )


def ran(
    plans: Mapping[str, PlannedRun],
    world: str,
    faults: Faults,
    results: str | Path | None,
    program: str,
    headroom: str = AFTERWARDS,
    *,
    keep_going: bool,
) -> Comparison:
    """Run plans of the same problem one after another, as `inakit emulate` does, without printing."""
    first = next(iter(plans.values()))
    kept = None
    if results is None:
        kept = KeptFolder()
        results = kept.path
    emulation = Emulation(
        first.problem,
        tuple(plans),
        world,
        first.mode,
        first.seed,
        results=Path(results),
        faults=fault_plan(faults, first.problem),
        keep_going=keep_going,
        headroom=headroom,
        program=program,
    )
    record = emulated(emulation, Console(quiet=True), {name: plan.prepared for name, plan in plans.items()})
    folder = (emulation.results / "latest").resolve()
    found = {name: result(plan, record.planners[name], folder, kept) for name, plan in plans.items()}
    return Comparison(first.problem, found, folder)


def result(plan: PlannedRun, entry: PlannerRecord, folder: Path, kept: KeptFolder | None) -> Result:
    """A plan's result, from its entry in the record."""
    measured = {} if entry.measured is None else entry.measured.as_json()
    return Result(plan, entry.planned.as_json(), measured, str(entry.verdict), tuple(entry.reasons), folder, kept)


def fault_plan(faults: Faults, problem: Problem) -> FaultPlan | None:
    """The faults of a file or a dictionary; None if none are given. Raises `InputError`."""
    if faults is None:
        return None
    return faults_from(faults, problem) if isinstance(faults, Mapping) else load_faults(Path(faults), problem)
