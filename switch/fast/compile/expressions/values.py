"""Values: the C text of a word, with the range of the number that BMv2, which counts without a width, would hold.

The text always gives that number's low bits, as many as a word has.
"""

from __future__ import annotations

from dataclasses import dataclass

from inakit.topo.errors import UnsupportedError

WORD = 64
WIDE = 128


@dataclass(frozen=True)
class Value:
    """The C text of an unsigned word of `word` bits, and the least and greatest number that it stands for."""

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
    """The words on which an expression is being compiled may not hold a number of it."""


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
    """The only number that a value can be; `UnsupportedError`, which says `what` it is, for others."""
    if value.low != value.high:
        raise UnsupportedError(f"{what} that is not a constant")
    return value.low


def demand(condition: bool, operator: str, operand: Value) -> None:
    """Raise `WordTooShortError` unless `condition`, which `operator` has for its operand, holds."""
    require(condition, f"operator '{operator}' on numbers", operand.word)


def require(condition: bool, what: str, word: int) -> None:
    """Raise `WordTooShortError`, which says `what` may not fit `word` bits, unless `condition` holds."""
    if not condition:
        raise WordTooShortError(f"{what} that may not fit {word} bits")


def truncated(value: Value, bits: int) -> str:
    """The C text of the low `bits` bits of `value`."""
    if (value.low >= 0 and value.high < 1 << bits) or bits == value.word:
        return value.text
    return f"({value.text} & {word_text((1 << bits) - 1, value.word)})"
