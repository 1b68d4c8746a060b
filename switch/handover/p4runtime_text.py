"""Entries as the protobuf text of P4Runtime, and back; or read from a running server.

A file is one `p4.v1.WriteRequest`, whose updates apply in order. Ids come from the P4Info that p4c writes next to the
program; comments give the names for the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf import text_format

from inakit.switch.control.codecs import Fields, UpdateKind
from inakit.switch.control.p4info import Schema, read_schema
from inakit.switch.control.p4runtime_entries import TableSchema, entry_fields, entry_of_message
from inakit.switch.control.replication import GROUP, group_fields, group_of_message
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.handover.differences import Part, in_order
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.server.p4runtime.messages import Message, config, v1
from inakit.topo.errors import InputError, MachineError

if TYPE_CHECKING:
    import grpc

P4INFO = ".p4info.txt"
"""The suffix of a program's P4Info, in place of `.json`."""


def p4info_of(program: Path) -> Path:
    """The P4Info next to a compiled program."""
    return program.with_suffix(P4INFO)


@lru_cache(maxsize=4)
def load_schema(program: Path) -> Schema:
    """The schema of a compiled program by its P4Info. Raises `InputError` if either is missing or broken."""
    path = p4info_of(program)
    try:
        return read_schema(text_format.Parse(path.read_text(), config.P4Info()), read_program(program))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; `make p4` writes it, or p4c with --p4runtime-files") from error
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no P4Info in protobuf's text format: {error}") from error


def write_text(schema: Schema, entries: SwitchEntries, device_id: int = 0, *, removal: bool = False) -> str:
    """The text of the request that adds entries, or, with `removal`, removes them in reverse order."""
    parts, kind = in_order(entries), UpdateKind.DELETE if removal else UpdateKind.INSERT
    head = (
        f"# proto-message: p4.v1.WriteRequest\n# {entries.switch}: {kind.name} {len(parts)} entities, in this order\n"
    )
    updates = (update_text(schema, part, kind) for part in (reversed(parts) if removal else parts))
    return "".join([head, f"device_id: {device_id}\nelection_id {{ low: 1 }}\n", *updates])


def update_text(schema: Schema, part: Part, kind: UpdateKind) -> str:
    """One update, with a comment that describes it; a removal has only the fields that identify the entity."""
    fields = entity_fields(schema, part)
    if kind == UpdateKind.DELETE and isinstance(part, MulticastGroup):
        del fields["packet_replication_engine_entry"][GROUP]["replicas"]
    elif kind == UpdateKind.DELETE:
        del fields["table_entry"]["action"]
    body = text_format.MessageToString(v1.Update(type=kind, entity=fields), indent=2)
    return f"# {said(schema, part)}\nupdates {{\n{body}}}\n"


def entity_fields(schema: Schema, part: Part) -> Fields:
    """The `Entity` of an entry or a group."""
    if isinstance(part, MulticastGroup):
        return {"packet_replication_engine_entry": group_fields(part)}
    return {"table_entry": entry_fields(table_called(schema, part.table), part)}


def table_called(schema: Schema, name: str) -> TableSchema:
    """The table with this full name. Raises `InputError` if the P4Info lacks it."""
    found = next((table for table in schema.tables.values() if table.name == name), None)
    if found is None:
        raise InputError(f"table '{name}' is not in the P4Info: `make p4` writes that of the present program")
    return found


def said(schema: Schema, part: Part) -> str:
    """A description of an entry or a group."""
    if isinstance(part, MulticastGroup):
        return f"multicast group {part.group}"
    table = table_called(schema, part.table)
    key = ", ".join(f"{field.name}={value}" for field, value in zip(table.fields, part.key, strict=True))
    action = next(each for each in table.actions.values() if each.name == part.action)
    given = ", ".join(f"{each.name}={value}" for each, value in zip(action.parameters, part.params, strict=True))
    return f"{part.table}: {key} -> {part.action}({given})"


def read_text(schema: Schema, text: str, switch: str) -> SwitchEntries:
    """The entries in the text of a `WriteRequest`, or of a `ReadResponse` with the entries of a switch.

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
    """The table entries and groups among the entities of a switch; defaults and all else are omitted.

    Raises `InputError` for ids that the P4Info lacks.
    """
    tables, groups = list[TableEntry](), list[MulticastGroup]()
    for entity in entities:
        if entity.HasField("table_entry") and not entity.table_entry.is_default_action:
            table = schema.tables.find(entity.table_entry.table_id)
            tables.append(entry_of_message(table, entity.table_entry))
        elif entity.HasField("packet_replication_engine_entry"):
            group = entity.packet_replication_engine_entry
            if group.HasField(GROUP):
                groups.append(group_of_message(group.multicast_group_entry))
    return SwitchEntries(switch, tuple(tables), tuple(groups))


TIMEOUT_S = 30.0
LARGEST = 256 << 20
"""The greatest size of a response in bytes."""


def read_switch(address: str, device_id: int, schema: Schema, switch: str) -> SwitchEntries:
    """The entries and groups of a server's device at `HOST:PORT`. Raises `MachineError`, `InputError`."""
    import grpc  # noqa: PLC0415, only for a running server

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
    wanted: list[Fields] = [{"table_entry": {}}, {"packet_replication_engine_entry": {GROUP: {}}}]
    octets = v1.ReadRequest.SerializeToString
    call = channel.unary_stream("/p4.v1.P4Runtime/Read", octets, v1.ReadResponse.FromString)
    request = v1.ReadRequest(device_id=device_id, entities=wanted)
    return [entity for response in call(request, timeout=TIMEOUT_S) for entity in response.entities]
