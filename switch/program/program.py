"""A P4 program as typed, immutable data: what the BMv2 JSON says, independent of how it will run.

Parts of the JSON that no reader knows are kept by name in `Unknown` and `Program.extras`, so that a
target can refuse them by name, with the line of P4 that `source` gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from inakit.switch.entries import KeyPart
from inakit.switch.program.expressions import (
    INTRINSIC,
    STANDARD_METADATA,
    Calculation,
    Checksum,
    Expression,
    Field,
    FieldList,
    Header,
    LastField,
    Lookahead,
    Source,
    Stack,
    Union,
    UnionStack,
    Unknown,
    Validity,
)
from inakit.topo.errors import InputError, unknown_name


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
    """Actions that entries of several tables share; `selector` chooses among the members of a group."""

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
    """An instance of an extern that v1model.p4 does not declare: only some switches have it."""

    name: str
    type: str
    source: Source | None = None


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
    """One statement of an action, of a parser state or of the deparser."""

    name: str
    arguments: tuple[Argument, ...]
    source: Source | None


JUMPS = {"_jump": 0, "_jump_if_zero": 1}
"""The primitives by which p4c writes an `if` or a loop of an action, with the position of their target.

The target is the index, among the action's primitives, of the one that follows; an index beyond the last ends the
action. `_jump_if_zero` jumps where its first argument is 0 or false.
"""


@dataclass(frozen=True)
class ActionParameter:
    """A parameter of an action, whose value a table entry gives."""

    name: str
    bits: int


@dataclass(frozen=True)
class Action:
    """An action. The same P4 action may appear several times with different numbers, once for each use."""

    number: int
    name: str
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[Primitive, ...]

    @property
    def jumps(self) -> bool:
        """Whether some of the primitives may be skipped or run again."""
        return any(each.name in JUMPS for each in self.primitives)

    @property
    def always_exits(self) -> bool:
        """Whether the pipeline ends with this action."""
        return not self.jumps and self.has_exit

    @property
    def may_exit(self) -> bool:
        """Whether it shows only when the action runs whether the pipeline ends with it."""
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
    """A transition to `next_state` (None: parsing ends) where key & mask == value.

    One whose value and value set are None always matches. With `value_set`, the key (& mask) must be in that set
    instead.
    """

    value: int | None
    mask: int | None
    next_state: str | None
    value_set: str | None = None


@dataclass(frozen=True)
class ParserState:
    """A state. `key` is what `transitions` look at, its parts side by side."""

    name: str
    operations: tuple[Primitive, ...]
    key: tuple[Field | LastField | Lookahead | Unknown, ...]
    transitions: tuple[Transition, ...]


@dataclass(frozen=True)
class Parser:
    """All states by name; parsing begins in `first`."""

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
        """The bits of the field; 1 of a validity."""
        return self.value.bits if isinstance(self.value, Field) else 1


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

    Without `by_outcome` the action that ran decides what follows, hit or miss; a miss without any action goes on at
    `base_next`. `match` is how the table as a whole is searched. With `profile`, entries name members or groups of an
    action profile. With `entries` (even none), or a `default_is_const`, the control plane cannot change them;
    with a `default_action_is_const` it can change the parameters of the default only.
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
        """The name of the only action that the table can have as its default; `otherwise`, if it can have any."""
        only = self.default if self.default_action_is_const else None
        return otherwise if only is None else only.action.name

    def action(self, name: str) -> Action:
        """The action called `name` among those of this table; `InputError` if it has none of that name."""
        for action in self.actions:
            if action.name == name:
                return action
        raise unknown_name(f"action of table '{self.name}'", name, [action.name for action in self.actions])


@dataclass(frozen=True)
class Conditional:
    """An `if` of a pipeline, with the nodes that follow (None: the pipeline ends)."""

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


NEVER_APPLIED = "p4c leaves out a table that the program never applies"
"""Why a program may lack a table that its source has, for messages."""


@dataclass(frozen=True)
class Program:
    """A whole v1model program. `aliases` maps BMv2's intrinsic names to fields.

    `counters` and `meters` are arrays that statements name; those of tables' entries are `direct_`. `deparser` names
    the headers in the order in which valid ones leave, `errors` gives the parser's error numbers.
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
        """The calculations that statements and checksums name, and those of selectors."""
        selectors = (profile.selector for profile in self.profiles.values())
        return [*self.calculations.values(), *(each for each in selectors if each is not None)]

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables of both pipelines, by name."""
        nodes = (node for pipeline in self.pipelines for node in pipeline.nodes.values())
        return {node.name: node for node in nodes if isinstance(node, Table)}

    def table(self, name: str) -> Table:
        """The table of this name; `InputError`, with those that have a key, if there is none."""
        if name not in self.tables:
            raise unknown_name("table", name, [table.name for table in self.tables.values() if table.key])
        return self.tables[name]

    def register(self, name: str) -> Register:
        """The register of this name; `InputError` if there is none."""
        if name not in self.registers:
            raise unknown_name("register", name, self.registers)
        return self.registers[name]

    def counter(self, name: str) -> Counter:
        """The indirect counter of this name; `InputError` if there is none."""
        if name not in self.counters:
            raise unknown_name("counter", name, self.counters)
        return self.counters[name]

    def meter(self, name: str) -> Meter:
        """The meter of this name, direct or not; `InputError` if there is none.

        The cells of a direct meter belong to the table's entries, in the order in which they were added.
        """
        found = self.meters | self.direct_meters
        if name not in found:
            raise unknown_name("meter", name, found)
        return found[name]

    def field(self, header: str, name: str) -> Field:
        """The field `name` of the instance `header`; `InputError` if there is none."""
        found = self.find_field(header, name)
        if found is None:
            raise InputError(f"program '{self.name}' has no field '{header}.{name}': is it a v1model program?")
        return found

    def intrinsic(self, name: str) -> Field | None:
        """The metadata field of the switch itself that is called `name`, by which BMv2 finds it; None without one."""
        header = next((each for each, names in INTRINSIC.items() if name in names), STANDARD_METADATA)
        return self.aliases.get(f"{header}.{name}") or self.find_field(header, name)

    @property
    def no_error(self) -> int:
        """What `parser_error` is for a packet that is parsed to the end."""
        return self.errors["NoError"]

    def find_field(self, header: str, name: str) -> Field | None:
        """The field `name` of the instance `header`, or None."""
        fields = self.headers[header].fields if header in self.headers else ()
        return next((field for field in fields if field.name == name), None)
