"""What a table refuses: keys, actions and parameters that do not fit it, and changes of what the program keeps."""

from __future__ import annotations

from inakit.switch.control.entry_check import check_key, check_params
from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.switch.entries import Entry
from inakit.switch.program.pipelines import Table
from inakit.topo.errors import InputError


def checked(table: Table, entry: Entry) -> None:
    """Refuse an entry whose key does not fit the table."""
    try:
        check_key(table, entry)
    except InputError as error:
        raise Refused(RefusalKind.BAD_MATCH_KEY, str(error)) from error


def check_action(table: Table, name: str) -> None:
    """Refuse an action that the table does not have."""
    if all(action.name != name for action in table.actions):
        known = ", ".join(action.name for action in table.actions)
        raise Refused(RefusalKind.INVALID_ACTION_NAME, f"table '{table.name}' has no action '{name}': it has {known}")


def check_call(table: Table, name: str, params: tuple[int, ...], mutable: bool = False) -> None:
    """Refuse an action that the table does not have, or parameters that do not fit it.

    Unless `mutable`, refuse all for a table whose entries the program gives.
    """
    check_action(table, name)
    if not mutable:
        check_mutable(table)
    try:
        check_params(f"table '{table.name}'", table.action(name), params)
    except InputError as error:
        raise Refused(RefusalKind.BAD_ACTION_DATA, str(error)) from error


def check_mutable(table: Table) -> None:
    """Refuse to change the entries of a table that the program gives."""
    if table.entries is not None:
        why = f"the entries of table '{table.name}' are const in the program"
        raise Refused(RefusalKind.IMMUTABLE_TABLE_ENTRIES, why)


def check_default_mutable(table: Table, action: str | None = None) -> None:
    """Refuse to change a default that is const in the program, or `action` where only parameters may change."""
    if table.default_is_const:
        why = f"the default action of table '{table.name}' is const in the program"
        raise Refused(RefusalKind.DEFAULT_ENTRY_IS_CONST, why)
    if action is not None and action != table.const_default_action(action):
        why = f"table '{table.name}' has a const default action: only its parameters can change"
        raise Refused(RefusalKind.DEFAULT_ACTION_IS_CONST, why)
