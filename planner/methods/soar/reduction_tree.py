"""SOAR's network: switches in a tree, the messages that enter at each, and how long links are busy with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inakit.topo.errors import InputError

DESTINATION = -1
"""The parent of the tree's root switch: SOAR's node d, the host that all messages go to."""

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReductionTree:
    """A tree of n switches. All arrays have the shape (n,).

    - `parent`: the index of the next switch towards the destination; `DESTINATION` for the root
    - `cost`: the seconds that a switch's link to its parent takes for a message, SOAR's rho = 1 / rate
    - `load`: the messages that enter at a switch from its own hosts, SOAR's L
    - `sums`: the messages that leave a switch that aggregates. SOAR has 1; a switch of several pipelines sends one for
      each that is entered
    - `available`: whether a switch may aggregate, SOAR's set Lambda

    Raises `InputError` for arrays of other shapes, for none or several roots, and for a cycle.
    """

    parent: Indices
    cost: Numbers
    load: Indices
    sums: Indices
    available: NDArray[np.bool_]

    def __post_init__(self) -> None:
        for name in ("cost", "load", "sums", "available"):
            if getattr(self, name).shape != self.parent.shape:
                raise InputError(f"{name} has shape {getattr(self, name).shape}, parent has {self.parent.shape}")
        roots = int(np.count_nonzero(self.parent == DESTINATION))
        if roots != 1:
            raise InputError(f"{roots} switches have the parent {DESTINATION}; a tree has one root")
        if len(self.order) < self.switches:
            raise InputError("some switches do not come to the root: their parents form a cycle")

    @property
    def switches(self) -> int:
        """The number n of switches."""
        return len(self.parent)

    @cached_property
    def children(self) -> list[list[int]]:
        """By switch, the switches whose parent it is, in rising order."""
        found: list[list[int]] = [[] for _ in range(self.switches)]
        for switch, parent in enumerate(self.parent.tolist()):
            if parent != DESTINATION:
                found[parent].append(switch)
        return found

    @cached_property
    def order(self) -> list[int]:
        """All switches, each behind its parent."""
        found = np.flatnonzero(self.parent == DESTINATION).tolist()
        for switch in found:  # grows while it is walked
            found += self.children[switch]
        return found

    @cached_property
    def depth(self) -> Indices:
        """By switch, the links from it to the destination; 1 for the root."""
        depth = np.ones(self.switches, np.int64)
        for switch in self.order[1:]:
            depth[switch] = depth[self.parent[switch]] + 1
        return depth

    @cached_property
    def sending(self) -> NDArray[np.bool_]:
        """Whether any message enters at a switch or below it."""
        below = self.load.copy()
        for switch in reversed(self.order[1:]):
            below[self.parent[switch]] += below[switch]
        return below > 0

    def messages(self, aggregating: Collection[int]) -> Indices:
        """By switch, the messages on its link to its parent, when the switches `aggregating` sum what they receive."""
        leaving = self.load.copy()
        chosen = set(aggregating)
        for switch in reversed(self.order):
            if switch in chosen and self.sending[switch]:
                leaving[switch] = self.sums[switch]
            if self.parent[switch] != DESTINATION:
                leaving[self.parent[switch]] += leaving[switch]
        return leaving

    def utilisation_s(self, aggregating: Collection[int] = ()) -> float:
        """The seconds that all links together are busy, SOAR's utilisation phi = sum of messages x rho over links."""
        return float(self.messages(aggregating) @ self.cost)


def reduction_tree(
    parent: Sequence[int],
    load: Sequence[int],
    cost: Sequence[float] | None = None,
    sums: Sequence[int] | None = None,
    available: Sequence[bool] | None = None,
) -> ReductionTree:
    """The tree of plain lists of n numbers. By default links cost 1, sums are 1, and all switches are available."""
    n = len(parent)
    return ReductionTree(
        np.asarray(parent, np.int64),
        np.ones(n) if cost is None else np.asarray(cost, np.float64),
        np.asarray(load, np.int64),
        np.ones(n, np.int64) if sums is None else np.asarray(sums, np.int64),
        np.ones(n, np.bool_) if available is None else np.asarray(available, np.bool_),
    )
