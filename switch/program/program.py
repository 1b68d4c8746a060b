"""A P4 program as typed, immutable data: the contents of the BMv2 JSON, independent of the target.

Numbers are Python integers without a width, as in BMv2; fields and parameters have one. Unknown parts of the JSON are
kept by name in `Unknown` and `Program.extras`, so that a target can refuse them by name, with the line of P4 in
`source`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from inakit.switch.entries import KeyPart
from inakit.topo.errors import InputError, unknown_name


@dataclass(frozen=True)
class Source:
    """A line of P4, and the fragment of it from which the construct was compiled."""

    file: str
    line: int
    fragment: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.fragment}"


STANDARD_METADATA = "standard_metadata"
"""The instance that holds the metadata of the switch itself."""

INTRINSIC = {
    "intrinsic_metadata": (
        "mcast_grp", "egress_rid", "priority", "ingress_global_timestamp", "egress_global_timestamp",
    ),
    "queueing_metadata": ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth", "qid"),
}  # fmt: skip
"""Metadata of the switch that BMv2 finds as fields of other instances than `standard_metadata`.

Programs declare these instances, as in P4-14, or aliases of these names for fields of `standard_metadata`.
"""

PORTS = 512
"""A port number has 9 bits."""

DROP_PORT = 511
"""A packet with this `egress_spec` is dropped; no port has this number."""

NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
"""The values of `standard_metadata.instance_type`."""

QUEUE_DEPTH = 64
"""The default depth, in packets, of a queue in front of egress."""


@dataclass(frozen=True)
class Field:
    """A field of a header or metadata instance. `offset` counts bits from the header's start.

    A field of variable length (`varbit`) has 0 `bits`: its length is known on extraction.
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
        """The sum of the fields' bits; a field of variable length adds none."""
        return sum(field.bits for field in self.fields)

    @property
    def size(self) -> int:
        """The bytes of the header in a packet, without a field of variable length."""
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


@dataclass(frozen=True)
class Constant:
    """A number in the program."""

    value: int


@dataclass(frozen=True)
class Boolean:
    """True or false in the program."""

    value: bool


@dataclass(frozen=True)
class Validity:
    """Whether a header is valid, as the number 1 or 0."""

    header: str


@dataclass(frozen=True)
class Parameter:
    """The parameter at `index` of the running action; the table entry gives its value."""

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
    """A header stack itself; as an operand of `extract`, the stack's next element."""

    stack: str


@dataclass(frozen=True)
class UnionReference:
    """A header union itself, as an operand."""

    union: str


@dataclass(frozen=True)
class UnionStackReference:
    """A stack of unions itself; with `member`, that member of its next union (to extract) or last union (to read)."""

    stack: str
    member: str | None = None


@dataclass(frozen=True)
class LastField:
    """A field of the last element that the parser filled; `index` is its place among the header's fields.

    For a stack of unions, `member` names the header of the union.
    """

    stack: str
    index: int
    bits: int
    member: str | None = None


@dataclass(frozen=True)
class ElementField:
    """The field at place `index` of the header that `header` evaluates to.

    The index after the last field stands for the header's validity.
    """

    header: Expression
    index: int


@dataclass(frozen=True)
class Lookahead:
    """`bits` bits of the packet that lie ahead of the parser, starting `offset` bits from its position."""

    offset: int
    bits: int

    def __str__(self) -> str:
        return f"lookahead of {self.bits} bits"


@dataclass(frozen=True)
class Unknown:
    """A construct of BMv2 JSON without a place in this representation: targets refuse it by its kind and name."""

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


@dataclass(frozen=True)
class SizedNumber:
    """A number of a known width, as a part of a hash's input."""

    value: int
    bits: int


@dataclass(frozen=True)
class Payload:
    """All of the packet after the parsed headers, as a part of a hash's input."""


HashInput = Field | SizedNumber | HeaderReference | Payload
"""One part of a hash's input; the parts stand side by side, bit after bit."""


@dataclass(frozen=True)
class Calculation:
    """A hash function with its input; fields of invalid headers are omitted."""

    name: str
    algorithm: str
    input: tuple[HashInput, ...]
    source: Source | None = None


@dataclass(frozen=True)
class CrcParameters:
    """The divisor of a cyclic redundancy check, its initial remainder, and the number for the final xor.

    `reflect_data` reverses the bits of each byte, `reflect_result` those of the result.
    """

    polynomial: int
    first: int
    last: int
    reflect_data: bool
    reflect_result: bool


CRC_CUSTOM = {"crc16_custom": 16, "crc32_custom": 32}
"""The algorithms with parameters from the control plane, with the bits of their results."""


@dataclass(frozen=True)
class Checksum:
    """A checksum field, `target`, for packets that meet `condition` (None: all packets).

    With `verify`, it is checked after the parser; with `update`, it is set before the deparser.
    """

    name: str
    target: Field
    calculation: Calculation
    verify: bool
    update: bool
    condition: Expression | None
    source: Source | None = None


@dataclass(frozen=True)
class FieldList:
    """The fields of a digest, or the fields that a copy of the packet keeps."""

    number: int
    name: str
    fields: tuple[Field | SizedNumber, ...]
    source: Source | None = None

    @property
    def only_fields(self) -> list[Field]:
        """The fields, without the numbers between them."""
        return [each for each in self.fields if isinstance(each, Field)]


@dataclass(frozen=True)
class Register:
    """An array of `size` numbers of `bits` bits, which statements read and write by index."""

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
class ActionProfile:
    """Actions shared by entries of several tables; `selector` chooses among the members of a group."""

    name: str
    size: int
    selector: Calculation | None


@dataclass(frozen=True)
class ValueSet:
    """A parser value set of numbers of `bits` bits, which the control plane fills."""

    name: str
    bits: int
    size: int
    source: Source | None = None


@dataclass(frozen=True)
class Extern:
    """An instance of an extern that v1model.p4 does not declare; only some switches have it."""

    name: str
    type: str
    source: Source | None = None


@dataclass(frozen=True)
class Text:
    """A string, such as the format of a log message."""

    value: str


@dataclass(frozen=True)
class Arguments:
    """A list of expressions as one argument."""

    values: tuple[Expression, ...]


Argument = Expression | Register | Counter | Meter | Calculation | Extern | Text | Arguments


@dataclass(frozen=True)
class Primitive:
    """One statement of an action, a parser state or the deparser."""

    name: str
    arguments: tuple[Argument, ...]
    source: Source | None


JUMPS = {"_jump": 0, "_jump_if_zero": 1}
"""The primitives by which p4c writes an `if` or a loop of an action, with the position of their target.

The target is the index of the action's primitive to run next; an index beyond the last ends the action. `_jump_if_zero`
jumps if its first argument is 0 or false.
"""


@dataclass(frozen=True)
class ActionParameter:
    """A parameter of an action, whose value a table entry gives."""

    name: str
    bits: int


@dataclass(frozen=True)
class Action:
    """An action. One P4 action can appear several times with different numbers, once per use."""

    number: int
    name: str
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[Primitive, ...]

    @cached_property
    def places(self) -> tuple[tuple[str, int], ...]:
        """The name and the bits of each parameter."""
        return tuple((each.name, each.bits) for each in self.parameters)

    @property
    def jumps(self) -> bool:
        """Whether some of the primitives can be skipped or repeated."""
        return any(each.name in JUMPS for each in self.primitives)

    @property
    def always_exits(self) -> bool:
        """Whether the pipeline ends with this action."""
        return not self.jumps and self.has_exit

    @property
    def may_exit(self) -> bool:
        """Whether the action sometimes ends the pipeline, which is known only when it runs."""
        return self.jumps and self.has_exit

    @property
    def has_exit(self) -> bool:
        """Whether one of the primitives ends the pipeline."""
        return any(each.name == "exit" for each in self.primitives)


@dataclass(frozen=True)
class ActionCall:
    """An action with the values of its parameters."""

    action: Action
    values: tuple[int, ...]


@dataclass(frozen=True)
class Transition:
    """A transition to `next_state` (None: parsing ends) if key & mask == value.

    Without a value and a value set, it always matches. With `value_set`, the key (& mask) must be in that set instead.
    """

    value: int | None
    mask: int | None
    next_state: str | None
    value_set: str | None = None


@dataclass(frozen=True)
class ParserState:
    """A state. `transitions` match its `key`, the concatenation of these parts."""

    name: str
    operations: tuple[Primitive, ...]
    key: tuple[Field | LastField | Lookahead | Unknown, ...]
    transitions: tuple[Transition, ...]


@dataclass(frozen=True)
class Parser:
    """All states by name; parsing begins at `first`."""

    first: str
    states: dict[str, ParserState]


@dataclass(frozen=True)
class MatchKey:
    """One part of a table's key; only the bits of `mask` count."""

    name: str
    match: str
    value: Field | Validity | Unknown
    mask: int | None = None

    @cached_property
    def bits(self) -> int:
        """The bits of the field; 1 for a validity."""
        return self.value.bits if isinstance(self.value, Field) else 1


@dataclass(frozen=True)
class ConstEntry:
    """An entry of the program; among several matches, the lowest `priority` wins."""

    key: tuple[KeyPart, ...]
    call: ActionCall
    priority: int
    source: Source | None


@dataclass(frozen=True)
class Table:
    """A match-action table; `hit`, `miss` and `after` (by action number) name the node that follows.

    Without `by_outcome`, the action that ran chooses the next node, on hit or miss; a miss without an action continues
    at `base_next`. `match` is the kind of search of the whole table. With `profile`, entries name members or groups of
    an action profile. The control plane cannot change given `entries` (even an empty list), or a default with
    `default_is_const`; with `default_action_is_const`, it can change only the parameters of the default.
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
    default_action_is_const: bool = False
    base_next: str | None = None
    profile: str | None = None
    counted: bool = False
    meter: str | None = None
    idle_timeout: bool = False

    def const_default_action(self, otherwise: str) -> str:
        """The name of the only action that can be the table's default; `otherwise` if any action can."""
        only = self.default if self.default_action_is_const else None
        return otherwise if only is None else only.action.name

    def action(self, name: str) -> Action:
        """The action of this table that is called `name`; `InputError` if it has none."""
        return found(f"action of table '{self.name}'", name, self.first_actions)

    @cached_property
    def first_actions(self) -> dict[str, Action]:
        """The first action of each name."""
        return {action.name: action for action in reversed(self.actions)}


@dataclass(frozen=True)
class Conditional:
    """An `if` of a pipeline, with the next nodes (None: the pipeline ends)."""

    name: str
    condition: Expression
    true_next: str | None
    false_next: str | None
    source: Source | None


Node = Table | Conditional


@dataclass(frozen=True)
class Pipeline:
    """A graph of tables and conditionals with the start `first` (None: empty)."""

    name: str
    first: str | None
    nodes: dict[str, Node]


Named = TypeVar("Named")


def found(what: str, name: str, known: Mapping[str, Named], offered: Collection[str] | None = None) -> Named:
    """The thing called `name`; if there is none, `InputError` with the nearest of the `offered` names (all if None)."""
    if name not in known:
        raise unknown_name(what, name, known if offered is None else offered)
    return known[name]


NEVER_APPLIED = "p4c leaves out a table that the program never applies"
"""The reason, for messages, why a program can lack a table of its source."""


@dataclass(frozen=True)
class Program:
    """A whole v1model program. `aliases` maps BMv2's intrinsic names to fields.

    `counters` and `meters` are arrays that statements name; the `direct_` ones belong to tables' entries. `deparser`
    lists the headers in the order of emission, `errors` gives the parser's error numbers.
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

    @property
    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """Ingress and egress."""
        return self.ingress, self.egress

    @property
    def all_calculations(self) -> list[Calculation]:
        """The calculations of statements, checksums and selectors."""
        selectors = (profile.selector for profile in self.profiles.values())
        return [*self.calculations.values(), *(each for each in selectors if each is not None)]

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables of both pipelines, by name."""
        nodes = (node for pipeline in self.pipelines for node in pipeline.nodes.values())
        return {node.name: node for node in nodes if isinstance(node, Table)}

    def table(self, name: str) -> Table:
        """The table of this name; if there is none, `InputError` with the tables that have a key."""
        return found("table", name, self.tables, self.keyed_tables)

    @cached_property
    def keyed_tables(self) -> tuple[str, ...]:
        """The names of the tables that have a key."""
        return tuple(table.name for table in self.tables.values() if table.key)

    def register(self, name: str) -> Register:
        """The register of this name; `InputError` if there is none."""
        return found("register", name, self.registers)

    def counter(self, name: str) -> Counter:
        """The indirect counter of this name; `InputError` if there is none."""
        return found("counter", name, self.counters)

    def meter(self, name: str) -> Meter:
        """The meter of this name, direct or not; `InputError` if there is none.

        The cells of a direct meter belong to the table's entries, in the order of addition.
        """
        return found("meter", name, self.meters | self.direct_meters)

    def field(self, header: str, name: str) -> Field:
        """The field `name` of the instance `header`; `InputError` if there is none."""
        found = self.find_field(header, name)
        if found is None:
            raise InputError(f"program '{self.name}' has no field '{header}.{name}': is it a v1model program?")
        return found

    def intrinsic(self, name: str) -> Field | None:
        """The switch's own metadata field that BMv2 knows as `name`; None without one."""
        header = next((each for each, names in INTRINSIC.items() if name in names), STANDARD_METADATA)
        return self.aliases.get(f"{header}.{name}") or self.find_field(header, name)

    @property
    def no_error(self) -> int:
        """The `parser_error` of a completely parsed packet."""
        return self.errors["NoError"]

    def find_field(self, header: str, name: str) -> Field | None:
        """The field `name` of the instance `header`, or None."""
        fields = self.headers[header].fields if header in self.headers else ()
        return next((field for field in fields if field.name == name), None)
