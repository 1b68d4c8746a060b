"""Expressions of BMv2, which have no width, as C expressions on 64-bit or 128-bit words.

An expression that exceeds 64-bit words is compiled again on 128-bit words. One that exceeds these too is refused, never
rounded. A `Value` has the range of the number that BMv2 would hold; its C text always gives the low bits of that
number, one word of them. Operators for which the low bits of their operands are not enough (comparisons, right shifts)
demand a range that fits the word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from inakit.switch.program.program import (
    Boolean,
    Constant,
    ElementField,
    Expression,
    Field,
    HeaderReference,
    LastField,
    Operation,
    Parameter,
    Program,
    StackReference,
    UnionReference,
    Unknown,
    Validity,
)
from inakit.topo.errors import UnsupportedError

WORD = 64
WIDE = 128


@dataclass(frozen=True)
class Value:
    """The C text of an unsigned word of `word` bits, and the least and greatest number that it can stand for."""

    text: str
    low: int
    high: int
    word: int = WORD

    @property
    def unsigned(self) -> bool:
        """Whether the word holds every number of the range as an unsigned one."""
        return self.low >= 0 and self.high < 1 << self.word

    @property
    def signed(self) -> bool:
        """Whether the word holds every number of the range as a signed one."""
        return self.low >= -(1 << self.word - 1) and self.high < 1 << self.word - 1


class WordTooShortError(UnsupportedError):
    """A number of an expression may not fit the words on which it is being compiled."""


def unsigned_word(text: str, bits: int, word: int = WORD) -> Value:
    """A C expression of an unsigned number of `bits` bits, as a value."""
    require(bits <= word, f"a number of {bits} bits", word)
    return Value(f"(u{word}){text}", 0, (1 << bits) - 1, word)


def sign_extended(text: str, bits: int, word: int) -> Value:
    """A C expression whose low `bits` bits are a signed number, as a value."""
    require(bits <= word, f"a number of {bits} bits", word)
    gap = word - bits
    half = 1 << bits - 1
    return Value(f"(u{word})((s{word})((u{word})({text}) << {gap}) >> {gap})", -half, half - 1, word)


def constant(value: int, word: int = WORD) -> Value:
    """A number as a value."""
    return Value(word_text(value, word), value, value, word)


def word_text(value: int, word: int) -> str:
    """The low bits of `value` as a C constant."""
    low, high = value & (1 << WORD) - 1, value >> WORD & (1 << WORD) - 1
    return f"{low:#x}ull" if word == WORD else f"((u128){high:#x}ull << 64 | {low:#x}ull)"


def number_of(value: Value, what: str) -> int:
    """The only number that a value can be; otherwise `UnsupportedError` says `what` it is."""
    if value.low != value.high:
        raise UnsupportedError(f"{what} that is not a constant")
    return value.low


def demand(condition: bool, operator: str, operand: Value) -> None:
    """Raise `WordTooShortError` unless `condition` holds; `operator` requires it of its operand."""
    require(condition, f"operator '{operator}' on numbers", operand.word)


def require(condition: bool, what: str, word: int) -> None:
    """Raise `WordTooShortError`, saying `what` may not fit `word` bits, unless `condition` holds."""
    if not condition:
        raise WordTooShortError(f"{what} that may not fit {word} bits")


def truncated(value: Value, bits: int) -> str:
    """The C text of the low `bits` bits of `value`."""
    if (value.low >= 0 and value.high < 1 << bits) or bits == value.word:
        return value.text
    return f"({value.text} & {word_text((1 << bits) - 1, value.word)})"


WIDEST_SHIFT = 4096
"""Ranges are computed for shifts of up to this many bits; a longer shift counts as this one."""

Rule = Callable[..., Value]


def infix(operator: str, left: Value, right: Value, low: int, high: int) -> Value:
    """C's own operator on two values, with the range of its results."""
    return Value(f"({left.text} {operator} {right.text})", low, high, left.word)


def multiply(left: Value, right: Value) -> Value:
    """`*`; the bounds of the range are products of the operands' bounds."""
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    if left.word == WORD:
        return infix("*", left, right, min(corners), max(corners))
    return Value(call("multiply", left, right), min(corners), max(corners), left.word)


def call(function: str, *values: Value) -> str:
    """A call of a function of runtime.h, which has a version for each word size."""
    suffix = "" if values[0].word == WORD else "_wide"
    return f"{function}{suffix}({', '.join(value.text for value in values)})"


def bit_and(left: Value, right: Value) -> Value:
    """`&`; at most the smaller of the operands that cannot be negative."""
    bounds = [value.high for value in (left, right) if value.low >= 0]
    if bounds:
        return infix("&", left, right, 0, min(bounds))
    return infix("&", left, right, -(1 << bits_of(left, right)), (1 << bits_of(left, right)) - 1)


def bits_of(left: Value, right: Value) -> int:
    """The number of bits, without the sign, that holds every number of both ranges."""
    return max(abs(bound).bit_length() for bound in (left.low, left.high, right.low, right.high))


def bitwise(operator: str) -> Rule:
    """The rule for `|` or `^`, whose results have as many bits as the longer operand."""

    def combine(left: Value, right: Value) -> Value:
        bits = bits_of(left, right)
        return infix(operator, left, right, 0 if min(left.low, right.low) >= 0 else -(1 << bits), (1 << bits) - 1)

    return combine


def shift_left(left: Value, right: Value) -> Value:
    """`<<`, by any number of bits."""
    demand(shifts_by(right), "<<", left)
    least, most = min(right.low, WIDEST_SHIFT), min(right.high, WIDEST_SHIFT)
    text = f"({left.text} << {right.text})" if fits_operator(right) else call("shift_left", left, right)
    return Value(text, min(left.low << most, left.low << least), max(left.high << most, left.high << least), left.word)


def shift_right(left: Value, right: Value) -> Value:
    """`>>`, by any number of bits; a negative number stays negative."""
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
    """Whether C's own operator can shift. For wide words and variables clang calls a library, which eBPF lacks."""
    return amount.high < amount.word and (amount.word == WORD or amount.low == amount.high)


def comparison(operator: str) -> Rule:
    """The rule for a comparison; both operands must fit the word, as unsigned or as signed numbers."""

    def compare(left: Value, right: Value) -> Value:
        if left.unsigned and right.unsigned:
            return infix(operator, left, right, 0, 1)
        demand(left.signed and right.signed, operator, left)
        signed = f"(s{left.word})"
        return Value(f"({signed}{left.text} {operator} {signed}{right.text})", 0, 1, left.word)

    return compare


def choice(condition: Value, left: Value, right: Value) -> Value:
    text = f"({condition.text} ? {left.text} : {right.text})"
    return Value(text, min(left.low, right.low), max(left.high, right.high), left.word)


def saturate(signed: bool) -> Rule:
    """The rule for the nearest number of `width` bits; both bounds must fit the word as signed numbers."""

    def saturated(operand: Value, width: Value) -> Value:
        bits = number_of(width, "cast to a width") - signed
        low, high = -(1 << bits) if signed else 0, (1 << bits) - 1
        operator = "sat_cast" if signed else "usat_cast"
        demand(operand.signed and high < 1 << operand.word - 1, operator, operand)
        text = call("saturate", operand, constant(low, operand.word), constant(high, operand.word))
        return Value(text, low, high, operand.word)

    return saturated


def data_to_bool(operand: Value) -> Value:
    """`d2b`: whether a number is not 0."""
    demand(operand.unsigned or operand.signed, "d2b", operand)
    return Value(f"({operand.text} != 0)", 0, 1, operand.word)


# {"op": "+", "left": ..., "right": ...}; operands in the order condition, left, right.
OPERATORS: dict[str, Rule] = {
    "+": lambda left, right: infix("+", left, right, left.low + right.low, left.high + right.high),
    "-": lambda left, right: infix("-", left, right, left.low - right.high, left.high - right.low),
    "*": multiply,
    "&": bit_and,
    "|": bitwise("|"),
    "^": bitwise("^"),
    "~": lambda operand: Value(f"(~{operand.text})", -operand.high - 1, -operand.low - 1, operand.word),
    "<<": shift_left,
    ">>": shift_right,
    **{operator: comparison(operator) for operator in ("==", "!=", "<", "<=", ">", ">=")},
    "and": lambda left, right: infix("&&", left, right, 0, 1),
    "or": lambda left, right: infix("||", left, right, 0, 1),
    "not": lambda operand: Value(f"(!{operand.text})", 0, 1, operand.word),
    "?": choice,
    "two_comp_mod": lambda operand, width: sign_extended(
        operand.text, number_of(width, "cast to a width"), operand.word
    ),
    "usat_cast": saturate(signed=False),
    "sat_cast": saturate(signed=True),
    "d2b": data_to_bool,
    "b2d": lambda operand: Value(f"(u{operand.word}){operand.text}", 0, 1, operand.word),
}


Leaf = Callable[[Expression], str]


def compiled(expression: Expression, leaf: Leaf, bits: int = WORD) -> Value:
    """The value of `expression`, with exact low `bits` bits; `leaf` gives the C of a field, validity or parameter.

    `UnsupportedError` names anything that cannot be computed exactly.
    """
    if bits <= WORD:
        try:
            return on_words(WORD, expression, leaf)
        except WordTooShortError:
            pass
    return on_words(WIDE, expression, leaf)


def on_words(word: int, expression: Expression, leaf: Leaf) -> Value:
    """The value of `expression` on words of this size; `WordTooShortError` if they may be too short."""
    match expression:
        case Operation(operator, operands):
            if operator not in OPERATORS:
                raise UnsupportedError(f"operator '{operator}'")
            return OPERATORS[operator](*(on_words(word, operand, leaf) for operand in operands))
        case Constant(value) | Boolean(value):
            return constant(int(value), word)
        case Validity():
            return Value(leaf(expression), 0, 1, word)
        case Field(variable=True) as field:
            raise UnsupportedError(f"'{field}', which has a variable length, in an expression")
        case Field(signed=True) as field:
            return sign_extended(leaf(field), field.bits, word)
        case Field() | Parameter():
            return unsigned_word(leaf(expression), expression.bits, word)
        case Unknown(kind, name):
            raise UnsupportedError(f"{kind} '{name}' in an expression")
    raise UnsupportedError(f"'{expression}' in an expression")


REWRITTEN = ("dereference_header_stack", "last_stack_index", "size_stack", "valid", "valid_union")
"""Operators that `plain` rewrites; no other file handles them."""


@dataclass(frozen=True)
class ParsedStacks:
    """The header stacks at the parser's position: the fields of last elements, and the numbers of filled elements."""

    last: Callable[[LastField], Field]
    filled: Callable[[str], int]


def plain(  # noqa: PLR0911, a return for each kind
    program: Program, expression: Expression, parsed: ParsedStacks | None = None
) -> Expression:
    """`expression` with headers, stacks and unions resolved; inside the parser, `parsed` is the state of stacks."""
    match expression:
        case LastField() if parsed is not None:
            return parsed.last(expression)
        case Operation("size_stack" | "last_stack_index" as operator, (StackReference(stack),)):
            if parsed is None:
                raise UnsupportedError(f"operator '{operator}' outside of the parser")
            return Constant(parsed.filled(stack) - (operator == "last_stack_index"))
        case ElementField(header, index):
            return member(program, header, index)
        case Operation("valid", (header,)):
            return member(program, header, VALIDITY)
        case Operation("valid_union", (UnionReference(union),)):
            valid: list[Expression] = [Validity(header) for header in program.unions[union].members.values()]
            return reduce(lambda left, right: Operation("or", (left, right)), valid)
        case Operation("==", (HeaderReference(one), HeaderReference(other))):
            return same_header(program, one, other)
        case Operation("!=", (HeaderReference(one), HeaderReference(other))):
            return Operation("not", (same_header(program, one, other),))
        case Operation(operator, operands):
            return Operation(operator, tuple(plain(program, operand, parsed) for operand in operands))
    return expression


VALIDITY = -1
"""The index of a header's validity among its fields: behind the last one."""


def member(program: Program, header: Expression, index: int) -> Expression:
    """The field at `index` of the header that `header` evaluates to, or its validity.

    An index outside a stack, where BMv2 ends, gives the member of the stack's last header.
    """
    match header:
        case HeaderReference(name):
            fields: tuple[Expression, ...] = (*program.headers[name].fields, Validity(name))
            return fields[index]
        case Operation("?", (condition, left, right)):
            chosen = member(program, left, index), member(program, right, index)
            return Operation("?", (plain(program, condition), *chosen))
        case Operation("dereference_header_stack", (StackReference(stack), given)):
            place = plain(program, given)
            values = [member(program, HeaderReference(each), index) for each in program.stacks[stack].headers]
            found = values[-1]
            for number, value in reversed([*enumerate(values[:-1])]):
                found = Operation("?", (Operation("==", (place, Constant(number))), value, found))
            return found
    raise UnsupportedError(f"a field of a header computed by {header!r}")


def same_header(program: Program, one: str, other: str) -> Expression:
    """Whether two headers are equal: in BMv2, both are valid and all of their fields are equal."""
    found = Operation("and", (Validity(one), Validity(other)))
    for left, right in zip(program.headers[one].fields, program.headers[other].fields, strict=True):
        if left.variable:
            raise UnsupportedError(f"comparing '{left}', which has a variable length")
        found = Operation("and", (found, Operation("==", (left, right))))
    return found
