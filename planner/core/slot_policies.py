"""The slot policies of aggregators, one for each protocol of the papers.

A policy only affects table entries: `inakit.planner.install.plan_entries` writes its bits into the entry of every
child, and workers compute slots and windows from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from inakit.topo.errors import unknown_name


@dataclass(frozen=True)
class SlotPolicy:
    """The rules by which fragments share slots.

    - `shared`: every tree can use every slot of a pipeline; a fragment finds its slot by a hash, and continues
      unaggregated if the slot is busy. Otherwise each tree owns a segment
    - `hashed`: a fragment finds its slot in its tree's segment by a hash, so that two fragments on their way can meet
    - `versions`: the number of windows of fragments that fit a segment
    - `holds`: retransmitted fragments are summed too, so that no partial sum leaves
    - `shadows`: a finished sum stays in its slot and answers repeated requests
    - `evicts`: a fragment of higher priority takes a busy slot
    - `notifies`: a fragment that finds its slot busy returns as a notice with ECN
    - `needs_root`: the root is a switch, and no partial sum leaves an aggregator
    - `until_result`: a slot becomes free when the result returns, not when its sum leaves
    - `repairs`: an aggregator asks a child for a fragment that it lost, and keeps results for children that miss them
    - `marks`: a packet that finds a long queue is marked (ECN), and workers send less while results carry marks
    """

    shared: bool = False
    hashed: bool = False
    versions: int = 1
    holds: bool = False
    shadows: bool = False
    evicts: bool = False
    notifies: bool = False
    needs_root: bool = False
    until_result: bool = False
    marks: bool = False
    repairs: bool = False

    @property
    def finds_slots_by_hash(self) -> bool:
        """Whether a hash decides a fragment's slot, among those of all trees or of its own."""
        return self.shared or self.hashed

    @property
    def keeps_sums(self) -> bool:
        """Whether an aggregator keeps a finished sum and answers a retransmitted fragment with it.

        Such an answer does not show whose fragment was missing.
        """
        return self.shadows or self.until_result


TIMEOUT, MARKS = "-timeout", "+marks"
"""Endings of a policy's name: its paper's own recovery from losses by timeouts of workers; with marks of congestion."""

REPAIRED = {
    "shadow-copy": SlotPolicy(holds=True, shadows=True, repairs=True, versions=2),
    "switchml": SlotPolicy(holds=True, shadows=True, repairs=True, versions=2, needs_root=True),
    "p4inc-aoi": SlotPolicy(holds=True, shadows=True, repairs=True, notifies=True, versions=2, needs_root=True),
    "panama": SlotPolicy(holds=True, shadows=True, repairs=True, versions=2, marks=True),
}
POLICIES = {
    **REPAIRED,
    "goat": SlotPolicy(),
    "atp": SlotPolicy(shared=True, until_result=True),
    "esa": SlotPolicy(shared=True, evicts=True),
    "p4inc-aoi-hash": SlotPolicy(hashed=True, holds=True, notifies=True, needs_root=True),
    **{name + TIMEOUT: replace(policy, repairs=False) for name, policy in REPAIRED.items()},
}
"""By the method whose paper describes them: SwitchML's shadow copies below a PS; SwitchML's pool with two versions;
P4INC-AOI's segments with a shadow copy (section VI-B: its workers redirect a fragment whose slot is taken; fragments
that use a segment in order do not meet either); shadow copies with PANAMA's congestion control; GOAT's exclusive
segments (section III); ATP's slots by hash, first come first served; ESA's preemption by priority; slots of P4INC-AOI
by hash alone, in which fragments meet. The first four repair losses hop by hop, which is the kit's own; with `TIMEOUT`
they recover as their papers do.
"""

DEFAULT_POLICY = "shadow-copy"


def is_policy(name: str) -> bool:
    """Whether there is a policy of that name, with `MARKS` behind it or not."""
    return name.removesuffix(MARKS) in POLICIES


def policy_of(name: str) -> SlotPolicy:
    """Return the policy of that name, with `MARKS` behind it or not.

    Raises `InputError` with the nearest name for an unknown one.
    """
    if not is_policy(name):
        raise unknown_name("slot policy", name, POLICIES)
    base = name.removesuffix(MARKS)
    return POLICIES[base] if base == name else replace(POLICIES[base], marks=True)


def paper_of(name: str) -> str:
    """The policy whose paper that of this name follows: the name without `TIMEOUT` and `MARKS`."""
    return name.removesuffix(MARKS).removesuffix(TIMEOUT)


def by_timeouts(name: str) -> str:
    """The name of the policy of that name whose workers alone recover losses, by timeouts; itself where it does so."""
    base = name.removesuffix(MARKS)
    return base + TIMEOUT + name[len(base) :] if policy_of(name).repairs else name
