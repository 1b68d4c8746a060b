"""Hosts with several links: what a fabric file says of them, as a fabric whose hosts have one link each.

A host sends and receives at one port. One with more links gets a network card: a switch that does not sum, below all
others, by which the host reaches each of its links and nobody else passes, because packets do not climb again after
they have descended. The host's link to its card carries what all of its links carry together.
"""

from __future__ import annotations

from inakit.topo.errors import FabricError
from inakit.topo.files.fabric_records import FabricRecord, LinkRecord, SwitchRecord
from inakit.topo.files.graph_names import FreshNames

CARD = "{host}-nic"


def with_network_cards(record: FabricRecord) -> tuple[FabricRecord, dict[str, str]]:
    """The fabric with a card for each host of several links, and the cards by host.

    The card's ports are the host's and one more each: 1 for port 0, 2 for port 1; that to the host is the last. All
    other switches are one tier higher. Raises `FabricError` for a host of several links that is linked to a host.
    """
    links = links_of_hosts(record)
    if not links:
        return record, {}
    names = FreshNames(dict.fromkeys([*record.hosts, *record.switches]))
    cards = {host: names.fresh(CARD.format(host=host)) for host in links}
    switches = {name: switch.model_copy(update={"tier": switch.tier + 1}) for name, switch in record.switches.items()}
    switches |= {card: SwitchRecord(tier=1, ina=False) for card in cards.values()}
    own = [host_link(host, cards[host], found) for host, found in links.items()]
    moved = [moved_to(cards, link) for link in record.links]
    return record.model_copy(update={"switches": switches, "links": [*moved, *own]}), cards


def links_of_hosts(record: FabricRecord) -> dict[str, list[LinkRecord]]:
    """The links of each host that leads to several switches. One that is joined to a switch twice is not among them."""
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
    """The link with the card of a host in its place."""
    changed: dict[str, str | int] = {}
    for end, port in (("a", link.a_port), ("b", link.b_port)):
        host = getattr(link, end)
        if host in cards:
            changed |= {end: cards[host]} | ({} if port is None else {f"{end}_port": port + 1})
    return link.model_copy(update=changed)


def host_link(host: str, card: str, links: list[LinkRecord]) -> LinkRecord:
    """The link from a host to its card."""
    forth, back = zip(*(capacities(host, link) for link in links), strict=True)
    return LinkRecord(a=host, b=card, capacity=sum(forth), capacity_back=sum(back))


def capacities(host: str, link: LinkRecord) -> tuple[float, float]:
    """What a link of a host carries from it, and to it."""
    back = link.capacity if link.capacity_back is None else link.capacity_back
    return (link.capacity, back) if link.a == host else (back, link.capacity)


def told(cards: dict[str, str]) -> str:
    """What was made of hosts with several links, for one line of a report."""
    host, card = next(iter(cards.items()))
    more = f", and those of {len(cards) - 1} more hosts" if len(cards) > 1 else ""
    return (
        f"host '{host}' has several links: its network card is the switch '{card}', which does not sum{more}; all "
        "other switches are one tier higher"
    )
