"""Commands that make multicast groups and mirror sessions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from switch.control.commands.command import Command
from switch.control.commands.handles import Handles
from switch.control.commands.words import parse_number
from switch.entries import MirrorSession, MulticastGroup, group_of_nodes

Node = tuple[int, tuple[int, ...]]
"""The `egress_rid` of a multicast node, and its ports."""


class WrittenReplication:
    """The groups, nodes and mirror sessions that commands have made so far.

    A group is complete only when all commands are read. `taken` are the groups and sessions that have been given away.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        self.nodes: Handles[Node] = Handles("multicast node")
        self.groups: dict[int, list[int]] = {}
        self.sessions: dict[int, MirrorSession] = {}
        self.changed_groups: dict[int, None] = {}
        self.changed_sessions: dict[int, None] = {}
        self.taken: set[tuple[str, int]] = set()

    def take_groups(self) -> tuple[MulticastGroup, ...]:
        """The groups that are new or changed since the last call."""
        taken = tuple(self.group(number) for number in self.changed_groups)
        self.taken |= {("group", number) for number in self.changed_groups}
        self.changed_groups.clear()
        return taken

    def take_sessions(self) -> tuple[MirrorSession, ...]:
        """The mirror sessions that are new or changed since the last call."""
        taken = tuple(self.sessions[number] for number in self.changed_sessions)
        self.taken |= {("session", number) for number in self.changed_sessions}
        self.changed_sessions.clear()
        return taken

    def group(self, number: int) -> MulticastGroup:
        """A group with the replicas of its nodes."""
        nodes = [self.nodes.at(handle) for handle in self.groups[number]]
        return group_of_nodes(number, chain(*([(rid, port) for port in ports] for rid, ports in nodes)))

    def create_group(self, words: Sequence[str]) -> None:
        """`mc_mgrp_create`: a new group, which has no nodes yet."""
        (word,) = words
        self.groups[parse_number(word)] = []
        self.changed_groups[parse_number(word)] = None

    def destroy_group(self, words: Sequence[str]) -> None:
        """`mc_mgrp_destroy`."""
        (word,) = words
        self.nodes_of(parse_number(word))
        self.check_not_taken("group", parse_number(word))
        del self.groups[parse_number(word)], self.changed_groups[parse_number(word)]

    def create_node(self, words: Sequence[str]) -> None:
        """`mc_node_create`: the `egress_rid` of its replicas and their ports."""
        self.nodes.add(parse_node(words))

    def update_node(self, words: Sequence[str]) -> None:
        """`mc_node_update`: other ports for a node."""
        handle, *ports = words
        rid, _ = self.nodes.at(parse_number(handle))
        self.nodes.change(parse_number(handle), parse_node([str(rid), *ports]))
        self.note_groups_of(parse_number(handle))

    def destroy_node(self, words: Sequence[str]) -> None:
        """`mc_node_destroy`; the node leaves its groups."""
        (word,) = words
        handle = parse_number(word)
        self.nodes.at(handle)
        self.note_groups_of(handle)
        for nodes in self.groups.values():
            nodes[:] = [node for node in nodes if node != handle]
        self.nodes.remove(handle)

    def associate(self, words: Sequence[str]) -> None:
        """`mc_node_associate`: a node joins a group; both must have been created."""
        group, node = map(parse_number, words)
        self.nodes.at(node)
        self.nodes_of(group).append(node)
        self.changed_groups[group] = None

    def dissociate(self, words: Sequence[str]) -> None:
        """`mc_node_dissociate`: a node leaves a group."""
        group, node = map(parse_number, words)
        self.nodes_of(group).remove(node)
        self.changed_groups[group] = None

    def mirror_to_port(self, words: Sequence[str]) -> None:
        """`mirroring_add`: a session whose clones leave by one port."""
        session, port = map(parse_number, words)
        self.put_session(MirrorSession(session, port))

    def mirror_to_group(self, words: Sequence[str]) -> None:
        """`mirroring_add_mc`: a session whose clones leave by a multicast group."""
        session, group = map(parse_number, words)
        self.put_session(MirrorSession(session, group=group))

    def delete_session(self, words: Sequence[str]) -> None:
        """`mirroring_delete`."""
        (word,) = words
        session = parse_number(word)
        if session not in self.sessions:
            raise ValueError(f"there is no mirror session {session} yet")
        self.check_not_taken("session", session)
        del self.sessions[session], self.changed_sessions[session]

    def put_session(self, session: MirrorSession) -> None:
        """Keep a session, instead of one of the same number."""
        self.sessions[session.session] = session
        self.changed_sessions[session.session] = None

    def nodes_of(self, group: int) -> list[int]:
        """The nodes of a group; `ValueError` if it has not been created."""
        if group not in self.groups:
            raise ValueError(f"there is no multicast group {group} yet: create it first")
        return self.groups[group]

    def note_groups_of(self, node: int) -> None:
        """Keep in mind that the groups with this node change."""
        self.changed_groups |= {group: None for group, nodes in self.groups.items() if node in nodes}

    def check_not_taken(self, kind: str, number: int) -> None:
        """Raise `ValueError` if the switch has this group or session already: nothing here can take it away."""
        if (kind, number) in self.taken:
            raise ValueError(f"{kind} {number} is in the switch already: it can be changed, not removed")


def parse_node(words: Sequence[str]) -> Node:
    """The node in `RID PORT...`; `ValueError` for link aggregation groups."""
    if "|" in words:
        raise ValueError("link aggregation groups are not supported: list the ports themselves")
    rid, *ports = map(parse_number, words)
    return rid, tuple(ports)


COMMANDS: dict[str, Command[WrittenReplication]] = {
    "mc_mgrp_create": Command("GROUP", WrittenReplication.create_group),
    "mc_mgrp_destroy": Command("GROUP", WrittenReplication.destroy_group),
    "mc_node_create": Command("REPLICA PORT...", WrittenReplication.create_node),
    "mc_node_update": Command("NODE PORT...", WrittenReplication.update_node),
    "mc_node_destroy": Command("NODE", WrittenReplication.destroy_node),
    "mc_node_associate": Command("GROUP NODE, the nodes counted from 0", WrittenReplication.associate),
    "mc_node_dissociate": Command("GROUP NODE, the nodes counted from 0", WrittenReplication.dissociate),
    "mirroring_add": Command("SESSION PORT", WrittenReplication.mirror_to_port),
    "mirroring_add_mc": Command("SESSION GROUP", WrittenReplication.mirror_to_group),
    "mirroring_delete": Command("SESSION", WrittenReplication.delete_session),
}
