"""Plain traffic between hosts beside that of the jobs: which links it takes, and the entries that let it pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import Routes, add_route, plan_routes, route_rows, unicast_path
from inakit.switch.entries import Entries, SwitchEntries, TableEntry
from inakit.topo.errors import InputError
from inakit.topo.fabric.up_down import up_down_paths


@dataclass(frozen=True)
class Flow:
    """Plain UDP from one host to another at a steady rate (bit/s of whole frames)."""

    source: str
    destination: str
    rate_bps: float
    frame_bytes: int = 1000


def background_routes(problem: Problem, plan: Plan, flows: Iterable[Flow]) -> Routes:
    """The routes of the plan's entries, and those that the flows need besides.

    A flow takes a shortest up-down path up to where its destination has a route already. Raises `InputError` for a host
    that the fabric does not have, and for a flow without a path.
    """
    routes = plan_routes(problem.fabric, plan)
    for flow in flows:
        for host in (flow.source, flow.destination):
            if host not in problem.fabric.host_names:
                raise InputError(f"background traffic: '{host}' is not a host of fabric '{problem.fabric.name}'")
        paths = up_down_paths(problem.fabric, flow.source, flow.destination)
        if not paths or flow.source == flow.destination:
            raise InputError(f"background traffic: no path from '{flow.source}' to '{flow.destination}'")
        add_route(problem.fabric, routes, paths[0])
    return routes


def with_background(problem: Problem, installed: Entries, routes: Routes) -> Entries:
    """The entries, and those of `routes` that are not among them."""
    rows = list(route_rows(problem.fabric, routes))
    names = dict.fromkeys([*(entries.switch for entries in installed.switches), *(switch for switch, _ in rows)])
    grown = (with_rows(installed.of(name), [row for switch, row in rows if switch == name]) for name in names)
    return Entries(tuple(grown))


def with_rows(entries: SwitchEntries, rows: Iterable[TableEntry]) -> SwitchEntries:
    """One switch's entries, and those of the rows that are not among them."""
    return replace(entries, tables=tuple(dict.fromkeys((*entries.tables, *rows))))


def flow_links(problem: Problem, routes: Routes, flow: Flow) -> tuple[tuple[str, str], ...]:
    """The directed links that a flow takes by these routes."""
    return tuple(pairwise(unicast_path(problem.fabric, flow.source, flow.destination, routes)))
