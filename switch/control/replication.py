"""Multicast groups of nodes and LAGs, as in BMv2's packet replication engine; and mirror sessions.

P4Runtime calls a mirror session a clone session. BF-Runtime has groups and nodes as entries of fixed tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from inakit.switch.control.codecs import (
    Call,
    Code,
    Codec,
    Command,
    Fault,
    Fields,
    Message,
    ReadArgument,
    copy_of,
    decode,
    invalid,
    not_found,
    within,
)
from inakit.switch.control.entry_check import MAX_REPLICA, MAX_SESSION, check_group, check_mirror
from inakit.switch.control.requests import Core, Entities, Handles, RefusalKind, Refused, locked
from inakit.switch.control.tables import Document, bfrt_number
from inakit.switch.entries import MirrorSession, MulticastGroup, group_of_nodes
from inakit.switch.program.program import PORTS
from inakit.topo.errors import InputError

MAX_LAG = 256
LAG_HASH = 0xFF
"""BMv2 hashes no packet: it always takes port number `LAG_HASH` modulo n of a LAG's n ports."""


@dataclass(frozen=True)
class ReplicationRoom:
    """The greatest numbers of multicast groups and nodes, as in simple_switch. A node counts on both levels."""

    groups: int = 4096
    nodes: int = 4096
    second_level_nodes: int = 8192


@dataclass(eq=False)
class Node:
    """A node of a group: a packet leaves by each port, and by one port of each LAG, with the `egress_rid` `replica`."""

    replica: int
    ports: frozenset[int]
    lags: frozenset[int]
    group: int | None = None


class Replication(Entities):
    """Requests for multicast groups and mirror sessions. The number of a group is its handle."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.room = ReplicationRoom()
        self.forget()

    def forget(self) -> None:
        """Remove all groups, nodes, LAGs and sessions."""
        self.multicast: dict[int, list[int]] = {}
        self.nodes: Handles[Node] = Handles()
        self.lags: dict[int, frozenset[int]] = {}
        self.sessions: dict[int, MirrorSession] = {}

    def inherit(self, other: Replication) -> None:
        """Take over all entities of another control plane without installing them."""
        self.multicast, self.nodes, self.lags = other.multicast, other.nodes, other.lags
        self.sessions = other.sessions

    def install(self) -> None:
        """Install all groups and sessions in an empty data plane."""
        self.replicate(self.multicast)
        for session in self.sessions.values():
            self.data_plane.put_session(session)

    @locked
    def create_group(self, group: int) -> int:
        """Add a group without nodes unless it exists, and return its handle."""
        if len(self.multicast) >= self.room.groups:
            raise Refused(
                RefusalKind.MC_TABLE_FULL, f"multicast group {group}: {self.room.groups} groups exist already"
            )
        try:
            check_group(MulticastGroup(group, ()))
        except InputError as error:
            raise Refused(RefusalKind.INVALID_MGID, str(error)) from error
        self.multicast.setdefault(group, [])
        self.replicate([group])
        return group

    @locked
    def destroy_group(self, group: int) -> None:
        """Remove a group if it exists; its nodes stay, in no group."""
        for handle in self.multicast.pop(group, ()):
            self.nodes[handle].group = None
        self.data_plane.remove_group(group)

    @locked
    def create_node(self, replica: int, ports: Iterable[int], lags: Iterable[int] = ()) -> int:
        """Add a node that is in no group, and return its handle."""
        if len(self.nodes) >= min(self.room.nodes, self.room.second_level_nodes):
            raise Refused(RefusalKind.MC_TABLE_FULL, f"there are {len(self.nodes)} multicast nodes already")
        return self.nodes.take(Node(replica, known_ports(ports), frozenset(lags)))

    @locked
    def associate(self, group: int, node: int) -> None:
        """Put a node that is in no group into one."""
        held, members = self.node(node), self.group_nodes(group)
        if held.group is not None:
            raise Refused(RefusalKind.MC_ERROR, f"multicast node {node} is in group {held.group}")
        members.append(node)
        held.group = group
        self.replicate([group])

    @locked
    def dissociate(self, group: int, node: int) -> None:
        """Take a node out of its group."""
        held, members = self.node(node), self.group_nodes(group)
        if held.group != group:
            raise Refused(RefusalKind.MC_ERROR, f"multicast node {node} is not in group {group}")
        members.remove(node)
        held.group = None
        self.replicate([group])

    @locked
    def update_node(self, node: int, ports: Iterable[int], lags: Iterable[int] = ()) -> None:
        held = self.node(node)
        held.ports, held.lags = known_ports(ports), frozenset(lags)
        self.replicate([] if held.group is None else [held.group])

    @locked
    def destroy_node(self, node: int) -> None:
        """Destroy a node, after removing it from its group."""
        held = self.node(node)
        if held.group is not None:
            self.dissociate(held.group, node)
        self.nodes.release(node)

    @locked
    def put_replicas(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Set the (egress_rid, port) pairs of a new or existing group in one step; its nodes are replaced."""
        ports: dict[int, list[int]] = {}
        for replica, port in replicas:
            ports.setdefault(replica, []).append(port)
        old = self.multicast.get(group, [])
        if len(self.nodes) - len(old) + len(ports) > min(self.room.nodes, self.room.second_level_nodes):
            raise Refused(RefusalKind.MC_TABLE_FULL, f"there are {len(self.nodes)} multicast nodes already")
        if group not in self.multicast:
            self.create_group(group)
        nodes = [Node(replica, known_ports(found), frozenset(), group) for replica, found in ports.items()]
        for handle in old:
            self.nodes.release(handle)
        self.multicast[group] = [self.nodes.take(node) for node in nodes]
        self.replicate([group])

    @locked
    def remove_replicas(self, group: int) -> None:
        """Remove a group with its nodes; do nothing if there is none."""
        for handle in self.multicast.get(group, ()):
            self.nodes.release(handle)
        self.multicast.pop(group, None)
        self.data_plane.remove_group(group)

    @locked
    def set_lag(self, lag: int, ports: Iterable[int]) -> None:
        if not 0 <= lag <= MAX_LAG:
            raise Refused(RefusalKind.MC_ERROR, f"LAG {lag}: LAGs are 0 to {MAX_LAG}")
        self.lags[lag] = known_ports(ports)
        using = {node.group for node in map(self.nodes.__getitem__, self.nodes) if lag in node.lags}
        self.replicate(sorted(group for group in using if group is not None))

    @locked
    def dump(self) -> str:
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
        """The nodes of a group in the order in which they were added; or a refusal."""
        if number not in self.multicast:
            raise Refused(RefusalKind.INVALID_MGRP_HANDLE, f"there is no multicast group {number}")
        return self.multicast[number]

    def replicate(self, groups: Iterable[int]) -> None:
        """Install groups in their present state."""
        for number in groups:
            nodes = [self.nodes[handle] for handle in self.multicast[number]]
            replicas = tuple((node.replica, port) for node in nodes for port in self.ports_of(node))
            self.data_plane.put_group(MulticastGroup(number, (), replicas, ordered=True))

    def ports_of(self, node: Node) -> list[int]:
        """The ports by which copies leave for a node, in order."""
        found = [sorted(self.lags.get(lag, ())) for lag in sorted(node.lags)]
        return [*sorted(node.ports), *(ports[LAG_HASH % len(ports)] for ports in found if ports)]

    @locked
    def put_session(self, session: MirrorSession) -> None:
        """Add a mirror session, or replace the one with this number."""
        try:
            check_mirror(session)
        except InputError as error:
            raise Refused(RefusalKind.SESSION_NOT_FOUND, str(error)) from error
        self.data_plane.put_session(session)
        self.sessions[session.session] = session

    @locked
    def remove_session(self, session: int) -> None:
        """Remove a mirror session."""
        self.session(session)
        self.data_plane.remove_session(session)
        del self.sessions[session]

    @locked
    def session(self, session: int) -> MirrorSession:
        if session not in self.sessions:
            why = f"there is no mirror session {session} (sessions are 0 to {MAX_SESSION})"
            raise Refused(RefusalKind.SESSION_NOT_FOUND, why)
        return self.sessions[session]


def known_ports(ports: Iterable[int]) -> frozenset[int]:
    """The ports; a refusal if one of them cannot be a port of a switch."""
    found = frozenset(ports)
    if any(not 0 <= port < PORTS for port in found):
        raise Refused(RefusalKind.MC_ERROR, f"ports {sorted(found)}: ports are 0 to {PORTS - 1}")
    return found


# simple_switch_CLI


def mirror(replication: Replication, session: int, port: int | None = None, group: int | None = None) -> None:
    """Add a session whose clones leave by a port or by a multicast group."""
    replication.put_session(MirrorSession(session, port, group))


COMMANDS = {
    "mc_mgrp_create": Command("GROUP", Replication.create_group),
    "mc_mgrp_destroy": Command("GROUP", Replication.destroy_group),
    "mc_node_create": Command("REPLICA PORT... [| LAG...]", Replication.create_node),
    "mc_node_update": Command("NODE PORT... [| LAG...]", Replication.update_node),
    "mc_node_destroy": Command("NODE", Replication.destroy_node),
    "mc_node_associate": Command("GROUP NODE", Replication.associate),
    "mc_node_dissociate": Command("GROUP NODE", Replication.dissociate),
    "mc_set_lag_membership": Command("LAG PORT...", Replication.set_lag),
    "mirroring_add": Command("SESSION PORT", mirror),
    "mirroring_add_mc": Command("SESSION GROUP", mirror),
    "mirroring_delete": Command("SESSION", Replication.remove_session),
}


# Thrift: ports and LAGs are maps of ones and zeros


def read_map(name: str, bits: str) -> Mapping[str, object]:
    """The positions of 1 in a map; its last character is number 0."""
    if bits.strip("01"):
        raise Refused(RefusalKind.MC_ERROR, f"a map of ports is written in 0 and 1, not '{bits}'")
    return {name: [number for number, bit in enumerate(reversed(bits)) if bit == "1"]}


ARGUMENTS: dict[str, ReadArgument] = {
    "ports": lambda bits, *_: read_map("ports", bits),
    "lags": lambda bits, *_: read_map("lags", bits),
    "config": lambda config, *_: {"port": config.port, "group": config.mgid},
}

CALLS = {
    "bm_mc_mgrp_create": Call(Replication.create_group),
    "bm_mc_mgrp_destroy": Call(Replication.destroy_group),
    "bm_mc_node_create": Call(Replication.create_node),
    "bm_mc_node_associate": Call(Replication.associate),
    "bm_mc_node_dissociate": Call(Replication.dissociate),
    "bm_mc_node_destroy": Call(Replication.destroy_node),
    "bm_mc_node_update": Call(Replication.update_node),
    "bm_mc_set_lag_membership": Call(Replication.set_lag),
    "bm_mc_get_entries": Call(Replication.dump),
}


def mirror_if_possible(replication: Replication, session: int, port: int | None, group: int | None) -> None:
    """Add a session; like BMv2, ignore a number that is out of range."""
    if 0 <= session <= MAX_SESSION:
        mirror(replication, session, port, group)


def add_mapping(replication: Replication, session: int, port: int) -> int:
    """Add a session; 1 on success, else 0."""
    with suppress(Refused):
        mirror(replication, session, port)
        return 1
    return 0


def delete_mapping(replication: Replication, session: int) -> int:
    """Remove a session: 1 if it existed, else 0."""
    with suppress(Refused):
        replication.remove_session(session)
        return 1
    return 0


def port_of_mapping(replication: Replication, session: int) -> int:
    """The port of a session; -1 if it has none."""
    port = replication.sessions[session].port if session in replication.sessions else None
    return -1 if port is None else port


SESSION_CALLS = {
    "mirroring_session_add": Call(mirror_if_possible),
    "mirroring_session_delete": Call(Replication.remove_session),
    "mirroring_session_get": Call(Replication.session, answer=lambda types, each: types.Session(each.port, each.group)),
    "mirroring_mapping_add": Call(add_mapping),
    "mirroring_mapping_delete": Call(delete_mapping),
    "mirroring_mapping_get_egress_port": Call(port_of_mapping),
}


# P4Runtime: the replicas of clone sessions are the multicast groups from `FIRST_OF_SESSIONS` on, as in
# simple_switch_grpc; clients have the groups below


FIRST_OF_SESSIONS = 1 << 15
"""The multicast group of clone session 0; clients' groups are below it."""

SDN_CPU_PORT = 0xFFFFFFFD
"""The number by which controllers name the CPU port of any target."""

MOST_CLASSES = 256
GROUP, SESSION = "multicast_group_entry", "clone_session_entry"


class ReplicationCodec(Codec):
    """`PacketReplicationEngineEntry`; `known` holds the groups and sessions written by clients, by number."""

    member = "packet_replication_engine_entry"

    def __init__(self, replication: Replication, cpu_port: int | None) -> None:
        self.replication, self.cpu_port = replication, cpu_port
        self.known: dict[str, dict[int, Message]] = {GROUP: {}, SESSION: {}}

    def insert(self, message: Message) -> None:
        """Add a group or a session."""
        kind, number, entry = parts_of(message)
        if number in self.known[kind]:
            raise Fault(Code.ALREADY_EXISTS, f"{kind} {number} already exists")
        self.put(kind, number, entry)

    def modify(self, message: Message) -> None:
        """Change the replicas of a group or a session."""
        kind, number, entry = parts_of(message)
        self.expect(kind, number)
        self.put(kind, number, entry)

    def delete(self, message: Message) -> None:
        """Remove a group or a session."""
        kind, number, _ = parts_of(message)
        self.expect(kind, number)
        if kind == SESSION:
            self.replication.remove_session(number)
        self.replication.remove_replicas(number if kind == GROUP else FIRST_OF_SESSIONS + number)
        del self.known[kind][number]

    def expect(self, kind: str, number: int) -> None:
        """Raise a fault if there is no such group or session."""
        if number not in self.known[kind]:
            raise not_found(f"there is no {kind} {number}")

    def put(self, kind: str, number: int, entry: Message) -> None:
        """Add a group or a session, or replace the one with its number."""
        replicas = self.replicas(entry)
        if kind == GROUP:
            within(number, 1, FIRST_OF_SESSIONS - 1, "multicast_group_id")
            self.replication.put_replicas(number, replicas)
        else:
            within(number, 1, MAX_SESSION, "session_id")
            within(entry.class_of_service, 0, MOST_CLASSES - 1, "class_of_service")
            if entry.packet_length_bytes < 0:
                raise invalid(f"packet_length_bytes: {entry.packet_length_bytes} is negative")
            self.put_session(number, replicas, entry.packet_length_bytes)
        self.known[kind][number] = copy_of(entry)

    def put_session(self, number: int, replicas: list[tuple[int, int]], length: int) -> None:
        """Set the (instance, port) pairs of a session's clones, which are cut to `length` bytes unless it is 0."""
        if len(replicas) == 1 and replicas[0][0] == 0:
            self.replication.put_session(MirrorSession(number, replicas[0][1], size_bytes=length))
            self.replication.remove_replicas(FIRST_OF_SESSIONS + number)
            return
        self.replication.put_replicas(FIRST_OF_SESSIONS + number, replicas)
        self.replication.put_session(MirrorSession(number, group=FIRST_OF_SESSIONS + number, size_bytes=length))

    def replicas(self, entry: Message) -> list[tuple[int, int]]:
        """The (instance, port) of every replica; a fault if one is out of range or a duplicate."""
        found = []
        for replica in entry.replicas:
            if replica.backup_replicas:
                raise Fault(Code.UNIMPLEMENTED, "backup replicas are not supported: let the controller change groups")
            found.append((within(replica.instance, 0, MAX_REPLICA, "instance of a replica"), self.port(replica)))
        if len(set(found)) < len(found):
            raise invalid("a replica of the same port and instance is given twice")
        return found

    def port(self, replica: Message) -> int:
        kind = replica.WhichOneof("port_kind")
        if kind is None:
            raise invalid("a replica has no port")
        given = replica.egress_port if kind == "egress_port" else decode(replica.port, 32, "port of a replica")
        port = self.cpu_port if given == SDN_CPU_PORT and self.cpu_port is not None else given
        return within(int(port), 0, PORTS - 1, "port of a replica")

    def read(self, message: Message) -> Iterator[Fields]:
        """One group or session, all groups, or all sessions."""
        kind, number, _ = parts_of(message)
        known = self.known[kind]
        found = [known[number]] if number in known else [] if number else list(known.values())
        return iter([{kind: each} for each in found])


def parts_of(message: Message) -> tuple[str, int, Message]:
    """The kind of an entity (group or session), its number, and its message; a fault if it is neither."""
    kind = message.WhichOneof("type")
    if kind is None:
        raise invalid("packet_replication_engine_entry: it has neither a multicast group nor a clone session")
    entry = getattr(message, kind)
    return kind, int(entry.multicast_group_id if kind == GROUP else entry.session_id), entry


def group_fields(group: MulticastGroup) -> Fields:
    """The `PacketReplicationEngineEntry` of a group."""
    replicas = [{"egress_port": port, "instance": replica} for replica, port in group.replicas]
    return {GROUP: {"multicast_group_id": group.group, "replicas": replicas}}


def group_of_message(message: Message) -> MulticastGroup:
    """The group of a `MulticastGroupEntry`."""
    replicas = [(each.instance, each.egress_port) for each in message.replicas]
    return group_of_nodes(message.multicast_group_id, replicas)


# BF-Runtime: entries of the fixed tables for nodes (the copies with one replica number) and for groups (of nodes)


BFRT_NODE, BFRT_GROUP = "$pre.node", "$pre.mgid"


def group_documents(groups: Sequence[MulticastGroup]) -> Iterator[Document]:
    """The nodes of all groups, numbered from 1, then the groups."""
    nodes = [(group.group, *run) for group in groups for run in group.runs()]
    for number, (_, replica, ports) in enumerate(nodes, start=1):
        data = {"$MULTICAST_RID": replica, "$MULTICAST_LAG_ID": [], "$DEV_PORT": list(ports)}
        yield {"table_name": BFRT_NODE, "action": None, "key": {"$MULTICAST_NODE_ID": number}, "data": data}
    for group in groups:
        own = [number for number, node in enumerate(nodes, start=1) if node[0] == group.group]
        data = {"$MULTICAST_NODE_ID": own}
        data |= {"$MULTICAST_NODE_L1_XID_VALID": [False] * len(own), "$MULTICAST_NODE_L1_XID": [0] * len(own)}
        yield {"table_name": BFRT_GROUP, "action": None, "key": {"$MGID": group.group}, "data": data}


def groups_of_documents(listed: Sequence[Document]) -> Iterator[MulticastGroup]:
    """The groups among the entries of a switch."""
    of_nodes = (each for each in listed if each["table_name"] == BFRT_NODE)
    nodes = {bfrt_number(each["key"]["$MULTICAST_NODE_ID"]): each["data"] for each in of_nodes}
    for each in (each for each in listed if each["table_name"] == BFRT_GROUP):
        own = [nodes[bfrt_number(node)] for node in each["data"]["$MULTICAST_NODE_ID"]]
        copies = [
            (bfrt_number(node["$MULTICAST_RID"]), bfrt_number(port)) for node in own for port in node["$DEV_PORT"]
        ]
        yield group_of_nodes(bfrt_number(each["key"]["$MGID"]), copies)
