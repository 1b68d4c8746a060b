"""The data-plane programs that a plan can be installed on, as data: what each can do, and the plan that fits it.

    program = find_program("ina_hw")
    plan = program.fitted(plan)

Both programs have the tables, actions and counters of `inakit.planner.install.program`, so that the same entries go
into either. `ina` does all that the papers ask for. `ina_hw` does what a chip can: one access to each register per
packet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from inakit.planner.core.plan import AggregationTree, Plan
from inakit.planner.core.policies import POLICIES, policy_of
from inakit.planner.install.program import BITMAP_BITS
from inakit.topo.errors import PlanError, unknown_name
from inakit.topo.fabric.chips import VALUES_PER_PACKET, Chip

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"


@dataclass(frozen=True)
class DataPlaneProgram:
    """A compiled program for v1model, and what it can do.

    - `values_per_pass`: a packet of `VALUES_PER_PACKET` values comes in again until all are summed
    - `bitmap_bits`: the most children of an aggregator
    - `sums_parts`: one packet may stand for several bits of a bitmap, and be refused where one of them is in it already
    - `counts_workers`: a sum says how many workers are in it
    - `refused`: by slot policy, why the program cannot do what it asks
    """

    name: str
    path: Path
    values_per_pass: int = VALUES_PER_PACKET
    bitmap_bits: int = BITMAP_BITS
    sums_parts: bool = True
    counts_workers: bool = True
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def passes(self) -> int:
        """How often a packet goes through the ingress pipeline."""
        return VALUES_PER_PACKET // self.values_per_pass

    @property
    def policies(self) -> tuple[str, ...]:
        """The slot policies that the program can do."""
        return tuple(name for name in POLICIES if name not in self.refused)

    def unfit_for(self, chip: Chip) -> str | None:
        """Why the program cannot run on a chip as it is; None where nothing is known against it."""
        if self.values_per_pass <= chip.values_per_pass and self.bitmap_bits <= chip.children_per_slot:
            return None
        return (
            f"program {self.name} sums {self.values_per_pass} values of up to {self.bitmap_bits} children in a pass, "
            f"and chip {chip.name} has {chip.values_per_pass} and {chip.children_per_slot}: it cannot run there"
        )

    def fitted(self, plan: Plan) -> Plan:
        """The plan for this program; the same object where nothing is different.

        Raises `PlanError` for a slot policy that the program cannot do, and for an aggregator with too many children.
        """
        shards = tuple(replace(s, trees=tuple(self.fitted_tree(s.job, tree) for tree in s.trees)) for s in plan.shards)
        return plan if shards == plan.shards else replace(plan, shards=shards)

    def fitted_tree(self, job: int, tree: AggregationTree) -> AggregationTree:
        """A job's tree for this program."""
        self.check_policy(tree.policy, f"job {job}, tree {tree.number}")
        whole = tree.whole_children or (not self.sums_parts and policy_of(tree.policy).shared)
        fitted = replace(tree, whole_children=whole, workers_counted=self.counts_workers)
        for aggregator in fitted.aggregators:
            if (children := len(fitted.summands(aggregator))) > self.bitmap_bits:
                raise PlanError(
                    f"job {job}, tree {tree.number}: aggregator {aggregator.label} on switch '{aggregator.switch}' "
                    f"sums {children} children, and a slot of program {self.name} has {self.bitmap_bits} bits for "
                    "them: choose a planner or a fabric with more levels of aggregation, or --program ina"
                )
        return fitted

    def check_policy(self, policy: str, where: str) -> None:
        """Raise `PlanError`, which begins with `where`, for a slot policy that the program cannot do."""
        if policy in self.refused:
            raise PlanError(
                f"{where}: program {self.name} has no slot policy '{policy}': {self.refused[policy]}; choose --policy "
                f"{', '.join(self.policies)}, or --program ina"
            )


INA = DataPlaneProgram("ina", BUILD / "ina.json")
INA_HW = DataPlaneProgram(
    "ina_hw",
    BUILD / "ina_hw.json",
    values_per_pass=32,
    bitmap_bits=32,
    sums_parts=False,
    counts_workers=False,
    refused={
        "esa": "to evict a partial sum, a chip would read and write every register of the slot in the pass that also "
        "takes the new fragment in",
    },
)
PROGRAMS = {program.name: program for program in (INA, INA_HW)}
"""By the name that `--program` takes."""


def program_for(chips: Iterable[Chip]) -> DataPlaneProgram:
    """The first program that can run on all chips; the last one where none can."""
    every = tuple(chips)
    able = (program for program in PROGRAMS.values() if not any(program.unfit_for(chip) for chip in every))
    return next(able, INA_HW)


def find_program(name: str) -> DataPlaneProgram:
    """The program of that name. Raises `InputError` with the nearest name for an unknown one."""
    if name not in PROGRAMS:
        raise unknown_name("data-plane program", name, PROGRAMS)
    return PROGRAMS[name]
