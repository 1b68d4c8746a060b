"""Deals the flows of a class of twins out to its members, so that no link of theirs has more than it carries.

The class as a whole carries them, but flows are whole, and of several sizes: it may not be possible. Then they are
dealt by turns, some member is overloaded, and the rates that the routing allows are lower.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import floor

from planner.aro.program import Program
from planner.aro.reduced import Network
from planner.routes import Inp
from planner.unfold import DirectedLink, Path

ROUNDING = 1e-9
Pieces = tuple[dict[Inp | str, list[Path]], ...]
Flow = tuple[int, str, str]
"""A task, and the nodes before and after the class."""


def deal(net: Network, pieces: Pieces, rates: Sequence[float], time_limit_s: float) -> Pieces:
    """The pieces with a member in the place of every class on them."""
    for z, members in net.twins.items():
        flows = Counter(flow for flow, _ in passing(pieces, z))
        if len(members) > 1 and flows:
            turns = turns_of(net, flows, members, rates, time_limit_s)
            pieces = replaced(pieces, z, turns)
    return pieces


def passing(pieces: Pieces, z: str) -> Iterator[tuple[Flow, Path]]:
    """The flows through a class, and their paths."""
    for i, paths in enumerate(pieces):
        for path in (path for found in paths.values() for path in found):
            if z in path[1:-1]:
                k = path.index(z)
                yield (i, path[k - 1], path[k + 1]), path


def replaced(pieces: Pieces, z: str, turns: dict[Flow, list[str]]) -> Pieces:
    def member_on(i: int, path: Path) -> Path:
        if z not in path[1:-1]:
            return path
        k = path.index(z)
        return (*path[:k], turns[i, path[k - 1], path[k + 1]].pop(), *path[k + 1 :])

    return tuple(
        {start: [member_on(i, path) for path in found] for start, found in paths.items()}
        for i, paths in enumerate(pieces)
    )


def turns_of(
    net: Network, flows: Counter[Flow], members: Sequence[str], rates: Sequence[float], time_limit_s: float
) -> dict[Flow, list[str]]:
    """The members that each flow's units go through: one after the other, or if that overloads one, by a program."""
    turns = by_turns(flows, members)
    return turns if fits(net, turns, rates) else solved(net, flows, members, rates, time_limit_s) or turns


def by_turns(flows: Counter[Flow], members: Sequence[str]) -> dict[Flow, list[str]]:
    """For one task this is as even as can be."""
    turns, given = {}, 0
    for flow, count in sorted(flows.items()):
        turns[flow] = [members[(given + k) % len(members)] for k in range(count)]
        given += count
    return turns


def fits(net: Network, turns: dict[Flow, list[str]], rates: Sequence[float]) -> bool:
    loads: dict[DirectedLink, float] = defaultdict(float)
    for (i, before, after), through in turns.items():
        for m in through:
            loads[before, m] += rates[i]
            loads[m, after] += rates[i]
    return all(load <= capacity(net, link) * (1 + ROUNDING) for link, load in loads.items())


def capacity(net: Network, link: DirectedLink) -> float:
    """Of a link one end of which is a member, and the other perhaps another class."""
    return net.fabric.capacities_bps[net.members(link[0])[0], net.members(link[1])[0]]


def solved(
    net: Network, flows: Counter[Flow], members: Sequence[str], rates: Sequence[float], time_limit_s: float
) -> dict[Flow, list[str]] | None:
    program = Program()
    n = {(flow, m): program.variable(0, count, integral=True) for flow, count in flows.items() for m in members}
    for flow, count in flows.items():
        program.equal([(1, n[flow, m]) for m in members], count)
    for m in members:
        on_link: dict[DirectedLink, list[Flow]] = defaultdict(list)
        for i, before, after in flows:
            on_link[before, m].append((i, before, after))
            on_link[m, after].append((i, before, after))
        for link, found in on_link.items():
            fit(program, [(rates[flow[0]], n[flow, m]) for flow in found], capacity(net, link))
    solution = program.solve(time_limit_s)
    if not solution.found:
        return None
    return {flow: [m for m in members for _ in range(round(solution.values[n[flow, m]]))] for flow in flows}


def fit(program: Program, terms: list[tuple[float, int]], capacity: float) -> None:
    """Flows of these rates fit a link; they are whole, so that the row may be divided by the least rate."""
    terms = [term for term in terms if term[0] > 0]
    if terms:
        least = min(rate for rate, _ in terms)
        whole = [(float(floor(rate / least * (1 + ROUNDING))), k) for rate, k in terms]
        program.at_most(whole, floor(capacity / least * (1 + ROUNDING)))
        program.at_most([(rate / capacity, k) for rate, k in terms], 1 + ROUNDING)
