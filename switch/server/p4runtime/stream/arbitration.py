"""Which client of a role is its primary, and what clients are told of it.

A client is known by the stream that it holds open. Of each role the client with the highest election id that was seen
is the primary; the others are backups. When the last client of a role has left, what was seen is forgotten: a
controller that is started after another one writes whatever its election id is, as with simple_switch_grpc. As there,
a client without an election id, which the specification would have be a backup for ever, is the primary with the id 0
as long as it is the only one: the PTF tests of p4c's back end have none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid, not_found
from inakit.switch.server.p4runtime.protocol.messages import Message, Status, v1
from inakit.switch.server.p4runtime.stream.role_scope import RoleScope, read_scope

MOST_CLIENTS = 512
"""The streams that a role may have open."""
NO_ID = 0
"""What an election id is where a message has none."""

Send = Callable[[Message], None]
"""Sends a `StreamMessageResponse` to one client."""


@dataclass(eq=False)
class Client:
    """One stream. Its role is None until it has sent its first arbitration update; `left` once it has ended."""

    send: Send
    role: str | None = None
    election_id: int | None = None
    left: bool = False


@dataclass(eq=False)
class Role:
    """The clients of a role. `highest` is the greatest election id that was seen; `primary` may have left."""

    name: str
    message: Message | None
    clients: list[Client] = field(default_factory=list)
    highest: int | None = None
    primary: Client | None = None
    config: Message | None = None
    scope: RoleScope = field(default_factory=RoleScope)


class Arbitration:
    """The roles of one device. `writing` is held while requests of primaries are carried out.

    Whoever calls holds off other calls, but `check_primary` and `primaries`, which only look.
    """

    def __init__(self, device_id: int, writing: AbstractContextManager[object]) -> None:
        self.device_id, self.writing = device_id, writing
        self.roles: dict[str, Role] = {"": Role("", None)}

    def update(self, client: Client, message: Message) -> None:
        """Take a client's arbitration update, unless its stream has ended; a fault ends it."""
        if client.left:
            return
        name = role_name(message)
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
        """Raise a fault for an update that cannot be."""
        if client.role is None and message.device_id != self.device_id:
            raise not_found(f"there is no device {message.device_id}: this is {self.device_id}")
        if client.role is not None and (message.device_id != self.device_id or client.role != name):
            raise Fault(Code.FAILED_PRECONDITION, "a stream keeps its device and its role: open another")
        others = [each for each in self.clients(name) if each is not client]
        wanted = election_id(message)
        if wanted is not None and any(each.election_id == wanted for each in others):
            raise invalid(f"the election id {wanted} of role '{name}' is that of another client")
        if client.role is None and len(others) >= MOST_CLIENTS:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"role '{name}' has {MOST_CLIENTS} clients")

    def clients(self, name: str) -> list[Client]:
        """The clients of a role."""
        return self.roles[name].clients if name in self.roles else []

    def promote(self, role: Role, client: Client, message: Message, scope: RoleScope) -> None:
        """Let a client be the primary: the one before writes no more, and what it writes now is finished first."""
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
        """Tell clients who is the primary; a backup gets `backups`, or what follows from there being a primary."""
        for client in list(clients):
            code = backups or (Code.NOT_FOUND if role.primary is None else Code.ALREADY_EXISTS)
            client.send(self.notice(role, Code.OK if client is role.primary else code))

    def notice(self, role: Role, code: Code) -> Message:
        """The arbitration update that tells a client whether it is the primary."""
        response = v1.StreamMessageResponse()
        update = response.arbitration
        update.device_id = self.device_id
        if role.message is not None:
            update.role.id, update.role.name = role.message.id, role.message.name
            if role.config is not None:
                update.role.config.CopyFrom(role.config)
        if role.highest is not None:
            update.election_id.high, update.election_id.low = role.highest >> 64, role.highest & (1 << 64) - 1
        update.status.CopyFrom(Status(code=code, message=MEANINGS[code]))
        return response

    def check_primary(self, request: Message) -> RoleScope:
        """What the sender of a request may do; a fault if it is not the primary of its role."""
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
        """Whether a client is the primary of its role."""
        return client.role is not None and self.roles[client.role].primary is client

    def primaries(self) -> list[tuple[Client, RoleScope]]:
        """The primaries of all roles, with what each may do."""
        return [(role.primary, role.scope) for role in list(self.roles.values()) if role.primary is not None]


MEANINGS = {
    Code.OK: "you are the primary",
    Code.ALREADY_EXISTS: "another client is the primary",
    Code.NOT_FOUND: "there is no primary",
}
"""What a client is told, in words."""


def role_name(message: Message) -> str:
    """The name of a message's role; that of the default role is empty. Older clients have numbers instead."""
    return str(message.role.name or message.role.id or "")


def election_id(message: Message) -> int | None:
    """The election id of a message; None if it has none."""
    return number_of(message) if message.HasField("election_id") else None


def wanted_id(role: Role, client: Client, message: Message) -> int | None:
    """The election id that a client asks for; 0 if it says none and no other was seen."""
    alone = role.highest is None or (role.primary is client and client.election_id == NO_ID)
    return election_id(message) if message.HasField("election_id") or not alone else NO_ID


def number_of(message: Message) -> int:
    """The 128 bits of a message's election id; `NO_ID` if it has none."""
    return int(message.election_id.high << 64 | message.election_id.low)
