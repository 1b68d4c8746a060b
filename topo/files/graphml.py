"""GraphML in the words of a fabric file: which nodes are hosts, what links carry, and what had to be assumed.

Nodes and edges may carry the keys of the YAML format as attributes. Of the names that others use, these are known: a
node's `type` (host or server), an edge's `LinkSpeedRaw` in bit/s, and its `LinkSpeed` with `LinkSpeedUnits`, which are
those of the Topology Zoo. Its maps of providers' networks have no hosts: each switch gets some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

from topo.files.fabric_records import LinkRecord, SwitchRecord
from topo.files.quantities import RATE_UNITS, rate, rate_text

if TYPE_CHECKING:
    import networkx as nx

HOST_TYPES = frozenset(("host", "server", "worker", "ps", "endhost", "end-host", "end_host"))
"""What a node's `type` says of one that is no switch, in small letters."""
TYPE_KEYS = ("type", "Type")


class Reading:
    """One graph as it is read. A link without a capacity has `capacity_bps`; a graph without hosts gets them."""

    def __init__(self, graph: nx.Graph[str], name: str, hosts_per_switch: int, capacity_bps: float) -> None:
        self.graph = graph
        self.name = name
        self.capacity_bps = capacity_bps
        self.hosts_per_switch = hosts_per_switch
        self.hosts = [node for node, data in graph.nodes(data=True) if is_host(data)]
        self.switches = [node for node in graph if node not in set(self.hosts)]
        self.loops = sum(1 for a, b in graph.edges() if a == b)
        self.silent = self.parallel = 0

    def document(self) -> dict[str, Any]:
        """The graph in the words of a fabric file (`FabricRecord`); attributes that it does not know are left out."""
        links = list(self.links())
        hosts = [plain_name(node) for node in self.hosts]
        switches = {plain_name(node): known_keys(self.graph.nodes[node], SwitchRecord) for node in self.switches}
        if not hosts:
            homes = [switch for switch in switches for _ in range(self.hosts_per_switch)]
            hosts = [f"h{number}" for number in range(1, len(homes) + 1)]
            added = [{"a": a, "b": b, "capacity": self.capacity_bps} for a, b in zip(hosts, homes, strict=True)]
            links = added + links
        return {"name": plain_name(self.name), "hosts": hosts, "switches": switches, "links": links}

    def links(self) -> Iterator[dict[str, Any]]:
        """A link for each two nodes: parallel edges together carry their sum, directed ones each their direction."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for a, b, data in self.graph.edges(data=True):
            if a == b:
                continue
            link = {"capacity": self.capacity_of(data)} | known_keys(data, LinkRecord)
            if (a, b) in found or (b, a) in found:
                back = (a, b) not in found and self.graph.is_directed()
                self.parallel += join(found.get((a, b)) or found[b, a], link, back=back)
            else:
                found[a, b] = link
        for (a, b), link in found.items():
            yield link | {"a": plain_name(a), "b": plain_name(b)}

    def capacity_of(self, data: dict[str, Any]) -> float:
        """What the edge's attributes say, in bit/s; `capacity` itself is read with the other keys."""
        told = speed(data)
        self.silent += told is None and "capacity" not in data
        return self.capacity_bps if told is None else told

    def assumed(self) -> Iterator[str]:
        """What was made of the file, for one line of a report, after `document`."""
        if self.hosts:
            yield f"{len(self.hosts)} hosts, the nodes with `tier` 0 or `type` host; {len(self.switches)} switches"
        else:
            yield (
                f"no node is a host (`tier` 0 or `type` host), so each of {len(self.switches)} switches gets "
                f"{self.hosts_per_switch}, by a link of {rate_text(self.capacity_bps)}"
            )
        if self.silent:
            edges = f"{self.silent} of {self.graph.number_of_edges()} links"
            yield (
                f"{edges} say nothing of their capacity (`capacity`, `LinkSpeedRaw`, or `LinkSpeed` and "
                f"`LinkSpeedUnits`) and get {rate_text(self.capacity_bps)}; --capacity sets that of all"
            )
        if self.parallel:
            yield f"{self.parallel} parallel links are joined with those beside them"
        if self.loops:
            yield f"{self.loops} links from a node to itself are left out"


def is_host(data: dict[str, Any]) -> bool:
    """A node's `tier` says it, else its `type`."""
    if "tier" in data:
        return bool(data["tier"] == 0)
    return any(str(data.get(key, "")).strip().lower() in HOST_TYPES for key in TYPE_KEYS)


def speed(data: dict[str, Any]) -> float | None:
    """The capacity that an edge of the Topology Zoo has, in bit/s; None where it does not say."""
    with suppress(ValueError):
        if "LinkSpeedRaw" in data and 0 < (bps := float(data["LinkSpeedRaw"])) < inf:
            return bps
        unit = str(data.get("LinkSpeedUnits", "")).strip()[:1].replace("K", "k")
        if unit in RATE_UNITS and unit and 0 < (amount := float(data.get("LinkSpeed", 0))) < inf:
            return amount * RATE_UNITS[unit]
    return None


def join(link: dict[str, Any], other: dict[str, Any], *, back: bool) -> bool:
    """Let `link` carry what `other` does, too; `back` says that it leads the other way. Whether they are parallel."""
    if back and "capacity_back" not in link:
        link["capacity_back"] = other["capacity"]
        return False
    key = "capacity_back" if back else "capacity"
    with suppress(ValueError):  # whoever reads the document says what is no rate
        link[key] = rate(link[key]) + rate(other["capacity"])
    return True


def plain_name(text: str) -> str:
    """A node's id as a name: graph tools number their nodes, a name begins with a letter."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", text)
    return name if name[:1].isalpha() else f"n{name}"


def known_keys(data: dict[str, Any], record: type[SwitchRecord | LinkRecord]) -> dict[str, Any]:
    """Those attributes of a node or edge that a fabric file knows, too."""
    return {key: value for key, value in data.items() if key in record.model_fields}
