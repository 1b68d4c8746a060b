"""A test in the Simple Test Framework format (STF) of p4c, as typed statements, and what they mean in a program.

    add TABLE [PRIORITY] KEY:VALUE ... ACTION(NAME:VALUE, ...)     # 0x25** leaves digits open, 0x0a00/16 is a prefix
    setdefault TABLE ACTION(NAME:VALUE, ...)
    packet PORT HEX...
    expect PORT [HEX...] [$]                # * is any digit; nothing: any packets; $: no byte may follow
    wait
    mc_*, mirroring_*, meter_*, register_*, counter_*              # commands of simple_switch_CLI

`#` starts a comment. A higher priority wins, the other way around than in BMv2. STF writes names short: `t` for
`ingress.t`, `h.f` for `hdr.h.f`, `stack$0.f` for `stack[0].f`, `h.valid` or `h.$valid$`. A short name that fits several
things is refused. Parts of a key that are not named match anything; those that match exactly are 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inakit.switch.control.entry_check import by_priority
from inakit.switch.control.entry_files import ProgramNames, value_of
from inakit.switch.control.match_keys import anything
from inakit.switch.entries import DefaultAction, KeyPart, Lpm, Range, TableEntry, Ternary
from inakit.switch.program.program import DROP_PORT, MatchKey
from inakit.topo.errors import InputError
from inakit.topo.files.reader import FileKind, read_text

HEX = re.compile(r"(?:[0-9A-F]{2})*")
PATTERN = re.compile(r"[0-9A-F*]*")
ACTION = re.compile(r"(?P<before>.*?)(?P<name>\S+?)\s*\((?P<arguments>[^)]*)\)\s*(?:=\s*\S+\s*)?")
STF = FileKind("test in STF", max_bytes=64 << 20)
PASSED_ON = ("mc_", "mirroring_", "meter_", "register_", "counter_")


@dataclass(frozen=True)
class Add:
    """`add`: an entry, its key and its action's parameters by name."""

    table: str
    priority: int | None
    key: tuple[tuple[str, str], ...]
    action: str
    params: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SetDefault:
    """`setdefault`: the action that a table runs on a miss, its parameters by name."""

    table: str
    action: str
    params: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SendPacket:
    """`packet`: a packet that arrives at `port`."""

    port: int
    data: bytes


@dataclass(frozen=True)
class Expect:
    """`expect`: the next packet to leave `port`, in capital hexadecimal digits or `*`; None: any packets.

    More bytes can follow unless it is `complete`.
    """

    port: int
    digits: str | None
    complete: bool = False


@dataclass(frozen=True)
class Wait:
    """`wait`: wait until no packet moves. A player waits after each packet anyway."""


@dataclass(frozen=True)
class SwitchCommand:
    """A command of simple_switch_CLI, as words."""

    words: tuple[str, ...]


Statement = Add | SetDefault | SendPacket | Expect | Wait | SwitchCommand


@dataclass(frozen=True)
class Line:
    """A statement, and its line of the script."""

    number: int
    text: str
    statement: Statement


def read_script(path: Path) -> tuple[Line, ...]:
    """The statements of an STF file; `InputError` names file and line."""
    return tuple(parse_script(read_text(path, STF), str(path)))


def parse_script(text: str, name: str = "script") -> Iterator[Line]:
    """The statements of `text`; errors call it `name`."""
    for number, whole in enumerate(text.splitlines(), start=1):
        line = whole.partition("#")[0].strip()
        if line:
            try:
                yield Line(number, line, parse(line))
            except ValueError as error:
                raise InputError(f"{name}:{number}: '{line}': {error}") from error


def parse(line: str) -> Statement:
    """The statement in a line; `ValueError` for anything else."""
    word, _, rest = line.partition(" ")
    if word.startswith(PASSED_ON):
        return SwitchCommand(tuple(line.split()))
    if word not in STATEMENTS:
        raise ValueError(f"expected one of {', '.join(STATEMENTS)}, or a command that starts with one of {PASSED_ON}")
    return STATEMENTS[word](rest.strip())


def parse_add(rest: str) -> Add:
    """`add TABLE [PRIORITY] KEY:VALUE ... ACTION(NAME:VALUE, ...)`."""
    before, action, params = split_action(rest)
    table, *words = before.split()
    priority = int(words.pop(0)) if words and words[0].isdecimal() else None
    return Add(table, priority, tuple(map(named, words)), action, params)


def parse_set_default(rest: str) -> SetDefault:
    """`setdefault TABLE ACTION(NAME:VALUE, ...)`."""
    table, action, params = split_action(rest)
    return SetDefault(table.strip(), action, params)


def split_action(text: str) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """The text before the action, the action's name, and its arguments as (name, value)."""
    found = ACTION.fullmatch(text)
    if found is None or not found["before"].strip():
        raise ValueError("expected a table, then a key, and ACTION(NAME:VALUE, ...) at the end")
    arguments = [part for part in found["arguments"].split(",") if part.strip()]
    return found["before"], found["name"], tuple(map(named, arguments))


def named(word: str) -> tuple[str, str]:
    """The name and value in NAME:VALUE; the value can contain colons."""
    name, colon, value = word.strip().partition(":")
    if not (name and colon and value):
        raise ValueError(f"'{word.strip()}' is not NAME:VALUE")
    return name.strip(), value.strip()


def parse_packet(rest: str) -> SendPacket:
    """`packet PORT HEX...`."""
    port, digits = port_and_digits(rest)
    if not HEX.fullmatch(digits):
        raise ValueError("a packet has whole bytes of hexadecimal digits")
    return SendPacket(port, bytes.fromhex(digits))


def parse_expect(rest: str) -> Expect:
    """`expect PORT [HEX...] [$]`."""
    port, digits = port_and_digits(rest)
    if not digits:
        return Expect(port, None)
    complete = digits.endswith("$")
    digits = digits.removesuffix("$")
    if not PATTERN.fullmatch(digits):
        raise ValueError("an expected packet has hexadecimal digits and *, and $ only at its end")
    return Expect(port, digits, complete)


def port_and_digits(rest: str) -> tuple[int, str]:
    """The port, and all digits after it in capitals without spaces."""
    port, *digits = rest.split()
    if not (port.isdecimal() and int(port) < DROP_PORT):
        raise ValueError(f"port {port}: ports are 0 to {DROP_PORT - 1}")
    return int(port), "".join(digits).upper()


def parse_wait(rest: str) -> Wait:
    if rest:
        raise ValueError("wait takes no arguments")
    return Wait()


STATEMENTS: dict[str, Callable[[str], Statement]] = {
    "add": parse_add,
    "setdefault": parse_set_default,
    "packet": parse_packet,
    "expect": parse_expect,
    "wait": parse_wait,
}


LOWEST_PRIORITY = 10000
"""BMv2's number for STF's priority 0: in BMv2 the lowest number wins, in STF the highest."""
BITS_OF_DIGIT = {"0x": 4, "0o": 3, "0b": 1}


class StfNames(ProgramNames):
    """The program's names as STF statements use them."""

    def entry(self, add: Add) -> TableEntry:
        """The entry that `add` describes."""
        table = self.table(add.table)
        key, priority = self.matched(add)
        action, params = self.call(table, add.action, add.params)
        return TableEntry(table.name, key, action.name, params, priority)

    def matched(self, add: Add) -> tuple[tuple[KeyPart, ...], int | None]:
        """The key and the priority of the entry that `add` describes."""
        table = self.table(add.table)
        given = {self.key(table, name).name: value for name, value in add.key}
        key = tuple(
            key_part(part, given[part.name]) if part.name in given else anything(part.match, part.bits)
            for part in table.key
        )
        return key, LOWEST_PRIORITY - (add.priority or 0) if by_priority(table) else None

    def default(self, given: SetDefault) -> DefaultAction:
        """The default action that `given` describes."""
        table = self.table(given.table)
        action, params = self.call(table, given.action, given.params)
        return DefaultAction(table.name, action.name, params)


def key_part(part: MatchKey, text: str) -> KeyPart:
    """A value for `part`'s kind of match: V, V with digits left open by *, V/PREFIX, V&&&MASK or LOW..HIGH."""
    match part.match:
        case "lpm":
            return prefix(part, text)
        case "ternary":
            return Ternary(*masked(part, text))
        case "range":
            low, _, high = text.partition("..")
            return Range(value_of(low), value_of(high or low))
    return value_of(text)


def masked(part: MatchKey, text: str) -> tuple[int, int]:
    """Value and mask: written digits are compared, * are not; a decimal number is compared whole."""
    if "&&&" in text:
        value, _, compared = text.partition("&&&")
        return value_of(value), value_of(compared)
    bits = BITS_OF_DIGIT.get(text[:2])
    if bits is None:
        return (0, 0) if text == "*" else (value_of(text), (1 << part.bits) - 1)
    mask = 0
    for digit in text[2:]:
        mask = mask << bits | (0 if digit == "*" else (1 << bits) - 1)
    return value_of(text.replace("*", "0")), mask & (1 << part.bits) - 1


def prefix(part: MatchKey, text: str) -> Lpm:
    """The prefix in `text`: V/PREFIX, digits whose last ones are left open by *, or a whole value."""
    value, slash, length = text.partition("/")
    if slash:
        return Lpm(value_of(value), value_of(length))
    bits = BITS_OF_DIGIT.get(text[:2])
    if bits is None:
        return Lpm(value_of(text), part.bits)
    digits = text[2:].rstrip("*")
    return Lpm(value_of(text.replace("*", "0")), min(len(digits) * bits, part.bits))
