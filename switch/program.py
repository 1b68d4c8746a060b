"""A P4 program as typed, immutable data: what the BMv2 JSON says, independent of how it will run.

Numbers are Python integers without a width, as in BMv2; fields, parameters and registers have one.
Parts of the JSON that no reader knows are kept by name in `Unknown` and `Program.extras`, so that a
target can refuse them by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from topo.errors import InputError, unknown_name


@dataclass(frozen=True)
class Source:
    """Where in the P4 source something stands."""

    file: str
    line: int
    fragment: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.fragment}"


@dataclass(frozen=True)
class Field:
    """A field of a header or metadata instance. `offset` counts bits from the header's start."""

    header: str
    name: str
    bits: int
    signed: bool
    offset: int

    def __str__(self) -> str:
        return f"{self.header}.{self.name}"


@dataclass(frozen=True)
class Header:
    """A header instance, or (`metadata`) a group of metadata fields."""

    name: str
    metadata: bool
    fields: tuple[Field, ...]

    @property
    def bits(self) -> int:
        return sum(field.bits for field in self.fields)

    @property
    def size(self) -> int:
        """Bytes in a packet."""
        return self.bits // 8


# ---- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constant:
    value: int


@dataclass(frozen=True)
class Boolean:
    value: bool


@dataclass(frozen=True)
class Validity:
    """Whether a header is valid, as the number 1 or 0."""

    header: str


@dataclass(frozen=True)
class Parameter:
    """The action's parameter at `index`: what the table entry gives."""

    index: int
    bits: int


@dataclass(frozen=True)
class Operation:
    """An operator and its operands; those of `?` are condition, value if true, value if false."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Unknown:
    """A construct of BMv2 JSON that has no place in this representation."""

    kind: str
    name: str


Expression = Constant | Boolean | Validity | Parameter | Field | Operation | Unknown


# ---- actions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Register:
    name: str
    size: int
    bits: int


@dataclass(frozen=True)
class Counter:
    """An indirect counter array: packets and bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class HeaderReference:
    header: str


Argument = Expression | Register | Counter | HeaderReference


@dataclass(frozen=True)
class Primitive:
    """One statement of an action."""

    name: str
    arguments: tuple[Argument, ...]
    source: Source | None


@dataclass(frozen=True)
class ActionParameter:
    name: str
    bits: int


@dataclass(frozen=True)
class Action:
    """The same P4 action may appear several times with different numbers, once for each use."""

    number: int
    name: str
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[Primitive, ...]


# ---- parser and control -------------------------------------------------------------------------


@dataclass(frozen=True)
class Transition:
    """To `next_state` (None: parsing ends) if key & mask == value; a value of None always matches."""

    value: int | None
    mask: int | None
    next_state: str | None


@dataclass(frozen=True)
class ParserState:
    name: str
    operations: tuple[Primitive, ...]
    key: tuple[Field | Unknown, ...]
    transitions: tuple[Transition, ...]


@dataclass(frozen=True)
class Parser:
    first: str
    states: dict[str, ParserState]


@dataclass(frozen=True)
class MatchKey:
    """One part of a table's key."""

    name: str
    match: str
    value: Field | Validity | Unknown

    @property
    def bits(self) -> int:
        return self.value.bits if isinstance(self.value, Field) else 1


@dataclass(frozen=True)
class ActionCall:
    """An action with the values of its parameters."""

    action: Action
    values: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """A match-action table; `hit`, `miss` and `after` (by action number) name the node that follows.

    Where `hit` or `miss` is not in the JSON, the action that ran decides.
    """

    name: str
    key: tuple[MatchKey, ...]
    actions: tuple[Action, ...]
    default: ActionCall | None
    size: int
    after: dict[int, str | None]
    by_outcome: bool
    hit: str | None
    miss: str | None
    source: Source | None
    extras: tuple[Unknown, ...] = ()

    def action(self, name: str) -> Action:
        """The action called `name` among those of this table."""
        for action in self.actions:
            if action.name == name:
                return action
        raise unknown_name(f"action of table '{self.name}'", name, [action.name for action in self.actions])


@dataclass(frozen=True)
class Conditional:
    name: str
    condition: Expression
    true_next: str | None
    false_next: str | None
    source: Source | None


Node = Table | Conditional


@dataclass(frozen=True)
class Pipeline:
    """A graph of tables and conditionals, entered at `first` (None: empty)."""

    name: str
    first: str | None
    nodes: dict[str, Node]


@dataclass(frozen=True)
class Program:
    """A whole v1model program. `aliases` maps BMv2's intrinsic names to fields."""

    name: str
    headers: dict[str, Header]
    errors: dict[str, int]
    parser: Parser
    ingress: Pipeline
    egress: Pipeline
    deparser: tuple[str, ...]
    actions: tuple[Action, ...]
    registers: dict[str, Register]
    counters: dict[str, Counter]
    aliases: dict[str, Field]
    extras: tuple[Unknown, ...]

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables of both pipelines, by name."""
        nodes = [*self.ingress.nodes.values(), *self.egress.nodes.values()]
        return {node.name: node for node in nodes if isinstance(node, Table)}

    def table(self, name: str) -> Table:
        if name not in self.tables:
            raise unknown_name("table", name, [table.name for table in self.tables.values() if table.key])
        return self.tables[name]

    def register(self, name: str) -> Register:
        if name not in self.registers:
            raise unknown_name("register", name, self.registers)
        return self.registers[name]

    def counter(self, name: str) -> Counter:
        if name not in self.counters:
            raise unknown_name("counter", name, self.counters)
        return self.counters[name]

    def field(self, header: str, name: str) -> Field:
        """The field `name` of the instance `header`."""
        found = self.find_field(header, name)
        if found is None:
            raise InputError(f"program '{self.name}' has no field '{header}.{name}': is it a v1model program?")
        return found

    def find_field(self, header: str, name: str) -> Field | None:
        """Like `field`, or None."""
        fields = self.headers[header].fields if header in self.headers else ()
        return next((field for field in fields if field.name == name), None)
