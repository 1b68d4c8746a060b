"""A program with its P4Info and all that clients have written for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.server.p4runtime.entities.arrays import Counters, Meters, Registers
from inakit.switch.server.p4runtime.entities.container import Container, Kind
from inakit.switch.server.p4runtime.entities.digests import Digests
from inakit.switch.server.p4runtime.entities.direct_arrays import DirectCounters, DirectMeters
from inakit.switch.server.p4runtime.entities.profile_store import ProfileStore
from inakit.switch.server.p4runtime.entities.profiles import Groups, Members, Stores
from inakit.switch.server.p4runtime.entities.replication import GROUP, SESSION, Replication
from inakit.switch.server.p4runtime.entities.tables import Tables
from inakit.switch.server.p4runtime.entities.value_sets import ValueSets
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.schema import Schema
from inakit.switch.server.p4runtime.stream.digest_lists import DigestLists
from inakit.switch.server.p4runtime.stream.idle_timeouts import IdleTimeouts

Send = Callable[[int, Message], None]
"""Sends a digest list or a notification to the primaries in whose scope an id is."""

Written = tuple[Kind, Message]
"""An update: what it does, and an `Entity`."""


@dataclass(frozen=True)
class Pipeline:
    """A pipeline config with its schema; `containers` are by the name of what they hold in an `Entity`."""

    config: Message
    schema: Schema
    control: ControlPlane
    stores: Stores
    tables: Tables
    digests: Digests
    containers: dict[str, Container]
    digest_lists: DigestLists
    idle_timeouts: IdleTimeouts

    def poll(self, down: frozenset[int]) -> None:
        """Send what is due, and let groups avoid the ports that are `down`."""
        for store in self.stores.values():
            if down != store.down:
                store.ports_down(down)
        self.digest_lists.poll()
        self.idle_timeouts.poll()


def make_pipeline(config: Message, schema: Schema, control: ControlPlane, cpu_port: int | None, send: Send) -> Pipeline:
    """The pipeline of a config, with nothing written yet."""
    stores = {number: ProfileStore(profile, control) for number, profile in schema.profiles.items()}
    tables, digests = Tables(schema, control, stores), Digests(schema, control)
    containers: list[Container] = [
        Members(schema, control, stores),
        Groups(schema, control, stores),
        tables,
        DirectCounters(tables),
        DirectMeters(tables),
        Counters(schema, control),
        Meters(schema, control),
        Registers(schema, control),
        Replication(schema, control, cpu_port),
        ValueSets(schema, control),
        digests,
    ]
    by_member = {container.member: container for container in containers}
    lists, timeouts = DigestLists(digests, send), IdleTimeouts(tables, send)
    return Pipeline(config, schema, control, stores, tables, digests, by_member, lists, timeouts)


def all_written(pipeline: Pipeline) -> Iterator[Written]:
    """The updates that bring a fresh pipeline into the state of this one, in an order in which they can be made."""
    everything = {
        "action_profile_member": [v1.ActionProfileMember()],
        "action_profile_group": [v1.ActionProfileGroup()],
        "table_entry": [all_entries()],
        "packet_replication_engine_entry": [replication(GROUP), replication(SESSION)],
        "digest_entry": [v1.DigestEntry()],
    }
    for member, requests in everything.items():
        for request in requests:
            for message in pipeline.containers[member].read(request):
                if not (member == "table_entry" and message.is_const):
                    yield Kind.INSERT, v1.Entity(**{member: message})
    for message in pipeline.tables.read(v1.TableEntry(is_default_action=True)):
        if changed_default(pipeline, message):
            yield Kind.MODIFY, v1.Entity(table_entry=message)
    yield from arrays(pipeline)


def all_entries() -> Message:
    """The request for all entries with their counts and rates."""
    request = v1.TableEntry()
    request.counter_data.SetInParent()
    request.meter_config.SetInParent()
    return request


def replication(kind: str) -> Message:
    """The request for all multicast groups, or all clone sessions."""
    request = v1.PacketReplicationEngineEntry()
    getattr(request, kind).SetInParent()
    return request


def changed_default(pipeline: Pipeline, message: Message) -> bool:
    """Whether a table runs on a miss something else than its program says."""
    table = pipeline.schema.tables[message.table_id]
    held, own = pipeline.tables.held_default(table), table.table.default
    set_to = None if held is None or held.action is None else (held.action, held.params)
    noted = table.name in pipeline.tables.default_notes
    return set_to is not None and (noted or own is None or set_to != (own.action.name, own.values))


def arrays(pipeline: Pipeline) -> Iterator[Written]:
    """The updates for the cells of arrays that are not as in a fresh pipeline, and for value sets with members."""
    zeros: dict[str, Callable[[Message], bool]] = {
        "counter_entry": lambda each: each.data == v1.CounterData(),
        "meter_entry": lambda each: not each.HasField("config"),
        "register_entry": lambda each: each.data.WhichOneof("data") == "bitstring" and not any(each.data.bitstring),
        "value_set_entry": lambda each: not each.members,
    }
    for member, is_zero in zeros.items():
        container = pipeline.containers[member]
        for message in container.read(getattr(v1.Entity(), member)):
            if not is_zero(message):
                yield Kind.MODIFY, container.entity(message)
