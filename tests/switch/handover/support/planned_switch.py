"""A switch of a plan, for tests of the formats in which its entries are handed over."""

from __future__ import annotations

from functools import cache

from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.slot_policies import DEFAULT_POLICY, by_timeouts
from inakit.planner.install.plan_entries import entries
from inakit.planner.registry import METHODS
from inakit.planner.trees.headroom import with_policy
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.running_switch import PROGRAM


@cache
def planned(switch: str = "l1") -> SwitchEntries:
    """The entries of a switch in ARO's plan for the network of its Fig. 1: l1 sums two workers, who recover losses."""
    problem = build_problem(FabricChoice("aro-figure1"), JobChoice(gradient_bytes=8192, iterations=1))
    plan = with_policy(problem, METHODS["aro"].plan(problem), by_timeouts(DEFAULT_POLICY))
    return entries(problem, plan).of(switch)


def program() -> Program:
    """The compiled program of the plan."""
    return read_program(PROGRAM)


def parts(found: SwitchEntries) -> tuple[set[TableEntry], set[MulticastGroup]]:
    """Entries and groups, however they are ordered."""
    return set(found.tables), set(found.groups)
