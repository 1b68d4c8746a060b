"""Commands for entries and default actions of tables."""

from __future__ import annotations

from inakit.switch.control.commands.command import Command, CommandedSwitch
from inakit.switch.control.commands.words import (
    Words,
    behind_arrow,
    parse_key,
    parse_params,
    split_at_arrow,
    split_priority,
)
from inakit.switch.control.commands.words import parse_number as number
from inakit.switch.entries import DefaultAction, KeyPart, TableEntry
from inakit.switch.program.pipelines import Table


def add(switch: CommandedSwitch, words: Words) -> None:
    """`table_add`: a new entry."""
    name, called, *rest = words
    table = switch.table(name)
    action = switch.action(table.actions, called)
    key, given = split_at_arrow(rest)
    params, priority = split_priority(table, given, len(action.parameters))
    entry = TableEntry(table.name, parse_key(table, key), action.name, parse_params(action, params), priority)
    switch.control.add_entry(entry)


def modify(switch: CommandedSwitch, words: Words) -> None:
    """`table_modify`: another action for an entry; an arrow before the parameters is allowed."""
    name, called, handle, *params = words
    table = switch.table(name)
    action = switch.action(table.actions, called)
    switch.control.modify_entry(table.name, number(handle), action.name, parse_params(action, behind_arrow(params)))


def delete(switch: CommandedSwitch, words: Words) -> None:
    """`table_delete`, `table_indirect_delete`: an entry goes."""
    name, handle = words
    switch.control.delete_entry(switch.table(name).name, number(handle))


def clear(switch: CommandedSwitch, words: Words) -> None:
    """`table_clear`: all entries go; the default action stays."""
    (name,) = words
    switch.control.clear_table(switch.table(name).name)


def set_default(switch: CommandedSwitch, words: Words) -> None:
    """`table_set_default`: the action that a table runs on a miss."""
    name, called, *params = words
    table = switch.table(name)
    action = switch.action(table.actions, called)
    switch.control.set_default(DefaultAction(table.name, action.name, parse_params(action, params)))


def reset_default(switch: CommandedSwitch, words: Words) -> None:
    """`table_reset_default`: the program's own default action again."""
    (name,) = words
    switch.control.reset_default(switch.table(name).name)


def set_timeout(switch: CommandedSwitch, words: Words) -> None:
    """`table_set_timeout`: who controls the switch is told when an entry idles for so many milliseconds."""
    name, handle, timeout_ms = words
    switch.control.set_timeout(switch.table(name).name, number(handle), number(timeout_ms))


def add_indirect(switch: CommandedSwitch, words: Words) -> None:
    """`table_indirect_add`: an entry that names a member of the table's action profile."""
    table, key, member, priority = indirect_entry(switch, words)
    switch.control.add_indirect(table.name, key, member, priority)


def add_indirect_group(switch: CommandedSwitch, words: Words) -> None:
    """`table_indirect_add_with_group`: an entry that names a group of the table's action profile."""
    table, key, group, priority = indirect_entry(switch, words)
    switch.control.add_indirect_group(table.name, key, group, priority)


def indirect_entry(switch: CommandedSwitch, words: Words) -> tuple[Table, tuple[KeyPart, ...], int, int | None]:
    """The table, the key, the handle and the priority in `TABLE KEY... => HANDLE [PRIORITY]`."""
    name, *rest = words
    table = switch.table(name)
    key, given = split_at_arrow(rest)
    (handle,), priority = split_priority(table, given, 1)
    return table, parse_key(table, key), number(handle), priority


def set_indirect_default(switch: CommandedSwitch, words: Words) -> None:
    """`table_indirect_set_default`: the member that a table runs on a miss."""
    name, member = words
    switch.control.set_indirect_default(switch.table(name).name, number(member))


def set_indirect_group_default(switch: CommandedSwitch, words: Words) -> None:
    """`table_indirect_set_default_with_group`: the group of which a table runs a member on a miss."""
    name, group = words
    switch.control.set_indirect_group_default(switch.table(name).name, number(group))


COMMANDS = {
    "table_add": Command("TABLE ACTION KEY... => PARAMETER... [PRIORITY]", add),
    "table_modify": Command("TABLE ACTION HANDLE PARAMETER...", modify),
    "table_delete": Command("TABLE HANDLE", delete),
    "table_clear": Command("TABLE", clear),
    "table_set_default": Command("TABLE ACTION PARAMETER...", set_default),
    "table_reset_default": Command("TABLE", reset_default),
    "table_set_timeout": Command("TABLE HANDLE MILLISECONDS", set_timeout),
    "table_indirect_add": Command("TABLE KEY... => MEMBER [PRIORITY]", add_indirect),
    "table_indirect_add_with_group": Command("TABLE KEY... => GROUP [PRIORITY]", add_indirect_group),
    "table_indirect_delete": Command("TABLE HANDLE", delete),
    "table_indirect_set_default": Command("TABLE MEMBER", set_indirect_default),
    "table_indirect_set_default_with_group": Command("TABLE GROUP", set_indirect_group_default),
    "table_indirect_reset_default": Command("TABLE", reset_default),
}
