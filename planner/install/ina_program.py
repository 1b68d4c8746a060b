"""The constants and full names of parts of `p4/ina.p4` that planners use, and the programs that can replace it.

Constants have the names that they have in the P4 source. All Python code takes the names of the program's parts from
this module. The packet format is not here: `inakit.traffic.wire.packet_format` reads it from the program itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from inakit.planner.core.plan import AggregationTree, Plan
from inakit.planner.core.slot_policies import POLICIES, by_timeouts, policy_of
from inakit.topo.c_library import cache_directory
from inakit.topo.errors import PlanError, unknown_name
from inakit.topo.fabric.fabric import VALUES_PER_PACKET, Chip
from inakit.topo.files.reader import write_whole

# Sizes

SLOTS_PER_PIPELINE = 512
PIPELINES = 8
PORTS = 512
COPIES = 128
"""The maximum number of ports to which targets `fast` and `virtual` send copies of a packet; `bmv2` has no such limit.
"""
BITMAP_BITS = 64
"""The bits of a slot's bitmap, one for each child of an aggregator."""

# Kinds of INA packets

KIND_GRADIENT, KIND_RESULT, KIND_NOTICE, KIND_QUESTION = 1, 2, 3, 4

# Bits of an aggregator's slot policy, in the entry of each of its children

POLICY_ROOT = 0x01
"""The aggregator's sum is the result and goes to all workers: it has no parent."""
POLICY_HOLD = 0x02
"""Retransmitted fragments are summed too, so that no partial sum leaves."""
POLICY_SHADOW = 0x04
"""A finished sum stays in its slot and answers repeated requests."""
POLICY_EVICT = 0x08
"""A fragment of higher priority takes a busy slot."""
POLICY_NOTIFY = 0x10
"""A fragment that finds its slot busy returns as a notice with ECN."""
POLICY_REPAIR = 0x20
"""Children are asked for what they lost, and results stay in slots for children that miss them."""

# Tables, with the actions of their entries

PIPELINE, SET_PIPELINE = "InaIngress.pipeline", "InaIngress.set_pipeline"
"""By ingress port: the number of the pipeline."""
ADMISSION, ADMIT = "InaIngress.admission", "InaIngress.admit"
"""By ingress port, kind, job, tree and label: the packets that are admitted."""
AGGREGATION, AGGREGATE = "InaIngress.aggregation", "InaIngress.aggregate"
"""By pipeline, job, tree and label: the label's bits, all bits, first slot, slots, own label, window, policy."""
FORWARD = "InaIngress.forward"
"""By job, tree and label: `SEND`, towards the root."""
IPV4_ROUTE = "InaIngress.ipv4_route"
"""By IPv4 address: `SEND`, towards the host."""
SEND = "InaIngress.send"
"""By a port."""
RESULTS, REPLICATE = "InaIngress.results", "InaIngress.replicate"
"""By job and tree: the multicast group of results."""

# Faults on demand

ARRIVING, ARRIVAL_FAULTY = "InaIngress.arrival.arriving", "InaIngress.arrival.faulty"
"""By ingress port: the fractions of packets that are lost, and delayed."""
WAYS, DOUBLED = "InaIngress.doubling.ways", "InaIngress.doubling.doubled"
"""By egress port and multicast group: the fraction of packets that are duplicated, and the group that they use instead.
"""
LEAVING, DEPARTURE_FAULTY = "InaEgress.departure.leaving", "InaEgress.departure.faulty"
"""By egress port: the fraction of packets that are lost."""
DRAWS = ("InaIngress.arrival.draws", "InaIngress.doubling.draws", "InaEgress.departure.draws")
"""The registers that hold, for each port, the state of its random numbers."""

# Congestion marks

QUEUES, PHANTOM = "InaEgress.marks.queues", "InaEgress.marks.phantom"
"""By egress port: the bytes that its link sends in a microsecond, and the bytes of a long queue, times 2^16."""

# Registers of the slots; `SUM` with a number is that of one element

SLOT_OWNER, SLOT_SEQ, SLOT_BITMAP = "InaIngress.slot_owner", "InaIngress.slot_seq", "InaIngress.slot_bitmap"
SUM = "InaIngress.sum"

# Counters: of outcomes, and by port

EVENTS = "InaIngress.events"
RECEIVED, REJECTED = "InaIngress.received", "InaIngress.rejected"
SENT, REPLICATED, LOST = "InaEgress.sent", "InaEgress.replicated", "InaEgress.lost"


# -- The data-plane programs on which a plan can be installed, as data: their abilities, and the plan that fits each.

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"


@dataclass(frozen=True)
class DataPlaneProgram:
    """A compiled program for v1model, and its abilities.

    - `values_per_pass`: a packet of `VALUES_PER_PACKET` values recirculates until all are summed
    - `bitmap_bits`: the maximum number of children of an aggregator
    - `sums_parts`: one packet can represent several bits of a bitmap, and is refused if one of them is set already
    - `counts_workers`: a sum carries the number of workers in it
    - `repairs`: it asks children for what they lost; otherwise policies that repair losses recover by timeouts
    - `slots_per_pipeline`: the slots in the registers of each pipeline
    - `refused`: for each slot policy that the program does not support, the reason
    """

    name: str
    path: Path
    values_per_pass: int = VALUES_PER_PACKET
    bitmap_bits: int = BITMAP_BITS
    sums_parts: bool = True
    counts_workers: bool = True
    repairs: bool = True
    slots_per_pipeline: int = SLOTS_PER_PIPELINE
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def passes(self) -> int:
        """The number of passes of a packet through the ingress pipeline."""
        return VALUES_PER_PACKET // self.values_per_pass

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(name for name in POLICIES if name not in self.refused)

    def unfit_for(self, chip: Chip) -> str | None:
        """The reason why the program cannot run on a chip; None if there is no known reason."""
        if self.values_per_pass <= chip.values_per_pass and self.bitmap_bits <= chip.children_per_slot:
            return None
        return (
            f"program {self.name} sums {self.values_per_pass} values of up to {self.bitmap_bits} children in a pass, "
            f"and chip {chip.name} has {chip.values_per_pass} and {chip.children_per_slot}: it cannot run there"
        )

    def fitted(self, plan: Plan) -> Plan:
        """The plan for this program; the same object if nothing changes.

        Raises `PlanError` for a slot policy that the program lacks, and for an aggregator with too many children.
        """
        fitted = plan.with_trees([self.fitted_tree(each.job, each.tree) for each in plan.trees])
        return plan if fitted.trees == plan.trees else fitted

    def fitted_tree(self, job: int, tree: AggregationTree) -> AggregationTree:
        self.check_policy(tree.policy, f"job {job}, tree {tree.number}")
        whole = tree.whole_children or (not self.sums_parts and policy_of(tree.policy).shared)
        policy = tree.policy if self.repairs else by_timeouts(tree.policy)
        fitted = replace(tree, policy=policy, whole_children=whole, workers_counted=self.counts_workers)
        for aggregator in fitted.aggregators:
            if (children := len(fitted.summands(aggregator))) > self.bitmap_bits:
                raise PlanError(
                    f"job {job}, tree {tree.number}: aggregator {aggregator.label} on switch '{aggregator.switch}' "
                    f"sums {children} children, and a slot of program {self.name} has {self.bitmap_bits} bits for "
                    "them: choose a planner or a fabric with more levels of aggregation, or --program ina"
                )
        return fitted

    def check_policy(self, policy: str, where: str) -> None:
        """Raise `PlanError`, which begins with `where`, for a slot policy that the program does not support."""
        if policy in self.refused:
            raise PlanError(
                f"{where}: program {self.name} has no slot policy '{policy}': {self.refused[policy]}; choose "
                f"--policies {','.join(self.policies)}, or --program ina"
            )


INA = DataPlaneProgram("ina", BUILD / "ina.json")
INA_HW = DataPlaneProgram(
    "ina_hw",
    BUILD / "ina_hw.json",
    values_per_pass=32,
    bitmap_bits=32,
    sums_parts=False,
    counts_workers=False,
    repairs=False,
    refused={
        "esa": "to evict a partial sum, a chip would read and write every register of the slot in the pass that also "
        "takes the new fragment in",
    },
)


INDEXING = {f"InaIngress.{action}" for action in ("locate", "look_back", "name_sent_before")}
"""The actions that compute indices of slots."""


def with_slots(program: DataPlaneProgram, slots: int) -> DataPlaneProgram:
    """The program with registers for at least so many slots per pipeline; the program itself if it has them.

    It is what p4c makes of the sources with a larger SLOTS_PER_PIPELINE_LOG2, written to the user's cache. It differs
    in the sizes of the slots' registers and in the indices that actions compute.
    """
    if slots <= program.slots_per_pipeline:
        return program
    bits, had = (slots - 1).bit_length(), program.slots_per_pipeline.bit_length() - 1
    document = json.loads(program.path.read_text())
    for register in document["register_arrays"]:
        if register["size"] == PIPELINES << had:
            register["size"] = PIPELINES << bits
    for action in document["actions"]:
        if action["name"] in INDEXING:
            widen_indices(action, had, bits)
    path = cache_directory() / f"{program.name}-{1 << bits}-slots.json"
    text = json.dumps(document)
    if not path.exists() or path.read_text() != text:
        write_whole(path, text)
    return replace(program, path=path, slots_per_pipeline=1 << bits)


def widen_indices(node: object, had: int, bits: int) -> None:
    """Move the pipeline in all indices of a part of BMv2 JSON up from bit `had` to `bits`, and widen the mask below."""
    if isinstance(node, dict):
        right = node.get("right")
        if isinstance(right, dict) and right.get("type") == "hexstr":
            constant = node["op"], int(right["value"], 16)
            if constant == ("<<", had):
                right["value"] = hex(bits)
            elif constant == ("&", (1 << had) - 1):
                right["value"] = hex((1 << bits) - 1)
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        widen_indices(part, had, bits)


PROGRAMS = {program.name: program for program in (INA, INA_HW)}
"""The programs, by the names that `--program` accepts."""


def program_for(chips: Iterable[Chip]) -> DataPlaneProgram:
    """The first program that can run on all chips; the last one if none can."""
    every = tuple(chips)
    able = (program for program in PROGRAMS.values() if not any(program.unfit_for(chip) for chip in every))
    return next(able, INA_HW)


def find_program(name: str) -> DataPlaneProgram:
    """Return the program of that name. Raises `InputError` with the nearest name for an unknown one."""
    if name not in PROGRAMS:
        raise unknown_name("data-plane program", name, PROGRAMS)
    return PROGRAMS[name]
