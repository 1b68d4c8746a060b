"""Lab 6: a planner for networks that it has not seen.

A planner runs in a sandbox. Each item tests one property of its trees independently of all others. The comparison with
the optimum uses the routes only: the kit adds aggregators, slots and rates to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import Any

from inakit.experiments.labs.course import plan_networks, plan_rules
from inakit.experiments.labs.course.plan_networks import fabric_given, jobs_given, optimum_bps
from inakit.experiments.labs.course.plan_rules import StudentPlan, plan_of
from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.lab import Item, Lab, WrongError, scored
from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError

FILE = "planner.py"
MOST_LINKS, MOST_LINES = 24, 100
HASH_SEEDS = 3
"""The number of orders of Python's sets under which a planner has to return the same plan."""
NONE, FULL = 0.5, 0.9
"""The fractions of the optimum for zero and for full points; between them points grow linearly."""


def planner_limits() -> Limits:
    """The limits of a planner for the plans of an item. It can read and write no files."""
    return Limits(cpu_s=10, wall_s=20.0, memory_bytes=256 * MIB)


class StudentPlanner:
    """The planner in a text. After `close` it continues in a new sandbox."""

    def __init__(self, text: str) -> None:
        self.text = text
        errors = {"mistake": WrongError, "refused": InputError}
        module = "inakit.experiments.labs.sandbox.student_python"
        self.process = Sandboxed(module, planner_limits(), errors, arguments=["planner"])

    def answer(self, problem: Problem) -> Any:
        """Ask the planner for the trees of a problem.

        Raises `InputError` for a file that is no planner, `WrongError` for a mistake in planning, and `EndedError`.
        """
        return self.process.ask("plan", self.text, fabric_given(problem.fabric), jobs_given(problem))

    def plan(self, problem: Problem) -> StudentPlan:
        """The planner's trees for a problem. Raises `WrongError` for an invalid answer, and the errors of `answer`."""
        return plan_of(self.answer(problem), problem)

    def close(self) -> None:
        """End the sandbox."""
        self.process.close()


def planner_of(bench: Bench) -> StudentPlanner:
    """The submission's planner, in a separate sandbox for the item."""
    planner = StudentPlanner(bench.submission.text(FILE))
    bench.of_item.callback(planner.close)
    planner.process.start()
    bench.note_limits(planner.process.enforced)
    return planner


def wrong_plan(cause: str, problem: Problem, found: StudentPlan | None) -> WrongError:
    """The error for an invalid plan, with the given network and the returned plan."""
    return WrongError(
        cause, sent=list(network_lines(problem)), got=list(islice(plan_lines(found), MOST_LINES)) if found else ()
    )


Check = Callable[[StudentPlan], None]


def try_rule(planner: StudentPlanner, problems: list[Problem], *checks: Check) -> list[StudentPlan]:
    """Raise `WrongError` for the first plan that fails a check. All paths of checked plans reach the server."""
    plans = []
    for problem in problems:
        found: StudentPlan | None = None
        try:
            found = planner.plan(problem)
            for check in (plan_rules.check_ends, *checks):
                check(found)
            plans.append(found)
        except WrongError as wrong:
            raise wrong_plan(wrong.cause, problem, found) from None
    return plans


def check_rules(networks: Callable[[Random], list[Problem]], checks: Sequence[Check], bench: Bench) -> None:
    """Rules hold on an item's networks."""
    try_rule(planner_of(bench), networks(bench.random), *checks)


def check_sums_by_rules(
    networks: Callable[[Random], list[Problem]],
    checks: Sequence[Check],
    of_all: Callable[[Sequence[StudentPlan]], None],
    bench: Bench,
) -> None:
    """Rules about aggregators hold on an item's networks, and there are aggregators that they are about."""
    of_all(try_rule(planner_of(bench), networks(bench.random), *checks))


def check_near(bench: Bench) -> None:
    """The ratio of the routes' rate to the optimum; its mean over the networks determines the points."""
    planner, ended = planner_of(bench), False
    reached, lines = [], []
    for number, problem in enumerate(plan_networks.for_nearness(bench.random), start=1):
        best = optimum_bps(problem)
        rate_bps, why = 0.0, ""
        try:
            found = planner.plan(problem)
            plan_rules.check_ends(found)
            plan_rules.check_climbs(found)
            rate_bps = found.routes_bps()
        except WrongError as wrong:
            why = f": {wrong.cause}"
        except EndedError as error:
            if ended:
                raise
            why, ended = f": {error}", True
        reached.append(min(1.0, rate_bps / best))
        lines.append(f"network {number}, {problem.fabric.name}: {reached[-1]:.1%} of {best / 1e6:.3f} Mbit/s{why}")
    mean = sum(reached) / len(reached)
    cause = f"routes reach {mean:.1%} of the proven optimum in the mean"
    bench.notes.append(f"near: {cause}")
    if mean < FULL:
        cause += f"; {FULL:.0%} have all points, {NONE:.0%} none"
        raise WrongError(cause, got=lines, part=round(max(0.0, mean - NONE) / (FULL - NONE), 2))


def check_same(bench: Bench) -> None:
    """The planner returns the same plan for the same network, whatever the order of Python's sets."""
    planner, problem = planner_of(bench), plan_networks.for_nearness(bench.random)[-1]
    try_rule(planner, [problem], plan_rules.check_links)
    first = planner.answer(problem)
    for seed in range(1, HASH_SEEDS):
        planner.close()
        planner.process.hash_seed = seed
        if planner.answer(problem) != first:
            cause = (
                "asked twice for the same network, the planner gives two plans (does one follow the order of a set?)"
            )
            raise wrong_plan(cause, problem, None)


def network_lines(problem: Problem) -> Iterator[str]:
    """A network in lines: its switches, the links between them, then the jobs."""
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


def plan_lines(found: StudentPlan) -> Iterator[str]:
    """The trees in lines, one for each aggregator and each path."""
    for planned in found.plan.trees:
        names = found.names[planned.job]
        yield f"job {planned.job}: {planned.rate_bps / 1e6:g} Mbit/s"
        for each in planned.tree.aggregators:
            where = f"{each.switch[:40]!r}, pipeline {each.pipeline}"
            yield f"  {names[each.label]}: {where}, {each.slots} slots from {each.first_slot} on"
        for branch in planned.tree.branches:
            yield f"  {names[branch.label]}: {json.dumps(' '.join(branch.path)[:200])}"


check_paths = partial(check_rules, plan_networks.for_paths, (plan_rules.check_climbs,))
check_rates = partial(check_rules, plan_networks.for_rates, (plan_rules.check_links, plan_rules.check_rates))
check_sums = partial(check_rules, plan_networks.for_sums, (plan_rules.check_links, plan_rules.check_sums))
check_where = partial(
    check_sums_by_rules,
    plan_networks.for_where,
    (plan_rules.check_links, plan_rules.check_where),
    plan_rules.check_some_sum,
)
check_pipelines = partial(
    check_sums_by_rules,
    plan_networks.for_pipelines,
    (plan_rules.check_links, plan_rules.check_pipelines),
    plan_rules.check_other_pipelines,
)
check_slots = partial(
    check_sums_by_rules,
    plan_networks.for_slots,
    (plan_rules.check_links, plan_rules.check_slots),
    plan_rules.check_some_sum,
)

LAB = Lab(
    name="6-plan",
    title="A planner for unseen fabrics",
    hours="8 to 12",
    files=(FILE,),
    items=scored(
        "6-plan",
        Item("paths", "paths that exist, up and then down", "Step 1", check_paths),
        Item("rates", "rates that links carry, and use", "Step 2", check_rates),
        Item("sums", "sums wherever flows meet", "Step 3", check_sums),
        Item("where", "sums at INA switches only", "Step 4", check_where),
        Item("pipelines", "sums within a pipeline", "Step 5", check_pipelines),
        Item("slots", "slots of several jobs", "Step 6", check_slots),
        Item("near", "how near to the proven optimum", "Step 7", check_near),
        Item("same", "the same plan twice", "Step 8", check_same),
    ),
    sandbox_only="has no P4; leave the option out",
)
