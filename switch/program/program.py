"""A P4 program as typed, immutable data: what the BMv2 JSON says, independent of how it will run.

Numbers are Python integers without a width, as in BMv2; fields, parameters and registers have one.
Parts of the JSON that no reader knows are kept by name in `Unknown` and `Program.extras`, so that a
target can refuse them by name, with the line of P4 that `source` gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from switch.entries import KeyPart
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
    """A field of a header or metadata instance. `offset` counts bits from the header's start.

    A field of variable length (`varbit`) has 0 `bits`: its length is found when it is extracted.
    """

    header: str
    name: str
    bits: int
    signed: bool
    offset: int
    variable: bool = False

    def __str__(self) -> str:
        return f"{self.header}.{self.name}"


@dataclass(frozen=True)
class Header:
    """A header instance, or (`metadata`) a group of metadata fields.

    `max_bytes` bounds a header with a field of variable length; `type` names its declaration.
    """

    name: str
    metadata: bool
    fields: tuple[Field, ...]
    type: str = ""
    max_bytes: int | None = None

    @property
    def bits(self) -> int:
        return sum(field.bits for field in self.fields)

    @property
    def size(self) -> int:
        """Bytes in a packet; of a field of variable length, none."""
        return self.bits // 8


@dataclass(frozen=True)
class Stack:
    """A header stack: the instances that are its elements, first to last."""

    name: str
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Union:
    """A header union: its instances by the names of its members, of which at most one is valid."""

    name: str
    members: dict[str, str]


@dataclass(frozen=True)
class UnionStack:
    """A stack of header unions, first to last."""

    name: str
    unions: tuple[Union, ...]


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
class HeaderReference:
    """A header instance itself, as the operand of a comparison or of a primitive."""

    header: str


@dataclass(frozen=True)
class StackReference:
    """A header stack itself; where a header is extracted, its next element."""

    stack: str


@dataclass(frozen=True)
class UnionReference:
    union: str


@dataclass(frozen=True)
class UnionStackReference:
    """A stack of unions itself; with `member`, that member of its next union (to extract) or last (to read)."""

    stack: str
    member: str | None = None


@dataclass(frozen=True)
class LastField:
    """A field, by its place among the header's, of the last element that the parser filled.

    Of a stack of unions, `member` names the header of the union.
    """

    stack: str
    index: int
    bits: int
    member: str | None = None


@dataclass(frozen=True)
class ElementField:
    """The field at a place of the header that `header` evaluates to; behind the last field is its validity."""

    header: Expression
    index: int


@dataclass(frozen=True)
class Lookahead:
    """Bits of the packet, counted from where the parser is."""

    offset: int
    bits: int

    def __str__(self) -> str:
        return f"lookahead of {self.bits} bits"


@dataclass(frozen=True)
class Unknown:
    """A construct of BMv2 JSON that has no place in this representation."""

    kind: str
    name: str
    source: Source | None = None


Expression = (
    Constant
    | Boolean
    | Validity
    | Parameter
    | Field
    | Operation
    | HeaderReference
    | StackReference
    | UnionReference
    | UnionStackReference
    | LastField
    | ElementField
    | Lookahead
    | Unknown
)


# ---- state and externs --------------------------------------------------------------------------


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
class DirectCounter:
    """Packets and bytes of each entry of `table`."""

    name: str
    table: str
    source: Source | None = None


@dataclass(frozen=True)
class Meter:
    """A meter of `rates` rates, for packets or (`of_bytes`) bytes.

    A direct meter has a cell for each entry of the table that names it, and puts its colour into `result`.
    """

    name: str
    size: int
    rates: int
    of_bytes: bool
    result: Field | None
    source: Source | None = None


@dataclass(frozen=True)
class Literal:
    """A number of a known width, as a part of what is hashed."""

    value: int
    bits: int


@dataclass(frozen=True)
class Payload:
    """All of the packet behind the headers that were parsed, as a part of what is hashed."""


@dataclass(frozen=True)
class Calculation:
    """A hash function with what it is computed over; fields of headers that are not there are left out."""

    name: str
    algorithm: str
    input: tuple[Field | Literal | HeaderReference | Payload, ...]
    source: Source | None = None


@dataclass(frozen=True)
class Checksum:
    """`target` is checked after the parser or (`update`) set before the deparser, if `condition` holds."""

    name: str
    target: Field
    calculation: Calculation
    verify: bool
    update: bool
    condition: Expression | None
    source: Source | None = None


@dataclass(frozen=True)
class FieldList:
    """Fields that a digest reports, or that a copy of the packet keeps."""

    number: int
    name: str
    fields: tuple[Field | Literal, ...]
    source: Source | None = None


@dataclass(frozen=True)
class ActionProfile:
    """Actions that entries of several tables share; `selector` chooses among the members of a group."""

    name: str
    size: int
    selector: Calculation | None


@dataclass(frozen=True)
class ValueSet:
    """A parser value set, which the control plane fills."""

    name: str
    bits: int
    size: int
    source: Source | None = None


@dataclass(frozen=True)
class Extern:
    """An instance of an extern that only some switches have."""

    name: str
    type: str
    source: Source | None = None


# ---- actions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A string, as the format of a log message."""

    value: str


@dataclass(frozen=True)
class Arguments:
    """A list of expressions as one argument."""

    values: tuple[Expression, ...]


Argument = Expression | Register | Counter | Meter | Calculation | Extern | Text | Arguments


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
    """To `next_state` (None: parsing ends) if key & mask == value; a value of None always matches.

    With `value_set`, the key (& mask) must be in that set instead.
    """

    value: int | None
    mask: int | None
    next_state: str | None
    value_set: str | None = None


@dataclass(frozen=True)
class ParserState:
    """`key` is what `transitions` look at, its parts side by side."""

    name: str
    operations: tuple[Primitive, ...]
    key: tuple[Field | LastField | Lookahead | Unknown, ...]
    transitions: tuple[Transition, ...]


@dataclass(frozen=True)
class Parser:
    first: str
    states: dict[str, ParserState]


@dataclass(frozen=True)
class MatchKey:
    """One part of a table's key, of which only the bits of `mask` count."""

    name: str
    match: str
    value: Field | Validity | Unknown
    mask: int | None = None

    @property
    def bits(self) -> int:
        return self.value.bits if isinstance(self.value, Field) else 1


@dataclass(frozen=True)
class ActionCall:
    """An action with the values of its parameters."""

    action: Action
    values: tuple[int, ...]


@dataclass(frozen=True)
class ConstEntry:
    """An entry that the program gives; the lowest `priority` wins where several match."""

    key: tuple[KeyPart, ...]
    call: ActionCall
    priority: int
    source: Source | None


@dataclass(frozen=True)
class Table:
    """A match-action table; `hit`, `miss` and `after` (by action number) name the node that follows.

    Where `hit` or `miss` is not in the JSON, the action that ran decides; a miss without any action goes on at
    `base_next`. `match` is how the table as a whole is searched. With `profile`, entries name members or groups of an
    action profile. With `entries` (even none), or a `default_is_const`, the control plane cannot change them.
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
    match: str = "exact"
    entries: tuple[ConstEntry, ...] | None = None
    default_is_const: bool = False
    base_next: str | None = None
    profile: str | None = None
    counted: bool = False
    meter: str | None = None
    idle_timeout: bool = False

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
    """A whole v1model program. `aliases` maps BMv2's intrinsic names to fields.

    `counters` and `meters` are arrays that statements name; those of tables' entries are `direct_`.
    """

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
    stacks: dict[str, Stack]
    unions: dict[str, Union]
    union_stacks: dict[str, UnionStack]
    direct_counters: dict[str, DirectCounter]
    meters: dict[str, Meter]
    direct_meters: dict[str, Meter]
    calculations: dict[str, Calculation]
    checksums: tuple[Checksum, ...]
    digests: dict[int, FieldList]
    field_lists: dict[int, FieldList]
    profiles: dict[str, ActionProfile]
    value_sets: dict[str, ValueSet]
    externs: dict[str, Extern]
    deparser_statements: tuple[Primitive, ...]

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

    def meter(self, name: str) -> Meter:
        """A meter by its name; of a direct one, the cells are those of the table's entries, as they came."""
        found = self.meters | self.direct_meters
        if name not in found:
            raise unknown_name("meter", name, found)
        return found[name]

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
