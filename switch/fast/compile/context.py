"""What the stages of the generator share: the program, its layout, the text being written, standard metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from inakit.switch.fast.compile.expressions import WORD, Expressions, ParsedStacks, Value, plain, truncated
from inakit.switch.fast.layout.field_usage import named_by
from inakit.switch.fast.layout.layout import EGRESS_TIME, STARTED, ProgramLayout
from inakit.switch.fast.layout.records import Emitter, MemoryRecord
from inakit.switch.program.expressions import Expression, Field, Parameter, Source
from inakit.switch.program.program import Action, Program
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
        self.parsed: ParsedStacks | None = None  # inside the parser
        self.may_exit = False  # the action being written notes in `exited` whether the pipeline ends
        self.tested: tuple[Expression, int] | None = None  # the index known to be inside registers of this size
        self.expressions = Expressions(self.layout.field, self.validity, self.parameter)

    def value(self, expression: Expression, bits: int = WORD) -> Value:
        """The C text of `expression`, which gives at least its low `bits` bits, with its range."""
        return self.expressions.compile(plain(self.program, expression, self.parsed), bits)

    def validity(self, header: str) -> str:
        """The C expression of a header's validity."""
        return f"state.valid.{self.layout.names.of(header)}"

    def parameter(self, parameter: Parameter) -> str:
        """The C expression of a parameter of the action that is being written."""
        assert self.parameters is not None, "a parameter outside of an action"
        return f"given->{self.parameters.order[parameter.index].symbol}"

    def assign(self, field: Field, value: Value) -> None:
        """Write `value` to `field`, cut to its bits as BMv2 does."""
        if field.signed and (value.low < -(1 << field.bits - 1) or value.high >= 1 << field.bits - 1):
            raise UnsupportedError(f"assignment to the signed field '{field}' of a number that may not fit it")
        self.out.line(f"{self.layout.field(field)} = {truncated(value, field.bits)};")

    def touch(self, written: Iterable[Field]) -> None:
        """Write that the headers of these fields have changed, where only changed headers are written back."""
        headers = {field.header for field in written}
        if self.layout.rebuilt:
            return
        for header in self.layout.packet_headers:
            if header in headers:
                self.out.line(f"state.dirty.{self.layout.names.of(header)} = 1;")


def standard_assignment(context: Context, name: str, text: str) -> str:
    """The C statement that assigns to a metadata field of the switch; empty where the program does not have it."""
    field = context.layout.intrinsic.get(name)
    return "" if field is None else f"{context.layout.field(field)} = ({text}) & {(1 << field.bits) - 1:#x}ull;"


def set_standard(context: Context, name: str, text: str) -> None:
    """Assign to a metadata field of the switch; do nothing where the program does not have it."""
    if statement := standard_assignment(context, name, text):
        context.out.line(statement)


def set_clock(context: Context, name: str) -> None:
    """Assign the microseconds since the switch started. No packet waits in a queue: its depths and times are 0."""
    if context.layout.timed(name):
        started = context.layout.arrays[STARTED]
        set_standard(context, name, f"(clock_ns() - own->{started.symbol}[0].ns) / 1000")


def set_egress_time(context: Context) -> None:
    """Note when egress begins. Reading the clock takes as long as a table: where actions do it, it is 0 until then."""
    if context.layout.late_clock is None:
        set_clock(context, EGRESS_TIME)
    else:
        set_standard(context, EGRESS_TIME, "0")


def set_late_clock(context: Context, action: Action) -> None:
    """In an action that needs to know when egress began, read the clock if no action before it has."""
    field = context.layout.late_clock
    if field is not None and field in named_by(action.primitives):
        with context.out.block(f"if (!{context.layout.field(field)})"):
            set_clock(context, field.name)


def standard(context: Context, name: str) -> str:
    """The C expression of a metadata field of the switch; "0" where the program does not have it."""
    field = context.layout.intrinsic.get(name)
    return "0" if field is None else context.layout.field(field)
