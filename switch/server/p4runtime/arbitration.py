"""Arbitration: the primary client of each role, the permissions of roles, and packets from and to controllers.

A client is identified by its stream. The primary of a role is the client with the highest election id that was seen;
the others are backups. When the last client of a role leaves, the highest id is forgotten: a later controller can write
with any election id, as with simple_switch_grpc. A client without an election id is the primary, with the id 0, while
it is the only one, as with simple_switch_grpc: the PTF tests of p4c's back end have none. (By the specification, it is
always a backup.)

P4Runtime leaves the form of a role's config open. Here it is Stratum's `P4RoleConfig`: the ids of a P4Info that the
role writes and reads, whether it gets the packets to controllers, and whether it may set pipeline configs. Replication
has no ids: only roles without a config can use it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from inakit.switch.control.codecs import Code, Fault, Fields, decode, encode, invalid, not_found
from inakit.switch.control.p4info import PacketHeader
from inakit.switch.server.p4runtime.messages import Message, v1

UINT32, BYTES, BOOL, MESSAGE = 13, 12, 8, 11
ONE, MANY = 1, 3
"""Types and labels of fields, as in protobuf descriptions."""


def role_config_class() -> Message:
    """The class of the message `stratum.P4RoleConfig`."""

    def field(name: str, number: int, kind: int, label: int = ONE, **more: str) -> Fields:
        return {"name": name, "number": number, "type": kind, "label": label, **more}

    filtered = {"name": "PacketFilter", "field": [field("metadata_id", 1, UINT32), field("value", 2, BYTES)]}
    fields = [
        field("exclusive_p4_ids", 1, UINT32, MANY),
        field("shared_p4_ids", 2, UINT32, MANY),
        field("packet_in_filter", 3, MESSAGE, type_name=".stratum.P4RoleConfig.PacketFilter"),
        field("receives_packet_ins", 4, BOOL),
        field("can_push_pipeline", 5, BOOL),
    ]
    config = {"name": "P4RoleConfig", "nested_type": [filtered], "field": fields}
    pool = descriptor_pool.DescriptorPool()
    pool.Add(
        descriptor_pb2.FileDescriptorProto(
            name="p4_role_config.proto", package="stratum", syntax="proto3", message_type=[config]
        )
    )
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("stratum.P4RoleConfig"))


RoleConfig = role_config_class()


@dataclass(frozen=True)
class RoleScope:
    """The permissions of a role: its ids (None: all), packets to controllers, pipeline configs.

    `packet_filter` (id, value) selects packets to controllers by their metadata.
    """

    ids: frozenset[int] | None = None
    packets: bool = True
    packet_filter: tuple[int, bytes] | None = None
    pipelines: bool = True

    def has(self, number: int) -> bool:
        """Whether an id is in scope; 0 is the id of entities that no P4Info describes."""
        return self.ids is None or number in self.ids

    def check(self, number: int) -> None:
        """Raise a fault if an id is out of scope."""
        if not self.has(number):
            raise Fault(Code.PERMISSION_DENIED, f"the role's config does not have the id {number:#010x}")

    def gets(self, packet: Message) -> bool:
        if not self.packets or self.packet_filter is None:
            return self.packets
        return any((each.metadata_id, each.value) == self.packet_filter for each in packet.metadata)


def read_scope(message: Message) -> RoleScope:
    """The scope of the role of an arbitration update; a fault if its config is not a `P4RoleConfig`."""
    if not message.role.HasField("config"):
        return RoleScope()
    found = RoleConfig()
    try:
        fits = message.role.config.Unpack(found)
    except Exception as error:  # protobuf raises its own error
        raise invalid(f"the role's config cannot be read: {error}") from error
    if not fits:
        raise invalid(f"the role's config is '{message.role.config.type_url}', not stratum.P4RoleConfig")
    wanted = found.packet_in_filter
    return RoleScope(
        ids=frozenset([*found.exclusive_p4_ids, *found.shared_p4_ids]),
        packets=found.receives_packet_ins,
        packet_filter=(wanted.metadata_id, wanted.value) if found.HasField("packet_in_filter") else None,
        pipelines=found.can_push_pipeline,
    )


MOST_CLIENTS = 512
"""The greatest number of streams of a role."""
NO_ID = 0
"""The election id of a message without one."""

Send = Callable[[Message], None]
"""Sends a `StreamMessageResponse` to one client."""


@dataclass(eq=False)
class Client:
    """One stream. Its role is None before its first arbitration update; `left` is set when it has ended."""

    send: Send
    role: str | None = None
    election_id: int | None = None
    left: bool = False


@dataclass(eq=False)
class Role:
    """The clients of a role. `highest` is the greatest election id seen; `primary` may have left."""

    name: str
    message: Message | None
    clients: list[Client] = field(default_factory=list)
    highest: int | None = None
    primary: Client | None = None
    config: Message | None = None
    scope: RoleScope = field(default_factory=RoleScope)


class Arbitration:
    """The roles of one device. `writing` is held while requests of primaries are carried out.

    Calls must not overlap, except for `check_primary` and `primaries`, which only read.
    """

    def __init__(self, device_id: int, writing: AbstractContextManager[object]) -> None:
        self.device_id, self.writing = device_id, writing
        self.roles: dict[str, Role] = {"": Role("", None)}

    def update(self, client: Client, message: Message) -> None:
        """Handle a client's arbitration update, unless its stream has ended; a fault ends the stream."""
        if client.left:
            return
        name = str(message.role.name or message.role.id or "")  # older clients have numbers instead of names
        self.check(client, name, message)
        scope = read_scope(message)
        role = self.roles.setdefault(name, Role(name, message.role if message.HasField("role") else None))
        was_primary = role.primary is client
        client.role, client.election_id = name, wanted_id(role, client, message)
        if client not in role.clients:
            role.clients.append(client)
        if client.election_id is not None and (role.highest is None or client.election_id >= role.highest):
            self.promote(role, client, message, scope)
        elif was_primary:
            role.primary = None
            self.tell(role, role.clients)
        else:
            self.tell(role, [client])

    def check(self, client: Client, name: str, message: Message) -> None:
        """Raise a fault for an invalid update."""
        if client.role is None and message.device_id != self.device_id:
            raise not_found(f"there is no device {message.device_id}: this is {self.device_id}")
        if client.role is not None and (message.device_id != self.device_id or client.role != name):
            raise Fault(Code.FAILED_PRECONDITION, "a stream keeps its device and its role: open another")
        clients = self.roles[name].clients if name in self.roles else []
        others = [each for each in clients if each is not client]
        if message.HasField("election_id") and any(each.election_id == number_of(message) for each in others):
            raise invalid(f"the election id {number_of(message)} of role '{name}' is that of another client")
        if client.role is None and len(others) >= MOST_CLIENTS:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"role '{name}' has {MOST_CLIENTS} clients")

    def promote(self, role: Role, client: Client, message: Message, scope: RoleScope) -> None:
        """Make a client the primary, after the earlier primary's present write has finished."""
        role.primary, role.highest = None, client.election_id
        role.config = message.role.config if message.role.HasField("config") else None
        role.scope = scope
        self.tell(role, [each for each in role.clients if each is not client], Code.ALREADY_EXISTS)
        with self.writing:
            role.primary = client
        self.tell(role, [client])

    def leave(self, client: Client) -> None:
        """Forget a client whose stream has ended."""
        client.left = True
        role = self.roles.get(client.role or "")
        if role is None or client not in role.clients:
            return
        role.clients.remove(client)
        if not role.clients:
            role.highest = None
        if role.primary is client:
            role.primary = None
            self.tell(role, role.clients)

    def tell(self, role: Role, clients: list[Client], backups: Code | None = None) -> None:
        """Tell clients whether they are the primary; `backups` is the status of the others."""
        for client in list(clients):
            code = backups or (Code.NOT_FOUND if role.primary is None else Code.ALREADY_EXISTS)
            client.send(self.notice(role, Code.OK if client is role.primary else code))

    def notice(self, role: Role, code: Code) -> Message:
        """The arbitration update that tells a client whether it is the primary."""
        update: Fields = {"device_id": self.device_id, "status": {"code": code, "message": MEANINGS[code]}}
        if role.message is not None:
            update["role"] = {"id": role.message.id, "name": role.message.name}
            if role.config is not None:
                update["role"]["config"] = role.config
        if role.highest is not None:
            update["election_id"] = {"high": role.highest >> 64, "low": role.highest & (1 << 64) - 1}
        return v1.StreamMessageResponse(arbitration=update)

    def check_primary(self, request: Message) -> RoleScope:
        """The permissions of the sender of a request; a fault if it is not the primary of its role."""
        if request.device_id != self.device_id:
            raise not_found(f"there is no device {request.device_id}: this is {self.device_id}")
        name = request.role or (str(request.role_id) if request.role_id else "")
        role = self.roles.get(name)
        if role is None:
            raise not_found(f"there is no role '{name}'")
        primary = role.primary
        if primary is None or primary.election_id != number_of(request):
            raise Fault(Code.PERMISSION_DENIED, f"the sender is not the primary of role '{name}'")
        return role.scope

    def is_primary(self, client: Client) -> bool:
        return client.role is not None and self.roles[client.role].primary is client

    def primaries(self) -> list[tuple[Client, RoleScope]]:
        return [(role.primary, role.scope) for role in list(self.roles.values()) if role.primary is not None]


MEANINGS = {
    Code.OK: "you are the primary",
    Code.ALREADY_EXISTS: "another client is the primary",
    Code.NOT_FOUND: "there is no primary",
}
"""The messages for statuses."""


def wanted_id(role: Role, client: Client, message: Message) -> int | None:
    """The election id that a client asks for; 0 if it gives none and no other was seen."""
    alone = role.highest is None or (role.primary is client and client.election_id == NO_ID)
    return number_of(message) if message.HasField("election_id") or alone else None


def number_of(message: Message) -> int:
    """The 128-bit election id of a message; `NO_ID` without one."""
    return int(message.election_id.high << 64 | message.election_id.low)


PADDING = ("_", "pad")
"""Prefixes of fields that a client can omit; they are then 0."""


def packet_out(header: PacketHeader, message: Message) -> bytes:
    """The packet that arrives at the CPU port; a fault if its metadata do not match the header."""
    given = {each.metadata_id: each.value for each in message.metadata}
    unknown = set(given) - {field.id for field in header}
    if unknown or len(given) < len(message.metadata):
        raise invalid(f"packet_out: metadata of the ids {sorted(unknown) or sorted(given)} are unknown or given twice")
    number = 0
    for part in header:
        if part.id in given:
            value = decode(given[part.id], part.bits, f"packet_out: '{part.name}'")
        elif part.name.startswith(PADDING):
            value = 0
        else:
            raise invalid(f"packet_out: the metadata '{part.name}' (id {part.id}) are missing")
        number = number << part.bits | value
    size, bits = sizes_of(header)
    return (number << 8 * size - bits).to_bytes(size, "big") + bytes(message.payload)


def sizes_of(header: PacketHeader) -> tuple[int, int]:
    """The bytes and the bits of a header."""
    bits = sum(field.bits for field in header)
    return (bits + 7) // 8, bits


def packet_in(header: PacketHeader, packet: bytes) -> Message:
    """The message for a packet that left by the CPU port; without metadata if it is shorter than the header."""
    size, _ = sizes_of(header)
    if len(packet) < size:
        return v1.PacketIn(payload=packet)
    message = v1.PacketIn(payload=packet[size:])
    number, below = int.from_bytes(packet[:size], "big"), 8 * size
    for part in header:
        below -= part.bits
        message.metadata.add(metadata_id=part.id, value=encode(number >> below & (1 << part.bits) - 1))
    return message
