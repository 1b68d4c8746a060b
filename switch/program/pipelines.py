"""Ingress and egress: graphs of match-action tables and conditions."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.entries import KeyPart
from inakit.switch.program.actions import Action, ActionCall
from inakit.switch.program.expressions import Expression, Unknown, Validity
from inakit.switch.program.headers import Field
from inakit.switch.program.source import Source
from inakit.topo.errors import unknown_name


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
