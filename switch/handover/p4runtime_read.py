"""Reads what a running P4Runtime server holds: its table entries and multicast groups."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from inakit.switch.entries import SwitchEntries
from inakit.switch.handover.p4runtime_text import GROUP, entries_of
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.schema import Schema
from inakit.topo.errors import MachineError

TIMEOUT_S = 30.0
LARGEST = 256 << 20
"""The bytes that a response may have."""


def read_switch(address: str, device_id: int, schema: Schema, switch: str) -> SwitchEntries:
    """The entries and groups of the device that a server has at `HOST:PORT`. Raises `MachineError`, `InputError`."""
    try:
        with grpc.insecure_channel(address, [("grpc.max_receive_message_length", LARGEST)]) as channel:
            return entries_of(schema, read_all(channel, device_id), switch)
    except grpc.RpcError as error:
        raise MachineError(
            f"{address}, device {device_id}: {error.code().name}: {error.details()}; expected a P4Runtime server that "
            "runs the plan's program"
        ) from error


def read_all(channel: grpc.Channel, device_id: int) -> Sequence[Message]:
    """All table entries and groups of a device, as `Entity` messages."""
    groups = v1.PacketReplicationEngineEntry(**{GROUP: v1.MulticastGroupEntry()})
    wanted = [v1.Entity(table_entry=v1.TableEntry()), v1.Entity(packet_replication_engine_entry=groups)]
    call = channel.unary_stream("/p4.v1.P4Runtime/Read", serialized, v1.ReadResponse.FromString)
    request = v1.ReadRequest(device_id=device_id, entities=wanted)
    return [entity for response in call(request, timeout=TIMEOUT_S) for entity in response.entities]


def serialized(message: Message) -> bytes:
    """A message as gRPC sends it."""
    octets: bytes = message.SerializeToString()
    return octets
