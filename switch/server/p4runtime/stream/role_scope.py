"""What a role may do: everything, or what its config says.

P4Runtime leaves the form of a role's config open. Here it is the one that Stratum has made for it, `P4RoleConfig`: the
ids of a P4Info that the role writes and reads, whether it gets the packets to controllers, and whether it may set
pipeline configs. Replication, which no id stands for, is for roles without a config.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message

UINT32, BYTES, BOOL, MESSAGE = 13, 12, 8, 11
ONE, MANY = 1, 3
"""Types and labels of fields, as descriptions have them."""


def role_config_class() -> Message:
    """The class of the message `stratum.P4RoleConfig`."""
    file = descriptor_pb2.FileDescriptorProto(name="p4_role_config.proto", package="stratum", syntax="proto3")
    config = file.message_type.add(name="P4RoleConfig")
    inner = config.nested_type.add(name="PacketFilter")
    inner.field.add(name="metadata_id", number=1, type=UINT32, label=ONE)
    inner.field.add(name="value", number=2, type=BYTES, label=ONE)
    config.field.add(name="exclusive_p4_ids", number=1, type=UINT32, label=MANY)
    config.field.add(name="shared_p4_ids", number=2, type=UINT32, label=MANY)
    filtering = config.field.add(name="packet_in_filter", number=3, type=MESSAGE, label=ONE)
    filtering.type_name = ".stratum.P4RoleConfig.PacketFilter"
    config.field.add(name="receives_packet_ins", number=4, type=BOOL, label=ONE)
    config.field.add(name="can_push_pipeline", number=5, type=BOOL, label=ONE)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("stratum.P4RoleConfig"))


RoleConfig = role_config_class()


@dataclass(frozen=True)
class RoleScope:
    """The ids of a role (None: everything), and what else it may do.

    Of packets to controllers it gets those whose metadata are as `packet_filter` says: (id, value).
    """

    ids: frozenset[int] | None = None
    packets: bool = True
    packet_filter: tuple[int, bytes] | None = None
    pipelines: bool = True

    def has(self, number: int) -> bool:
        """Whether what has this id is in scope; 0 is what no P4Info describes."""
        return self.ids is None or number in self.ids

    def check(self, number: int) -> None:
        """Raise a fault if what has this id is out of scope."""
        if not self.has(number):
            raise Fault(Code.PERMISSION_DENIED, f"the role's config does not have what has the id {number:#010x}")

    def gets(self, packet: Message) -> bool:
        """Whether the role gets a packet to controllers."""
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
    except Exception as error:  # protobuf has an error of its own for it
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
