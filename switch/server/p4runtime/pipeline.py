"""A program with its P4Info and the state that clients have written: updates in batches, and reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice

from inakit.switch.control.action_profiles import GroupCodec, MemberCodec, ProfileStore
from inakit.switch.control.codecs import ById, Code, Codec, Fault, Fields, UpdateKind, fault_of, invalid
from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.counters import CounterCodec
from inakit.switch.control.digests import DigestCodec, DigestLists
from inakit.switch.control.meters import MeterCodec
from inakit.switch.control.p4info import Schema
from inakit.switch.control.p4runtime_entries import DirectCounterCodec, DirectMeterCodec, IdleTimeouts, TableCodec
from inakit.switch.control.registers import RegisterCodec
from inakit.switch.control.replication import GROUP, SESSION, ReplicationCodec
from inakit.switch.control.value_sets import ValueSetCodec
from inakit.switch.server.p4runtime.arbitration import RoleScope
from inakit.switch.server.p4runtime.messages import Message, v1

Send = Callable[[str, int, Fields], None]
"""Sends the fields of a digest list or a notification, at their place in a `StreamMessageResponse`.

They go to the primaries with an id in their scope.
"""

Written = tuple[UpdateKind, Message]
"""An update: its kind, and an `Entity`."""


@dataclass(frozen=True)
class Pipeline:
    """A pipeline config with its schema; `codecs` are by the name of their entities in an `Entity`."""

    config: Message
    schema: Schema
    control: ControlPlane
    stores: ById[ProfileStore]
    tables: TableCodec
    codecs: dict[str, Codec]
    digest_lists: DigestLists
    idle_timeouts: IdleTimeouts

    def poll(self, down: frozenset[int]) -> None:
        """Send due notifications, and update groups after ports went `down` or up."""
        for store in self.stores.values():
            if down != store.down:
                store.ports_down(down)
        self.digest_lists.poll()
        self.idle_timeouts.poll()


def make_pipeline(config: Message, schema: Schema, control: ControlPlane, cpu_port: int | None, send: Send) -> Pipeline:
    """The pipeline of a config, with no state written yet."""
    stores = schema.profiles.mapped(lambda profile: ProfileStore(profile, control.profiles))
    tables, digests = TableCodec(schema.tables, control, stores), DigestCodec(schema.digests, control.digests)
    codecs: list[Codec] = [
        MemberCodec(stores),
        GroupCodec(stores),
        tables,
        DirectCounterCodec(tables),
        DirectMeterCodec(tables),
        CounterCodec(schema.counters, control.counters),
        MeterCodec(schema.meters, control.meters),
        RegisterCodec(schema.registers, control.registers),
        ReplicationCodec(control.replication, cpu_port),
        ValueSetCodec(schema.value_sets, control.value_sets),
        digests,
    ]
    by_member = {codec.member: codec for codec in codecs}
    lists = DigestLists(digests, partial(send, "digest"))
    timeouts = IdleTimeouts(tables, partial(send, "idle_timeout_notification"))
    return Pipeline(config, schema, control, stores, tables, by_member, lists, timeouts)


def entity_of(codec: Codec, fields: Fields) -> Message:
    """The `Entity` with these fields of a codec."""
    return v1.Entity(**{codec.member: fields})


def all_written(pipeline: Pipeline) -> Iterator[Written]:
    """The updates that recreate this pipeline's state in a fresh one, in a valid order."""
    everything: dict[str, list[Fields]] = {
        "action_profile_member": [{}],
        "action_profile_group": [{}],
        "table_entry": [{"counter_data": {}, "meter_config": {}}],
        "packet_replication_engine_entry": [{GROUP: {}}, {SESSION: {}}],
        "digest_entry": [{}],
    }
    for member, requests in everything.items():
        for request in requests:
            for entity in read_as_messages(pipeline, member, request):
                if not (member == "table_entry" and entity.table_entry.is_const):
                    yield UpdateKind.INSERT, entity
    for entity in read_as_messages(pipeline, "table_entry", {"is_default_action": True}):
        if changed_default(pipeline, entity.table_entry):
            yield UpdateKind.MODIFY, entity
    as_fresh: dict[str, Callable[[Message], bool]] = {
        "counter_entry": lambda each: each.data == v1.CounterData(),
        "meter_entry": lambda each: not each.HasField("config"),
        "register_entry": lambda each: each.data.WhichOneof("data") == "bitstring" and not any(each.data.bitstring),
        "value_set_entry": lambda each: not each.members,
    }
    for member, is_fresh in as_fresh.items():
        for entity in read_as_messages(pipeline, member, {}):
            if not is_fresh(getattr(entity, member)):
                yield UpdateKind.MODIFY, entity


def read_as_messages(pipeline: Pipeline, member: str, request: Fields) -> Iterator[Message]:
    """The entities that a request with these fields selects, each as an `Entity`."""
    codec = pipeline.codecs[member]
    wanted = getattr(v1.Entity(**{member: request}), member)
    return (entity_of(codec, fields) for fields in codec.read(wanted))


def changed_default(pipeline: Pipeline, message: Message) -> bool:
    """Whether the default of a table differs from the program's."""
    table = pipeline.schema.tables[message.table_id]
    held, own = pipeline.tables.held_default(table), table.table.default
    set_to = None if held is None or held.action is None else (held.action, held.params)
    noted = table.name in pipeline.tables.default_notes
    return set_to is not None and (noted or own is None or set_to != (own.action.name, own.values))


CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR, DATAPLANE_ATOMIC = range(3)
"""The numbers of `WriteRequest.Atomicity`."""

Answers = list[Fault | None]
"""The reason for each update that failed; None for one that was carried out."""

UPDATE_KINDS = frozenset(UpdateKind)


def write(pipeline: Pipeline, updates: Sequence[Message], atomicity: int, scope: RoleScope) -> Answers:
    """Carry out updates, and return the result of each."""
    if atomicity == CONTINUE_ON_ERROR:
        return [answer for run in runs(updates) for answer in write_run(pipeline, run, scope)]
    if atomicity == ROLLBACK_ON_ERROR:
        return write_all_or_none(pipeline, updates, scope)
    if atomicity == DATAPLANE_ATOMIC:
        return write_at_once(pipeline, updates, scope)
    raise invalid(f"unknown atomicity {atomicity}")


def runs(updates: Iterable[Message]) -> Iterator[list[Message]]:
    """The updates in order, with consecutive new table entries grouped."""
    for together, found in groupby(updates, is_new_entry):
        if together:
            yield list(found)
        else:
            yield from ([update] for update in found)


def is_new_entry(update: Message) -> bool:
    return bool(update.type == UpdateKind.INSERT and update.entity.WhichOneof("entity") == "table_entry")


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
    """The reason why a role may not change the entity with this id; None if it may."""
    try:
        scope.check(number)
    except Fault as fault:
        return fault
    return None


def write_one(pipeline: Pipeline, update: Message, scope: RoleScope) -> Fault | None:
    """Carry out one update."""
    try:
        codec, message = addressed(pipeline, update, scope)
        change(codec, UpdateKind(update.type), message)
    except Exception as error:
        return fault_of(error)
    return None


def addressed(pipeline: Pipeline, update: Message, scope: RoleScope) -> tuple[Codec, Message]:
    """The codec of an update and its message; a fault if it has no type, no entity, or is out of scope."""
    if update.type not in UPDATE_KINDS:
        raise invalid(f"an update has the type INSERT, MODIFY or DELETE, not {update.type}")
    codec, message = codec_of(pipeline, update.entity)
    scope.check(codec.scope(message))
    return codec, message


def codec_of(pipeline: Pipeline, entity: Message) -> tuple[Codec, Message]:
    member = entity.WhichOneof("entity")
    if member is None:
        raise invalid("an entity is empty: it holds one of " + ", ".join(pipeline.codecs))
    if member not in pipeline.codecs:
        raise Fault(Code.UNIMPLEMENTED, f"{member}: v1model has no such externs")
    return pipeline.codecs[member], getattr(entity, member)


def change(codec: Codec, kind: UpdateKind, message: Message) -> None:
    {UpdateKind.INSERT: codec.insert, UpdateKind.MODIFY: codec.modify, UpdateKind.DELETE: codec.delete}[kind](message)


def write_all_or_none(pipeline: Pipeline, updates: Sequence[Message], scope: RoleScope) -> Answers:
    """Carry out updates until one fails; then undo the earlier ones in reverse order."""
    undone: list[Callable[[], None]] = []
    for position, update in enumerate(updates):
        try:
            codec, message = addressed(pipeline, update, scope)
            undo = inverse(codec, UpdateKind(update.type), message)
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


def inverse(codec: Codec, kind: UpdateKind, message: Message) -> Callable[[], None]:
    """The request that undoes an update; call it before the update is carried out."""
    if kind == UpdateKind.INSERT:
        return lambda: codec.delete(message)
    before = [getattr(entity_of(codec, fields), codec.member) for fields in codec.snapshot(kind, message)]
    again = codec.insert if kind == UpdateKind.DELETE else codec.modify

    def undo() -> None:
        for each in before:
            again(each)

    return undo


def others_aborted(count: int, position: int, fault: Fault) -> Answers:
    """The answers for a batch that was aborted because of the update at `position`."""
    aborted = Fault(Code.ABORTED, f"nothing was written because of update {position}: {fault}")
    return [fault if each == position else aborted for each in range(count)]


def write_at_once(pipeline: Pipeline, updates: Sequence[Message], scope: RoleScope) -> Answers:
    """Carry out updates so that each packet sees none or all of them; only some batches are possible."""
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
"""The space of errors in P4Runtime's terms."""


MOST_ENTITIES = 512
"""The greatest number of entities in a response."""


def select(
    pipeline: Pipeline, requests: Iterable[Message], scope: RoleScope
) -> tuple[list[Iterator[Message]], Answers]:
    """The present entities of each request, and the reason for each request that cannot be answered."""
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
    codec, message = codec_of(pipeline, request)
    found = (entity_of(codec, fields) for fields in codec.read(message))
    return (each for each in found if scope.has(codec.scope(getattr(each, codec.member))))


def responses(found: Iterable[Iterator[Message]]) -> Iterator[Message]:
    """Entities as `ReadResponse` messages."""
    for each in found:
        while chunk := list(islice(each, MOST_ENTITIES)):
            yield v1.ReadResponse(entities=chunk)
