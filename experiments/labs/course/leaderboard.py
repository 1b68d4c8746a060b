"""The leaderboard of lab 6: planners on larger networks, where trees count unchanged, under all rules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from rich.console import Console

from inakit.experiments.labs.course import plan_networks
from inakit.experiments.labs.course.plan_lab import FILE, StudentPlanner
from inakit.experiments.labs.course.plan_networks import bound_bps
from inakit.experiments.labs.course.plan_rules import check_ends
from inakit.experiments.labs.grading.formats import csv_text
from inakit.experiments.labs.grading.lab import WrongError
from inakit.experiments.labs.grading.submission import read_submission, submissions_in
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.experiments.sweeps.run_trials import Row, measure_rows
from inakit.planner.core.check import check
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InakitError, InputError, PlanError

COLUMNS = ("rank", "student", "mean", "worst", "problem")


@dataclass(frozen=True)
class Standing:
    """A planner's fractions of the bound, by network, and the first reason for a zero."""

    student: str
    parts: tuple[float, ...]
    problem: str = ""

    @property
    def mean(self) -> float:
        """The mean fraction, rounded to a tenth of a percent, so that floating-point errors do not decide ranks."""
        return round(fmean(self.parts), 3)


def leaderboard(folder: Path, seed: str, console: Console, show: Callable[[list[Standing]], None]) -> list[Standing]:
    """The planners of a class, the best first; they are also shown when an interruption leaves only some.

    Raises `InputError` as `submissions_in` does.
    """
    handed = submissions_in(folder)
    problems = plan_networks.for_the_board(Random(f"{seed}/6-plan/leaderboard"))
    bounds = [bound_bps(problem) for problem in problems]

    def shown(rows: Sequence[Row[str, Standing]]) -> list[Standing]:
        nothing = (0.0,) * len(problems)
        entries = [row.found or Standing(row.asked, nothing, f"not measured: {row.error}") for row in rows]
        entries.sort(key=lambda each: (-each.mean, each.student))
        show(entries)
        return entries

    # Planners run in processes of their own, as many at a time as there are processors.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        entries = {name: pool.submit(entry_of, name, path, problems, bounds) for name, path in handed.items()}
        try:
            return measure_rows(
                list(handed), lambda name: entries[name].result(), lambda entry: f"{entry.mean:.1%}", shown, console
            )
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def entry_of(student: str, path: Path, problems: list[Problem], bounds: list[float]) -> Standing:
    """One planner on all networks. A network on which it breaks a rule or exceeds its time counts 0."""
    try:
        text = read_submission(path, expected=(FILE,)).text(FILE)
    except InakitError as error:
        return Standing(student, (0.0,) * len(problems), str(error))
    parts, wrong = [], ""
    with closing(StudentPlanner(text)) as planner:
        for problem, bound in zip(problems, bounds, strict=True):
            part, why = part_of(planner, problem, bound)
            planner.close()
            parts.append(part)
            wrong = wrong or why
    return Standing(student, tuple(parts), wrong)


def part_of(planner: StudentPlanner, problem: Problem, bound: float) -> tuple[float, str]:
    """The rate of the worst-served job as a fraction of the bound, or 0 and the reason."""
    try:
        found = planner.plan(problem)
        check_ends(found)
    except (WrongError, EndedError, InputError) as error:
        return 0.0, str(error)
    try:
        check(problem, found.plan)
    except PlanError as error:
        return 0.0, found.in_words(str(error))
    return min(planned.rate_bps for planned in found.plan.trees) / bound, ""


def ranked(entries: list[Standing]) -> Iterator[tuple[int, Standing]]:
    """Entries with their ranks; equal means share a rank."""
    rank = 0
    for place, entry in enumerate(entries, start=1):
        if place == 1 or entry.mean < entries[place - 2].mean:
            rank = place
        yield rank, entry


def board_of(entries: list[Standing]) -> str:
    """The leaderboard as CSV, with a column for each network."""
    count = len(entries[0].parts) if entries else 0
    rows: list[list[object]] = [[*COLUMNS[:-1], *(f"network {n}" for n in range(1, count + 1)), COLUMNS[-1]]]
    for rank, entry in ranked(entries):
        parts = [f"{part:.3f}" for part in entry.parts]
        rows.append([rank, entry.student, f"{entry.mean:.3f}", f"{min(entry.parts):.3f}", *parts, entry.problem])
    return csv_text(rows)
