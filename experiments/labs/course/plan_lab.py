"""Lab 6: a planner. What is graded, and how it is tested.

A planner is asked in a sandbox of its own, about networks that it has not seen. Each item is about one property of its
trees, whatever else is wrong with them. How near to the best it comes is measured by its routes alone: the kit puts
aggregators, slots and rates to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from inakit.experiments.labs.course import plan_rules
from inakit.experiments.labs.course.graded_switch import not_enforced, refuse_target
from inakit.experiments.labs.course.plan_rules import (
    FULL,
    NONE,
    Drawn,
    fabric_given,
    jobs_given,
    optimum_bps,
    routes_bps,
    trees_of,
)
from inakit.experiments.labs.grading.items import Finding, Item, WrongError
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed, printable, python_paths
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError

RUNNER = "inakit.experiments.labs.sandbox.planner_runner"


def planner_limits() -> Limits:
    """What a planner may use for the plans of an item. It reads Python's own library, and writes nothing."""
    return Limits(cpu_s=10, wall_s=20.0, memory_bytes=256 * MIB, readable=python_paths())


class StudentPlanner:
    """The planner of a text. `enforced` is what its sandbox says of the limits."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.enforced: dict[str, str] = {}
        self.process: Sandboxed | None = None

    def answer(self, problem: Problem) -> Any:
        """What the planner returns for a problem.

        Raises `InputError` for a file that is no planner, `WrongError` for a mistake in planning, and `EndedError`.
        """
        if self.process is None:
            self.process = Sandboxed(RUNNER, planner_limits())
            self.enforced = self.process.enforced
        try:
            answer = self.process.ask([self.text, fabric_given(problem.fabric), jobs_given(problem)])
        except EndedError:
            self.close()
            raise
        match answer:
            case ["ok", trees]:
                return trees
            case ["mistake", str(message)]:
                raise WrongError(printable(message))
            case ["refused", str(message)]:
                raise InputError(printable(message))
        raise EndedError("its answer is none")

    def plan(self, problem: Problem) -> Drawn:
        """The planner's trees for a problem. Raises `WrongError` for what are no trees, and as `answer` does."""
        return trees_of(self.answer(problem), problem)

    def close(self) -> None:
        """End the sandbox; the next question gets a new one."""
        if self.process is not None:
            self.process.close()
        self.process = None


FILE = "planner.py"
MOST_LINKS = 24
TIMES = 3


class PlanWrongError(WrongError):
    """A plan that breaks something, and the network that it is for."""

    def __init__(self, cause: str, problem: Problem, drawn: Drawn | None, part: float = 0.0) -> None:
        super().__init__(cause, part=part)
        self.problem, self.drawn = problem, drawn


class PlanBench:
    """The planner of a submission, and what an item's networks are drawn from."""

    def __init__(self, planner: StudentPlanner, random: Random) -> None:
        self.planner, self.random = planner, random

    def try_rule(self, problems: list[Problem], *checks: Callable[[Drawn], None]) -> None:
        """Raise `PlanWrongError` for the first plan that does not pass a check. All end, and follow links."""
        for problem in problems:
            drawn = self.plan(problem)
            for check in (plan_rules.check_ends, *checks):
                try:
                    check(drawn)
                except WrongError as wrong:
                    raise PlanWrongError(wrong.cause, problem, drawn) from None

    def plan(self, problem: Problem) -> Drawn:
        """The planner's trees. Raises `PlanWrongError` for what are none, `EndedError` for no answer."""
        try:
            return self.planner.plan(problem)
        except WrongError as wrong:
            raise PlanWrongError(wrong.cause, problem, None) from None


# -- the items


def check_paths(bench: PlanBench) -> None:
    """Paths, on networks without sums."""
    bench.try_rule(plan_rules.for_paths(bench.random), plan_rules.check_paths)


def check_rates(bench: PlanBench) -> None:
    bench.try_rule(plan_rules.for_rates(bench.random), plan_rules.check_nodes, plan_rules.check_rates)


def check_sums(bench: PlanBench) -> None:
    """Sums wherever flows meet."""
    bench.try_rule(plan_rules.for_sums(bench.random), plan_rules.check_nodes, plan_rules.check_sums)


def check_where(bench: PlanBench) -> None:
    """Sums at INA switches only."""
    bench.try_rule(plan_rules.for_where(bench.random), plan_rules.check_where)


def check_pipelines(bench: PlanBench) -> None:
    """Sums within a pipeline."""
    bench.try_rule(plan_rules.for_pipelines(bench.random), plan_rules.check_nodes, plan_rules.check_pipelines)


def check_slots(bench: PlanBench) -> None:
    """Slots of several jobs."""
    bench.try_rule(plan_rules.for_slots(bench.random), plan_rules.check_slots)


def check_near(bench: PlanBench) -> None:
    """How near routes come to the optimum: the mean over networks decides about the points."""
    reached, lines, ended = [], [], 0
    for number, problem in enumerate(plan_rules.for_nearness(bench.random), start=1):
        best = optimum_bps(problem)
        try:
            drawn = bench.plan(problem)
            plan_rules.check_ends(drawn)
            plan_rules.check_paths(drawn)
            found, why = routes_bps(drawn), ""
        except WrongError as wrong:
            found, why = 0.0, f": {wrong.cause}"
        except EndedError as error:
            if ended:
                raise
            found, why, ended = 0.0, f": {error}", 1
        reached.append(min(1.0, found / best))
        lines.append(f"network {number}, {problem.fabric.name}: {reached[-1]:.1%} of {best / 1e6:.3f} Mbit/s{why}")
    mean = sum(reached) / len(reached)
    if mean < FULL:
        raise NearWrongError(mean, lines)


class NearWrongError(WrongError):
    """Routes that are farther from the optimum than full points allow; `lines` say how far on each network."""

    def __init__(self, mean: float, lines: list[str]) -> None:
        part = max(0.0, mean - NONE) / (FULL - NONE)
        cause = (
            f"routes reach {mean:.1%} of the proven optimum in the mean; {FULL:.0%} have all points, {NONE:.0%} none"
        )
        super().__init__(cause, part=round(part, 2))
        self.lines = lines


def check_same(bench: PlanBench) -> None:
    """The same plan for the same network."""
    problem = plan_rules.for_nearness(bench.random)[-1]
    bench.try_rule([problem])
    first = bench.planner.answer(problem)
    for _ in range(TIMES - 1):
        bench.planner.close()
        if bench.planner.answer(problem) != first:
            raise PlanWrongError("asked twice for the same network, the planner gives two plans", problem, None)


ITEMS = (
    Item("paths", "paths that exist, up and then down", 15, "Step 1", check_paths),
    Item("rates", "rates that links carry, and use", 20, "Step 2", check_rates),
    Item("sums", "sums wherever flows meet", 10, "Step 3", check_sums),
    Item("where", "sums at INA switches only", 10, "Step 4", check_where),
    Item("pipelines", "sums within a pipeline", 10, "Step 5", check_pipelines),
    Item("slots", "slots of several jobs", 10, "Step 6", check_slots),
    Item("near", "how near to the proven optimum", 20, "Step 7", check_near),
    Item("same", "the same plan twice", 5, "Step 8", check_same),
)


# -- the submission


class OpenedPlanner:
    """A student's planner."""

    def __init__(self, planner: StudentPlanner) -> None:
        self.planner = planner

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the sandbox is not enforced here."""
        return not_enforced(self.planner.enforced)

    def bench(self, item: Item, random: Random) -> PlanBench:
        """The bench of an item, with a sandbox of its own."""
        del item
        self.planner.close()
        return PlanBench(self.planner, random)

    def after(self, item: Item, *, passed: bool) -> None:
        """Nothing: items are independent."""

    def finding(self, wrong: WrongError) -> Finding:
        """The network that was given, and the plan that came."""
        if isinstance(wrong, NearWrongError):
            return Finding(wrong.cause, got=tuple(wrong.lines))
        if not isinstance(wrong, PlanWrongError):
            return Finding(wrong.cause)
        got = () if wrong.drawn is None else tuple(plan_lines(wrong.drawn))
        return Finding(wrong.cause, tuple(network_lines(wrong.problem)), (), got)


def network_lines(problem: Problem) -> Iterator[str]:
    """A network and its jobs: switches and links between them on a line each, then the jobs."""
    fabric = problem.fabric
    for switch in fabric.switches:
        hosts = [peer for peer in fabric.neighbors[switch.name] if peer in fabric.host_names]
        sums = (
            f"sums in {len(switch.pipelines)} pipelines of {switch.aggregator_slots} slots" if switch.ina else "no INA"
        )
        yield f"{switch.name}, tier {switch.tier}: {sums}{'; hosts ' if hosts else ''}{' '.join(hosts)}"
    between = [link for link in fabric.links if link.a not in fabric.host_names]
    for link in between[:MOST_LINKS]:
        yield f"{link.a} - {link.b}: {link.capacity_ab_bps / 1e6:g} Mbit/s"
    if len(between) > MOST_LINKS:
        yield f"(and {len(between) - MOST_LINKS} links more)"
    for job in problem.jobs:
        yield f"job {job.number}: server {job.servers[0]}, workers {' '.join(job.workers)}"


def plan_lines(drawn: Drawn) -> Iterator[str]:
    """The trees: a line for each aggregator and each path."""
    for planned in drawn.plan.trees:
        names = drawn.names[planned.job]
        yield f"job {planned.job}: {planned.rate_bps / 1e6:g} Mbit/s"
        for each in planned.tree.aggregators:
            where = f"{each.switch[:40]!r}, pipeline {each.pipeline}"
            yield f"  {names[each.label]}: {where}, {each.slots} slots from {each.first_slot} on"
        for branch in planned.tree.branches:
            yield f"  {names[branch.label]}: {json.dumps(' '.join(branch.path)[:200])}"


@dataclass(frozen=True)
class PlanLab:
    """Lab 6."""

    name: str = "6-plan"
    title: str = "A planner for unseen fabrics"
    hours: str = "8 to 12"
    files: tuple[str, ...] = (FILE,)
    items: tuple[Item, ...] = ITEMS

    @contextmanager
    def open(self, submission: Submission, target: str) -> Iterator[OpenedPlanner]:
        """Open a submission."""
        refuse_target(self.name, target)
        with closing(StudentPlanner(submission.text(FILE))) as planner:
            yield OpenedPlanner(planner)
