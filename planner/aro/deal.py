"""Deals the flows of a class of twins out to its members, so that no link of theirs has more than it carries.

The class as a whole carries them, but flows are whole, and of several sizes: it may not be possible. Then they are
dealt by turns, some member is overloaded, the rates that the routing allows are lower, and the class is named.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import floor

from planner.aro.program import Program
from planner.aro.reduced import Network
from planner.routes import MAX_CHILDREN
from planner.unfold import DirectedLink

ROUNDING = 1e-9

Flows = Counter[DirectedLink]
"""A task's y: the flows on every link that has some."""


@dataclass(frozen=True)
class Hand:
    """What the class gets of one task: `into[u]` flows from node u, in its `pipeline[u]` there, and `out[v]` for v.

    `used[p]` members may use their pipeline p; a common switch has no pipelines, and hands on what it gets.
    """

    task: int
    into: Counter[str]
    out: Counter[str]
    pipeline: dict[str, int | None]
    used: Counter[int | None]


def deal(
    net: Network, flows: Sequence[Flows], rates: Sequence[float], time_limit_s: float
) -> tuple[list[Flows], tuple[str, ...]]:
    """The flows with members in the place of every class, and the classes with an overloaded member."""
    dealt = list(flows)
    overloaded: list[str] = []
    for z, members in net.twins.items():
        hands = [hand for i, y in enumerate(dealt) if (hand := hand_of(net, i, z, y)).into]
        if len(members) > 1 and hands:
            dealer = Dealer(net, members, hands, rates)
            shares = dealer.share(time_limit_s)
            if not dealer.fits(shares):
                overloaded.append(z)
            for hand, share in zip(hands, shares, strict=True):
                kept = {link: n for link, n in dealt[hand.task].items() if z not in link}
                dealt[hand.task] = Counter(kept) + share
    return dealt, tuple(overloaded)


def hand_of(net: Network, i: int, z: str, y: Flows) -> Hand:
    into = Counter({u: n for (u, v), n in y.items() if v == z})
    out = Counter({v: n for (u, v), n in y.items() if u == z})
    sums = net.fabric.switch_by_name[z].ina
    pipeline = {u: net.fabric.ingress_pipeline(z, net.members(u)[0]) if sums else None for u in into}
    entering = Counter[int | None]()
    for u, n in into.items():
        entering[pipeline[u]] += n
    return Hand(i, into, out, pipeline, entering)


@dataclass(frozen=True)
class Dealer:
    """The members of one class, and what they are to share."""

    net: Network
    members: Sequence[str]
    hands: Sequence[Hand]
    rates: Sequence[float]

    def share(self, time_limit_s: float) -> list[Flows]:
        """The flows on the members' links, one after the other; or if that overloads one, by a program."""
        shares = [self.by_turns(hand) for hand in self.hands]
        return shares if self.fits(shares) else self.solved(time_limit_s) or shares

    @property
    def sums(self) -> bool:
        return self.net.fabric.switch_by_name[self.members[0]].ina

    def capacity(self, link: DirectedLink) -> float:
        """Of a link one end of which is a member, and the other perhaps another class."""
        return self.net.fabric.capacities_bps[self.net.members(link[0])[0], self.net.members(link[1])[0]]

    def most(self, link: DirectedLink, task: int) -> int:
        """How many flows of a task the link carries."""
        flows = sum(next(hand for hand in self.hands if hand.task == task).into.values())
        if self.rates[task] == 0:
            return flows
        return min(flows, floor(self.capacity(link) / self.rates[task] * (1 + ROUNDING)))

    def by_turns(self, hand: Hand) -> Flows:
        """For one task this is as even as can be: every sender's flows go to members that follow each other."""
        share: Flows = Counter()
        turn = 0
        for pipeline, through in self.groups(hand):
            flows = [u for u in sorted(hand.into) if hand.pipeline[u] == pipeline for _ in range(hand.into[u])]
            for k, u in enumerate(flows):
                share[u, through[k % len(through)]] += 1
        leaving = [v for v in sorted(hand.out) for _ in range(hand.out[v])]
        for m in self.members:
            for _ in range(self.given(hand, share, m)):
                share[m, leaving[turn]] += 1
                turn += 1
        return share

    def groups(self, hand: Hand) -> Iterator[tuple[int | None, list[str]]]:
        """The members that each pipeline's flows go through: as many as there are flows to hand on."""
        start, room, size = hand.task, sum(hand.out.values()), len(self.members)
        for left, pipeline in enumerate(hand.used, 1):
            others = len(hand.used) - left
            count = max(1, min(hand.used[pipeline], size, room - others)) if self.sums else size
            yield pipeline, [self.members[(start + k) % size] for k in range(count)]
            start += count
            room -= count

    def given(self, hand: Hand, share: Flows, m: str) -> int:
        """The flows that a member hands on."""
        if not self.sums:
            return sum(share[u, m] for u in hand.into)
        return len({hand.pipeline[u] for u in hand.into if share[u, m]})

    def fits(self, shares: Sequence[Flows]) -> bool:
        loads: dict[DirectedLink, float] = defaultdict(float)
        for hand, share in zip(self.hands, shares, strict=True):
            for link, n in share.items():
                loads[link] += n * self.rates[hand.task]
        return all(load <= self.capacity(link) * (1 + ROUNDING) for link, load in loads.items())

    def solved(self, time_limit_s: float) -> list[Flows] | None:
        """The same by a program; None if it finds nothing."""
        program = Program()
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

    def add(self, program: Program, hand: Hand) -> dict[DirectedLink, int]:
        """The variables and constraints of one task."""
        links = [(u, m) for u in hand.into for m in self.members] + [(m, v) for v in hand.out for m in self.members]
        y = {link: program.variable(0, self.most(link, hand.task), integral=True) for link in links}
        for u, n in hand.into.items():
            program.equal([(1, y[u, m]) for m in self.members], n)
        for v, n in hand.out.items():
            program.at_most([(1, y[m, v]) for m in self.members], n)
        for m in self.members:
            arriving = self.add_inps(program, hand, y, m) if self.sums else [y[u, m] for u in hand.into]
            program.equal([*((1, k) for k in arriving), *((-1, y[m, v]) for v in hand.out)], 0)
        return y

    def add_inps(self, program: Program, hand: Hand, y: dict[DirectedLink, int], m: str) -> list[int]:
        """x of a member's INPs: 1 where flows enter."""
        x = {pipeline: program.variable(0, 1, integral=True) for pipeline in hand.used}
        for u in hand.into:
            program.at_most([(1, y[u, m]), (-program.upper[y[u, m]], x[hand.pipeline[u]])], 0)
        for pipeline, k in x.items():
            entering = [(1.0, y[u, m]) for u in hand.into if hand.pipeline[u] == pipeline]
            program.at_most([*entering, (-MAX_CHILDREN, k)], 0)
        return list(x.values())


def fit(program: Program, terms: Iterable[tuple[float, int]], capacity: float) -> None:
    """Flows of these rates fit a link; they are whole, so that the row may be divided by the least rate."""
    terms = [term for term in terms if term[0] > 0]
    if len(terms) > 1:
        least = min(rate for rate, _ in terms)
        whole = [(float(floor(rate / least * (1 + ROUNDING))), k) for rate, k in terms]
        program.at_most(whole, floor(capacity / least * (1 + ROUNDING)))
        program.at_most([(rate / capacity, k) for rate, k in terms], 1 + ROUNDING)
