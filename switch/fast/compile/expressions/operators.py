"""Operators to C: one rule each, in the table `OPERATORS`, gives the text and the range of the result.

Ranges follow the arithmetic of integers. Operators for which the low bits of their operands are not enough
(comparisons, shifts to the right) demand a range that the word holds.
"""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.fast.compile.expressions.values import WORD, Value, constant, demand, number_of, sign_extended

WIDEST_SHIFT = 4096
"""Ranges are computed for shifts up to this many bits; a longer shift counts as this one."""

Rule = Callable[..., Value]


def add(left: Value, right: Value) -> Value:
    """`+`."""
    return Value(f"({left.text} + {right.text})", left.low + right.low, left.high + right.high, left.word)


def subtract(left: Value, right: Value) -> Value:
    """`-`."""
    return Value(f"({left.text} - {right.text})", left.low - right.high, left.high - right.low, left.word)


def multiply(left: Value, right: Value) -> Value:
    """`*`; the range ends at products of the operands' ends."""
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    text = f"({left.text} * {right.text})" if left.word == WORD else call("multiply", left, right)
    return Value(text, min(corners), max(corners), left.word)


def call(function: str, *values: Value) -> str:
    """A call of a function of runtime.h, which has one for words of each size."""
    suffix = "" if values[0].word == WORD else "_wide"
    return f"{function}{suffix}({', '.join(value.text for value in values)})"


def bit_and(left: Value, right: Value) -> Value:
    """`&`; not greater than the lesser operand that cannot be negative."""
    text = f"({left.text} & {right.text})"
    bounds = [value.high for value in (left, right) if value.low >= 0]
    if bounds:
        return Value(text, 0, min(bounds), left.word)
    return Value(text, -(1 << bits_of(left, right)), (1 << bits_of(left, right)) - 1, left.word)


def bits_of(left: Value, right: Value) -> int:
    """How many bits, without the sign, hold every number of both ranges."""
    return max(abs(bound).bit_length() for bound in (left.low, left.high, right.low, right.high))


def bit_or(left: Value, right: Value) -> Value:
    """`|`."""
    return bitwise("|", left, right)


def bit_xor(left: Value, right: Value) -> Value:
    """`^`."""
    return bitwise("^", left, right)


def bitwise(operator: str, left: Value, right: Value) -> Value:
    """`|` or `^`: as many bits as the longer operand."""
    bits = bits_of(left, right)
    low = 0 if left.low >= 0 and right.low >= 0 else -(1 << bits)
    return Value(f"({left.text} {operator} {right.text})", low, (1 << bits) - 1, left.word)


def bit_not(operand: Value) -> Value:
    """`~`."""
    return Value(f"(~{operand.text})", -operand.high - 1, -operand.low - 1, operand.word)


def shift_left(left: Value, right: Value) -> Value:
    """`<<`, by any number of bits."""
    demand(shifts_by(right), "<<", left)
    least, most = min(right.low, WIDEST_SHIFT), min(right.high, WIDEST_SHIFT)
    text = f"({left.text} << {right.text})" if fits_operator(right) else call("shift_left", left, right)
    return Value(text, min(left.low << most, left.low << least), max(left.high << most, left.high << least), left.word)


def shift_right(left: Value, right: Value) -> Value:
    """`>>`, by any number of bits; what is negative stays negative."""
    demand(shifts_by(right) and (left.unsigned or left.signed), ">>", left)
    least, most = min(right.low, WIDEST_SHIFT), min(right.high, WIDEST_SHIFT)
    function = "shift_right" if left.unsigned else "shift_right_signed"
    simple = left.unsigned and fits_operator(right)
    text = f"({left.text} >> {right.text})" if simple else call(function, left, right)
    return Value(text, min(left.low >> least, left.low >> most), max(left.high >> least, left.high >> most), left.word)


def shifts_by(amount: Value) -> bool:
    """Whether a number of bits to shift by is not negative and fits 64 bits."""
    return amount.low >= 0 and amount.high < 1 << WORD


def fits_operator(amount: Value) -> bool:
    """Whether C's own operator shifts by it. For wide words and variables clang calls a library, which eBPF lacks."""
    return amount.high < amount.word and (amount.word == WORD or amount.low == amount.high)


def comparison(operator: str) -> Rule:
    """The rule for a comparison; both operands must fit the word, as unsigned or as signed numbers."""

    def compare(left: Value, right: Value) -> Value:
        if left.unsigned and right.unsigned:
            return Value(f"({left.text} {operator} {right.text})", 0, 1, left.word)
        demand(left.signed and right.signed, operator, left)
        signed = f"(s{left.word})"
        return Value(f"({signed}{left.text} {operator} {signed}{right.text})", 0, 1, left.word)

    return compare


def both(left: Value, right: Value) -> Value:
    """`and`."""
    return Value(f"({left.text} && {right.text})", 0, 1, left.word)


def either(left: Value, right: Value) -> Value:
    """`or`."""
    return Value(f"({left.text} || {right.text})", 0, 1, left.word)


def negation(operand: Value) -> Value:
    """`not`."""
    return Value(f"(!{operand.text})", 0, 1, operand.word)


def choice(condition: Value, left: Value, right: Value) -> Value:
    """`?`."""
    text = f"({condition.text} ? {left.text} : {right.text})"
    return Value(text, min(left.low, right.low), max(left.high, right.high), left.word)


def two_complement(operand: Value, width: Value) -> Value:
    """`two_comp_mod`: the low `width` bits as a signed number."""
    bits = number_of(width, "cast to a width")
    return sign_extended(operand.text, bits, operand.word)


def saturate_unsigned(operand: Value, width: Value) -> Value:
    """`usat_cast`: the nearest unsigned number of `width` bits."""
    return saturated(operand, 0, (1 << number_of(width, "cast to a width")) - 1, "usat_cast")


def saturate_signed(operand: Value, width: Value) -> Value:
    """`sat_cast`: the nearest signed number of `width` bits."""
    half = 1 << number_of(width, "cast to a width") - 1
    return saturated(operand, -half, half - 1, "sat_cast")


def saturated(operand: Value, low: int, high: int, operator: str) -> Value:
    """`operand`, or the nearer one of two bounds, which must be signed numbers of the word."""
    demand(operand.signed and high < 1 << operand.word - 1, operator, operand)
    bounds = (constant(low, operand.word), constant(high, operand.word))
    return Value(call("saturate", operand, *bounds), low, high, operand.word)


def data_to_bool(operand: Value) -> Value:
    """`d2b`: whether a number is not 0."""
    demand(operand.unsigned or operand.signed, "d2b", operand)
    return Value(f"({operand.text} != 0)", 0, 1, operand.word)


def bool_to_data(operand: Value) -> Value:
    """`b2d`: truth as the number 1 or 0."""
    return Value(f"(u{operand.word}){operand.text}", 0, 1, operand.word)


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
