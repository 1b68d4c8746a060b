"""What a role may do: everything, or what a subset of the P4Info describes.

The config of a role is agreed upon outside of P4Runtime. Here it is a P4Info in an `Any`: what it describes is in
scope, by id. Replication, which no P4Info describes, is for roles without a config.
"""

from __future__ import annotations

from dataclasses import dataclass

from switch.server.p4runtime.protocol.faults import Code, Fault, invalid
from switch.server.p4runtime.protocol.messages import Message, config


@dataclass(frozen=True)
class RoleScope:
    """The ids of a role and the kinds of controllers' packets that it handles; None: everything."""

    ids: frozenset[int] | None = None
    packets: frozenset[str] = frozenset()

    def has(self, number: int) -> bool:
        """Whether what has this id is in scope; 0 is what a P4Info does not describe."""
        return self.ids is None or number in self.ids

    def handles(self, packets: str) -> bool:
        """Whether the role handles `packet_in` or `packet_out`."""
        return self.ids is None or packets in self.packets

    def check(self, number: int) -> None:
        """Raise a fault if what has this id is out of scope."""
        if not self.has(number):
            raise Fault(Code.PERMISSION_DENIED, f"the role's config does not have what has the id {number:#010x}")


def read_scope(message: Message) -> RoleScope:
    """The scope of the role of an arbitration update; a fault if its config is not a P4Info."""
    if not message.role.HasField("config"):
        return RoleScope()
    found = config.P4Info()
    try:
        fits = message.role.config.Unpack(found)
    except Exception as error:  # protobuf has an error of its own for it
        raise invalid(f"the role's config cannot be read: {error}") from error
    if not fits:
        raise invalid(f"the role's config is '{message.role.config.type_url}', not p4.config.v1.P4Info")
    packets = frozenset(each.preamble.name for each in found.controller_packet_metadata)
    return RoleScope(frozenset(described(found)), packets)


def described(p4info: Message) -> set[int]:
    """The ids of all that a P4Info describes."""
    kinds = (
        p4info.tables,
        p4info.action_profiles,
        p4info.counters,
        p4info.meters,
        p4info.value_sets,
        p4info.registers,
        p4info.digests,
    )
    return {each.preamble.id for kind in kinds for each in kind}
