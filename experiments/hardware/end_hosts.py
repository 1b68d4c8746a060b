"""What the end hosts of a plan need to know to take part in it: a JSON file for each host.

A worker sends the fragments of its trees, each under its label, and gets their sums. A parameter server (PS) sums what
arrives under the labels of a tree, or stands by for a root in a switch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from inakit.planner.core.files import FILE, to_json
from inakit.planner.core.fragment_ranges import fragment_ranges
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Plan, Shard
from inakit.planner.core.policies import policy_of
from inakit.planner.core.problem import Problem
from inakit.topo.errors import writing
from inakit.topo.fabric.addresses import addresses
from inakit.topo.files.reader import read_file
from inakit.topo.files.validation import validate


@dataclass(frozen=True)
class Peer:
    """A host and its addresses."""

    name: str
    ipv4: str
    mac: str


@dataclass(frozen=True)
class SentTree:
    """A tree in which the host is a worker.

    It sends `fragments` fragments of the job's gradient from `first_fragment` on to `server`, under `label`, at
    `rate_bps` of whole frames, with at most `window` fragments on their way (None: slots set no bound). Fragment n of
    the run goes to slot n modulo `slots`, counted from the tree's first slot, or with `shared_slots` to a slot by a
    hash. `reach`: a fragment so much later than another is sent only when all workers have the earlier one's result;
    0 is no bound.
    """

    job: int
    tree: int
    label: int
    server: Peer
    first_fragment: int
    fragments: int
    rate_bps: float
    slots: int | None
    shared_slots: bool
    window: int | None
    reach: int
    policy: str
    priority: int


@dataclass(frozen=True)
class ServedTree:
    """A tree that ends at the host. Sums are complete when all labels of `arriving` have come.

    `arriving`: by label, how many workers it stands for. `workers`: by label, who gets results when it asks for them.
    `stands_by`: the root is a switch, and the host sums only what that cannot.
    """

    job: int
    tree: int
    first_fragment: int
    fragments: int
    arriving: dict[int, int]
    workers: dict[int, Peer]
    stands_by: bool


@dataclass(frozen=True)
class HostJob:
    """A job in which the host takes part; `values` are the 32-bit integers in a fragment."""

    number: int
    gradient_bytes: int
    iterations: int
    values: int
    fragment_wire_bytes: int


@dataclass(frozen=True)
class EndHost:
    """All that a host needs to know."""

    version: Literal[1]
    host: Peer
    jobs: tuple[HostJob, ...]
    sends: tuple[SentTree, ...]
    serves: tuple[ServedTree, ...]


def end_hosts(problem: Problem, plan: Plan) -> list[EndHost]:
    """What each host of the plan's trees needs to know. Ranks of collectives are left out: they have no trees."""
    peers = {name: Peer(name, each.ipv4_text, each.mac_text) for name, each in addresses(problem.fabric).items()}
    sent, served = list(sent_trees(problem, plan, peers)), list(served_trees(problem, plan, peers))
    found = []
    for host in dict.fromkeys(name for name, _ in (*sent, *served)):
        sends = tuple(tree for name, tree in sent if name == host)
        serves = tuple(tree for name, tree in served if name == host)
        own = {tree.job for tree in sends} | {tree.job for tree in serves}
        found.append(EndHost(1, peers[host], host_jobs(problem, own), sends, serves))
    return found


def host_jobs(problem: Problem, numbers: set[int]) -> tuple[HostJob, ...]:
    """The jobs with these numbers."""
    fragment, jobs = problem.fragment, [job for job in problem.jobs if job.number in numbers]
    return tuple(
        HostJob(job.number, job.gradient_bytes, job.iterations, fragment.values, fragment.wire_bytes) for job in jobs
    )


def trees_of(plan: Plan) -> Iterator[tuple[Shard, AggregationTree]]:
    """Every tree with its shard."""
    return ((shard, tree) for shard in plan.shards for tree in shard.trees)


def sent_trees(problem: Problem, plan: Plan, peers: dict[str, Peer]) -> Iterator[tuple[str, SentTree]]:
    """Every worker of every tree: the host, and what it sends."""
    ranges = fragment_ranges(problem, plan)
    for shard, tree in trees_of(plan):
        carried = ranges[shard.job, tree.number]
        for label, worker in tree.workers.items():
            yield (
                worker,
                SentTree(
                    job=shard.job,
                    tree=tree.number,
                    label=label,
                    server=peers[tree.server or tree.root],
                    first_fragment=carried.start,
                    fragments=len(carried),
                    rate_bps=shard.rate_bps / len(shard.trees),
                    slots=tree.slots,
                    shared_slots=policy_of(tree.policy).shared,
                    window=tree.window,
                    reach=tree.reach,
                    policy=tree.policy,
                    priority=tree.priority,
                ),
            )


def served_trees(problem: Problem, plan: Plan, peers: dict[str, Peer]) -> Iterator[tuple[str, ServedTree]]:
    """Every tree with a PS: the host, and what it sums."""
    ranges = fragment_ranges(problem, plan)
    for shard, tree in trees_of(plan):
        carried = ranges[shard.job, tree.number]
        if tree.server is not None:
            arriving = [branch.label for branch in tree.branches if branch.parent == ROOT_LABEL]
            yield (
                tree.server,
                ServedTree(
                    job=shard.job,
                    tree=tree.number,
                    first_fragment=carried.start,
                    fragments=len(carried),
                    arriving={label: len(tree.workers_below[label]) for label in arriving},
                    workers={label: peers[worker] for label, worker in tree.workers.items()},
                    stands_by=tree.in_network_root,
                ),
            )


def save_end_hosts(folder: Path, hosts: list[EndHost]) -> None:
    """Write `<host>.json` for each host. Raises `OutputError`."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for each in hosts:
            (folder / f"{quote(each.host.name, safe=' ')}.json").write_text(to_json(each))


def load_end_host(path: Path) -> EndHost:
    """The file of a host. Raises `InputError`."""
    return validate(read_file(path, FILE), EndHost)
