"""GraphML in the words of a fabric file: which nodes are hosts, what links carry, and what had to be assumed.

Nodes and edges may carry the keys of the YAML format as attributes. Of the names that others use, these are known: a
node's `type` (host or server) and its `label`, an edge's `LinkSpeedRaw` in bit/s, and its `LinkSpeed` with
`LinkSpeedUnits`, which are those of the Topology Zoo. Its maps of providers' networks have no hosts: each switch gets
some. What a map lacks is assumed from what it says elsewhere, so that a scale of all rates fits it, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from statistics import median_low
from typing import TYPE_CHECKING, Any

from inakit.topo.files.fabric_records import LinkRecord, SwitchRecord
from inakit.topo.files.graph_names import FreshNames
from inakit.topo.files.quantities import RATE_UNITS, rate, rate_text, whole

if TYPE_CHECKING:
    import networkx as nx

HOST_TYPES = frozenset(("host", "server", "worker", "ps", "endhost", "end-host", "end_host"))
"""What a node's `type` says of one that is no switch, in small letters."""
TYPE_KEYS = ("type", "Type")
SPEED_KEYS = ("LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits")
NUMBERS = ("id", "key")
"""What graph tools call the numbers that they give nodes and edges."""
SWITCH_KEYS = frozenset(SwitchRecord.model_fields)
LINK_KEYS = frozenset(LinkRecord.model_fields) - {"a", "b"}


class Reading:
    """One graph as it is read. A graph without hosts gets them; one without capacities has `capacity_bps` everywhere.

    `fastest_bps`: of each node whose links say what they carry, the fastest of these links.
    """

    def __init__(self, graph: nx.Graph[str], name: str, hosts_per_switch: int, capacity_bps: float) -> None:
        self.graph = graph
        self.name = name
        self.hosts_per_switch = hosts_per_switch
        self.hosts = dict.fromkeys(node for node, data in graph.nodes(data=True) if is_host(data))
        self.switches = [node for node in graph if node not in self.hosts]
        self.names = FreshNames({node: data.get("label") for node, data in graph.nodes(data=True)})
        self.loops = sum(1 for a, b in graph.edges() if a == b)
        self.silent = self.parallel = 0
        self.fastest_bps: dict[str, float] = {}
        for a, b, data in graph.edges(data=True):
            for node in (a, b):
                self.fastest_bps[node] = max(self.fastest_bps.get(node, 0.0), said_bps(data) or 0.0)
        said = [bps for _, _, data in graph.edges(data=True) if (bps := said_bps(data)) is not None]
        self.says_rates = bool(said)
        self.usual_bps = median_low(said) if said else capacity_bps

    def document(self) -> dict[str, Any]:
        """The graph in the words of a fabric file (`FabricRecord`); attributes that it does not know are left out."""
        called = self.names.of
        links = list(self.links())
        hosts = [called[node] for node in self.hosts]
        switches = {called[node]: known_keys(self.graph.nodes[node], SWITCH_KEYS) for node in self.switches}
        if not hosts:
            homes = [switch for switch in self.switches for _ in range(self.hosts_per_switch)]
            hosts = [self.names.fresh(f"h{number}") for number in range(1, len(homes) + 1)]
            added = [
                {"a": host, "b": called[home], "capacity": self.access_bps(home)}
                for host, home in zip(hosts, homes, strict=True)
            ]
            links = added + links
        return {
            "name": FreshNames({self.name: None}).of[self.name],
            "hosts": hosts,
            "switches": switches,
            "links": links,
        }

    def links(self) -> Iterator[dict[str, Any]]:
        """A link for each two nodes: parallel edges together carry their sum, directed ones each their direction."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for a, b, data in self.graph.edges(data=True):
            if a == b:
                continue
            link = {"capacity": self.capacity_of(a, b, data)} | known_keys(data, LINK_KEYS)
            if (a, b) in found or (b, a) in found:
                back = (a, b) not in found and self.graph.is_directed()
                self.parallel += join(found.get((a, b)) or found[b, a], link, back=back)
            else:
                found[a, b] = link
        for (a, b), link in found.items():
            yield link | {"a": self.names.of[a], "b": self.names.of[b]}

    def capacity_of(self, a: str, b: str, data: dict[str, Any]) -> float:
        """What an edge's attributes say, in bit/s, else what is assumed of it.

        `capacity` itself is read with the other keys.
        """
        told = speed(data)
        if told is not None or "capacity" in data:
            return told or self.usual_bps
        self.silent += 1
        hosts = [end for end in (a, b) if end in self.hosts]
        return self.access_bps(b if hosts == [a] else a) if hosts else self.usual_bps

    def access_bps(self, switch: str) -> float:
        """The assumed capacity of a host's link: that of the fastest link of its switch, if any says its own."""
        return self.fastest_bps.get(switch) or self.usual_bps

    def told(self) -> Iterator[str]:
        """What was made of the file, for one line of a report, after `document`."""
        usual = rate_text(self.usual_bps)
        if self.hosts:
            yield f"{len(self.hosts)} hosts, the nodes with `tier` 0 or `type` host; {len(self.switches)} switches"
        else:
            link = "as fast as the switch's fastest" if self.says_rates else f"of {usual}"
            yield (
                f"no node is a host (`tier` 0 or `type` host), so each of {len(self.switches)} switches gets "
                f"{self.hosts_per_switch}, by a link {link}"
            )
        if self.silent:
            given = f"{usual}, the median of the others, hosts' links that of their switch's fastest"
            yield (
                f"{self.silent} of {self.graph.number_of_edges()} links say nothing of their capacity (`capacity`, "
                f"`LinkSpeedRaw`, or `LinkSpeed` and `LinkSpeedUnits`) and get {given if self.says_rates else usual}; "
                "--capacity sets that of all"
            )
        if self.parallel:
            yield f"{self.parallel} parallel links are joined with those beside them"
        if self.loops:
            yield f"{self.loops} links from a node to itself are left out"
        yield from self.names.told()
        yield from self.unused()

    def unused(self) -> Iterator[str]:
        """The attributes that mean nothing here."""
        hosts, switches = ((self.graph.nodes[node] for node in nodes) for nodes in (self.hosts, self.switches))
        anywhere = {*NUMBERS, *TYPE_KEYS, *(["label"] if self.names.labelled else [])}
        nodes = keys_beside(hosts, anywhere | {"tier"}) | keys_beside(switches, anywhere | SWITCH_KEYS)
        edges = keys_beside((data for _, _, data in self.graph.edges(data=True)), LINK_KEYS | {*SPEED_KEYS, *NUMBERS})
        found = [f"{', '.join(sorted(keys))} of {what}" for what, keys in (("nodes", nodes), ("links", edges)) if keys]
        if found:
            yield f"not used: {'; '.join(found)}"


def keys_beside(elements: Iterable[dict[str, Any]], known: frozenset[str] | set[str]) -> set[str]:
    """The attributes that some of the elements have beside the known ones."""
    return {key for data in elements for key in data} - known


def is_host(data: dict[str, Any]) -> bool:
    """A node's `tier` says it, else its `type`."""
    if "tier" in data:
        with suppress(ValueError):  # whoever reads the document says what is no tier
            return whole(data["tier"]) == 0
        return False
    return any(str(data.get(key, "")).strip().lower() in HOST_TYPES for key in TYPE_KEYS)


def said_bps(data: dict[str, Any]) -> float | None:
    """What an edge says of its own capacity, in bit/s; None where it says nothing, or nothing that is a rate."""
    if "capacity" not in data:
        return speed(data)
    with suppress(ValueError):
        return rate(data["capacity"])
    return None


def speed(data: dict[str, Any]) -> float | None:
    """The capacity that an edge of the Topology Zoo has, in bit/s; None where it does not say."""
    with suppress(ValueError):
        if "LinkSpeedRaw" in data and 0 < (bps := float(data["LinkSpeedRaw"])) < math.inf:
            return bps
        unit = str(data.get("LinkSpeedUnits", "")).strip()[:1].replace("K", "k")
        if unit in RATE_UNITS and unit and 0 < (amount := float(data.get("LinkSpeed", 0))) < math.inf:
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


def known_keys(data: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Those attributes of a node or edge that a fabric file knows, too."""
    return {key: value for key, value in data.items() if key in known}
