"""The updates of a `WriteRequest`, each with its own answer, carried out as its atomicity asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from inakit.switch.server.p4runtime.entities.container import Container, Kind
from inakit.switch.server.p4runtime.pipeline import Pipeline
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, fault_of, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.stream.role_scope import RoleScope

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
    """Whether an update adds a table entry."""
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
    """The container for an entity, and the message in it."""
    member = entity.WhichOneof("entity")
    if member is None:
        raise invalid("an entity is empty: it holds one of " + ", ".join(pipeline.containers))
    if member not in pipeline.containers:
        raise Fault(Code.UNIMPLEMENTED, f"{member}: v1model has no such externs")
    return pipeline.containers[member], getattr(entity, member)


def change(container: Container, kind: Kind, message: Message) -> None:
    """Insert, modify or delete."""
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
