"""What a tree's aggregators do with their slots: one policy for each protocol of the papers.

A policy becomes table entries, nothing else: `inakit.planner.install.plan_entries` writes its bits into the entry of
every child, and workers compute slots and windows from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from inakit.topo.errors import unknown_name


@dataclass(frozen=True)
class SlotPolicy:
    """How fragments share slots.

    - `shared`: every tree may use every slot of a pipeline, a fragment finds its slot by a hash, and one that finds it
      busy goes on unaggregated; otherwise each tree owns a segment
    - `versions`: how many windows of fragments fit a segment
    - `holds`: what is sent again is summed as well, so that no partial sum ever leaves
    - `shadows`: a finished sum stays in its slot for those who ask again
    - `evicts`: a fragment of higher priority takes a busy slot
    - `notifies`: a fragment that finds its slot busy goes back as a notice with ECN
    - `needs_root`: the root is a switch, and nothing partial leaves an aggregator
    - `until_result`: a slot becomes free when the result comes back, not when its sum leaves
    - `marks`: a packet that finds a long queue is marked (ECN), and workers send less as long as results say so
    """

    shared: bool = False
    versions: int = 1
    holds: bool = False
    shadows: bool = False
    evicts: bool = False
    notifies: bool = False
    needs_root: bool = False
    until_result: bool = False
    marks: bool = False

    @property
    def keeps_sums(self) -> bool:
        """Whether an aggregator keeps a finished sum and answers a fragment that is sent again with it.

        Such an answer does not show whose fragment was missing.
        """
        return self.shadows or self.until_result


POLICIES = {
    "shadow-copy": SlotPolicy(holds=True, shadows=True, versions=2),
    "goat": SlotPolicy(),
    "atp": SlotPolicy(shared=True, until_result=True),
    "esa": SlotPolicy(shared=True, evicts=True),
    "switchml": SlotPolicy(holds=True, shadows=True, versions=2, needs_root=True),
    "p4inc-aoi": SlotPolicy(holds=True, shadows=True, notifies=True, versions=2, needs_root=True),
    "panama": SlotPolicy(holds=True, shadows=True, versions=2, marks=True),
}
"""By the method whose paper describes them: SwitchML's shadow copies below a PS; GOAT's exclusive segments (section
III); ATP's slots by hash, first come first served; ESA's preemption by priority; SwitchML's pool with two versions;
P4INC-AOI's segments with a shadow copy (section VI-B, whose workers number fragments so that no two of a job collide,
as fragments that use a segment in order do not); shadow copies with PANAMA's congestion control."""

DEFAULT_POLICY = "shadow-copy"


def policy_of(name: str) -> SlotPolicy:
    """The policy of that name. Raises `InputError` with the nearest name for an unknown one."""
    if name not in POLICIES:
        raise unknown_name("slot policy", name, POLICIES)
    return POLICIES[name]
