"""The words of simple_switch_CLI's commands: numbers, addresses, parts of keys, rates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address

from inakit.switch.control.match_rules import by_priority
from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.actions import Action
from inakit.switch.program.pipelines import MatchKey, Table

Words = Sequence[str]

MAC_ADDRESS = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")


def split_at_arrow(words: Words) -> tuple[Words, Words]:
    """The words before and after `=>`; without an arrow all words are before it."""
    if "=>" not in words:
        return words, ()
    at = words.index("=>")
    return words[:at], words[at + 1 :]


def behind_arrow(words: Words) -> Words:
    """The words without an arrow before them."""
    return words[words[:1] == ["=>"] :]


def parse_params(action: Action, words: Words) -> tuple[int, ...]:
    """The parameters of an action; `ValueError` for another number of words than it takes."""
    if len(words) != len(action.parameters):
        raise ValueError(f"action '{action.name}' has {len(action.parameters)} parameters, {len(words)} values given")
    return tuple(map(parse_number, words))


def parse_key(table: Table, words: Words) -> tuple[KeyPart, ...]:
    """The key of an entry of `table`, a word for each part; `ValueError` for another number of words."""
    if len(words) != len(table.key):
        raise ValueError(f"table '{table.name}' has a key of {len(table.key)}, {len(words)} given")
    return tuple(parse_key_part(part, word) for part, word in zip(table.key, words, strict=True))


def parse_key_part(part: MatchKey, word: str) -> KeyPart:
    """One part of a key, written as its table matches it: `V`, `V/PREFIX`, `V&&&MASK` or `LOW->HIGH`."""
    match part.match:
        case "lpm":
            value, prefix = word.split("/")
            return Lpm(parse_number(value), int(prefix))
        case "ternary" if "&&&" in word:
            value, mask = word.split("&&&")
            return Ternary(parse_number(value), parse_number(mask))
        case "ternary":
            return Ternary(parse_number(word), (1 << part.bits) - 1)
        case "range":
            low, high = word.split("->")
            return Range(parse_number(low), parse_number(high))
    return parse_number(word)


def split_priority(table: Table, words: Words, count: int) -> tuple[Words, int | None]:
    """The first `count` of `words`, and the priority that follows them where entries of `table` need one."""
    expected = count + by_priority(table)
    if len(words) != expected:
        priority = " and a priority" if by_priority(table) else ""
        raise ValueError(f"{count} values{priority} expected behind =>, {len(words)} given")
    return words[:count], int(words[count]) if by_priority(table) else None


def parse_number(word: str) -> int:
    """A number in decimal, 0x, 0b or 0o; or an IPv4, IPv6 or MAC address."""
    if MAC_ADDRESS.fullmatch(word):
        return int(word.replace(":", ""), 16)
    if "." in word or ":" in word:
        return int(ip_address(word))
    return int(word) if word.isdecimal() else int(word, 0)


def parse_flag(word: str) -> bool:
    """`true`, `false`, or a number that is not 0 or is."""
    return word.lower() == "true" if word.lower() in ("true", "false") else bool(int(word, 0))


def parse_rate(word: str) -> tuple[float, int]:
    """RATE:BURST, the rate in units per microsecond."""
    per_microsecond, burst = word.split(":")
    return float(per_microsecond), int(burst)
