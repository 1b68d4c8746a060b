"""What KRGS's rounding leaves to do: no switch may hold more than its memory, and no worker should pass a cheaper sum.

Given where a sub-model is summed, every worker does best with its cheapest node, so only x is searched. Sums are taken
from switches that are too full, first those whose loss costs least a byte. Then single sums are added, dropped, moved
and exchanged as long as that lowers the cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from inakit.planner.methods.goat.gina import BoolArray, Costs, Gina, Schedule, used_memory

LEAST_GAIN = 1e-9
"""Relative; a gain below it is rounding."""
PASSES = 20
"""The most passes over all changes."""

Change = tuple[tuple[int, int], ...]
"""Pairs (g, s) of which x changes between 0 and 1."""


def repair(gina: Gina, schedule: Schedule, costs: Costs) -> Schedule:
    """A schedule within all memory, which no change of `Search.changes` makes cheaper."""
    search = Search(gina, costs, schedule.x)
    search.empty_the_too_full()
    search.improve()
    return search.schedule()


class Search:
    """The nodes that sum each sub-model, what each sub-model costs, and the memory that is left."""

    def __init__(self, gina: Gina, costs: Costs, x: BoolArray) -> None:
        self.gina, self.costs = gina, costs
        self.known: dict[bytes, float] = {}
        self.x = x.copy()
        self.x[:, gina.server] = True  # the PS costs nothing and is always there
        self.cost = [self.cost_of(g, self.x[g]) for g in range(len(x))]
        self.room = gina.memory - used_memory(gina, self.x)
        self.least_gain = LEAST_GAIN * max(map(abs, self.cost))

    def cost_of(self, g: int, row: BoolArray) -> float:
        """A sub-model's cost, summed at the nodes of `row`. The cost of a byte there is worked out once."""
        key = row.tobytes()
        if key not in self.known:
            sent = self.gina.workers @ self.costs.send[:, row].min(axis=1)
            self.known[key] = float(sent + self.costs.forward[row].sum())
        return float(self.gina.sizes[g]) * self.known[key]

    def empty_the_too_full(self) -> None:
        """Take sums from every switch that holds more than its memory."""
        for s in range(self.gina.server):
            self.turn(self.made_room(s, ()))

    def made_room(self, s: int, change: Change) -> Change:
        """The change, and with it the sums that switch s then has to give up: the least loss a byte first."""
        held = np.flatnonzero(self.x[:, s]).tolist()
        for g in sorted(held, key=lambda g: self.loss(g, s)):
            if self.has_room(change, s):
                break
            change = (*change, (g, s))
        return change

    def loss(self, g: int, s: int) -> float:
        """How much more a byte of sub-model g costs without its sum at switch s."""
        return float(-self.gain(((g, s),)) / self.gina.sizes[g])

    def improve(self) -> None:
        """Make every change that pays, as it is met, until none does."""
        for _ in range(PASSES):
            found = [self.turn(change) for change in self.changes() if self.pays(change)]
            if not found:
                return

    def changes(self) -> Iterator[Change]:
        """All changes: a sum less; one more, with room made for it; one at another switch; two that change places."""
        models, switches = range(len(self.x)), range(self.gina.server)
        for g, s in product(models, switches):
            yield ((g, s),) if self.x[g, s] else self.with_others_moved(self.made_room(s, ((g, s),)))
        placed = np.argwhere(self.x[:, : self.gina.server]).tolist()
        yield from (((g, s), (g, t)) for g, s in placed for t in switches if t != s)
        for (g, s), (h, t) in product(placed, placed):
            if g < h and s != t and not (self.x[g, t] or self.x[h, s]):
                yield (g, s), (g, t), (h, t), (h, s)

    def with_others_moved(self, change: Change) -> Change:
        """The change, and for each sum that had to go the best other switch with room, if one is better than none."""
        for g, s in change[1:]:
            places = [(g, t) for t in range(self.gina.server) if t != s and not self.x[g, t]]
            free = [place for place in places if self.has_room((*change, place), place[1])]
            change = max([change, *((*change, place) for place in free)], key=self.gain)
        return change

    def pays(self, change: Change) -> bool:
        """Whether a change lowers the cost and all of its switches have room."""
        return self.gain(change) > self.least_gain and all(self.has_room(change, s) for _, s in change)

    def has_room(self, change: Change, s: int) -> bool:
        """Whether switch s holds all that it has after the change."""
        taken = sum(self.gina.sizes[g] * (-1 if self.x[g, s] else 1) for g, t in change if t == s)
        return bool(self.room[s] - taken >= -LEAST_GAIN * self.gina.memory[s])

    def gain(self, change: Change) -> float:
        """By how much a change lowers the cost."""
        return sum(self.cost[g] - self.cost_of(g, row) for g, row in self.turned(change).items())

    def turned(self, change: Change) -> dict[int, BoolArray]:
        """By sub-model, its row of x after the change."""
        rows: dict[int, BoolArray] = {}
        for g, s in change:
            row = rows.setdefault(g, self.x[g].copy())
            row[s] = not row[s]
        return rows

    def turn(self, change: Change) -> Change:
        """Make the change."""
        for g, row in self.turned(change).items():
            self.cost[g] = self.cost_of(g, row)
            self.x[g] = row
        for g, s in change:
            self.room[s] += self.gina.sizes[g] * (-1 if self.x[g, s] else 1)
        return change

    def schedule(self) -> Schedule:
        """The schedule with every worker at its cheapest node, without sums that nobody uses."""
        group_y = np.where(self.x[None], self.costs.send[:, None, :], np.inf).argmin(axis=2)
        y = group_y[self.gina.group_of]
        x = np.zeros_like(self.x)
        x[np.arange(len(x))[None, :], y] = True
        return Schedule(x, y)
