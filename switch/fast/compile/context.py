"""The shared state of the generator's stages: the program, its layout, and the text being written.

`check` names, before anything runs, constructs that the generator would not run exactly as BMv2 does. Some are refused
only while C is written: primitives and operators without a handler, and limits of arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from inakit.switch.fast.compile.expressions import WORD, ParsedStacks, Value, compiled, plain, truncated
from inakit.switch.fast.layout.field_usage import used_fields
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.records import Emitter, MemoryRecord
from inakit.switch.fast.layout.table_layout import METER_RATES
from inakit.switch.program.program import Expression, Field, Parameter, Program, Register, Source, Unknown, Validity
from inakit.topo.errors import UnsupportedError


@contextmanager
def located(source: Source | None) -> Iterator[None]:
    """Add the line of P4 to a refusal that is raised inside."""
    try:
        yield
    except UnsupportedError as error:
        raise UnsupportedError(f"{error} ({source})" if source else str(error)) from None


class Context:
    """Compiles expressions and assignments for the action or parser state that is being written."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.layout = ProgramLayout(program)
        self.out = Emitter()
        self.parameters: MemoryRecord | None = None
        self.parsed: ParsedStacks | None = None  # only inside the parser
        self.may_exit = False  # the action being written stores in `exited` whether the pipeline ends
        self.tested: tuple[Expression, int] | None = None  # an index that is known to be inside registers of this size
        self.variables: dict[Field, str] = {}  # the fields that are C variables in the action being written
        self.stepping: dict[Field | Register, str] = {}  # those through which the loop being written steps

    def value(self, expression: Expression, bits: int = WORD) -> Value:
        """The C text of `expression`, whose low `bits` bits at least are exact, with its range."""
        return compiled(plain(self.program, expression, self.parsed), self.leaf, bits)

    def leaf(self, expression: Expression) -> str:
        """The C expression of a field, of a header's validity, or of a parameter of the action being written."""
        match expression:
            case Field():
                return self.field(expression)
            case Validity(header):
                return self.validity(header)
        assert isinstance(expression, Parameter), "no leaf of an expression"
        assert self.parameters is not None, "a parameter outside of an action"
        return f"given->{self.parameters.order[expression.index].symbol}"

    def validity(self, header: str) -> str:
        """The C expression of a header's validity."""
        return f"state.valid.{self.layout.names.of(header)}"

    def assign(self, field: Field, value: Value) -> None:
        """Write `value` to `field`, cut to its bits as BMv2 does."""
        if field.signed and (value.low < -(1 << field.bits - 1) or value.high >= 1 << field.bits - 1):
            raise UnsupportedError(f"assignment to the signed field '{field}' of a number that may not fit it")
        self.out.line(f"{self.field(field)} = {truncated(value, field.bits)};")

    def field(self, field: Field) -> str:
        """The C expression of a field: a variable of the action, or its place in the packet's state."""
        return self.variables.get(field) or self.stepping.get(field) or self.layout.field(field)

    def register(self, register: Register, index: str) -> str:
        """The C expression of one element of a register."""
        return self.stepping.get(register) or self.layout.register(register, index)

    def touch(self, written: Iterable[Field]) -> None:
        """Write that the headers of these fields have changed, if only changed headers are written back."""
        headers = {field.header for field in written}
        if not self.layout.in_place:
            return
        for header in self.layout.packet_headers:
            if header in headers:
                self.out.line(f"state.dirty.{self.layout.names.of(header)} = 1;")


MAX_FIELD_BITS = 128
MAX_REGISTER_BITS = 64
MAX_LIST = 16384
"""The greatest size of a table that is searched entry by entry."""


def check(program: Program) -> None:
    """Raise `UnsupportedError` for the first construct that target 'fast' does not run."""
    for extra in program.extras:
        raise refusal(program, f"{extra.kind} '{extra.name}'")
    for statement in program.deparser_statements:
        raise refusal(program, f"statement '{statement.source or statement.name}' in the deparser")
    for field in sorted(used_fields(program), key=str):
        if field.bits > MAX_FIELD_BITS:
            raise refusal(program, f"field '{field}' of {field.bits} bits (more than {MAX_FIELD_BITS})")
    check_state(program)
    for table in program.tables.values():
        for part in table.key:
            if isinstance(part.value, Unknown):
                raise refusal(program, f"{part.value.kind} '{part.name}' in table '{table.name}'")
        if table.match not in ("exact", "lpm") and table.size > MAX_LIST:
            raise refusal(program, f"{table.match} table '{table.name}' of {table.size} entries (more than {MAX_LIST})")


def refusal(program: Program, what: str) -> UnsupportedError:
    """The error that names the unsupported construct and the alternatives."""
    return UnsupportedError(
        f"program '{program.name}' uses {what}, which target 'fast' does not support: "
        "run it on BMv2 (SWITCH=bmv2), or take it out of the program"
    )


def check_state(program: Program) -> None:
    """Refuse registers, parameters and parser value sets that are too long, and meters of other rates."""
    for value_set in program.value_sets.values():
        if value_set.bits > MAX_FIELD_BITS:
            what = f"value set '{value_set.name}' of {value_set.bits} bits (more than {MAX_FIELD_BITS})"
            raise refusal(program, what)
    for register in program.registers.values():
        if register.bits > MAX_REGISTER_BITS:
            what = f"register '{register.name}' of {register.bits} bits (more than {MAX_REGISTER_BITS})"
            raise refusal(program, what)
    for meter in (program.meters | program.direct_meters).values():
        if meter.rates != METER_RATES:
            raise refusal(program, f"meter '{meter.name}' of {meter.rates} rates (not {METER_RATES})")
    for action in program.actions:
        for parameter in action.parameters:
            if parameter.bits > MAX_FIELD_BITS:
                name = f"{action.name}.{parameter.name}"
                raise refusal(program, f"parameter '{name}' of {parameter.bits} bits (more than {MAX_FIELD_BITS})")
