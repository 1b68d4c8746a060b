"""Multicast groups made of nodes and LAGs, as BMv2's packet replication engine keeps them; and mirror sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.entry_check import MAX_SESSION, check_group, check_mirror
from inakit.switch.control.requests import Control, Handles, RefusalKind, Refused, locked
from inakit.switch.entries import MirrorSession, MulticastGroup
from inakit.switch.program.expressions import PORTS
from inakit.topo.errors import InputError

MAX_LAG = 256
LAG_HASH = 0xFF
"""BMv2 hashes no packet: of a LAG's n ports, it always takes the one at this number modulo n."""


@dataclass(frozen=True)
class ReplicationRoom:
    """How many multicast groups and nodes there may be, by default as in simple_switch. A node takes one of each."""

    groups: int = 4096
    nodes: int = 4096
    second_level_nodes: int = 8192


@dataclass(eq=False)
class Node:
    """A node of a group: a packet leaves by each port and by one port of each LAG, with `egress_rid` `replica`."""

    replica: int
    ports: frozenset[int]
    lags: frozenset[int]
    group: int | None = None


class ReplicationControl(Control):
    """Requests for multicast groups and mirror sessions. A group has the number that is its handle."""

    def __init__(self, data_plane: DataPlane) -> None:
        super().__init__(data_plane)
        self.room = ReplicationRoom()
        self.forget_replication()

    def forget_replication(self) -> None:
        """Hold no group, no node, no LAG and no session."""
        self.multicast: dict[int, list[int]] = {}
        self.nodes: Handles[Node] = Handles()
        self.lags: dict[int, frozenset[int]] = {}
        self.sessions: dict[int, MirrorSession] = {}

    def inherit(self, other: ReplicationControl) -> None:
        """Hold what another control plane holds; the data plane has none of it yet."""
        self.multicast, self.nodes, self.lags = other.multicast, other.nodes, other.lags
        self.sessions = other.sessions

    def install_replication(self) -> None:
        """Give the data plane, which has none, all groups and sessions."""
        self.replicate(self.multicast)
        for session in self.sessions.values():
            self.data_plane.put_session(session)

    @locked
    def create_mgrp(self, number: int) -> int:
        """Add a group without nodes, and return its handle; one that is there stays as it is."""
        if len(self.multicast) >= self.room.groups:
            raise Refused(RefusalKind.MC_TABLE_FULL, f"multicast group {number}: there are {self.room.groups} already")
        try:
            check_group(MulticastGroup(number, ()))
        except InputError as error:
            raise Refused(RefusalKind.INVALID_MGID, str(error)) from error
        self.multicast.setdefault(number, [])
        self.replicate([number])
        return number

    @locked
    def destroy_mgrp(self, number: int) -> None:
        """Remove a group, if it is there; its nodes stay, in no group."""
        for handle in self.multicast.pop(number, ()):
            self.nodes[handle].group = None
        self.data_plane.remove_group(number)

    @locked
    def create_node(self, replica: int, ports: Iterable[int], lags: Iterable[int] = ()) -> int:
        """Add a node that is in no group, and return its handle."""
        if len(self.nodes) >= min(self.room.nodes, self.room.second_level_nodes):
            raise Refused(RefusalKind.MC_TABLE_FULL, f"there are {len(self.nodes)} multicast nodes already")
        return self.nodes.take(Node(replica, known_ports(ports), frozenset(lags)))

    @locked
    def associate_node(self, number: int, handle: int) -> None:
        """Put a node that is in no group into one."""
        node, members = self.node(handle), self.group_nodes(number)
        if node.group is not None:
            raise Refused(RefusalKind.MC_ERROR, f"multicast node {handle} is in group {node.group}")
        members.append(handle)
        node.group = number
        self.replicate([number])

    @locked
    def dissociate_node(self, number: int, handle: int) -> None:
        """Take a node out of its group."""
        node, members = self.node(handle), self.group_nodes(number)
        if node.group != number:
            raise Refused(RefusalKind.MC_ERROR, f"multicast node {handle} is not in group {number}")
        members.remove(handle)
        node.group = None
        self.replicate([number])

    @locked
    def update_node(self, handle: int, ports: Iterable[int], lags: Iterable[int] = ()) -> None:
        node = self.node(handle)
        node.ports, node.lags = known_ports(ports), frozenset(lags)
        self.replicate([] if node.group is None else [node.group])

    @locked
    def destroy_node(self, handle: int) -> None:
        """Remove a node, out of its group if it is in one."""
        node = self.node(handle)
        if node.group is not None:
            self.dissociate_node(node.group, handle)
        self.nodes.release(handle)

    @locked
    def put_replicas(self, number: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Let a group, new or not, have exactly these (egress_rid, port), in one step; its nodes are made anew."""
        ports: dict[int, list[int]] = {}
        for replica, port in replicas:
            ports.setdefault(replica, []).append(port)
        old = self.multicast.get(number, [])
        if len(self.nodes) - len(old) + len(ports) > min(self.room.nodes, self.room.second_level_nodes):
            raise Refused(RefusalKind.MC_TABLE_FULL, f"there are {len(self.nodes)} multicast nodes already")
        if number not in self.multicast:
            self.create_mgrp(number)
        nodes = [Node(replica, known_ports(found), frozenset(), number) for replica, found in ports.items()]
        for handle in old:
            self.nodes.release(handle)
        self.multicast[number] = [self.nodes.take(node) for node in nodes]
        self.replicate([number])

    @locked
    def remove_replicas(self, number: int) -> None:
        """Remove a group with its nodes; do nothing if there is none."""
        for handle in self.multicast.get(number, ()):
            self.nodes.release(handle)
        self.multicast.pop(number, None)
        self.data_plane.remove_group(number)

    @locked
    def set_lag(self, number: int, ports: Iterable[int]) -> None:
        if not 0 <= number <= MAX_LAG:
            raise Refused(RefusalKind.MC_ERROR, f"LAG {number}: LAGs are 0 to {MAX_LAG}")
        self.lags[number] = known_ports(ports)
        using = {node.group for node in map(self.nodes.__getitem__, self.nodes) if number in node.lags}
        self.replicate(sorted(group for group in using if group is not None))

    @locked
    def replication(self) -> str:
        """Groups, nodes and LAGs in the JSON of BMv2's `bm_mc_get_entries`."""
        nodes = [(handle, self.nodes[handle]) for handle in self.nodes]
        groups = [{"id": number, "l1_handles": handles} for number, handles in sorted(self.multicast.items())]
        first = [{"handle": handle, "rid": node.replica, "l2_handle": handle} for handle, node in nodes]
        second = [{"handle": handle, "ports": sorted(node.ports), "lags": sorted(node.lags)} for handle, node in nodes]
        lags = [{"id": number, "ports": sorted(ports)} for number, ports in sorted(self.lags.items())]
        return json.dumps({"mgrps": groups, "l1_handles": first, "l2_handles": second, "lags": lags})

    def node(self, handle: int) -> Node:
        """The node of a handle, or a refusal."""
        found = self.nodes.get(handle)
        if found is None:
            raise Refused(RefusalKind.INVALID_L1_HANDLE, f"there is no multicast node {handle}")
        return found

    def group_nodes(self, number: int) -> list[int]:
        """The nodes of a group, as they were put into it; or a refusal."""
        if number not in self.multicast:
            raise Refused(RefusalKind.INVALID_MGRP_HANDLE, f"there is no multicast group {number}")
        return self.multicast[number]

    def replicate(self, groups: Iterable[int]) -> None:
        """Let the data plane replicate by these groups as they are now."""
        for number in groups:
            nodes = [self.nodes[handle] for handle in self.multicast[number]]
            replicas = tuple((node.replica, port) for node in nodes for port in self.ports_of(node))
            self.data_plane.put_group(MulticastGroup(number, (), replicas, ordered=True))

    def ports_of(self, node: Node) -> list[int]:
        """The ports by which a packet leaves for a node, in order."""
        found = [sorted(self.lags.get(lag, ())) for lag in sorted(node.lags)]
        return [*sorted(node.ports), *(ports[LAG_HASH % len(ports)] for ports in found if ports)]

    @locked
    def put_session(self, session: MirrorSession) -> None:
        """Add a mirror session, or replace the one of this number."""
        try:
            check_mirror(session)
        except InputError as error:
            raise Refused(RefusalKind.SESSION_NOT_FOUND, str(error)) from error
        self.data_plane.put_session(session)
        self.sessions[session.session] = session

    @locked
    def remove_session(self, number: int) -> None:
        """Remove a mirror session."""
        self.session(number)
        self.data_plane.remove_session(number)
        del self.sessions[number]

    @locked
    def session(self, number: int) -> MirrorSession:
        if number not in self.sessions:
            why = f"there is no mirror session {number} (sessions are 0 to {MAX_SESSION})"
            raise Refused(RefusalKind.SESSION_NOT_FOUND, why)
        return self.sessions[number]


def known_ports(ports: Iterable[int]) -> frozenset[int]:
    """The ports, if all of them can be ports of a switch; or a refusal."""
    found = frozenset(ports)
    if any(not 0 <= port < PORTS for port in found):
        raise Refused(RefusalKind.MC_ERROR, f"ports {sorted(found)}: ports are 0 to {PORTS - 1}")
    return found
