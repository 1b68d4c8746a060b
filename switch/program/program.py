"""A P4 program as typed, immutable data: what the BMv2 JSON says, independent of how it will run.

Parts of the JSON that no reader knows are kept by name in `Unknown` and `Program.extras`, so that a
target can refuse them by name, with the line of P4 that `source` gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from inakit.switch.program.actions import Action, Primitive
from inakit.switch.program.calculations import Calculation, Checksum, FieldList
from inakit.switch.program.expressions import Unknown
from inakit.switch.program.externs import ActionProfile, Counter, DirectCounter, Extern, Meter, Register, ValueSet
from inakit.switch.program.headers import Field, Header, Stack, Union, UnionStack
from inakit.switch.program.parser import Parser
from inakit.switch.program.pipelines import Pipeline, Table
from inakit.switch.program.v1model import INTRINSIC, STANDARD_METADATA
from inakit.topo.errors import InputError, unknown_name

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
    def all_calculations(self) -> list[Calculation]:
        """The calculations that statements and checksums name, and those of selectors."""
        selectors = (profile.selector for profile in self.profiles.values())
        return [*self.calculations.values(), *(each for each in selectors if each is not None)]

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables of both pipelines, by name."""
        nodes = [*self.ingress.nodes.values(), *self.egress.nodes.values()]
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
