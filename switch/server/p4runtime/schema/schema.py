"""What a P4Info says of a program: ids, names and widths, each beside the part of the program that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from inakit.switch.control.entry_check import by_priority
from inakit.switch.program.program import ActionProfile, Counter, Meter, Register, ValueSet
from inakit.switch.program.program import Table
from inakit.switch.program.program import Program
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, not_found
from inakit.switch.server.p4runtime.protocol.messages import Message
from inakit.switch.server.p4runtime.schema.type_layouts import Layout

TABLE_ONLY, DEFAULT_ONLY = 1, 2
"""Scopes of an action in a table."""

Found = TypeVar("Found")


@dataclass(frozen=True)
class MatchField:
    """A part of a key; `kind` is that of the P4Info: exact, lpm, ternary, range or optional."""

    id: int
    name: str
    kind: str
    bits: int


@dataclass(frozen=True)
class Parameter:
    """A parameter of an action."""

    id: int
    name: str
    bits: int


@dataclass(frozen=True)
class ActionSchema:
    """An action with its parameters in the order of the program."""

    id: int
    name: str
    parameters: tuple[Parameter, ...]

    @cached_property
    def positions(self) -> dict[int, int]:
        """The position of each parameter by its id."""
        return {parameter.id: position for position, parameter in enumerate(self.parameters)}


@dataclass(frozen=True)
class TableSchema:
    """A table; its fields are in the order of the program's key. `profile` is the id of its action profile."""

    id: int
    name: str
    table: Table
    fields: tuple[MatchField, ...]
    actions: dict[int, ActionSchema]
    scopes: dict[int, int]
    profile: int | None
    has_counter: bool
    meter: MeterSchema | None
    idle_timeout: bool

    @cached_property
    def positions(self) -> dict[int, int]:
        """The position of each field by its id."""
        return {each.id: position for position, each in enumerate(self.fields)}

    @cached_property
    def ids(self) -> dict[str, int]:
        """The ids of the actions by name."""
        return {action.name: action.id for action in self.actions.values()}

    @cached_property
    def prioritised(self) -> bool:
        """Whether entries have priorities."""
        return by_priority(self.table)

    @property
    def is_const(self) -> bool:
        """Whether the program gives the entries."""
        return self.table.entries is not None


@dataclass(frozen=True)
class ProfileSchema:
    """An action profile; `actions` are those of its tables. A size of 0 is no limit."""

    id: int
    name: str
    profile: ActionProfile
    actions: dict[int, ActionSchema]
    tables: tuple[int, ...]
    size: int
    max_group_size: int
    of_members: bool
    max_member_weight: int
    weights_disallowed: bool

    @property
    def with_selector(self) -> bool:
        """Whether entries can name groups."""
        return self.profile.selector is not None


@dataclass(frozen=True)
class MeterSchema:
    """A meter, direct or not; `type` is the number of a `MeterSpec.Type`."""

    id: int
    name: str
    meter: Meter
    type: int


@dataclass(frozen=True)
class CounterSchema:
    """An indirect counter."""

    id: int
    name: str
    counter: Counter


@dataclass(frozen=True)
class RegisterSchema:
    """A register, and the type of its cells."""

    id: int
    name: str
    register: Register
    layout: Layout


@dataclass(frozen=True)
class DigestSchema:
    """A digest, and the type of its messages."""

    id: int
    name: str
    list_id: int
    layout: Layout


@dataclass(frozen=True)
class ValueSetSchema:
    """A parser value set; the fields of its members stand one after the other in a number of the program."""

    id: int
    name: str
    value_set: ValueSet
    fields: tuple[MatchField, ...]
    size: int


@dataclass(frozen=True)
class PacketHeader:
    """The header that comes before a packet from (`packet_out`) or to (`packet_in`) a controller."""

    fields: tuple[Parameter, ...]


@dataclass(frozen=True)
class Schema:
    """A P4Info against its program. Ids of what the compiler has taken out of the program are in `absent`."""

    p4info: Message
    program: Program
    actions: dict[int, ActionSchema] = field(default_factory=dict)
    tables: dict[int, TableSchema] = field(default_factory=dict)
    profiles: dict[int, ProfileSchema] = field(default_factory=dict)
    counters: dict[int, CounterSchema] = field(default_factory=dict)
    meters: dict[int, MeterSchema] = field(default_factory=dict)
    registers: dict[int, RegisterSchema] = field(default_factory=dict)
    digests: dict[int, DigestSchema] = field(default_factory=dict)
    value_sets: dict[int, ValueSetSchema] = field(default_factory=dict)
    packet_in: PacketHeader | None = None
    packet_out: PacketHeader | None = None
    absent: dict[int, str] = field(default_factory=dict)

    @cached_property
    def digest_ids(self) -> dict[str, int]:
        """The ids of the digests by name."""
        return {digest.name: digest.id for digest in self.digests.values()}

    def find(self, known: Mapping[int, Found], number: int, what: str) -> Found:
        """What has this id; a fault if nothing has, or the compiler has taken it out of the program."""
        found = known.get(number)
        if found is not None:
            return found
        if number in self.absent:
            raise Fault(Code.UNIMPLEMENTED, f"{what} '{self.absent[number]}' is not in the program that p4c has made")
        raise not_found(f"no {what} has the id {number:#010x}")
