"""Single failures of links and switches: the rest of the network, and new routes for the affected jobs.

New routes have the rates of the old ones, and leave room for the jobs that keep their plans. A folder holds the files
that the trials of a validation share: the network, its jobs, the plan of every planner.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import inf
from pathlib import Path

from inakit.experiments.hardware.site_file import Withstand
from inakit.planner.core.check import check
from inakit.planner.core.evaluate import Prediction, evaluate
from inakit.planner.core.files import load_jobs, load_plan, save_jobs, save_plan
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan, trees_of
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slots import assign_slots, resource_bps
from inakit.planner.own_planners import name_of
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import find_method
from inakit.planner.replan import SECOND_PHASES, replan
from inakit.topo.errors import InakitError, writing
from inakit.topo.fabric.fabric import Fabric, Link, Switch
from inakit.topo.fabric.up_down import Move, hops_to
from inakit.topo.files.fabric_records import document_of
from inakit.topo.files.fabrics import load_yaml
from inakit.traffic.wire.packet_format import FRAGMENT

JobLinks = Mapping[int, frozenset[tuple[str, str]]]
"""The links that a job's part of a plan uses, by the number of the job."""


@dataclass(frozen=True)
class Failure:
    """A switch that fails, or the link between two nodes."""

    nodes: tuple[str, ...]

    @property
    def name(self) -> str:
        return "-".join(self.nodes)

    @property
    def kind(self) -> str:
        """`switch` or `link`."""
        return "switch" if len(self.nodes) == 1 else "link"

    def takes(self, one: str, other: str) -> bool:
        """Whether the failure removes the link between two nodes."""
        return {one, other} == set(self.nodes) if self.kind == "link" else self.nodes[0] in (one, other)


def single_failures(fabric: Fabric, withstand: Withstand) -> list[Failure]:
    """The failures to withstand: switches, then links, in the order of the fabric or of the file."""
    links = [(link.a, link.b) for link in fabric.links] if withstand.links is None else withstand.links
    switches = fabric.switch_by_name if withstand.switches is None else withstand.switches
    return [*(Failure((name,)) for name in switches), *(Failure(tuple(pair)) for pair in links)]


@dataclass(frozen=True)
class Remains:
    """The rest of a problem after a failure. `problem`: the network with the jobs that can go on, None if none can.

    `lost`: why each other job cannot go on, by number. `touched`: the jobs that go on but whose plan uses the failed
    element.
    """

    problem: Problem | None
    lost: Mapping[int, str]
    touched: frozenset[int]


def after(problem: Problem, used: JobLinks, failure: Failure) -> Remains:
    """Return the rest of a problem whose plan uses these links. Hosts that have no link left are also removed."""
    fabric = without(problem.fabric, failure)
    touched = {job for job, links in used.items() if any(failure.takes(*link) for link in links)}
    found = ((job.number, why_lost(problem.fabric, fabric, job, job.number in touched)) for job in problem.jobs)
    lost = {number: why for number, why in found if why}
    jobs = tuple(job for job in problem.jobs if job.number not in lost)
    left = replace(problem, fabric=fabric, jobs=jobs) if jobs else None
    return Remains(left, lost, frozenset(touched - lost.keys()))


def without(fabric: Fabric, failure: Failure) -> Fabric:
    """Return the fabric without the failed link or switch, and without hosts that have no link left."""
    links = tuple(link for link in fabric.links if not failure.takes(link.a, link.b))
    return linked(fabric, links, tuple(each for each in fabric.switches if (each.name,) != failure.nodes))


def linked(fabric: Fabric, links: tuple[Link, ...], switches: tuple[Switch, ...]) -> Fabric:
    nodes = {node for link in links for node in (link.a, link.b)}
    return replace(fabric, hosts=tuple(h for h in fabric.hosts if h.name in nodes), switches=switches, links=links)


def why_lost(whole: Fabric, fabric: Fabric, job: Job, touched: bool) -> str:
    """The reason why a job cannot go on in the rest of a fabric: its hosts are cut off or have no path; or empty.

    A job whose plan is not touched keeps the paths of its plan.
    """
    absent = [host for host in (*job.workers, *job.servers) if host not in fabric.host_names]
    if absent:
        return f"cut off: {', '.join(f'{host} ({whole.tor_of(host)})' for host in absent)}"
    for server in job.servers if touched else ():
        hops = hops_to(fabric, server)
        away = [worker for worker in job.workers if (worker, Move.UP) not in hops]
        if away:
            return f"no up-down path to {server} from {', '.join(away)}"
    return ""


def links_of_jobs(plan: Plan) -> JobLinks:
    """Every link that the packets of each job's trees use: gradients, sums, results, and answers by address.

    Answers by address take links of the trees: `inakit.planner.install.plan_entries` derives their routes from these.
    """
    trees = [(planned.job, planned.tree) for planned in plan.trees]
    trees += [(each.job, tree) for each in plan.collectives for tree in trees_of(each)]
    found: dict[int, set[tuple[str, str]]] = {}
    for job, tree in trees:
        branches = (link for branch in tree.branches for link in branch.links)
        found.setdefault(job, set()).update(branches, tree.result_parents.items(), pairwise(tree.fallback))
    return {job: frozenset(links) for job, links in found.items()}


def for_jobs(plan: Plan, numbers: Container[int]) -> Plan:
    trees = tuple(planned for planned in plan.trees if planned.job in numbers)
    return replace(plan, trees=trees, collectives=tuple(each for each in plan.collectives if each.job in numbers))


ROUNDING = 1e-9
"""A rate that is lower by at most this share counts as equal."""

Anew = Callable[[Problem, Plan], Plan]
"""A function that plans a problem again, given the plan that its jobs had."""


def plan_beside(problem: Problem, plan: Plan, touched: Collection[int], anew: Anew, mode: str) -> Plan | None:
    """Return the plan with new routes for the touched jobs; None if some job cannot keep its rate that way.

    The touched jobs are planned one after another, each in the capacity left so far. The others keep trees and
    rates; segments of slots can move. `plan` is for the problem's jobs, and can lead touched ones over failed links.
    """
    made = for_jobs(plan, {job.number for job in problem.jobs} - set(touched))
    try:
        for job in (job for job in problem.jobs if job.number in touched):
            own = new_routes(problem, job, for_jobs(plan, {job.number}), made, anew)
            made = replace(own, trees=made.trees + own.trees, collectives=made.collectives + own.collectives)
        made = made.with_trees(assign_slots(problem.fabric, [planned.tree for planned in made.trees]))
        check(problem, made)
    except InakitError:
        return None
    slower = any(rate_bps(made, job) < rate_bps(plan, job) * (1 - ROUNDING) for job in problem.jobs)
    return None if slower or with_headroom(problem, made, mode).factor < 1 else made


def new_routes(problem: Problem, job: Job, had: Plan, others: Plan, anew: Anew) -> Plan:
    """Plan a job in the capacity that the other plan leaves, no faster than its former plan. Raises `InakitError`."""
    numbers = {planned.job for planned in others.trees} | {each.job for each in others.collectives}
    beside = replace(problem, jobs=tuple(each for each in problem.jobs if each.number in numbers)) if numbers else None
    used = evaluate(beside, others) if beside else None
    rates = [planned.rate_bps for planned in had.trees]
    least_bps = min([*rates, *(connection.rate_bps for each in had.collectives for connection in each.connections)])
    fabric = what_is_left(problem.fabric, used, least_bps) if used else problem.fabric
    if not had.collectives:
        fabric = no_faster(fabric, job, rate_bps(had, job))
    made = anew(replace(problem, fabric=fabric, jobs=(job,)), had)
    return made.with_rates_times(min(1.0, rate_bps(had, job) / rate_bps(made, job)))


def no_faster(fabric: Fabric, job: Job, most_bps: float) -> Fabric:
    """Return the fabric with worker links of at most this rate, so that a planner looks for no higher one."""
    workers = set(job.workers) - set(job.servers)

    def slower(link: Link) -> Link:
        if link.a in workers:
            return replace(link, capacity_ab_bps=min(link.capacity_ab_bps, most_bps))
        if link.b in workers:
            return replace(link, capacity_ba_bps=min(link.capacity_ba_bps, most_bps))
        return link

    return replace(fabric, links=tuple(map(slower, fabric.links)))


def rate_bps(plan: Plan, job: Job) -> float:
    """The sending rate of a job's workers. In a collective, the sum over its connections, which grows with them."""
    connections = (c.rate_bps for each in plan.collectives if each.job == job.number for c in each.connections)
    return plan.job_rate_bps(job.number) + sum(connections)


def what_is_left(fabric: Fabric, used: Prediction, least_bps: float) -> Fabric:
    """The capacities, aggregation rates and recirculation of a fabric that the jobs of a prediction leave.

    A link that cannot carry a further flow of `least_bps` in a direction is omitted. A switch that cannot sum another
    one does not aggregate.
    """
    loads, enough = used.loads_with_results_bps, least_bps * (1 - ROUNDING)
    links = (
        replace(
            link,
            capacity_ab_bps=max(0.0, link.capacity_ab_bps - loads.get((link.a, link.b), 0.0)),
            capacity_ba_bps=max(0.0, link.capacity_ba_bps - loads.get((link.b, link.a), 0.0)),
        )
        for link in fabric.links
    )
    room = tuple(link for link in links if min(link.capacity_ab_bps, link.capacity_ba_bps) >= enough)
    return linked(fabric, room, tuple(switch_left(fabric, each, used, enough) for each in fabric.switches))


def switch_left(fabric: Fabric, switch: Switch, used: Prediction, enough_bps: float) -> Switch:
    """Return the switch with its remaining capacity; each pipeline has as much as the fullest one has left."""
    loads = [load for (name, _), load in used.summed_bps.items() if name == switch.name]
    if not loads or not switch.ina:
        return switch
    rate_left = resource_bps(fabric, switch.name) - sum(loads)
    pipeline_left = switch.pipeline_summing_bps - max(loads)
    if min(rate_left, pipeline_left) < enough_bps:
        return replace(switch, ina=False)
    left = switch if rate_left == inf else replace(switch, aggregation_rate_bps=rate_left)
    if left.chip is None or pipeline_left == inf:
        return left
    rest = replace(left.chip, name=f"{left.chip.name} of {switch.name}")
    return replace(left, chip=replace(rest, recirculation_bps=pipeline_left * (rest.passes - 1)))


FABRIC, JOBS = "fabric.json", "jobs.json"
"""JSON, because worker processes read it much faster than YAML."""
AS_BEFORE, PARTLY_ANEW, ANEW = "as before", "partly anew", "planned anew"
NO_PLAN, NOTHING = "no plan", "no job goes on"
"""The states of a plan under a failure."""


def save_problem(folder: Path, problem: Problem) -> None:
    """Write the network and its jobs. Raises `OutputError`."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FABRIC).write_text(json.dumps(document_of(problem.fabric)))
    save_jobs(problem.jobs, folder / JOBS)


def plan_file(folder: Path, planner: str) -> Path:
    return folder / f"{name_of(planner)}.plan.json"


def made_file(folder: Path, planner: str) -> Path:
    """The file with the key of a plan's inputs, and the notes on the plan."""
    return folder / f"{name_of(planner)}.made.json"


def keep_plan(folder: Path, planner: str, plan: Plan, said: str, key: str) -> None:
    """Write the plan of a planner, then the key of its inputs, and the notes. Raises `OutputError`."""
    made = made_file(folder, planner)
    with writing(made):
        made.unlink(missing_ok=True)
        save_plan(plan, plan_file(folder, planner))
        made.write_text(json.dumps({"key": key, "said": said}))


def kept_plan(folder: Path, planner: str, key: str) -> tuple[Plan, str] | None:
    """The kept plan with this key, and the notes on it; None if there is none.

    Plans are kept because a plan that a time limit ended can come out differently, and trials belong to one plan.
    """
    try:
        made = json.loads(made_file(folder, planner).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return (load_plan(plan_file(folder, planner)), str(made["said"])) if made.get("key") == key else None


@lru_cache(maxsize=2)
def load_problem(folder: Path) -> Problem:
    return Problem(load_yaml(folder / FABRIC), load_jobs(folder / JOBS), FRAGMENT)


@lru_cache(maxsize=8)
def load_planned(folder: Path, planner: str) -> Plan:
    return load_plan(plan_file(folder, planner))


@lru_cache(maxsize=8)
def load_remains(folder: Path, planner: str, failure: Failure) -> Remains:
    """The rest of the network, the jobs and the plan after a failure."""
    return after(load_problem(folder), load_links(folder, planner), failure)


@lru_cache(maxsize=8)
def load_links(folder: Path, planner: str) -> JobLinks:
    return links_of_jobs(load_planned(folder, planner))


def plan_under(folder: Path, planner: str, failure: Failure, mode: str, seed: int) -> tuple[Problem, Plan, str] | None:
    """The remaining problem, its plan, and the state of the plan under a failure; None if no job goes on.

    The plan's part for the jobs that go on stays as it is unless the failure touches it. Touched jobs get new routes
    beside the others, at their former rates. If that is impossible, all jobs are planned again, with room for results.
    Planners that split gradients over PSs keep the split, since PSs keep their parts.

    Raises `InakitError` if there is no plan.
    """
    remains = load_remains(folder, planner, failure)
    left = remains.problem
    if left is None:
        return None
    kept = for_jobs(load_planned(folder, planner), {job.number for job in left.jobs})
    if not remains.touched:
        return left, kept, AS_BEFORE
    options = Options(seed=seed)

    def again(problem: Problem, plan: Plan) -> Plan:
        if plan.method in SECOND_PHASES:
            return replan(problem, plan, options)
        return find_method(planner).plan(problem, options)

    beside = plan_beside(left, kept, remains.touched, again, mode)
    if beside is not None:
        return left, beside, PARTLY_ANEW
    return left, with_headroom(left, again(left, kept), mode).plan, ANEW
