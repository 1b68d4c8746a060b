"""LP-InArt: the linear relaxation of InArt's choice of aggregation points and routes, Eq. (5), by edge flows.

Eq. (5) maximises f under f x_s (...) <= B. Divided by f it is linear in t = 1/f, and minimising t maximises f.
The paper has a variable for each path. This model has the flow on each link instead, one commodity for each
place where it ends: an INP that sums, or the PS, to which sums and unsummed flows go alike. Paths and edge
flows describe the same loads (a flow in a graph without cycles is a sum of paths), so the optimum is the same.

Workers that enter one INP of one ToR have the same ways and stand in the model as one group: the mean of
an optimum over them is an optimum too, since the problem is convex and does not tell them apart.

Routes are the shortest up-down paths. In a Clos network no other up-down path passes no switch twice, so none is
left out; in a network with crossings the longer paths are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pulp

from planner.once import Task, entrance
from planner.routes import MAX_CHILDREN, Inp
from planner.solve import SolverOptions, solve
from planner.unfold import DirectedLink
from topo.fabric import Fabric

Group = Inp
"""Workers who enter the same INP of a ToR."""

Key = TypeVar("Key", bound=Hashable)


@dataclass
class TaskFlows:
    """One task's variables: `y[group][inp]`, the part of the group's flows that the INP sums (None: none does),
    `z[inp]`, whether it does, and the flow on each link, `to[inp][link]` and on the way to the PS `to[None][link]`.
    """

    y: dict[Group, dict[Inp | None, Any]] = field(default_factory=lambda: defaultdict(dict))
    z: dict[Inp, Any] = field(default_factory=dict)
    to: dict[Inp | None, dict[DirectedLink, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Relaxation:
    """The model, its variables by task, and `t`, the inverse of f where `unit_bps` is 1."""

    fabric: Fabric
    tasks: Sequence[Task]
    unit_bps: float
    model: pulp.LpProblem
    t: Any
    flows: list[TaskFlows]


def build(fabric: Fabric, tasks: Sequence[Task]) -> Relaxation:
    """Eq. (5) of the tasks, whose shares are given. Each constraint is divided by f."""
    model = pulp.LpProblem("lp_inart", pulp.LpMinimize)
    unit = max(fabric.capacities_bps.values())

    # Variables
    t = model.add_variable("t", lowBound=0)
    flows = [task_flows(model, fabric, number, task) for number, task in enumerate(tasks)]

    # Objective: Eq. (5) maximises f = 1 / t
    model += t, "inverse_sending_rate"

    # Constraints
    for number, (task, flow) in enumerate(zip(tasks, flows, strict=True)):
        constrain_task(model, fabric, task, flow, number)
    for link, load in link_loads(fabric, tasks, flows).items():
        model += load <= fabric.capacities_bps[link] / unit * t, f"link_capacity_{'_'.join(link)}"
    for switch, load in switch_loads(fabric, tasks, flows).items():
        rate = fabric.switch_by_name[switch].aggregation_rate_bps
        if rate is not None:
            model += load <= rate / unit * t, f"switch_capacity_{switch}"
    return Relaxation(fabric, tasks, unit, model, t, flows)


def task_flows(model: pulp.LpProblem, fabric: Fabric, number: int, task: Task) -> TaskFlows:
    """The variables of a task. Links of hosts are no variables: a worker's access link carries all of its flow."""
    flow = TaskFlows()
    groups = groups_of(fabric, task)
    links = [link for link in task.unfolded.links(task.job.workers) if link[0] not in fabric.host_names]
    for inp in inps_of(fabric, groups, links):
        name = f"{number}_{inp[0]}_{inp[1]}"
        upstream = links_to(fabric, inp, links)
        senders = [group for group in groups if group == inp or any(group[0] == link[0] for link in upstream)]
        flow.z[inp] = model.add_variable(f"z_{name}", 0, 1)
        flow.to[inp] = {(u, v): model.add_variable(f"q_{name}_{u}_{v}", 0) for u, v in upstream}
        for group in senders:
            flow.y[group][inp] = model.add_variable(f"y_{name}_{group[0]}_{group[1]}", 0, 1)
    flow.to[None] = {(u, v): model.add_variable(f"q_{number}_{u}_{v}", 0) for u, v in links}
    for group in groups:
        flow.y[group][None] = model.add_variable(f"y_{number}_{group[0]}_{group[1]}", 0, 1)
    return flow


def groups_of(fabric: Fabric, task: Task) -> Counter[Group]:
    """The groups of a task's workers, and how many are in each."""
    return Counter(entrance(fabric, worker) for worker in task.job.workers)


def inps_of(fabric: Fabric, groups: Iterable[Group], links: Iterable[DirectedLink]) -> list[Inp]:
    """The INPs of INA switches that the task's flows can enter."""
    entered = [*groups, *((v, fabric.ingress_pipeline(v, u)) for u, v in links if v in fabric.switch_by_name)]
    return [inp for inp in dict.fromkeys(entered) if fabric.switch_by_name[inp[0]].ina]


def links_to(fabric: Fabric, inp: Inp, links: Sequence[DirectedLink]) -> list[DirectedLink]:
    """The links by which flows come to the INP: those that enter it, and all before them."""
    found = [(u, v) for u, v in links if v == inp[0] and fabric.ingress_pipeline(v, u) == inp[1]]
    behind = list(dict.fromkeys(u for u, _ in found))
    for node in behind:  # grows while it is walked
        before = [link for link in links if link[1] == node]
        found += before
        behind += [u for u in dict.fromkeys(u for u, _ in before) if u not in behind]
    return found


def constrain_task(model: pulp.LpProblem, fabric: Fabric, task: Task, flow: TaskFlows, number: int) -> None:
    """Each gradient is summed once at most, and comes to the INP that sums it, or to the PS."""
    groups = groups_of(fabric, task)
    for group, parts in flow.y.items():
        model += pulp.lpSum(parts.values()) == 1, f"one_place_{number}_{group[0]}_{group[1]}"
    for inp, z in flow.z.items():
        senders = {group: parts[inp] for group, parts in flow.y.items() if inp in parts}
        for group, y in senders.items():
            model += y <= z, f"sums_{number}_{inp[0]}_{inp[1]}_{group[0]}_{group[1]}"
        count = pulp.lpSum(groups[group] * y for group, y in senders.items())
        model += count <= MAX_CHILDREN * z, f"children_{number}_{inp[0]}_{inp[1]}"
    for place, links in flow.to.items():
        supply = defaultdict(list)
        for group, parts in flow.y.items():
            if place in parts and group != place:
                supply[group[0]].append(groups[group] * parts[place])
        if place is None:
            for inp, z in flow.z.items():
                supply[inp[0]].append(z)
        conserve(model, links, supply, f"{number}_{'_'.join(map(str, place or ()))}")


def conserve(
    model: pulp.LpProblem, links: Mapping[DirectedLink, Any], supply: Mapping[str, list[Any]], name: str
) -> None:
    """What comes to a node, or starts there, goes on."""
    into, out = defaultdict(list), defaultdict(list)
    for (u, v), variable in links.items():
        out[u].append(variable)
        into[v].append(variable)
    for node, leaving in out.items():
        model += pulp.lpSum([*into[node], *supply.get(node, ())]) == pulp.lpSum(leaving), f"goes_on_{name}_{node}"


def link_loads(fabric: Fabric, tasks: Sequence[Task], flows: Sequence[TaskFlows]) -> dict[DirectedLink, Any]:
    """The load of each link over f: on a worker's access link its shares, whatever is chosen."""
    terms: dict[DirectedLink, list[Any]] = defaultdict(list)
    for task, flow in zip(tasks, flows, strict=True):
        for worker in task.job.workers:
            terms[worker, fabric.tor_of(worker)].append(task.share)
        for links in flow.to.values():
            for link, variable in links.items():
                terms[link].append(task.share * variable)
    return {link: pulp.lpSum(found) for link, found in terms.items()}


def switch_loads(fabric: Fabric, tasks: Sequence[Task], flows: Sequence[TaskFlows]) -> dict[str, Any]:
    """What each switch sums, over f."""
    terms: dict[str, list[Any]] = defaultdict(list)
    for task, flow in zip(tasks, flows, strict=True):
        groups = groups_of(fabric, task)
        for group, parts in flow.y.items():
            for inp, y in parts.items():
                if inp is not None:
                    terms[inp[0]].append(task.share * groups[group] * y)
    return {switch: pulp.lpSum(found) for switch, found in terms.items()}


@dataclass(frozen=True)
class TaskFractions:
    """A task's y and q of the solution, to draw from."""

    y: dict[Group, dict[Inp | None, float]]
    to: dict[Inp | None, dict[DirectedLink, float]]


@dataclass(frozen=True)
class Relaxed:
    """The solution of LP-InArt: the bound of f in bit/s, and the fractions of every task."""

    fabric: Fabric
    bound_bps: float
    tasks: list[TaskFractions]


def relax(fabric: Fabric, tasks: Sequence[Task], options: SolverOptions) -> Relaxed:
    """Solve LP-InArt. No plan with these shares sends faster than its bound."""
    relaxation = build(fabric, tasks)
    solve(relaxation.model, options)
    return extract(relaxation)


def extract(relaxation: Relaxation) -> Relaxed:
    fractions = [
        TaskFractions(
            {group: values(parts) for group, parts in flow.y.items()},
            {place: values(links) for place, links in flow.to.items()},
        )
        for flow in relaxation.flows
    ]
    return Relaxed(relaxation.fabric, relaxation.unit_bps / relaxation.t.varValue, fractions)


def values(variables: Mapping[Key, Any]) -> dict[Key, float]:
    return {key: max(0.0, variable.varValue) for key, variable in variables.items()}
