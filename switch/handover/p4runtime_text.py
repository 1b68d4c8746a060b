"""Entries as the protobuf text of P4Runtime, and back; or read from a running server.

A file is one `p4.v1.WriteRequest`, whose updates have to be made in their order. Ids come from the P4Info that p4c
writes beside the program; comments give the names behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf import text_format

from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry, group_of_nodes
from inakit.switch.handover.differences import Part, in_order
from inakit.switch.program.read import read_program
from inakit.switch.server.p4runtime.container import Kind
from inakit.switch.server.p4runtime.messages import Message, config, v1
from inakit.switch.server.p4runtime.schema import (
    Schema,
    TableSchema,
    call_message,
    matches_of,
    read_call,
    read_key,
    read_schema,
)
from inakit.switch.server.p4runtime.table_entities import inverted
from inakit.topo.errors import InputError, MachineError

if TYPE_CHECKING:
    import grpc

P4INFO = ".p4info.txt"
"""What the name of a program's P4Info ends in, in place of `.json`."""
GROUP = "multicast_group_entry"


def p4info_of(program: Path) -> Path:
    """The P4Info beside a compiled program."""
    return program.with_suffix(P4INFO)


@lru_cache(maxsize=4)
def load_schema(program: Path) -> Schema:
    """The schema of a compiled program by its P4Info. Raises `InputError` where either is missing or broken."""
    path = p4info_of(program)
    try:
        return read_schema(text_format.Parse(path.read_text(), config.P4Info()), read_program(program))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; `make p4` writes it, or p4c with --p4runtime-files") from error
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no P4Info in protobuf's text format: {error}") from error


def write_text(schema: Schema, entries: SwitchEntries, device_id: int = 0, *, removal: bool = False) -> str:
    """The text of the request that adds entries or, as their `removal`, removes them, the last first."""
    parts, kind = in_order(entries), Kind.DELETE if removal else Kind.INSERT
    head = (
        f"# proto-message: p4.v1.WriteRequest\n# {entries.switch}: {kind.name} {len(parts)} entities, in this order\n"
    )
    updates = (update_text(schema, part, kind) for part in (reversed(parts) if removal else parts))
    return "".join([head, f"device_id: {device_id}\nelection_id {{ low: 1 }}\n", *updates])


def update_text(schema: Schema, part: Part, kind: Kind) -> str:
    """One update with a comment that names what it is about."""
    entity = entity_of(schema, part)
    if kind == Kind.DELETE:
        remove_content(entity)
    body = text_format.MessageToString(v1.Update(type=kind, entity=entity), indent=2)
    return f"# {said(schema, part)}\nupdates {{\n{body}}}\n"


def remove_content(entity: Message) -> None:
    """Leave of an entity what names it: the key of a table entry, the number of a group."""
    if entity.HasField("table_entry"):
        entity.table_entry.ClearField("action")
    else:
        entity.packet_replication_engine_entry.multicast_group_entry.ClearField("replicas")


def entity_of(schema: Schema, part: Part) -> Message:
    """An entry or a group as an `Entity`."""
    if isinstance(part, MulticastGroup):
        group = v1.MulticastGroupEntry(multicast_group_id=part.group)
        for replica, port in part.replicas:
            group.replicas.add(egress_port=port, instance=replica)
        return v1.Entity(packet_replication_engine_entry=v1.PacketReplicationEngineEntry(**{GROUP: group}))
    table = table_called(schema, part.table)
    entry = v1.TableEntry(table_id=table.id, match=matches_of(table, part.key))
    entry.action.action.CopyFrom(call_message(table.actions, table.ids, (part.action, part.params)))
    if part.priority is not None:
        entry.priority = inverted(table, part.priority)
    return v1.Entity(table_entry=entry)


def table_called(schema: Schema, name: str) -> TableSchema:
    """The table with this full name. Raises `InputError` if the P4Info has none."""
    found = next((table for table in schema.tables.values() if table.name == name), None)
    if found is None:
        raise InputError(f"table '{name}' is not in the P4Info: `make p4` writes that of the present program")
    return found


def said(schema: Schema, part: Part) -> str:
    """An entry or a group in words."""
    if isinstance(part, MulticastGroup):
        return f"multicast group {part.group}"
    table = table_called(schema, part.table)
    key = ", ".join(f"{field.name}={value}" for field, value in zip(table.fields, part.key, strict=True))
    names = (parameter.name for parameter in table.actions[table.ids[part.action]].parameters)
    given = ", ".join(f"{name}={value}" for name, value in zip(names, part.params, strict=True))
    return f"{part.table}: {key} -> {part.action}({given})"


def read_text(schema: Schema, text: str, switch: str) -> SwitchEntries:
    """The entries in the text of a `WriteRequest`, or of a `ReadResponse`, which has what a switch holds.

    Raises `InputError`.
    """
    for kind in (v1.WriteRequest, v1.ReadResponse):
        try:
            message = text_format.Parse(text, kind())
        except text_format.ParseError as error:
            failed = error
            continue
        written = [update.entity for update in getattr(message, "updates", ())]
        return entries_of(schema, [*written, *getattr(message, "entities", ())], switch)
    raise InputError(f"neither a WriteRequest nor a ReadResponse in protobuf's text format: {failed}")


def entries_of(schema: Schema, entities: Iterable[Message], switch: str) -> SwitchEntries:
    """The table entries and groups among the entities of a switch; defaults and all else are left out."""
    parts = list(parts_of(schema, entities))
    tables = tuple(part for part in parts if isinstance(part, TableEntry))
    return SwitchEntries(switch, tables, tuple(part for part in parts if isinstance(part, MulticastGroup)))


def parts_of(schema: Schema, entities: Iterable[Message]) -> Iterator[Part]:
    """Each table entry and group among entities."""
    for entity in entities:
        if entity.HasField("table_entry") and not entity.table_entry.is_default_action:
            yield entry_of(schema, entity.table_entry)
        elif entity.HasField("packet_replication_engine_entry"):
            group = entity.packet_replication_engine_entry
            if group.HasField(GROUP):
                replicas = [(each.instance, each.egress_port) for each in group.multicast_group_entry.replicas]
                yield group_of_nodes(group.multicast_group_entry.multicast_group_id, replicas)


def entry_of(schema: Schema, message: Message) -> TableEntry:
    """A `p4.v1.TableEntry` as an entry. Raises `InputError` for ids that the P4Info does not have."""
    table = schema.find(schema.tables, message.table_id, "table")
    key = read_key(table, message.match)
    priority = inverted(table, message.priority) if table.prioritised else None
    action, params = read_call(table.actions, message.action.action, f"table '{table.name}'")
    return TableEntry(table.name, key, action, params, priority)


TIMEOUT_S = 30.0
LARGEST = 256 << 20
"""The bytes that a response may have."""


def read_switch(address: str, device_id: int, schema: Schema, switch: str) -> SwitchEntries:
    """The entries and groups of the device that a server has at `HOST:PORT`. Raises `MachineError`, `InputError`."""
    import grpc  # noqa: PLC0415, only who asks a running server needs it

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
