"""What a tree's aggregators do with their slots: one entry for each protocol of the papers.

A policy is table entries, nothing else: `bits` goes into the entry of every child (the POLICY constants of
`p4/ina.p4`), and workers compute slots and windows from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from topo.errors import unknown_name

ROOT, HOLD, SHADOW, EVICT, NOTIFY = 0x01, 0x02, 0x04, 0x08, 0x10
"""The policy bits of `p4/ina.p4`. ROOT is not a policy's but an aggregator's: the one that has no parent."""


@dataclass(frozen=True)
class SlotPolicy:
    """How fragments share slots.

    `shared`: every tree may use every slot of a pipeline, found by hashing, and what finds it busy goes on
    unaggregated; else each tree owns a segment. `versions`: so many windows of fragments fit a segment.
    `needs_root`: the root is a switch, nothing partial leaves an aggregator. `until_result`: a slot is not free when
    its sum leaves, but when the result comes back.
    """

    bits: int = 0
    shared: bool = False
    versions: int = 1
    needs_root: bool = False
    until_result: bool = False

    @property
    def keeps_sums(self) -> bool:
        """Aggregators answer what is sent again with a sum that they keep, which hides whose it was."""
        return bool(self.bits & SHADOW) or self.until_result


POLICIES = {
    "shadow-copy": SlotPolicy(HOLD | SHADOW, versions=2),
    "goat": SlotPolicy(),
    "atp": SlotPolicy(shared=True, until_result=True),
    "esa": SlotPolicy(EVICT, shared=True),
    "switchml": SlotPolicy(HOLD | SHADOW, versions=2, needs_root=True),
    "p4inc-aoi": SlotPolicy(HOLD | SHADOW | NOTIFY, versions=2, needs_root=True),
}
"""By the method whose paper describes them: SwitchML's shadow copies below a PS; GOAT's exclusive segments (section
III); ATP's slots by hash, first come first served; ESA's preemption by priority; SwitchML's pool with two versions;
P4INC-AOI's segments with a shadow copy (section VI-B; its workers number fragments so that none of a job collide,
as a segment used in order does)."""

DEFAULT_POLICY = "shadow-copy"


def policy_of(name: str) -> SlotPolicy:
    """The policy of that name. Raises `InputError` with the nearest one for an unknown name."""
    if name not in POLICIES:
        raise unknown_name("slot policy", name, POLICIES)
    return POLICIES[name]
