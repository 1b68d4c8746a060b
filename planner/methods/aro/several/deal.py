"""Deals the flows of a class of common switches out to its members, so that no link has more than it carries.

The class as a whole carries them. But flows are whole and of several sizes, so dealing may be impossible. Then they are
dealt by turns, some member is overloaded, the rates that the routing allows are lower, and the class is named.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from math import floor

from inakit.planner.methods.aro.several.reduced import Network
from inakit.planner.solvers.columns import LinearProgram
from inakit.planner.trees.unfolding import DirectedLink

ROUNDING = 1e-9

Flows = Counter[DirectedLink]
"""A task's y: the flows on every link that has some."""


@dataclass(frozen=True)
class Hand:
    """The class's flows of one task: `into[u]` come from node u, and `out[v]` go to node v."""

    task: int
    into: Counter[str]
    out: Counter[str]


def deal(
    net: Network, flows: Sequence[Flows], rates: Sequence[float], time_limit_s: float
) -> tuple[list[Flows], tuple[str, ...]]:
    """The flows with members in the place of every class, and the classes with an overloaded member.

    Switches that sum have no twins here.
    """
    dealt = list(flows)
    overloaded: list[str] = []
    for z, members in net.twins.items():
        hands = [hand for i, y in enumerate(dealt) if (hand := hand_of(i, z, y)).into]
        if len(members) > 1 and hands:
            dealer = Dealer(net, members, hands, rates)
            shares = dealer.share(time_limit_s)
            if not dealer.fits(shares):
                overloaded.append(z)
            for hand, share in zip(hands, shares, strict=True):
                kept = {link: n for link, n in dealt[hand.task].items() if z not in link}
                dealt[hand.task] = Counter(kept) + share
    return dealt, tuple(overloaded)


def hand_of(i: int, z: str, y: Flows) -> Hand:
    """What class `z` has of task i."""
    into = Counter({u: n for (u, v), n in y.items() if v == z})
    out = Counter({v: n for (u, v), n in y.items() if u == z})
    return Hand(i, into, out)


@dataclass(frozen=True)
class Dealer:
    """The members of one class, and what they are to share."""

    net: Network
    members: Sequence[str]
    hands: Sequence[Hand]
    rates: Sequence[float]

    def share(self, time_limit_s: float) -> list[Flows]:
        """By hand, the flows on the members' links: dealt by turns, or by a program where that overloads a link."""
        shares = [self.by_turns(hand) for hand in self.hands]
        return shares if self.fits(shares) else self.solved(time_limit_s) or shares

    def capacity(self, link: DirectedLink) -> float:
        """The bit/s of a link with a member at one end and perhaps another class at the other."""
        return self.net.fabric.capacities_bps[self.net.members(link[0])[0], self.net.members(link[1])[0]]

    def most(self, link: DirectedLink, task: int) -> int:
        """The most flows of a task that the link carries."""
        flows = sum(next(hand for hand in self.hands if hand.task == task).into.values())
        if self.rates[task] == 0:
            return flows
        return min(flows, floor(self.capacity(link) / self.rates[task] * (1 + ROUNDING)))

    def by_turns(self, hand: Hand) -> Flows:
        """One task's flows, each sender's to members that follow one another. For one task nothing is more even."""
        share: Flows = Counter()
        turn = islice(cycle(self.members), hand.task, None)
        for u in sorted(hand.into):
            for _ in range(hand.into[u]):
                share[u, next(turn)] += 1
        leaving = iter([v for v in sorted(hand.out) for _ in range(hand.out[v])])
        for m in self.members:
            for _ in range(sum(share[u, m] for u in hand.into)):
                share[m, next(leaving)] += 1
        return share

    def fits(self, shares: Sequence[Flows]) -> bool:
        """Whether no link has more than its capacity."""
        loads: dict[DirectedLink, float] = defaultdict(float)
        for hand, share in zip(self.hands, shares, strict=True):
            for link, n in share.items():
                loads[link] += n * self.rates[hand.task]
        return all(load <= self.capacity(link) * (1 + ROUNDING) for link, load in loads.items())

    def solved(self, time_limit_s: float) -> list[Flows] | None:
        """The flows on the members' links by a program; None if it finds nothing in the given time."""
        program = LinearProgram()
        columns = [self.add(program, hand) for hand in self.hands]
        for link in {link for column in columns for link in column}:
            on_link = [
                (self.rates[hand.task], column[link])
                for hand, column in zip(self.hands, columns, strict=True)
                if link in column
            ]
            fit(program, on_link, self.capacity(link))
        solution = program.solve(time_limit_s)
        if not solution.found:
            return None
        return [+Counter({link: round(solution.values[k]) for link, k in column.items()}) for column in columns]

    def add(self, program: LinearProgram, hand: Hand) -> dict[DirectedLink, int]:
        """Add one task's variables and constraints to the program; returns its columns by link."""
        links = [(u, m) for u in hand.into for m in self.members] + [(m, v) for v in hand.out for m in self.members]
        y = {link: program.variable(0, self.most(link, hand.task), integral=True) for link in links}
        for u, n in hand.into.items():
            program.equal([(1, y[u, m]) for m in self.members], n)
        for v, n in hand.out.items():
            program.at_most([(1, y[m, v]) for m in self.members], n)
        for m in self.members:
            program.equal([*((1, y[u, m]) for u in hand.into), *((-1, y[m, v]) for v in hand.out)], 0)
        return y


def fit(program: LinearProgram, terms: Iterable[tuple[float, int]], capacity: float) -> None:
    """Add the row that flows of these rates fit a link.

    Flows are whole, so that a second row may be divided by the least rate and rounded down.
    """
    terms = [term for term in terms if term[0] > 0]
    if len(terms) > 1:
        least = min(rate for rate, _ in terms)
        whole = [(float(floor(rate / least * (1 + ROUNDING))), k) for rate, k in terms]
        program.at_most(whole, floor(capacity / least * (1 + ROUNDING)))
        program.at_most([(rate / capacity, k) for rate, k in terms], 1 + ROUNDING)
