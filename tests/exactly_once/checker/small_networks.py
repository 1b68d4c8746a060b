r"""The small networks and plans that are explored: three workers, one or two levels, one or two slots.

    LEAF_AND_SPINE          TWO_LEAVES             ONE_SWITCH

       spine -- ps             spine -- ps           spine -- ps
       /   \                   /   \                / | \
     leaf   w2             leaf1   leaf2           w0 w1 w2
     /  \                   /  \     |
    w0   w1                w0   w1   w2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.install.ina_program import AGGREGATE, DataPlaneProgram
from inakit.planner.install.plan_entries import entries
from inakit.planner.trees.headroom import rooted_in_network
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

RATE_BPS, LINK_BPS = 1e6, 1e9
PORTS = 4
SERVER = "ps"
COPIES = 1 << 8
"""Worker i contributes COPIES**i, so that a sum tells how often each worker is in it, up to COPIES - 1 times."""
LARGE = 1 << 30
"""The sum of two of these does not fit into a signed 32-bit integer."""


@dataclass(frozen=True)
class Contributions:
    """What workers contribute: each fragment of each job is zero except for one value, at a position of its own.

    So a sum shows if different fragments are mixed. `last` is the last value of every fragment of each worker.
    """

    last: int = 0

    def of(self, job: Job, worker: int, iteration: int) -> NDArray[np.int32]:
        """A worker's gradient, (values,)."""
        del iteration
        fragments = job.gradient_bytes // 4 // FRAGMENT.values
        gradient = np.eye(fragments, FRAGMENT.values, k=fragments * (job.number - 1), dtype=np.int32)
        gradient *= COPIES**worker
        gradient[:, -1] = self.last
        return gradient.ravel()


@dataclass(frozen=True)
class Setting:
    """What is explored: a plan, the entries that carry it out, and what each worker sends."""

    problem: Problem
    plan: Plan
    entries: Mapping[str, SwitchEntries]
    contributions: Contributions = Contributions()
    first_seq: int = 0
    collides: bool = False
    """Trees share slots: a fragment that finds its slot busy goes to the PS, and the rest of its sum waits for it in
    vain, until a timeout."""
    remembers: bool = False
    """What a free slot holds still matters, because it is a shadow copy of its last sum."""
    both_ways: bool = False
    """Switches answer what comes from below, so that it does not commute with what comes from above."""
    in_order: bool = False
    """Slots are used again in turn, so that the fragment of one may have to wait for those of others."""

    @property
    def slots(self) -> int:
        """How many slots of each aggregator do not depend on each other. Fragment i uses slot i modulo this number."""
        return 1 if self.in_order else min(tree.slots or 1 for _, tree in self.trees)

    @property
    def trees(self) -> list[tuple[int, AggregationTree]]:
        """All trees, with their jobs' numbers."""
        return [(planned.job, planned.tree) for planned in self.plan.trees]


Children = Mapping[str, tuple[str, ...]]
"""The nodes below each switch; the PS is connected to the spine."""
LEAF_AND_SPINE: Children = {"spine": ("leaf", "w2"), "leaf": ("w0", "w1")}
TWO_LEAVES: Children = {"spine": ("leaf1", "leaf2"), "leaf1": ("w0", "w1"), "leaf2": ("w2",)}
ONE_SWITCH: Children = {"spine": ("w0", "w1", "w2")}


def fabric_of(children: Children) -> Fabric:
    """The network of a tree of switches."""
    names = dict.fromkeys(name for below in children.values() for name in below)
    hosts = (*(Host(name) for name in names if name not in children), Host(SERVER))
    tiers = {name: 2 if name == "spine" else 1 for name in children}
    switches = tuple(Switch(name, tier, contiguous_pipelines(PORTS, 1)) for name, tier in tiers.items())
    ports = {name: count(1 if name in children else 0) for name in (*names, *children, SERVER)}
    pairs = [(below, above) for above, those in children.items() for below in those]
    cables = [*pairs, (SERVER, "spine")]
    links = (Link(a, b, next(ports[a]), next(ports[b]), LINK_BPS, LINK_BPS) for a, b in cables)
    return Fabric("small", hosts, switches, tuple(links))


def tree_of(children: Children, number: int, slots: int, policy: str) -> AggregationTree:
    """A tree in which every switch is an aggregator and the PS the root. Labels: workers from 1, aggregators from 101.

    `number`, from 0, is also its priority. It has slots of its own or shares them with all other trees, as the policy
    says.
    """
    first_slot = 0 if policy_of(policy).shared else number * slots
    above = {below: switch for switch, those in children.items() for below in those} | {"spine": SERVER}
    workers = dict(enumerate(sorted(set(above) - set(children)), start=1))
    label_of = {name: label for label, name in (workers | dict(enumerate(children, start=101))).items()}
    label_of[SERVER] = ROOT_LABEL
    aggregators = tuple(
        Aggregator(label_of[switch], switch, 0, tuple(label_of[name] for name in below), first_slot, slots)
        for switch, below in children.items()
    )
    branches = tuple(Branch(label_of[a], label_of[b], (a, b)) for a, b in above.items())
    return AggregationTree(1, SERVER, workers, aggregators, branches, policy=policy, priority=number)


def setting(
    children: Children,
    *,
    slots: int,
    fragments: int,
    jobs: int = 1,
    last: int = 0,
    first_seq: int = 0,
    policy: str = "goat",
) -> Setting:
    """A setting in which all workers take part in every job, and each job has a tree."""
    fabric = fabric_of(children)
    trees = [tree_of(children, number, slots, policy) for number in range(jobs)]
    size = 4 * FRAGMENT.values * fragments
    every_job = tuple(Job(n, tuple(tree.workers.values()), (SERVER,), size) for n, tree in enumerate(trees, start=1))
    problem = Problem(fabric, every_job, FRAGMENT)
    if policy_of(policy).needs_root:
        trees = [rooted_in_network(job, tree) for job, tree in enumerate(trees, start=1)]
    planned = tuple(PlannedTree(job, 1.0, RATE_BPS, tree) for job, tree in enumerate(trees, start=1))
    plan = Plan("by hand", fabric.name, planned, SolverOutcome("heuristic", 0.0))
    return Setting(problem, plan, installed(problem, plan), Contributions(last), first_seq)


def installed(problem: Problem, plan: Plan) -> dict[str, SwitchEntries]:
    """The entries of a plan, by the names of switches."""
    return {each.switch: each for each in entries(problem, plan).switches}


def fitted(made: Setting, program: DataPlaneProgram) -> Setting:
    """The setting with its plan as a data-plane program takes it. Entries that no plan asks for stay as they are."""
    plan = program.fitted(made.plan)
    before, after = (installed(made.problem, each) for each in (made.plan, plan))
    own = {name: after[name] if each == before[name] else each for name, each in made.entries.items()}
    return replace(made, plan=plan, entries=own)


def remembering(forgetful: Setting) -> Setting:
    """The setting, marked as one of a policy whose slots keep finished sums, with which switches may answer."""
    return replace(forgetful, remembers=True, both_ways=forgetful.plan.trees[0].tree.in_network_root)


def repairing(alone: Setting) -> Setting:
    """The setting, marked as one of a policy by which packets show what was lost before them, in other slots."""
    return replace(alone, remembers=True, both_ways=True, in_order=True)


def again(once: Setting) -> Setting:
    """The setting, marked as one of more fragments than slots: the next sum replaces the one that a slot keeps."""
    return replace(once, in_order=True)


def sharing(apart: Setting) -> Setting:
    """The setting, marked as one of a policy under which trees share slots, and results that pass may free a slot."""
    return replace(apart, collides=True, both_ways=policy_of(apart.trees[0][1].policy).until_result)


def with_shared_slots(apart: Setting) -> Setting:
    """The setting with all trees in the slots of the first, so that they collide. No plan may ask for that (yet)."""
    entries = {
        name: replace(each, tables=tuple(map(in_first_slot, each.tables))) for name, each in apart.entries.items()
    }
    return replace(apart, entries=entries, collides=True)


def in_first_slot(entry: TableEntry) -> TableEntry:
    """The entry, changed so that its tree's slots begin at slot 0."""
    if entry.action != AGGREGATE:
        return entry
    child, full, _, *rest = entry.params
    return replace(entry, params=(child, full, 0, *rest))


SHADOW_COPY, SWITCHML = "shadow-copy-timeout", "switchml-timeout"
SETTINGS: dict[str, Callable[[], Setting]] = {
    "one slot": lambda: setting(LEAF_AND_SPINE, slots=1, fragments=2),
    "two slots": lambda: setting(LEAF_AND_SPINE, slots=2, fragments=2),
    "slots again": lambda: setting(LEAF_AND_SPINE, slots=2, fragments=3),
    "two leaves": lambda: setting(TWO_LEAVES, slots=1, fragments=2),
    "one level": lambda: setting(ONE_SWITCH, slots=2, fragments=3),
    "overflow": lambda: setting(LEAF_AND_SPINE, slots=1, fragments=1, last=LARGE),
    "numbers wrap": lambda: setting(LEAF_AND_SPINE, slots=1, fragments=2, first_seq=(1 << 32) - 1),
    "shadow copies": lambda: remembering(setting(LEAF_AND_SPINE, slots=2, fragments=1, policy=SHADOW_COPY)),
    "hop by hop": lambda: repairing(setting(LEAF_AND_SPINE, slots=2, fragments=2, policy="shadow-copy")),
    "root in the network": lambda: remembering(setting(LEAF_AND_SPINE, slots=2, fragments=1, policy=SWITCHML)),
    "copies again": lambda: again(remembering(setting(LEAF_AND_SPINE, slots=2, fragments=3, policy=SHADOW_COPY))),
    "root again": lambda: again(remembering(setting(LEAF_AND_SPINE, slots=2, fragments=3, policy=SWITCHML))),
    "atp": lambda: sharing(setting(LEAF_AND_SPINE, slots=1, fragments=1, jobs=2, policy="atp")),
    "atp again": lambda: sharing(setting(LEAF_AND_SPINE, slots=1, fragments=2, policy="atp")),
    "esa": lambda: sharing(setting(LEAF_AND_SPINE, slots=1, fragments=1, jobs=2, policy="esa")),
    "shared slot": lambda: with_shared_slots(setting(LEAF_AND_SPINE, slots=1, fragments=1, jobs=2)),
}
