"""A program with its P4Info and all that clients have written for it; their updates, and what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.server.p4runtime.arbitration import RoleScope
from inakit.switch.server.p4runtime.array_entities import (
    Counters,
    DirectCounters,
    DirectMeters,
    Meters,
    Registers,
    ValueSets,
)
from inakit.switch.server.p4runtime.container import Container, Kind
from inakit.switch.server.p4runtime.digest_lists import DigestLists, Digests
from inakit.switch.server.p4runtime.messages import Code, Fault, Message, fault_of, invalid, v1
from inakit.switch.server.p4runtime.profile_entities import Groups, Members, ProfileStore, Stores
from inakit.switch.server.p4runtime.replication_entities import GROUP, SESSION, Replication
from inakit.switch.server.p4runtime.schema import Schema
from inakit.switch.server.p4runtime.table_entities import IdleTimeouts, Tables

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


CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR, DATAPLANE_ATOMIC = range(3)
"""The numbers of `WriteRequest.Atomicity`."""

Answers = list[Fault | None]
"""Why each update was not carried out; None for one that was."""

UPDATE_KINDS = frozenset(Kind)


def write(pipeline: Pipeline, updates: Sequence[Message], atomicity: int, scope: RoleScope) -> Answers:
    """Carry out updates, and return what became of each."""
    if atomicity == CONTINUE_ON_ERROR:
        return [answer for run in runs(updates) for answer in write_run(pipeline, run, scope)]
    if atomicity == ROLLBACK_ON_ERROR:
        return write_all_or_none(pipeline, updates, scope)
    if atomicity == DATAPLANE_ATOMIC:
        return write_at_once(pipeline, updates, scope)
    raise invalid(f"no atomicity has the number {atomicity}")


def runs(updates: Iterable[Message]) -> Iterator[list[Message]]:
    """The updates in order, new table entries that follow one another together."""
    for together, found in groupby(updates, is_new_entry):
        if together:
            yield list(found)
        else:
            yield from ([update] for update in found)


def is_new_entry(update: Message) -> bool:
    return bool(update.type == Kind.INSERT and update.entity.WhichOneof("entity") == "table_entry")


def write_run(pipeline: Pipeline, run: Sequence[Message], scope: RoleScope) -> Answers:
    """Carry out one update, or add several table entries."""
    if len(run) == 1:
        return [write_one(pipeline, run[0], scope)]
    answers: Answers = [out_of_scope(scope, update.entity.table_entry.table_id) for update in run]
    allowed = [position for position, answer in enumerate(answers) if answer is None]
    entries = [run[position].entity.table_entry for position in allowed]
    for position, answer in zip(allowed, pipeline.tables.insert_all(entries), strict=True):
        answers[position] = answer
    return answers


def out_of_scope(scope: RoleScope, number: int) -> Fault | None:
    """Why a role may not change what has this id; None if it may."""
    try:
        scope.check(number)
    except Fault as fault:
        return fault
    return None


def write_one(pipeline: Pipeline, update: Message, scope: RoleScope) -> Fault | None:
    """Carry out one update."""
    try:
        container, message = addressed(pipeline, update, scope)
        change(container, Kind(update.type), message)
    except Exception as error:
        return fault_of(error)
    return None


def addressed(pipeline: Pipeline, update: Message, scope: RoleScope) -> tuple[Container, Message]:
    """The container of an update and its message; a fault if it has no type, no entity, or is out of scope."""
    if update.type not in UPDATE_KINDS:
        raise invalid(f"an update has the type INSERT, MODIFY or DELETE, not {update.type}")
    container, message = container_of(pipeline, update.entity)
    scope.check(container.scope(message))
    return container, message


def container_of(pipeline: Pipeline, entity: Message) -> tuple[Container, Message]:
    member = entity.WhichOneof("entity")
    if member is None:
        raise invalid("an entity is empty: it holds one of " + ", ".join(pipeline.containers))
    if member not in pipeline.containers:
        raise Fault(Code.UNIMPLEMENTED, f"{member}: v1model has no such externs")
    return pipeline.containers[member], getattr(entity, member)


def change(container: Container, kind: Kind, message: Message) -> None:
    {Kind.INSERT: container.insert, Kind.MODIFY: container.modify, Kind.DELETE: container.delete}[kind](message)


def write_all_or_none(pipeline: Pipeline, updates: Sequence[Message], scope: RoleScope) -> Answers:
    """Carry out updates until one fails; then undo those before, the last first."""
    undone: list[Callable[[], None]] = []
    for position, update in enumerate(updates):
        try:
            container, message = addressed(pipeline, update, scope)
            undo = inverse(container, Kind(update.type), message)
        except Exception as error:
            fault: Fault | None = fault_of(error)
        else:
            fault = write_one(pipeline, update, scope)
        if fault is not None:
            for each in reversed(undone):
                each()
            return others_aborted(len(updates), position, fault)
        undone.append(undo)
    return [None] * len(updates)


def inverse(container: Container, kind: Kind, message: Message) -> Callable[[], None]:
    """What undoes an update that is about to be carried out."""
    if kind == Kind.INSERT:
        return lambda: container.delete(message)
    before = container.snapshot(kind, message)
    again = container.insert if kind == Kind.DELETE else container.modify

    def undo() -> None:
        for each in before:
            again(each)

    return undo


def others_aborted(count: int, position: int, fault: Fault) -> Answers:
    """The answers of a batch that was given up because of the update at `position`."""
    aborted = Fault(Code.ABORTED, f"nothing was written because of update {position}: {fault}")
    return [fault if each == position else aborted for each in range(count)]


def write_at_once(pipeline: Pipeline, updates: Sequence[Message], scope: RoleScope) -> Answers:
    """Carry out updates so that each packet sees none of them or all; only some batches can be."""
    if len(updates) == 1:
        return [write_one(pipeline, updates[0], scope)]
    if not all(map(is_new_entry, updates)):
        raise Fault(Code.UNIMPLEMENTED, "DATAPLANE_ATOMIC: only one update, or new table entries, are written at once")
    faults = [out_of_scope(scope, update.entity.table_entry.table_id) for update in updates]
    if any(faults):
        return [fault or Fault(Code.ABORTED, "another update of the batch is out of scope") for fault in faults]
    try:
        pipeline.tables.insert_atomically([update.entity.table_entry for update in updates])
    except Exception as error:
        fault = fault_of(error)
        if fault.code == Code.UNIMPLEMENTED:
            raise fault from error
        return [Fault(fault.code, f"nothing was written: {fault}")] * len(updates)
    return [None] * len(updates)


def error_of(fault: Fault | None) -> Message:
    """The `p4.v1.Error` of an update."""
    if fault is None:
        return v1.Error()
    return v1.Error(canonical_code=fault.code, message=str(fault), space=SPACE)


SPACE = "inakit-v1model"
"""The space of errors, as P4Runtime names it."""


MOST_ENTITIES = 512
"""A response has at most so many entities."""


def select(
    pipeline: Pipeline, requests: Iterable[Message], scope: RoleScope
) -> tuple[list[Iterator[Message]], Answers]:
    """The entities of each request, as they are now, and why a request cannot be answered."""
    found: list[Iterator[Message]] = []
    answers: Answers = []
    for request in requests:
        try:
            found.append(entities(pipeline, request, scope))
            answers.append(None)
        except Exception as error:
            answers.append(fault_of(error))
    return found, answers


def entities(pipeline: Pipeline, request: Message, scope: RoleScope) -> Iterator[Message]:
    container, message = container_of(pipeline, request)
    found = container.read(message)
    return (container.entity(each) for each in found if scope.has(container.scope(each)))


def responses(found: Iterable[Iterator[Message]]) -> Iterator[Message]:
    """Entities as `ReadResponse` messages."""
    for each in found:
        while chunk := list(islice(each, MOST_ENTITIES)):
            yield v1.ReadResponse(entities=chunk)
