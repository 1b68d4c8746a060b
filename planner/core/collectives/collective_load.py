"""What collectives load links with: chunks on their paths, and acknowledgements the other way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise

from inakit.planner.core.collectives.collective import ACKNOWLEDGED_AT_ONCE, Collective, Connection
from inakit.planner.core.problem import FragmentFormat
from inakit.topo.fabric.fabric import Fabric

DirectedLink = tuple[str, str]
Loads = dict[DirectedLink, float]


def acknowledging_share(fragment: FragmentFormat) -> float:
    """The bytes of acknowledgements for each byte that is acknowledged: a packet without values for many with."""
    return (fragment.wire_bytes - 4 * fragment.values) / (ACKNOWLEDGED_AT_ONCE * fragment.wire_bytes)


def chunk_loads_bps(collectives: Iterable[Collective]) -> Loads:
    """The greatest load of every link that chunks use: at each job's busiest step, of all jobs together."""
    return busiest(collectives, lambda connection: connection.path)


def acknowledgement_loads_bps(collectives: Iterable[Collective], fragment: FragmentFormat) -> Loads:
    """The same of acknowledgements, which return by the way of their chunks."""
    share = acknowledging_share(fragment)
    return {link: load * share for link, load in busiest(collectives, lambda c: c.path[::-1]).items()}


def busiest(collectives: Iterable[Collective], path: Callable[[Connection], tuple[str, ...]]) -> Loads:
    """By link, the sum over jobs of what loads it in the job's busiest step."""
    total: defaultdict[DirectedLink, float] = defaultdict(float)
    for collective in collectives:
        most: defaultdict[DirectedLink, float] = defaultdict(float)
        for members in collective.concurrent:
            loads: defaultdict[DirectedLink, float] = defaultdict(float)
            for connection in (collective.connections[number] for number, _ in members):
                for link in pairwise(path(connection)):
                    loads[link] += connection.rate_bps
            for link, load in loads.items():
                most[link] = max(most[link], load)
        for link, load in most.items():
            total[link] += load
    return dict(total)


ROUNDING = 1e-9


def overlaps(fabric: Fabric, collective: Collective) -> bool:
    """Whether links carry all connections at the same time, so that the steps of a rank may overlap.

    Where they do not, the rates of connections are for one step after the other.
    """
    loads: defaultdict[DirectedLink, float] = defaultdict(float)
    for connection in collective.connections:
        for link in connection.links:
            loads[link] += connection.rate_bps
    return all(load_bps <= fabric.capacities_bps[link] * (1 + ROUNDING) for link, load_bps in loads.items())
