"""What every directed link was to carry in a run, and what it carried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from inakit.experiments.report.document import IterationView, LoadsView
from inakit.experiments.report.drawn_fabric import DirectedLink, DrawnFabric
from inakit.experiments.report.run_folder import Table
from inakit.planner.core.evaluate import TreeLoad, evaluate, tree_loads
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.trees.headroom import RESULTS_RETURN


@dataclass(frozen=True)
class Carried:
    """Bytes that each directed link carried in the whole run, and drops of the queue before it, by link number."""

    sent_bytes: Mapping[int, float]
    drops: Mapping[int, int]


def carried(totals: Table, drawn: DrawnFabric) -> Carried:
    """What `link_totals.csv` says. Several fibres of a unit are added up."""
    sent: dict[int, float] = defaultdict(float)
    drops: dict[int, int] = defaultdict(int)
    rows = zip(*(totals.get(name, ()) for name in ("sender", "receiver", "sent_bytes", "drops")), strict=True)
    for sender, receiver, count, dropped in rows:
        number = drawn.counted(sender, receiver)
        if number is not None:
            sent[number] += int(count)
            drops[number] += int(dropped or 0)
    return Carried(sent, drops)


def loads_view(
    drawn: DrawnFabric,
    problem: Problem,
    plan: Plan | None,
    mode: str,
    found: Carried,
    iterations: Sequence[IterationView],
) -> LoadsView:
    """Planned and measured loads of all directed links."""
    count = 2 * len(drawn.fabric.links)
    planned_bps: dict[int, float] = {}
    planned_bytes: dict[int, float] = {}
    users: dict[int, set[int]] = {}
    if plan is not None:
        prediction = evaluate(problem, plan)
        rates = prediction.loads_with_results_bps if RESULTS_RETURN.get(mode, True) else prediction.link_loads_bps
        planned_bps = by_number(drawn, rates)
        planned_bytes, users = planned_volume(drawn, problem, plan, mode)
    measured = mean_rates(found, users, iterations)
    return LoadsView(
        listed(planned_bps, count, 0.0 if plan else None),
        listed(measured, count),
        listed(planned_bytes, count, 0.0 if plan else None),
        listed(found.sent_bytes, count),
        listed(found.drops, count),
    )


def mean_rates(found: Carried, users: Mapping[int, set[int]], iterations: Sequence[IterationView]) -> dict[int, float]:
    """The mean rate of every link while the jobs that use it send, in bit/s, by link number."""
    together = {frozenset[int]()}.union(map(frozenset, users.values()))
    times = {jobs: busy_s(iterations, jobs) for jobs in together}
    busy = {number: times[frozenset(users.get(number, ()))] for number in found.sent_bytes}
    return {number: 8 * sent / busy[number] for number, sent in found.sent_bytes.items() if busy[number]}


def listed(values: Mapping[int, float], count: int, otherwise: float | None = None) -> list[float | None]:
    """A list by the number of a directed link."""
    return [values.get(number, otherwise) for number in range(count)]


def by_number(drawn: DrawnFabric, values: Mapping[DirectedLink, float]) -> dict[int, float]:
    """Values of directed links by their numbers; where circuits share a fibre's link they are added up."""
    found: dict[int, float] = defaultdict(float)
    for hop, value in values.items():
        for number in drawn.numbers([hop]):
            found[number] += value
    return found


def planned_volume(
    drawn: DrawnFabric, problem: Problem, plan: Plan, mode: str
) -> tuple[dict[int, float], dict[int, set[int]]]:
    """By link number: the bytes that the plan puts on it in the whole run, and the jobs that use it."""
    iterations = {job.number: job.iterations for job in problem.jobs}
    volume: dict[int, float] = defaultdict(float)
    users: dict[int, set[int]] = defaultdict(set)
    for load in tree_loads(problem, plan):
        sent = load.packets * iterations[load.job] * problem.fragment.wire_bytes
        for number in drawn.numbers(hops_of(load, results=RESULTS_RETURN.get(mode, True))):
            volume[number] += sent
            users[number].add(load.job)
    return volume, users


def hops_of(load: TreeLoad, *, results: bool) -> Iterator[DirectedLink]:
    """The links of a tree's gradients and, with `results`, of its results; a link that two flows share comes twice."""
    yield from (link for branch in load.tree.branches for link in branch.links)
    if results:
        yield from ((above, node) for node, above in load.tree.result_parents.items())


def busy_s(iterations: Iterable[IterationView], jobs: frozenset[int]) -> float:
    """For how long some iteration of these jobs was under way, in seconds; of all jobs if none is named."""
    own = [each for each in iterations if not jobs or each.job in jobs]
    if any(each.started_s is None for each in own):
        return sum(each.time_s for each in own)
    spans = sorted((each.started_s or 0.0, (each.started_s or 0.0) + each.time_s) for each in own)
    total, reached = 0.0, float("-inf")
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
