"""`PacketReplicationEngineEntry`: multicast groups and clone sessions.

A clone session is a mirror session of the same number. Its replicas are the multicast group `FIRST_OF_SESSIONS` and
on, as in simple_switch_grpc, so that clients have the groups below.
"""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_check import MAX_REPLICA, MAX_SESSION
from inakit.switch.entries import MirrorSession
from inakit.switch.program.expressions import PORTS
from inakit.switch.server.p4runtime.container import Container, within
from inakit.switch.server.p4runtime.messages import Code, Fault, Message, decode, invalid, not_found, v1
from inakit.switch.server.p4runtime.profile_entities import copy_of
from inakit.switch.server.p4runtime.schema import Schema

FIRST_OF_SESSIONS = 1 << 15
"""The multicast group of clone session 0; groups of clients are below."""

SDN_CPU_PORT = 0xFFFFFFFD
"""The number by which controllers of any target name the CPU port."""

MOST_CLASSES = 256


class Replication(Container):
    """The groups and sessions that clients have written, by their numbers."""

    member = "packet_replication_engine_entry"

    def __init__(self, schema: Schema, control: ControlPlane, cpu_port: int | None) -> None:
        super().__init__(schema, control)
        self.cpu_port = cpu_port
        self.groups: dict[int, Message] = {}
        self.sessions: dict[int, Message] = {}

    def insert(self, message: Message) -> None:
        """Add a group or a session."""
        kind, entry = kind_of(message)
        known = self.known(kind)
        if number_of(kind, entry) in known:
            raise Fault(Code.ALREADY_EXISTS, f"there is a {kind} {number_of(kind, entry)}")
        self.put(kind, entry)

    def modify(self, message: Message) -> None:
        """Give a group or a session that is there other replicas."""
        kind, entry = kind_of(message)
        self.expect(kind, number_of(kind, entry))
        self.put(kind, entry)

    def delete(self, message: Message) -> None:
        """Remove a group or a session."""
        kind, entry = kind_of(message)
        number = number_of(kind, entry)
        self.expect(kind, number)
        if kind == GROUP:
            self.control.remove_replicas(number)
        else:
            self.control.remove_session(number)
            self.control.remove_replicas(FIRST_OF_SESSIONS + number)
        del self.known(kind)[number]

    def known(self, kind: str) -> dict[int, Message]:
        return self.groups if kind == GROUP else self.sessions

    def expect(self, kind: str, number: int) -> None:
        """Raise a fault if there is no such group or session."""
        if number not in self.known(kind):
            raise not_found(f"there is no {kind} {number}")

    def put(self, kind: str, entry: Message) -> None:
        """Add a group or a session, or replace the one of its number."""
        replicas = self.replicas(entry)
        number = number_of(kind, entry)
        if kind == GROUP:
            within(number, 1, FIRST_OF_SESSIONS - 1, "multicast_group_id")
            self.control.put_replicas(number, replicas)
        else:
            within(entry.session_id, 1, MAX_SESSION, "session_id")
            within(entry.class_of_service, 0, MOST_CLASSES - 1, "class_of_service")
            if entry.packet_length_bytes < 0:
                raise invalid(f"packet_length_bytes: {entry.packet_length_bytes} is negative")
            self.put_session(number, replicas, entry.packet_length_bytes)
        self.known(kind)[number] = copy_of(entry)

    def put_session(self, number: int, replicas: list[tuple[int, int]], length: int) -> None:
        """Let clones of a session leave as these (instance, port), cut after `length` bytes unless it is 0."""
        if len(replicas) == 1 and replicas[0][0] == 0:
            self.control.put_session(MirrorSession(number, replicas[0][1], size_bytes=length))
            self.control.remove_replicas(FIRST_OF_SESSIONS + number)
            return
        self.control.put_replicas(FIRST_OF_SESSIONS + number, replicas)
        self.control.put_session(MirrorSession(number, group=FIRST_OF_SESSIONS + number, size_bytes=length))

    def replicas(self, entry: Message) -> list[tuple[int, int]]:
        """The (instance, port) of every replica; a fault if one cannot be, or is there twice."""
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

    def read(self, message: Message) -> Iterator[Message]:
        """One group or session, all groups, or all sessions."""
        kind, entry = kind_of(message)
        number, known = number_of(kind, entry), self.known(kind)
        found = [known[number]] if number in known else [] if number else list(known.values())
        return iter([v1.PacketReplicationEngineEntry(**{kind: each}) for each in found])


GROUP, SESSION = "multicast_group_entry", "clone_session_entry"


def kind_of(message: Message) -> tuple[str, Message]:
    """Whether a message is of a group or of a session, and that; a fault if it is of neither."""
    kind = message.WhichOneof("type")
    if kind is None:
        raise invalid("packet_replication_engine_entry: it has neither a multicast group nor a clone session")
    return kind, getattr(message, kind)


def number_of(kind: str, entry: Message) -> int:
    return int(entry.multicast_group_id if kind == GROUP else entry.session_id)
