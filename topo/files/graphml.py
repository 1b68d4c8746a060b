"""Convert GraphML to a fabric file's document: hosts, capacities of links, and reported assumptions.

Nodes and edges may carry the keys of the YAML format as attributes. Of other tools' attributes these are known: a
node's `type` (host or server) and its `label`, an edge's `LinkSpeedRaw` in bit/s, and its `LinkSpeed` with
`LinkSpeedUnits`, which are those of the Topology Zoo. Its maps of providers' networks have no hosts: each switch gets
some. Missing capacities are assumed from the other links of the map, so that scaling all rates works for them.
"""

from __future__ import annotations

import math
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from statistics import median_low
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import LONGEST_NAME, NAME
from inakit.topo.files.fabric_records import FabricRecord, LinkRecord, SwitchRecord
from inakit.topo.files.quantities import RATE_UNITS, rate, rate_text, whole

if TYPE_CHECKING:
    import networkx as nx


# -- Names of a fabric for the nodes of a graph, whose ids may be any text. No two nodes get the same.

EXAMPLES = 3
"""The number of new names that are reported; the fabric's picture and its YAML file have all."""


class FreshNames:
    """The names of nodes: a node's id if it is a valid name, else its label in plain letters.

    `of`: the names by id. `labelled`: the nodes named by their label.
    """

    def __init__(self, labels: Mapping[str, object]) -> None:
        """`labels`: a node's id to its label or None."""
        self.used = {node for node in labels if NAME.fullmatch(node)}
        self.of: dict[str, str] = {}
        self.labelled: list[str] = []
        for place, (node, label) in enumerate(labels.items(), start=1):
            if node in self.used:
                self.of[node] = node
                continue
            by_label = "" if label is None else plain(str(label))
            self.labelled += [node] if by_label else []
            self.of[node] = self.fresh(by_label or plain(node) or f"n{place}")

    def fresh(self, wanted: str) -> str:
        """Return the wanted name, with a number appended if it is taken, and mark the result as taken."""
        numbered = (f"{wanted[: LONGEST_NAME - 8]}_{number}" for number in count(2))
        name = wanted if wanted not in self.used else next(name for name in numbered if name not in self.used)
        self.used.add(name)
        return name

    def told(self) -> Iterator[str]:
        """Yield reports of nodes whose names differ from their ids."""
        if self.labelled:
            yield f"{len(self.labelled)} nodes are called by their `label`"
        expected = {node: f"n{node}" for node in self.of}
        changed = [
            node for node, name in self.of.items() if name not in (node, expected[node]) and node not in self.labelled
        ]
        if changed:
            examples = ", ".join(f"'{node}' {self.of[node]}" for node in changed[:EXAMPLES])
            more = f" and {len(changed) - EXAMPLES} more" if len(changed) > EXAMPLES else ""
            yield f"names of plain letters: {examples}{more}"


def plain(text: str) -> str:
    """Convert text to a valid name that begins with a letter; empty if it has neither letters nor digits."""
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    if not re.search(r"[A-Za-z0-9]", letters):
        return ""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", letters)
    return (name if name[0].isalpha() else f"n{name}")[:LONGEST_NAME]


# -- Parse GraphML without dropping or inventing anything silently.


def parsed(text: str) -> nx.Graph[str]:
    """Parse the text of a GraphML file into a graph of node ids. Raises `ValueError` for invalid GraphML.

    Refuses files of which networkx silently drops or invents something: duplicates, edges to undeclared nodes, several
    graphs, and nodes within nodes.
    """
    import networkx as nx  # noqa: PLC0415, it takes long to import

    try:
        root = ElementTree.fromstring(text)
        ids = declared_nodes(root)
        with warnings.catch_warnings(action="error"):  # networkx warns of elements that it leaves out
            graph: nx.Graph[str] = nx.parse_graphml(text, node_type=str)
    except UserWarning as warning:
        raise ValueError(f"{str(warning).rstrip('.')}: leave it out") from warning
    except (nx.NetworkXException, SyntaxError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
    for lost in ids - set(graph):
        raise ValueError(f"node '{lost}' is inside another node: a fabric has no such groups, move it out")
    return graph


def declared_nodes(root: ElementTree.Element) -> set[str]:
    """Return the ids of all nodes. Raises `ValueError` for duplicates and for an edge to an unknown node."""
    graphs = [element for element in root if local_name(element) == "graph"]
    if len(graphs) > 1:
        raise ValueError(f"it has {len(graphs)} graphs: a fabric is one graph, keep one of them")
    attributes = {key.get("id"): key.get("attr.name") for key in root if local_name(key) == "key"}
    ids: Counter[str] = Counter()
    for element in root.iter():
        kind = local_name(element)
        if kind == "node":
            ids[element.get("id", "")] += 1
        if kind in ("node", "edge"):
            keys = Counter(each.get("key") for each in element if local_name(each) == "data")
            given = Counter(attributes.get(key) or key for key in keys.elements())
            for name in (name for name, times in given.items() if times > 1):
                raise ValueError(f"{described(element)} has two values of '{name}': keep one of them")
    for name in (name for name, times in ids.items() if times > 1):
        raise ValueError(f"node '{name}' is given twice: every node needs its own id")
    for edge in (element for element in root.iter() if local_name(element) == "edge"):
        for end in ("source", "target"):
            if edge.get(end, "") not in ids:
                raise ValueError(f"{described(edge)}: no node has the id '{edge.get(end, '')}'")
    return set(ids)


def local_name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def described(element: ElementTree.Element) -> str:
    if local_name(element) == "node":
        return f"node '{element.get('id', '')}'"
    return f"edge '{element.get('source', '')}'-'{element.get('target', '')}'"


# -- Hosts with several links in a fabric file, converted to hosts with one link each.
#
# A host sends and receives at one port. A host with several links gets a network card: a switch without INA below all
# others, which connects the host to each of its links. No other host's packets pass it, because packets do not climb
# again after they have descended. The host's link to its card has the capacity of all its links together.

CARD = "{host}-nic"


def with_network_cards(record: FabricRecord) -> tuple[FabricRecord, dict[str, str]]:
    """The fabric with a card for each host of several links, and the cards by host.

    Port p of the host becomes port p + 1 of the card; the card's last port leads to the host. All other switches are
    one tier higher. Raises `FabricError` for a host of several links that is linked to a host.
    """
    links = links_of_hosts(record)
    if not links:
        return record, {}
    names = FreshNames(dict.fromkeys([*record.hosts, *record.switches]))
    cards = {host: names.fresh(CARD.format(host=host)) for host in links}
    switches = {name: switch.model_copy(update={"tier": switch.tier + 1}) for name, switch in record.switches.items()}
    switches |= {card: SwitchRecord(tier=1, ina=False) for card in cards.values()}
    own = []  # the link from each host to its card
    for host, found in links.items():
        forth, back = zip(*(capacities(host, link) for link in found), strict=True)
        own.append(LinkRecord(a=host, b=cards[host], capacity=sum(forth), capacity_back=sum(back)))
    moved = [moved_to(cards, link) for link in record.links]
    return record.model_copy(update={"switches": switches, "links": [*moved, *own]}), cards


def links_of_hosts(record: FabricRecord) -> dict[str, list[LinkRecord]]:
    """The links of each host that is joined to several switches, except hosts with two links to one switch."""
    found: dict[str, list[LinkRecord]] = {host: [] for host in record.hosts}
    for link in record.links:
        for host in (end for end in (link.a, link.b) if end in found):
            found[host].append(link)
    several = {host: links for host, links in found.items() if len(links) > 1}
    for host, links in several.items():
        for peer in (end for link in links for end in (link.a, link.b) if end in found and end != host):
            raise FabricError(f"host '{host}' is linked to host '{peer}': a host hangs from switches")
    return {host: links for host, links in several.items() if len({frozenset((x.a, x.b)) for x in links}) == len(links)}


def moved_to(cards: dict[str, str], link: LinkRecord) -> LinkRecord:
    changed: dict[str, str | int] = {}
    for end, port in (("a", link.a_port), ("b", link.b_port)):
        host = getattr(link, end)
        if host in cards:
            changed |= {end: cards[host]} | ({} if port is None else {f"{end}_port": port + 1})
    return link.model_copy(update=changed)


def capacities(host: str, link: LinkRecord) -> tuple[float, float]:
    back = link.capacity if link.capacity_back is None else link.capacity_back
    return (link.capacity, back) if link.a == host else (back, link.capacity)


def told(cards: dict[str, str]) -> str:
    """A line for the report about hosts with several links."""
    host, card = next(iter(cards.items()))
    more = f", and those of {len(cards) - 1} more hosts" if len(cards) > 1 else ""
    return (
        f"host '{host}' has several links: its network card is the switch '{card}', which does not sum{more}; all "
        "other switches are one tier higher"
    )


# -- The graph as a fabric file.

HOST_TYPES = frozenset(("host", "server", "worker", "ps", "endhost", "end-host", "end_host"))
"""The values of `type`, in lower case, that mark a node as a host."""
TYPE_KEYS = ("type", "Type")
SPEED_KEYS = ("LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits")
NUMBERS = ("id", "key")
"""The attributes in which graph tools number nodes and edges."""
SWITCH_KEYS = frozenset(SwitchRecord.model_fields)
LINK_KEYS = frozenset(LinkRecord.model_fields) - {"a", "b"}


class Reading:
    """A graph being read. A graph without hosts gets hosts; a graph without capacities has `capacity_bps` everywhere.

    `fastest_bps`: the fastest link of each node with stated capacities.
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
        """The graph as a fabric file's document (`FabricRecord`), without unknown attributes."""
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
        """Yield one link per pair of nodes, with the sum of parallel edges; a directed edge is one direction."""
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
        """An edge's capacity in bit/s, from its attributes or assumed.

        The key `capacity` itself is read with the other keys.
        """
        told = speed(data)
        if told is not None or "capacity" in data:
            return told or self.usual_bps
        self.silent += 1
        hosts = [end for end in (a, b) if end in self.hosts]
        return self.access_bps(b if hosts == [a] else a) if hosts else self.usual_bps

    def access_bps(self, switch: str) -> float:
        """The assumed capacity of a host's link: that of the fastest link of its switch with a stated capacity."""
        return self.fastest_bps.get(switch) or self.usual_bps

    def told(self) -> Iterator[str]:
        """Yield the parts of a report line about assumptions. Call it after `document`."""
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
                f"{self.silent} of {self.graph.number_of_edges()} links do not state their capacity (`capacity`, "
                f"`LinkSpeedRaw`, or `LinkSpeed` and `LinkSpeedUnits`) and get {given if self.says_rates else usual}; "
                "--capacity sets the capacity of all links"
            )
        if self.parallel:
            yield f"{self.parallel} parallel links are merged into one link each"
        if self.loops:
            yield f"{self.loops} links from a node to itself are omitted"
        yield from self.names.told()
        yield from self.unused()

    def unused(self) -> Iterator[str]:
        """Yield a report of unused attributes."""
        hosts, switches = ((self.graph.nodes[node] for node in nodes) for nodes in (self.hosts, self.switches))
        anywhere = {*NUMBERS, *TYPE_KEYS, *(["label"] if self.names.labelled else [])}
        nodes = keys_beside(hosts, anywhere | {"tier"}) | keys_beside(switches, anywhere | SWITCH_KEYS)
        edges = keys_beside((data for _, _, data in self.graph.edges(data=True)), LINK_KEYS | {*SPEED_KEYS, *NUMBERS})
        found = [f"{', '.join(sorted(keys))} of {what}" for what, keys in (("nodes", nodes), ("links", edges)) if keys]
        if found:
            yield f"not used: {'; '.join(found)}"


def keys_beside(elements: Iterable[dict[str, Any]], known: frozenset[str] | set[str]) -> set[str]:
    """The attributes of the elements that are not in `known`."""
    return {key for data in elements for key in data} - known


def is_host(data: dict[str, Any]) -> bool:
    """Whether a node is a host, by its `tier`, else by its `type`."""
    if "tier" in data:
        with suppress(ValueError):  # the reader of the document reports what is no tier
            return whole(data["tier"]) == 0
        return False
    return any(str(data.get(key, "")).strip().lower() in HOST_TYPES for key in TYPE_KEYS)


def said_bps(data: dict[str, Any]) -> float | None:
    """The stated capacity of an edge in bit/s; None if it is missing or is not a rate."""
    if "capacity" not in data:
        return speed(data)
    with suppress(ValueError):
        return rate(data["capacity"])
    return None


def speed(data: dict[str, Any]) -> float | None:
    """The capacity of an edge of the Topology Zoo in bit/s; None if it is missing."""
    with suppress(ValueError):
        if "LinkSpeedRaw" in data and 0 < (bps := float(data["LinkSpeedRaw"])) < math.inf:
            return bps
        unit = str(data.get("LinkSpeedUnits", "")).strip()[:1].replace("K", "k")
        if unit in RATE_UNITS and unit and 0 < (amount := float(data.get("LinkSpeed", 0))) < math.inf:
            return amount * RATE_UNITS[unit]
    return None


def join(link: dict[str, Any], other: dict[str, Any], *, back: bool) -> bool:
    """Add the capacity of `other` to `link`; `back`: it leads the other way. Returns whether they are parallel."""
    if back and "capacity_back" not in link:
        link["capacity_back"] = other["capacity"]
        return False
    key = "capacity_back" if back else "capacity"
    with suppress(ValueError):  # the reader of the document reports what is no rate
        link[key] = rate(link[key]) + rate(other["capacity"])
    return True


def known_keys(data: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The attributes of a node or edge that are keys of a fabric file."""
    return {key: value for key, value in data.items() if key in known}
