"""The context that the stages of the generator share: the program, its layout, and the text being written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from inakit.switch.fast.compile.expressions import WORD, ParsedStacks, Value, compiled, plain, truncated
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.records import Emitter, MemoryRecord
from inakit.switch.program.program import Expression, Field, Parameter, Program, Source, Validity
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

    def value(self, expression: Expression, bits: int = WORD) -> Value:
        """The C text of `expression`, which gives at least its low `bits` bits, with its range."""
        return compiled(plain(self.program, expression, self.parsed), self.leaf, bits)

    def leaf(self, expression: Expression) -> str:
        """The C expression of a field, of a header's validity, or of a parameter of the action being written."""
        match expression:
            case Field():
                return self.layout.field(expression)
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
        self.out.line(f"{self.layout.field(field)} = {truncated(value, field.bits)};")

    def touch(self, written: Iterable[Field]) -> None:
        """Write that the headers of these fields have changed, where only changed headers are written back."""
        headers = {field.header for field in written}
        if self.layout.rebuilt:
            return
        for header in self.layout.packet_headers:
            if header in headers:
                self.out.line(f"state.dirty.{self.layout.names.of(header)} = 1;")
