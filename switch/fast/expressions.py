"""Expressions of BMv2, which count without a width, as C expressions on 64-bit words.

A `Value` is C text together with the range of the number that BMv2 would hold. The text always gives
that number's low 64 bits. Operators for which these are not enough (comparisons, shifts to the right)
demand a range that 64 bits hold; an expression that exceeds it is refused, never rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from switch.program import Boolean, Constant, Expression, Field, Operation, Parameter, Unknown, Validity
from topo.errors import UnsupportedError

WORD = 64
WIDEST_SHIFT = 4096  # ranges are followed up to here; beyond, any number of bits counts the same


@dataclass(frozen=True)
class Value:
    """C text of type u64, and the least and greatest number it stands for."""

    text: str
    low: int
    high: int

    @property
    def unsigned(self) -> bool:
        return self.low >= 0 and self.high < 1 << WORD

    @property
    def signed(self) -> bool:
        return self.low >= -(1 << WORD - 1) and self.high < 1 << WORD - 1


Rule = Callable[..., Value]


class Expressions:
    """Compiles expressions; `read_field`, `read_validity` and `read_parameter` give the C of the leaves."""

    def __init__(
        self,
        read_field: Callable[[Field], str],
        read_validity: Callable[[str], str],
        read_parameter: Callable[[Parameter], str],
    ) -> None:
        self.read_field = read_field
        self.read_validity = read_validity
        self.read_parameter = read_parameter

    def compile(self, expression: Expression) -> Value:
        """The value of `expression`; `UnsupportedError` names the operator that cannot be done exactly."""
        match expression:
            case Operation(operator, operands):
                if operator not in OPERATORS:
                    raise UnsupportedError(f"operator '{operator}'")
                return OPERATORS[operator](*(self.compile(operand) for operand in operands))
            case Unknown(kind, name):
                raise UnsupportedError(f"{kind} '{name}' in an expression")
        return self.leaf(expression)

    def leaf(self, expression: Expression) -> Value:
        match expression:
            case Constant(value):
                return constant(value)
            case Boolean(value):
                return Value(str(int(value)), int(value), int(value))
            case Validity(header):
                return Value(self.read_validity(header), 0, 1)
            case Parameter(_, bits):
                return unsigned_word(self.read_parameter(expression), bits)
            case Field() as field if field.signed:
                return sign_extended(self.read_field(field), field.bits)
            case Field() as field:
                return unsigned_word(self.read_field(field), field.bits)
        raise UnsupportedError(f"'{expression}' in an expression")


def unsigned_word(text: str, bits: int) -> Value:
    return Value(f"(u64){text}", 0, (1 << bits) - 1)


def sign_extended(text: str, bits: int) -> Value:
    gap = WORD - bits
    return Value(f"(u64)((s64)((u64)({text}) << {gap}) >> {gap})", -(1 << bits - 1), (1 << bits - 1) - 1)


def constant(value: int) -> Value:
    return Value(f"{value & (1 << WORD) - 1:#x}ull", value, value)


def number_of(value: Value, what: str) -> int:
    if value.low != value.high:
        raise UnsupportedError(f"{what} that is not a constant")
    return value.low


def demand(condition: bool, operator: str) -> None:
    if not condition:
        raise UnsupportedError(f"operator '{operator}' on numbers that may not fit {WORD} bits")


def truncated(value: Value, bits: int) -> str:
    """The C text of the low `bits` bits of `value`."""
    if value.low >= 0 and value.high < 1 << bits:
        return value.text
    return f"({value.text} & {(1 << bits) - 1:#x}ull)"


# ---- rules: each gives the text and the range, by the arithmetic of integers ----------------------


def add(left: Value, right: Value) -> Value:
    return Value(f"({left.text} + {right.text})", left.low + right.low, left.high + right.high)


def subtract(left: Value, right: Value) -> Value:
    return Value(f"({left.text} - {right.text})", left.low - right.high, left.high - right.low)


def multiply(left: Value, right: Value) -> Value:
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return Value(f"({left.text} * {right.text})", min(corners), max(corners))


def bit_and(left: Value, right: Value) -> Value:
    text = f"({left.text} & {right.text})"
    bounds = [value.high for value in (left, right) if value.low >= 0]
    if bounds:
        return Value(text, 0, min(bounds))
    return Value(text, -(1 << bits_of(left, right)), (1 << bits_of(left, right)) - 1)


def bits_of(left: Value, right: Value) -> int:
    """Bits, without the sign, that hold every number of both ranges."""
    return max(abs(bound).bit_length() for bound in (left.low, left.high, right.low, right.high))


def bit_or(left: Value, right: Value) -> Value:
    return bitwise("|", left, right)


def bit_xor(left: Value, right: Value) -> Value:
    return bitwise("^", left, right)


def bitwise(operator: str, left: Value, right: Value) -> Value:
    bits = bits_of(left, right)
    low = 0 if left.low >= 0 and right.low >= 0 else -(1 << bits)
    return Value(f"({left.text} {operator} {right.text})", low, (1 << bits) - 1)


def bit_not(operand: Value) -> Value:
    return Value(f"(~{operand.text})", -operand.high - 1, -operand.low - 1)


def shift_left(left: Value, right: Value) -> Value:
    demand(right.unsigned, "<<")
    least, most = min(right.low, WIDEST_SHIFT), min(right.high, WIDEST_SHIFT)
    text = f"({left.text} << {right.text})" if right.high < WORD else f"shift_left({left.text}, {right.text})"
    return Value(text, min(left.low << most, left.low << least), max(left.high << most, left.high << least))


def shift_right(left: Value, right: Value) -> Value:
    demand(right.unsigned and (left.unsigned or left.signed), ">>")
    least, most = min(right.low, WIDEST_SHIFT), min(right.high, WIDEST_SHIFT)
    function = "shift_right" if left.unsigned else "shift_right_signed"
    simple = left.unsigned and right.high < WORD
    text = f"({left.text} >> {right.text})" if simple else f"{function}({left.text}, {right.text})"
    return Value(text, min(left.low >> least, left.low >> most), max(left.high >> least, left.high >> most))


def comparison(operator: str) -> Rule:
    def compare(left: Value, right: Value) -> Value:
        if left.unsigned and right.unsigned:
            return Value(f"({left.text} {operator} {right.text})", 0, 1)
        demand(left.signed and right.signed, operator)
        return Value(f"((s64){left.text} {operator} (s64){right.text})", 0, 1)

    return compare


def both(left: Value, right: Value) -> Value:
    return Value(f"({left.text} && {right.text})", 0, 1)


def either(left: Value, right: Value) -> Value:
    return Value(f"({left.text} || {right.text})", 0, 1)


def negation(operand: Value) -> Value:
    return Value(f"(!{operand.text})", 0, 1)


def choice(condition: Value, left: Value, right: Value) -> Value:
    text = f"({condition.text} ? {left.text} : {right.text})"
    return Value(text, min(left.low, right.low), max(left.high, right.high))


def two_complement(operand: Value, width: Value) -> Value:
    bits = number_of(width, "cast to a width")
    demand(1 <= bits <= WORD, "two_comp_mod")
    return sign_extended(operand.text, bits)


def saturate_unsigned(operand: Value, width: Value) -> Value:
    high = (1 << number_of(width, "cast to a width")) - 1
    demand(operand.signed and high < 1 << WORD - 1, "usat_cast")
    return Value(f"saturate({operand.text}, 0, {high:#x})", 0, high)


def saturate_signed(operand: Value, width: Value) -> Value:
    half = 1 << number_of(width, "cast to a width") - 1
    demand(operand.signed and half < 1 << WORD - 1, "sat_cast")
    return Value(f"saturate({operand.text}, -{half:#x}, {half - 1:#x})", -half, half - 1)


def data_to_bool(operand: Value) -> Value:
    demand(operand.unsigned or operand.signed, "d2b")
    return Value(f"({operand.text} != 0)", 0, 1)


def bool_to_data(operand: Value) -> Value:
    return Value(f"(u64){operand.text}", 0, 1)


# {"op": "+", "left": ..., "right": ...}; operands in the order condition, left, right.
OPERATORS: dict[str, Rule] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "&": bit_and,
    "|": bit_or,
    "^": bit_xor,
    "~": bit_not,
    "<<": shift_left,
    ">>": shift_right,
    "==": comparison("=="),
    "!=": comparison("!="),
    "<": comparison("<"),
    "<=": comparison("<="),
    ">": comparison(">"),
    ">=": comparison(">="),
    "and": both,
    "or": either,
    "not": negation,
    "?": choice,
    "two_comp_mod": two_complement,
    "usat_cast": saturate_unsigned,
    "sat_cast": saturate_signed,
    "d2b": data_to_bool,
    "b2d": bool_to_data,
}
