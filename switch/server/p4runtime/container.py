"""What clients write and read, a container for each kind of entity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.server.p4runtime.messages import Code, Fault, Message, invalid, v1
from inakit.switch.server.p4runtime.schema import Schema


class Kind(IntEnum):
    """What an update does, as in `Update.Type`."""

    INSERT = 1
    MODIFY = 2
    DELETE = 3


class Container:
    """The entities of one kind, called `member` in an `Entity`. A `Fault` or a `Refused` says why one is not taken.

    `read` takes what it needs before it returns, so that its entities are of one moment.
    """

    member = ""

    def __init__(self, schema: Schema, control: ControlPlane) -> None:
        self.schema, self.control = schema, control

    def insert(self, message: Message) -> None:
        """Add an entity."""
        raise self.only_modified(Kind.INSERT, message)

    def modify(self, message: Message) -> None:
        """Give an entity that is there another state."""
        raise NotImplementedError

    def delete(self, message: Message) -> None:
        """Remove an entity."""
        raise self.only_modified(Kind.DELETE, message)

    def only_modified(self, kind: Kind, message: Message) -> Fault:
        """The fault of an update that entities of this kind do not have."""
        return invalid(f"{self.member} of {self.scope(message):#010x}: {kind.name} is not possible, only MODIFY")

    def insert_all(self, messages: list[Message]) -> list[Fault | None]:
        """Add several entities, and return why each is not taken."""
        raise NotImplementedError

    def read(self, message: Message) -> Iterator[Message]:
        """The entities that a request selects, whose zeros stand for all."""
        raise NotImplementedError

    def snapshot(self, kind: Kind, message: Message) -> list[Message]:  # noqa: ARG002
        """What an update of this kind is about to change, as it has to be written to be again as it is now."""
        return list(self.read(message))

    def scope(self, message: Message) -> int:  # noqa: ARG002
        """The id of what the P4Info describes, by which roles are bounded; 0 for entities that it does not."""
        return 0

    def entity(self, message: Message) -> Message:
        """The `Entity` that holds a message of this kind."""
        return v1.Entity(**{self.member: message})


def indices(index: Message | None, size: int, what: str) -> Iterable[int]:
    """The indices that a message's `index` selects of an array: one, or all where it is None."""
    if index is None:
        return range(size)
    if index.index < 0:
        raise invalid(f"{what}: the index {index.index} is negative")
    if index.index >= size:
        raise Fault(Code.OUT_OF_RANGE, f"{what}: no index {index.index}, it has {size} cells")
    return (index.index,)


def index_in(message: Message) -> Message | None:
    return message.index if message.HasField("index") else None


def cell(index: int) -> Message:
    return v1.Index(index=index)


def expect_id(number: int, what: str) -> None:
    """Raise a fault for an update that leaves out which thing it is for."""
    if not number:
        raise invalid(f"{what}: an update names one, its id cannot be 0")


def within(number: int, least: int, most: int, what: str) -> int:
    """The number, if it is in these bounds; a fault otherwise."""
    if not least <= number <= most:
        raise invalid(f"{what}: {number} is not in {least} to {most}")
    return number
