"""Checks entries against the program that they are for, before anything of them is installed."""

from __future__ import annotations

from collections.abc import Iterable

from switch.entries import REPLICA, MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from switch.program import ActionCall, Program
from topo.errors import InputError

MAX_GROUP = 65535
MAX_REPLICA = 65535


def check_entries(program: Program, entries: SwitchEntries) -> None:
    """Raise `InputError` for the first entry, group or preset that the program cannot have."""
    for entry in entries.tables:
        action_call(program, entry)
    for group in entries.groups:
        check_group(group)
    for preset in entries.registers:
        check_preset(program, preset)


def action_call(program: Program, entry: TableEntry) -> ActionCall:
    """The action that `entry` runs, with the entry's key and parameters checked."""
    table = program.table(entry.table)
    check_numbers(f"key of table '{table.name}'", entry.key, [(part.name, part.bits) for part in table.key])
    action = table.action(entry.action)
    check_numbers(
        f"parameters of action '{action.name}' in table '{table.name}'",
        entry.params,
        [(parameter.name, parameter.bits) for parameter in action.parameters],
    )
    return ActionCall(action, entry.params)


def check_numbers(what: str, numbers: tuple[int, ...], expected: Iterable[tuple[str, int]]) -> None:
    """Each of `numbers` must fit the bits that are expected in its place."""
    places = list(expected)
    if len(numbers) != len(places):
        names = ", ".join(name for name, _ in places) or "none"
        raise InputError(f"{what}: {len(numbers)} given, {len(places)} expected ({names})")
    for number, (name, bits) in zip(numbers, places, strict=True):
        if not 0 <= number < 1 << bits:
            raise InputError(f"{what}: {number} does not fit '{name}', which has {bits} bits (0 to {(1 << bits) - 1})")


def check_group(group: MulticastGroup) -> None:
    if not 1 <= group.group <= MAX_GROUP:
        raise InputError(f"multicast group {group.group}: groups are 1 to {MAX_GROUP}")
    for replica, _ in group.more:
        if not 0 <= replica <= MAX_REPLICA or replica == REPLICA:
            raise InputError(
                f"multicast group {group.group}: replica number {replica} in `more`; "
                f"0 to {MAX_REPLICA} are possible, but for {REPLICA}, which is that of its ports"
            )
    for port in (*group.ports, *(port for _, port in group.more)):
        if not 0 <= port < 512:
            raise InputError(f"multicast group {group.group}: port {port}; ports are 0 to 511")


def check_preset(program: Program, preset: RegisterPreset) -> None:
    register = program.register(preset.register)
    if not 0 <= preset.index < register.size:
        raise InputError(f"register '{register.name}' has no element {preset.index}: it has {register.size}")
    check_numbers(f"register '{register.name}'", (preset.value,), [("value", register.bits)])
