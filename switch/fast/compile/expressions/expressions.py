"""Expressions of BMv2, which count without a width, as C expressions on words of 64 bits, or else of 128.

An expression that exceeds words of 64 bits is compiled once more on words of 128. One that exceeds these too is
refused, never rounded.
"""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.fast.compile.expressions.operators import OPERATORS
from inakit.switch.fast.compile.expressions.values import (
    WIDE,
    WORD,
    Value,
    WordTooShortError,
    constant,
    sign_extended,
    unsigned_word,
)
from inakit.switch.program.expressions import Boolean, Constant, Expression, Operation, Parameter, Unknown, Validity
from inakit.switch.program.expressions import Field
from inakit.topo.errors import UnsupportedError


class Expressions:
    """Compiles expressions; `read_field`, `read_validity` and `read_parameter` give the C of their leaves."""

    def __init__(
        self,
        read_field: Callable[[Field], str],
        read_validity: Callable[[str], str],
        read_parameter: Callable[[Parameter], str],
    ) -> None:
        self.read_field = read_field
        self.read_validity = read_validity
        self.read_parameter = read_parameter

    def compile(self, expression: Expression, bits: int = WORD) -> Value:
        """The value of `expression`, at least its low `bits` bits.

        `UnsupportedError` names what cannot be computed exactly.
        """
        if bits <= WORD:
            try:
                return self.on_words(WORD, expression)
            except WordTooShortError:
                pass
        return self.on_words(WIDE, expression)

    def on_words(self, word: int, expression: Expression) -> Value:
        """The value of `expression` on words of this size; `WordTooShortError` if they may be too short."""
        match expression:
            case Operation(operator, operands):
                if operator not in OPERATORS:
                    raise UnsupportedError(f"operator '{operator}'")
                return OPERATORS[operator](*(self.on_words(word, operand) for operand in operands))
            case Unknown(kind, name):
                raise UnsupportedError(f"{kind} '{name}' in an expression")
        return self.leaf(word, expression)

    def leaf(self, word: int, expression: Expression) -> Value:
        """The value of a number, field, validity or parameter."""
        match expression:
            case Constant(value):
                return constant(value, word)
            case Boolean(value):
                return constant(int(value), word)
            case Validity(header):
                return Value(self.read_validity(header), 0, 1, word)
            case Parameter(_, bits):
                return unsigned_word(self.read_parameter(expression), bits, word)
            case Field(variable=True) as field:
                raise UnsupportedError(f"'{field}', which has a variable length, in an expression")
            case Field() as field if field.signed:
                return sign_extended(self.read_field(field), field.bits, word)
            case Field() as field:
                return unsigned_word(self.read_field(field), field.bits, word)
        raise UnsupportedError(f"'{expression}' in an expression")
