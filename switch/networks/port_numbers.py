"""Numbers of ports and names of interfaces, where a network file leaves them open."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from inakit.switch.networks.network_plan import LinkEnd, NetworkPlan

MOST_PORTS = 1 << 16
TAKEN_BY_LINUX = re.compile(r"[A-Za-z0-9_.-]{1,15}")
STEM_LENGTH = 6


class PortNumbers:
    """The ports of all nodes: as the file numbers them, else the lowest free number; hosts' begin at 0.

    `given` are the nodes and numbers of all ends of links; None is for a number that the file does not say.
    """

    def __init__(self, hosts: Collection[str], given: Iterable[tuple[str, int | None]]) -> None:
        self.hosts = hosts
        self.used: dict[str, set[int]] = {}
        for node, port in given:
            self.used.setdefault(node, set()).update(() if port is None else (port,))

    def take(self, node: str, given: int | None = None) -> int:
        """The number of the node's next port, or the given one."""
        if given is not None:
            return given
        used = self.used.setdefault(node, set())
        port = next(number for number in range(node not in self.hosts, MOST_PORTS) if number not in used)
        used.add(port)
        return port


def with_interfaces(plan: NetworkPlan) -> NetworkPlan:
    """The plan with a name for each interface, which no other has; a note says where Mininet's own is too long."""
    ends = [end for link in plan.links for end in (link.one, link.other)]
    names = {(end.node, end.port): end.interface or f"{end.node}-eth{end.port}" for end in ends}
    wrong = dict.fromkeys(node for (node, _), name in names.items() if not TAKEN_BY_LINUX.fullmatch(name))
    kept = {name for (node, _), name in names.items() if node not in wrong}
    notes = []
    for number, node in enumerate(wrong, start=1):
        stem = short_stem(node, number, kept)
        names |= {(other, port): f"{stem}-eth{port}" for other, port in names if other == node}
        notes.append(
            f"the interfaces of '{node}' are {stem}-eth...: Linux takes 15 characters of letters, digits, _ . -"
        )

    def named(end: LinkEnd) -> LinkEnd:
        return replace(end, interface=names[end.node, end.port])

    links = tuple(replace(link, one=named(link.one), other=named(link.other)) for link in plan.links)
    return replace(plan, links=links, notes=(*plan.notes, *notes))


def short_stem(node: str, number: int, kept: Collection[str]) -> str:
    """A short name for a node, which no interface in `kept` begins with; the number makes it the node's own."""
    plain = re.sub(r"[^A-Za-z0-9_.]", "_", node)[:STEM_LENGTH]
    stem = f"{plain}_{number}"
    while any(name.startswith(f"{stem}-") for name in kept):
        stem += "_"
    return stem
