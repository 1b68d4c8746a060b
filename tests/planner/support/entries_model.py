"""A model of `p4/ina.p4` that reads `Entries`: one packet at a time over a fabric, values as multisets of workers.

It looks up the same tables with the same keys as the program and keeps the same slots; a missing entry drops
the packet and is remembered in `dropped`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace

from inakit.planner.install.ina_program import POLICY_REPAIR, POLICY_ROOT
from inakit.switch.entries import Entries, SwitchEntries
from inakit.topo.fabric.fabric import Fabric, addresses

GRADIENT, RESULT, NOTICE = 1, 2, 3


@dataclass(frozen=True)
class Packet:
    """A packet: `workers` counts those whose gradients are summed in it, `to` is the host of its IPv4 destination."""

    kind: int
    job: int
    tree: int
    label: int
    workers: Counter[str] = field(default_factory=Counter)
    to: str = ""
    retransmitted: bool = False
    partial: bool = False
    collision: bool = False
    direct: bool = False


@dataclass
class Slot:
    owner: tuple[int, int]
    bitmap: int
    workers: Counter[str]


@dataclass(frozen=True)
class Aggregate:
    """The parameters of the action `aggregate`."""

    child: int
    full: int
    first_slot: int
    slots: int
    own_label: int
    window: int
    policy: int


class Tables:
    """One switch's entries by table and key. Twice the same key is a mistake that BMv2 would refuse."""

    def __init__(self, entries: SwitchEntries) -> None:
        self.rows: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {}
        for entry in entries.tables:
            table = self.rows.setdefault(entry.table.removeprefix("InaIngress."), {})
            assert entry.key not in table, f"{entries.switch}: {entry.table} has {entry.key} twice"
            table[entry.exact_key] = entry.params
        self.groups = {group.group: group.ports for group in entries.groups}

    def get(self, table: str, *key: int) -> tuple[int, ...] | None:
        return self.rows.get(table, {}).get(key)


class Network:
    """Switches with their entries and free slots. `received[host]` holds the packets that came to a host.

    `links` counts packets by directed link, `kept` results in the slots of each switch and pipeline.
    """

    def __init__(self, fabric: Fabric, entries: Entries) -> None:
        self.fabric = fabric
        self.tables = {switch.switch: Tables(switch) for switch in entries.switches}
        self.ipv4 = {host: address.ipv4 for host, address in addresses(fabric).items()}
        self.peers = {(node, port): peer for (node, peer), port in fabric.port_numbers.items()}
        self.clear()

    def clear(self) -> None:
        """Free all slots and forget all packets."""
        self.slots: dict[tuple[str, int, int], Slot] = {}
        self.received: dict[str, list[Packet]] = {host: [] for host in self.fabric.host_names}
        self.links: Counter[tuple[str, str]] = Counter()
        self.dropped: list[tuple[str, str, Packet]] = []
        self.kept: Counter[tuple[str, int]] = Counter()

    def cleared(self) -> Network:
        """Another network with the same entries, to which nothing has been sent."""
        network = copy(self)
        network.clear()
        return network

    def send(self, host: str, packet: Packet) -> None:
        """Send a packet from `host`, and carry it and all that it causes to their ends."""
        self.carry(host, self.fabric.tor_of(host), packet)

    def carry(self, node: str, peer: str, packet: Packet) -> None:
        self.links[node, peer] += 1
        if peer in self.received:
            self.received[peer].append(packet)
        else:
            self.ingress(peer, self.fabric.port_numbers[peer, node], packet)

    def drop(self, switch: str, table: str, packet: Packet) -> None:
        self.dropped.append((switch, table, packet))

    def ingress(self, switch: str, port: int, packet: Packet) -> None:
        tables = self.tables.get(switch) or Tables(SwitchEntries(switch))
        pipeline = tables.get("pipeline", port)
        tree = (packet.job, packet.tree)
        if tables.get("admission", port, packet.kind, *tree, packet.label) is None:
            return self.drop(switch, "admission", packet)
        if packet.kind != GRADIENT:
            found = tables.get("aggregation", *(pipeline or ()), *tree, packet.label)
            if found and packet.kind == RESULT and Aggregate(*found).policy & POLICY_REPAIR:
                self.kept[switch, pipeline[0] if pipeline else 0] += 1
            return (
                self.by_address(switch, tables, packet)
                if packet.retransmitted
                else self.by_tree(switch, tables, packet)
            )
        if packet.direct:
            return self.by_address(switch, tables, packet)
        assert pipeline is not None, f"{switch} knows no pipeline of port {port}"
        found = tables.get("aggregation", *pipeline, *tree, packet.label)
        if found is None or packet.partial:
            return self.by_label(switch, tables, packet)
        return self.aggregate(switch, tables, (switch, pipeline[0], found[2]), Aggregate(*found), packet)

    def aggregate(
        self, switch: str, tables: Tables, index: tuple[str, int, int], entry: Aggregate, packet: Packet
    ) -> None:
        slot = self.slots.get(index)
        matches = slot is not None and slot.owner == (packet.job, packet.tree)
        if slot is not None and matches and (slot.bitmap & entry.child or not entry.child):
            if packet.retransmitted:
                self.release(switch, tables, index, entry, packet)
            elif not entry.child:
                self.by_label(switch, tables, packet)
        elif not matches and (not entry.child or packet.retransmitted):
            self.by_label(switch, tables, packet)
        elif slot is not None and not matches:
            self.by_label(switch, tables, replace(packet, collision=True))
        else:
            slot = self.slots.setdefault(index, Slot((packet.job, packet.tree), 0, Counter()))
            slot.bitmap |= entry.child
            slot.workers += packet.workers
            if slot.bitmap == entry.full or packet.retransmitted:
                self.release(switch, tables, index, entry, packet)

    def release(
        self, switch: str, tables: Tables, index: tuple[str, int, int], entry: Aggregate, packet: Packet
    ) -> None:
        slot = self.slots.pop(index)
        complete = slot.bitmap == entry.full
        total = replace(packet, label=entry.own_label, workers=slot.workers, partial=not complete)
        if complete and entry.policy & POLICY_ROOT:
            self.by_tree(switch, tables, replace(total, kind=RESULT))
        else:
            self.by_label(switch, tables, total)

    def by_label(self, switch: str, tables: Tables, packet: Packet) -> None:
        self.out(switch, "forward", tables.get("forward", packet.job, packet.tree, packet.label), packet)

    def by_address(self, switch: str, tables: Tables, packet: Packet) -> None:
        self.out(switch, "ipv4_route", tables.get("ipv4_route", self.ipv4[packet.to]), packet)

    def by_tree(self, switch: str, tables: Tables, packet: Packet) -> None:
        group = tables.get("results", packet.job, packet.tree)
        self.out(switch, "results", tables.groups.get(group[0]) if group else None, packet)

    def out(self, switch: str, table: str, ports: Iterable[int] | None, packet: Packet) -> None:
        if ports is None:
            self.drop(switch, table, packet)
        for port in ports or ():
            self.carry(switch, self.peers[switch, port], packet)
