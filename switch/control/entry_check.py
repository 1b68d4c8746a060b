"""Checks entries against their program before any of them is installed."""

from __future__ import annotations

from collections.abc import Sequence

from inakit.switch.entries import (
    REPLICA,
    DefaultAction,
    KeyPart,
    Lpm,
    MirrorSession,
    MulticastGroup,
    ProfileEntry,
    Range,
    SwitchEntries,
    TableEntry,
    Ternary,
)
from inakit.switch.program.program import PORTS, Action, ActionCall, MatchKey, Program, Table
from inakit.topo.errors import InputError, unknown_name

KEY_TYPES: dict[str, type] = {"exact": int, "valid": int, "lpm": Lpm, "ternary": Ternary, "range": Range}
"""The Python types of the parts of keys, by kind of match."""

BY_PRIORITY = {"ternary", "range"}
"""Kinds of matches whose keys can overlap without one being longer: their entries need a priority."""

Test = tuple[int, int, int]
"""Mask, least and greatest value: a part of a packet's key matches if least <= part & mask <= greatest."""


def by_priority(table: Table) -> bool:
    """Whether entries of the table need a priority."""
    return any(part.match in BY_PRIORITY for part in table.key)


def masked_key(table: Table, key: Sequence[KeyPart]) -> tuple[KeyPart, ...]:
    """The key of an entry, without the bits that the table ignores in packets' keys."""
    if all(part.mask is None for part in table.key):
        return tuple(key)
    return tuple(masked(part, value) for part, value in zip(table.key, key, strict=True))


def masked(part: MatchKey, value: KeyPart) -> KeyPart:
    """One part of such a key. The upper end of a range is not masked, as in BMv2."""
    ones = (1 << part.bits) - 1 if part.mask is None else part.mask
    match value:
        case Lpm(number, prefix):
            return Lpm(number & ones, prefix)
        case Ternary(number, mask):
            return Ternary(number & ones, mask)
        case Range(low, high):
            return Range(low & ones, high)
        case _:
            return value & ones


def test_of(part: MatchKey, value: KeyPart) -> Test:
    """The test that one part of an entry's key stands for."""
    ones = (1 << part.bits) - 1
    match value:
        case Lpm(number, prefix):
            mask = ones ^ ones >> prefix
            return mask, number & mask, number & mask
        case Ternary(number, mask):
            return mask, number & mask, number & mask
        case Range(low, high):
            return ones, low, high
        case _:
            return ones, value, value


def matches(tests: Sequence[Test], key: Sequence[int]) -> bool:
    """Whether a packet's key passes the tests of all parts of an entry's key."""
    return all(least <= part & mask <= most for (mask, least, most), part in zip(tests, key, strict=True))


def rank(key: Sequence[KeyPart], priority: int | None) -> int:
    """The order of entries: the matching entry with the lowest rank wins.

    The rank is the entry's priority; without one, longer prefixes come first.
    """
    if priority is not None:
        return priority
    return -sum(part.prefix for part in key if isinstance(part, Lpm))


Identity = tuple[tuple[Test, ...], int | None]
"""Identifies an entry of a table: the test of each part of the key, and the priority."""


def identity_of(table: Table, key: Sequence[KeyPart], priority: int | None) -> Identity:
    return tuple(map(test_of, table.key, masked_key(table, key))), priority


MAX_GROUP = 65535
MAX_REPLICA = 65535
MAX_SESSION = (1 << 15) - 1


def check_entries(program: Program, entries: SwitchEntries) -> None:
    """Raise `InputError` for the first entry, group, session, rate or preset that does not fit the program."""
    for entry in entries.tables:
        action_call(program, entry)
    for profiled in entries.profiled:
        profile_calls(program, profiled)
    for default in entries.defaults:
        default_call(program, default)
    for group in entries.groups:
        check_group(group)
    for mirror in entries.mirrors:
        check_mirror(mirror)
    for member in entries.value_sets:
        if member.value_set not in program.value_sets:
            raise unknown_name("parser value set", member.value_set, program.value_sets)
        bits = program.value_sets[member.value_set].bits
        check_numbers(f"value set '{member.value_set}'", (member.value,), [("value", bits)])
    for rates in entries.meters:
        meter = program.meter(rates.meter)
        if rates.index is not None and not 0 <= rates.index < meter.size:
            raise InputError(f"meter '{meter.name}' has no cell {rates.index}: it has {meter.size}")
        if len(rates.rates) != meter.rates or list(rates.rates) != sorted(rates.rates):
            raise InputError(f"meter '{meter.name}' takes {meter.rates} rates, the lowest first; not {rates.rates}")
    for preset in entries.registers:
        register = program.register(preset.register)
        if not 0 <= preset.index < register.size:
            raise InputError(f"register '{register.name}' has no element {preset.index}: it has {register.size}")
        check_numbers(f"register '{register.name}'", (preset.value,), [("value", register.bits)])


def action_call(program: Program, entry: TableEntry) -> ActionCall:
    """The action that `entry` runs, with the entry's key and parameters checked."""
    table = program.table(entry.table)
    if table.profile is not None:
        raise InputError(f"table '{table.name}' has the action profile '{table.profile}': it takes a ProfileEntry")
    check_key(table, entry)
    return call(table, entry.action, entry.params)


def profile_calls(program: Program, entry: ProfileEntry) -> tuple[ActionCall, ...]:
    """The actions among which `entry` chooses, with the entry's key and the actions' parameters checked."""
    table = program.table(entry.table)
    if table.profile != entry.profile or table.profile is None:
        has = f"the action profile '{table.profile}'" if table.profile else "no action profile"
        raise InputError(f"table '{table.name}' has {has}, and an entry names '{entry.profile}'")
    if len(entry.actions) != 1 and (program.profiles[table.profile].selector is None or not entry.actions):
        raise InputError(f"an entry of table '{table.name}' has {len(entry.actions)} actions: without a selector, one")
    check_key(table, entry)
    return tuple(call(table, action, params) for action, params in entry.actions)


def default_call(program: Program, default: DefaultAction) -> ActionCall:
    """The action that `default` makes a table run on a miss, with its parameters checked."""
    return call(program.table(default.table), default.action, default.params)


def call(table: Table, name: str, params: tuple[int, ...]) -> ActionCall:
    """The action of `table` called `name` with these parameters, after checking their number and bits."""
    action = table.action(name)
    check_params(f"table '{table.name}'", action, params)
    return ActionCall(action, params)


def check_params(where: str, action: Action, params: tuple[int, ...]) -> None:
    """Check the number of an action's parameters and their bits; `where` names the entry in errors."""
    check_numbers(f"parameters of action '{action.name}' in {where}", params, action.places)


def check_key(table: Table, entry: TableEntry | ProfileEntry) -> None:
    """Check that each part of the key matches as the table does, and that the entry has a priority if it needs one."""
    what = f"key of table '{table.name}'"
    if len(entry.key) != len(table.key):
        names = ", ".join(part.name for part in table.key) or "none"
        raise InputError(f"{what}: {len(entry.key)} given, {len(table.key)} expected ({names})")
    for value, part in zip(entry.key, table.key, strict=True):
        check_part(what, part, value)
    prioritised = by_priority(table)
    if prioritised != (entry.priority is not None):
        rule = "needs a priority, for its keys can overlap" if prioritised else "takes no priority: its keys never tie"
        raise InputError(f"{what}: the entry {entry.key} {rule}")


def check_part(what: str, part: MatchKey, value: KeyPart) -> None:
    """Check that `value` has the type for `part`'s kind of match, and that its numbers fit."""
    expected = KEY_TYPES[part.match]
    if not isinstance(value, expected):
        kind = "a number" if expected is int else expected.__name__
        raise InputError(f"{what}: '{part.name}' matches {part.match}, which takes {kind}, not {value!r}")
    if isinstance(value, Lpm) and not 0 <= value.prefix <= part.bits:
        raise InputError(
            f"{what}: '{part.name}' has {part.bits} bits, so its prefix is 0 to {part.bits}, not {value.prefix}"
        )
    if isinstance(value, Range) and value.low > value.high:
        raise InputError(f"{what}: the range {value} of '{part.name}' is empty: its lower end is first")
    numbers = numbers_of(value)
    check_numbers(what, numbers, [(part.name, part.bits)] * len(numbers))


def numbers_of(value: KeyPart) -> tuple[int, ...]:
    """The numbers in a part of a key that need as many bits as the field."""
    match value:
        case Lpm(number, _):
            return (number,)
        case Ternary(first, second) | Range(first, second):
            return first, second
        case _:
            return (value,)


def check_numbers(what: str, numbers: tuple[int, ...], expected: Sequence[tuple[str, int]]) -> None:
    """Check that each number fits the bits of its place; `expected` lists (name, bits) of the places."""
    if len(numbers) != len(expected):
        names = ", ".join(name for name, _ in expected) or "none"
        raise InputError(f"{what}: {len(numbers)} given, {len(expected)} expected ({names})")
    for number, (name, bits) in zip(numbers, expected, strict=True):
        if not 0 <= number < 1 << bits:
            raise InputError(f"{what}: {number} does not fit '{name}', which has {bits} bits (0 to {(1 << bits) - 1})")


def check_group(group: MulticastGroup) -> None:
    """Raise `InputError` if the number, a replica or a port of a group is out of range."""
    if not 1 <= group.group <= MAX_GROUP:
        raise InputError(f"multicast group {group.group}: groups are 1 to {MAX_GROUP}")
    for replica, _ in group.more:
        if not 0 <= replica <= MAX_REPLICA or (replica == REPLICA and not group.ordered):
            raise InputError(
                f"multicast group {group.group}: replica number {replica} in `more`; "
                f"0 to {MAX_REPLICA} are possible, but for {REPLICA}, which is that of its ports"
            )
    for port in (*group.ports, *(port for _, port in group.more)):
        if not 0 <= port < PORTS:
            raise InputError(f"multicast group {group.group}: port {port}; ports are 0 to {PORTS - 1}")


def check_mirror(mirror: MirrorSession) -> None:
    """Raise `InputError` if the number or the port of a session is out of range."""
    if not 0 <= mirror.session <= MAX_SESSION:
        raise InputError(f"mirror session {mirror.session}: sessions are 0 to {MAX_SESSION}")
    if mirror.port is not None and not 0 <= mirror.port < PORTS:
        raise InputError(f"mirror session {mirror.session}: port {mirror.port}; ports are 0 to {PORTS - 1}")
