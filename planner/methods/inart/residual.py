"""The capacities that background traffic leaves: B(e) - b(e), B(s) - b(s) and C(v) - c(v) of InArt's Eq. (1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import Flow, background_routes, flow_links
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Link, Switch


@dataclass(frozen=True)
class Background:
    """The rates that other traffic uses, in bit/s, of directed links (also into PSs) and of aggregation rates."""

    links: Mapping[DirectedLink, float] = field(default_factory=dict)
    switches: Mapping[str, float] = field(default_factory=dict)


def background_of_flows(problem: Problem, plan: Plan, flows: Iterable[Flow]) -> Background:
    """Plain traffic as background, on the routes that it takes beside the plan's."""
    known = list(flows)
    routes = background_routes(problem, plan, known)
    links: Counter[DirectedLink] = Counter()
    for flow in known:
        for link in flow_links(problem, routes, flow):
            links[link] += flow.rate_bps  # type: ignore[assignment]
    return Background(dict(links))


def residual(fabric: Fabric, background: Background) -> Fabric:
    """The fabric with the capacities that are left. A switch that has no aggregation rate left is no INA switch.

    Raises `InputError` for a link or switch that is not the fabric's, and for a link of which nothing is left.
    """
    for link in background.links:
        if link not in fabric.capacities_bps:
            raise InputError(f"background traffic on {'-'.join(link)}: it is not a link of fabric '{fabric.name}'")
    for switch in background.switches:
        if switch not in fabric.switch_by_name:
            raise unknown_name("switch", switch, fabric.switch_by_name)
    links = (
        replace(
            link,
            capacity_ab_bps=link_left(link, link.capacity_ab_bps, background.links.get((link.a, link.b), 0.0)),
            capacity_ba_bps=link_left(link, link.capacity_ba_bps, background.links.get((link.b, link.a), 0.0)),
        )
        for link in fabric.links
    )
    switches = (switch_left(switch, background.switches.get(switch.name, 0.0)) for switch in fabric.switches)
    return replace(fabric, links=tuple(links), switches=tuple(switches))


def link_left(link: Link, capacity_bps: float, used_bps: float) -> float:
    """The capacity that is left in one direction of a link, in bit/s. Raises `InputError` where none is left."""
    check_used(f"link {link.a}-{link.b}", used_bps)
    if used_bps >= capacity_bps:
        raise InputError(
            f"background traffic of {used_bps:g} bit/s on link {link.a}-{link.b} leaves nothing of its "
            f"{capacity_bps:g}: less is expected, or take the link out of the fabric"
        )
    return capacity_bps - used_bps


def switch_left(switch: Switch, used_bps: float) -> Switch:
    """The switch with the aggregation rate that is left; without INA where nothing is."""
    check_used(f"switch '{switch.name}'", used_bps)
    limit = switch.aggregation_rate_bps
    if limit is None:
        return switch
    if used_bps >= limit:
        return replace(switch, ina=False)
    return replace(switch, aggregation_rate_bps=limit - used_bps)


def check_used(where: str, used_bps: float) -> None:
    if not used_bps >= 0:
        raise InputError(f"background traffic of {used_bps:g} bit/s at {where}: at least 0 is expected")
