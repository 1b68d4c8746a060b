"""From one design to the next: which circuits change, in which order, and at which rates jobs send meanwhile.

A circuit switch changes any number of circuits in one step, in its reconfiguration time, in which these are dark. New
circuits whose ports were dark can be lit before anything is disconnected. Others first take their ports from old
circuits: those between switches, while jobs go on over what is left, and those of hosts, whose jobs stand still. Steps
can be joined: that takes less time, at lower rates. Of all orders the one is taken in which jobs send most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product

from inakit.planner.core.method import Design, Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.aro import aro
from inakit.topo.errors import InputError, SolverError
from inakit.topo.fabric.circuits import Circuit, Port, circuit
from inakit.topo.fabric.fabric import Fabric, Host, Link


@dataclass(frozen=True)
class Step:
    """Circuits that change in one step, and what runs meanwhile: None if all jobs stand still."""

    disconnected: frozenset[Circuit]
    connected: frozenset[Circuit]
    running: Design | None

    def rate_bps(self, job: int) -> float:
        """The rate of a job during the step, 0 if it stands still."""
        return self.running.plan.job_rate_bps(job) if self.running else 0.0


def circuits_of(fabric: Fabric) -> dict[Circuit, Link]:
    """The circuits of a fabric's optical links."""
    return {circuit((link.a, link.a_port), (link.b, link.b_port)): link for link in fabric.links if link.optical}


def rewire(before: Design, after: Design, options: Options | None = None) -> list[Step]:
    """The steps from one design to the next, none if it has the same circuits.

    Jobs that both have, with the same hosts, go on; while not all of their circuits are there, ARO routes them on those
    that are.
    """
    old, new = circuits_of(before.fabric), circuits_of(after.fabric)
    lasting = [job for job in before.problem.jobs if hosts_of(job) in map(hosts_of, after.problem.jobs)]
    batches = [batch for batch in in_batches(before.fabric, after.fabric) if batch]
    best: list[Step] = []
    most = -1.0
    for joined in product((False, True), repeat=max(0, len(batches) - 1)):
        order = [set(batch) for batch in batches[:1]]
        for batch, with_last in zip(batches[1:], joined, strict=True):
            if with_last:
                order[-1] |= batch
            else:
                order.append(set(batch))
        steps = list(carried_out(before, after, order, lasting, options or Options(time_limit_s=10)))
        # After fewer steps, jobs send at the new rates while another order is still at work.
        final = sum(after.plan.job_rate_bps(job.number) for job in lasting)
        sent = sum(step.rate_bps(job.number) for step in steps for job in lasting)
        sent += final * (len(batches) - len(steps))
        if sent > most:
            best, most = steps, sent
    if not best and old.keys() != new.keys():  # circuits are only disconnected
        best = [Step(frozenset(old.keys() - new.keys()), frozenset(), started(after, lasting))]
    return best


def hosts_of(job: Job) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    return job.number, job.workers, job.servers


def in_batches(before: Fabric, after: Fabric) -> list[set[Circuit]]:
    """The new circuits with dark ports, those that take ports from circuits of switches, and those that move hosts.

    Circuits that take ports from each other's predecessors are in one batch.
    """
    old, new = circuits_of(before).keys(), circuits_of(after).keys()
    of_port = {end: each for each in old - new for end in each}
    hosts = before.host_names | after.host_names
    dark, switches, moved = set[Circuit](), set[Circuit](), set[Circuit]()
    left = set(new - old)
    while left:
        group, chain = set[Circuit](), [min(left)]
        while chain:
            each = chain.pop()
            group.add(each)
            ends = {end for taken in displaced([each], of_port) for end in taken} | set(each)
            chain += [other for other in left - group if ends & set(other)]
        left -= group
        taken = displaced(group, of_port)
        with_hosts = any(node in hosts for each in group | taken for node, _ in each)
        (moved if with_hosts and taken else switches if taken else dark).update(group)
    return [dark, switches, moved]


def displaced(circuits: Iterable[Circuit], of_port: dict[Port, Circuit]) -> set[Circuit]:
    """The old circuits that have a port of these."""
    return {of_port[end] for each in circuits for end in each if end in of_port}


def carried_out(
    before: Design, after: Design, order: Sequence[set[Circuit]], jobs: Sequence[Job], options: Options
) -> Iterator[Step]:
    """The steps that connect these circuits in this order; the last one also disconnects all that are not needed."""
    old, new = circuits_of(before.fabric), circuits_of(after.fabric)
    of_port = {end: each for each in old.keys() - new.keys() for end in each}
    lit = dict(old)
    for number, connected in enumerate(order):
        gone = displaced(connected, of_port) & lit.keys()
        links = [link for each, link in lit.items() if each not in gone]
        running = meanwhile(before, after, links, jobs, options)
        if number == len(order) - 1:
            gone |= lit.keys() - new.keys()
        lit = {each: link for each, link in lit.items() if each not in gone} | {each: new[each] for each in connected}
        yield Step(frozenset(gone), frozenset(connected), running)


def meanwhile(
    before: Design, after: Design, links: Sequence[Link], jobs: Sequence[Job], options: Options
) -> Design | None:
    """What the jobs run on these links: their plan if it uses no others, else ARO's for jobs whose hosts are joined."""
    pairs = {frozenset((link.a, link.b)) for link in links}
    if (goes_on := started(before, jobs)) and all(
        frozenset(link) in pairs for planned in goes_on.plan.trees for b in planned.tree.branches for link in b.links
    ):
        return goes_on
    fabric = lit_fabric(before.fabric, after.fabric, links)
    joined = [job for job in jobs if are_joined(fabric, (*job.workers, *job.servers))]
    if not joined:
        return None
    problem = Problem(fabric, tuple(joined), before.problem.fragment)
    try:
        return Design(problem, aro.plan(problem, aro.AroOptions(**asdict(options))))
    except (InputError, SolverError):  # no route climbs and then descends
        return None


def started(design: Design, jobs: Sequence[Job]) -> Design | None:
    """The design with these of its jobs alone; None without any."""
    numbers = {job.number for job in jobs}
    if not numbers:
        return None
    own = tuple(job for job in design.problem.jobs if job.number in numbers)
    trees = tuple(planned for planned in design.plan.trees if planned.job in numbers)
    return Design(replace(design.problem, jobs=own), replace(design.plan, trees=trees))


def lit_fabric(before: Fabric, after: Fabric, links: Sequence[Link]) -> Fabric:
    """The fabric of lit links. A switch has the tier that it had before, if it was there."""
    unique = {frozenset((link.a, link.b)): link for link in reversed(links)}
    nodes = {node for pair in unique for node in pair}
    known = after.switch_by_name | before.switch_by_name
    hosts = tuple(Host(host) for host in sorted(before.host_names | after.host_names) if host in nodes)
    switches = tuple(switch for name, switch in known.items() if name in nodes)
    return Fabric(before.name, hosts, switches, tuple(unique.values()))


def are_joined(fabric: Fabric, hosts: Sequence[str]) -> bool:
    """Whether links join all these hosts."""
    if not set(hosts) <= fabric.host_names:
        return False
    reached, rest = {hosts[0]}, [hosts[0]]
    while rest:
        peers = set(fabric.neighbors[rest.pop()]) - reached
        reached |= peers
        rest += peers
    return set(hosts) <= reached
