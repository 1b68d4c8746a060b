"""The objective of the rates of several tasks, Eqs. (2) and (3), and boxes of rates.

Between two levels of a task's rate nothing changes for that task: a link of capacity b carries floor(b / r) of its
flows. So rates fall into cells, half-open boxes between levels, and within a cell rates differ only on links that tasks
share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, inf

from inakit.planner.methods.aro.bisection import ROUNDING
from inakit.planner.methods.aro.printed_model import MU
from inakit.planner.methods.aro.reduced_network import ReducedNetwork
from inakit.planner.methods.aro.task_graphs import Task
from inakit.planner.solvers import LinearProgram, Term
from inakit.topo.errors import SolverError

STRICT = 2e-7
"""Relative: rates above a rate are at least this much higher."""

Rates = tuple[float, ...]
"""One rate for each task, in bit/s."""


@dataclass(frozen=True)
class Box:
    """Rates above `low` and up to `high`."""

    low: Rates
    high: Rates

    def split(self, i: int, rate: float) -> tuple[Box, Box]:
        """Split the box in two: task i has at most `rate` in the first part, and more in the second."""

        def changed(rates: Rates) -> Rates:
            return (*rates[:i], rate, *rates[i + 1 :])

        return replace(self, high=changed(self.high)), replace(self, low=changed(self.low))


@dataclass(frozen=True)
class Worth:
    """The objective: min over jobs s of beta_s times the sum of its tasks' rates, plus mu times the total of these.

    With one job it is the sum of the rates, Eq. (2), without beta and mu. `access`: the tasks that share a worker's
    own link, and the least capacity of such links.
    """

    tasks: tuple[Task, ...]
    access: dict[tuple[int, ...], float]

    @cached_property
    def jobs(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i, task in enumerate(self.tasks):
            found.setdefault(task.job.number, []).append(i)
        return found

    @property
    def mu(self) -> float:
        """The weight of the total in Eq. (3); 0 for one job."""
        return MU if len(self.jobs) > 1 else 0.0

    @cached_property
    def weights(self) -> dict[int, float]:
        """beta of each job, the inverse of its weight: rates are then in proportion to weights. 1 for a single job."""
        if len(self.jobs) == 1:
            return dict.fromkeys(self.jobs, 1.0)
        return {task.job.number: 1 / task.job.weight for task in self.tasks}

    @property
    def even(self) -> bool:
        """Whether there are several jobs, all with one task and the weight 1."""
        return len(self.jobs) == len(self.tasks) > 1 and set(self.weights.values()) == {1}

    def throughputs(self, rates: Sequence[float]) -> list[float]:
        """By job, beta_s times the sum of its tasks' rates."""
        return [self.weights[job] * sum(rates[i] for i in tasks) for job, tasks in self.jobs.items()]

    def least(self, rates: Sequence[float]) -> float:
        return min(self.throughputs(rates))

    def of(self, rates: Sequence[float]) -> float:
        """The worth of these rates: Eq. (3), or (2) for one job."""
        weighted = self.throughputs(rates)
        return min(weighted) + self.mu * sum(weighted)

    def best(
        self, high: Rates, loads: Iterable[Mapping[int, float]] = (), step_bps: float = 0.0
    ) -> tuple[Rates, float]:
        """The best rates up to `high`, and their worth. With a step all rates are multiples of it.

        Workers' own links must carry them, and so must the links of `loads`, which gives for each task the fraction of
        the link's capacity that one bit/s of the task uses.
        """
        unit = step_bps or max(high)
        program = LinearProgram()
        most = [floor(rate / unit * (1 + ROUNDING)) if step_bps else rate / unit for rate in high]
        r = [program.variable(0, rate, integral=step_bps > 0) for rate in most]
        self.add_objective(program, r, unit)
        for load in loads:
            program.at_most([(share * unit, r[i]) for i, share in load.items()], 1)
        solution = program.solve()
        if not solution.found:
            raise SolverError(f"the rates of {len(high)} tasks have no best value; the solver says {solution.status}")
        values = (solution.values[column] for column in r)
        return tuple(max(0.0, round(n) if step_bps else n) * unit for n in values), solution.objective * unit

    def add_objective(self, program: LinearProgram, r: Sequence[int], unit: float) -> None:
        """Add the objective of the rates in the columns `r`, Eq. (2) or (3), and the limits of workers' own links.

        Rates are in units of `unit`.
        """
        least = program.variable(0, inf)
        total: list[Term] = []
        for job, tasks in self.jobs.items():
            throughput = [(self.weights[job], r[i]) for i in tasks]
            program.at_least([*throughput, (-1, least)], 0)
            total += throughput
        for together, capacity in self.access.items():
            program.at_most([(1, r[i]) for i in together], capacity / unit)
        program.maximise([(1, least), *((self.mu * weight, column) for weight, column in total)])

    def ceiling(self, high: Rates) -> float:
        found = 0.0
        for job, tasks in self.jobs.items():
            links = [capacity for together, capacity in self.access.items() if set(together) >= set(tasks)]
            found += self.weights[job] * min([sum(high[i] for i in tasks), *links])
        return found

    def trim(self, box: Box, levels: Levels, least: float) -> Rates:
        """Low rates of the box with which every job still has the throughput `least`.

        The highest rates of a job are lowered first, level by level.
        """
        rates = list(box.high)
        for job, tasks in self.jobs.items():
            spare = sum(rates[i] for i in tasks) - least / self.weights[job]
            for i in sorted(tasks, key=lambda i: -rates[i]) * len(tasks):
                lower = max(box.low[i], levels.below(i, rates[i])) if rates[i] > 0 else 0.0
                if rates[i] - lower <= spare * (1 + ROUNDING):
                    spare -= rates[i] - lower
                    rates[i] = lower
            i = max(tasks, key=lambda i: rates[i])
            rates[i] = max(box.low[i], rates[i] - max(0.0, spare))
        return tuple(rates)

    def tighten(self, box: Box, least: float) -> Rates:
        """Raise the lower ends as long as rates below one of them cannot give every job the throughput `least`."""
        low = list(box.low)
        for job, tasks in self.jobs.items():
            spare = sum(box.high[i] for i in tasks) - least / self.weights[job]
            for i in tasks:
                low[i] = max(low[i], box.high[i] - spare)
        return tuple(low)


@dataclass(frozen=True)
class Levels:
    """The ends of cells: rates b / n at which flows of one task alone fill a link, for n up to its workers; and 0."""

    capacities: tuple[tuple[float, ...], ...]
    workers: tuple[int, ...]

    def below(self, i: int, rate: float) -> float:
        """The next level of task i below `rate`, which is not 0: at this level one more of its flows fits some link."""
        more = ((b, floor(b / rate * (1 + ROUNDING)) + 1) for b in self.capacities[i])
        return max((b / n for b, n in more if n <= self.workers[i]), default=0.0)

    def base(self, worth: Worth, least: float) -> float:
        """A rate that all tasks have in some optimum, if the `least` of all rates can be this high; 0 if none is known.

        Let all links have one capacity b, and all jobs one task and one weight. A routing with up to t flows on a link
        then allows the rate b / t for all. If the least of n rates were lower by d, a task on a full link would gain (t
        - 1) d at most; and where another flow fits, at least b / t, all rates would grow by a factor of 1 + (2 t - 1) d
        t / b at most. In total this is less than 2 n t^2 d, which counts mu times. Routings with more flows on a link
        lose b / t - b / (t + 1) of the least, and gain less than n mu b.
        """
        links = {b for found in self.capacities for b in found} | set(worth.access.values())
        if not worth.even or len(links) > 1 or least == 0:
            return 0.0
        (b,) = links
        t = floor(b / least * (1 + ROUNDING))
        return b / t if 2 * len(worth.tasks) * worth.mu * t * t <= 1 else 0.0

    def raised(self, low: Rates, base: float) -> Rates:
        """Rates that are feasible if any rates above `low` are. `base` is 0, or the rate of all tasks with t flows on a
        link.

        Tasks with a higher rate than `base` are only on links with fewer than t flows, so all of these can have the
        next level.
        """
        if base in (0, self.capacities[0][0]):
            return tuple(rate * (1 + STRICT) for rate in low)
        above = [rate >= base * (1 - ROUNDING) for rate in low]
        following = base / (1 - base / self.capacities[0][0])
        if max(low) < following * (1 - ROUNDING):
            return tuple(following if higher else base for higher in above)
        return tuple(rate * (1 + STRICT) if higher else base for rate, higher in zip(low, above, strict=True))

    def between(self, i: int, low: float, high: float) -> float | None:
        """A level of task i strictly between two rates, near the middle if there are several; None if there is none."""
        top = self.below(i, high)
        if top <= low * (1 + ROUNDING):
            return None
        middle = self.below(i, (low + high) / 2)
        return middle if middle > low * (1 + ROUNDING) else top


def levels(net: ReducedNetwork) -> Levels:
    b = net.fabric.capacities_bps
    links = [[*graph.links, *((v, u) for u, v in graph.links if net.results)] for graph in net.graphs]
    capacities = tuple(tuple({b[link] for link in own}) for own in links)
    return Levels(capacities, tuple(len(graph.task.job.workers) for graph in net.graphs))
