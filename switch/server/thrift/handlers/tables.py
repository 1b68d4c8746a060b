"""Requests for entries and defaults of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inakit.switch.control.held import HeldDefault, HeldEntry
from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.switch.entries import DefaultAction, KeyPart, TableEntry
from inakit.switch.server.thrift.description import description
from inakit.switch.server.thrift.handlers.handler import Handler
from inakit.switch.server.thrift.values import key_of, message_key, message_params, params_of, signed, unsigned

NO_PRIORITY = -1
"""The priority that BMv2 tells of entries whose keys cannot overlap."""


class TableRequests(Handler):
    """Entries that run an action, or a member or a group of an action profile; and what runs on a miss."""

    def bm_mt_get_num_entries(self, table: str) -> int:
        """How many entries a table has."""
        return self.control.entry_count(table)

    def bm_mt_clear_entries(self, table: str, reset_default: bool) -> None:
        """Remove all entries."""
        self.control.clear_table(table, reset_default)

    # entries

    def bm_mt_add_entry(
        self, table: str, key: Sequence[Any], action: str, params: Sequence[bytes], options: Any
    ) -> int:
        """Add an entry, and return its handle."""
        call = action, self.params(table, action, params)
        return signed(self.control.add_entry(TableEntry(table, self.key(table, key), *call, options.priority or 0)))

    def bm_mt_indirect_add_entry(self, table: str, key: Sequence[Any], member: int, options: Any) -> int:
        """Add an entry that runs a member, and return its handle."""
        parts = self.key(table, key)
        return signed(self.control.add_indirect(table, parts, member, options.priority or 0))

    def bm_mt_indirect_ws_add_entry(self, table: str, key: Sequence[Any], group: int, options: Any) -> int:
        """Add an entry that chooses from a group, and return its handle."""
        parts = self.key(table, key)
        return signed(self.control.add_indirect_group(table, parts, group, options.priority or 0))

    def bm_mt_modify_entry(self, table: str, handle: int, action: str, params: Sequence[bytes]) -> None:
        """Let an entry run another action."""
        self.control.modify_entry(table, unsigned(handle), action, self.params(table, action, params))

    def bm_mt_indirect_modify_entry(self, table: str, handle: int, member: int) -> None:
        """Let an entry run another member."""
        self.control.modify_indirect(table, unsigned(handle), member)

    def bm_mt_indirect_ws_modify_entry(self, table: str, handle: int, group: int) -> None:
        """Let an entry choose from another group."""
        self.control.modify_indirect_group(table, unsigned(handle), group)

    def bm_mt_delete_entry(self, table: str, handle: int) -> None:
        """Remove an entry of a table without an action profile."""
        self.control.direct(table)
        self.control.delete_entry(table, unsigned(handle))

    def bm_mt_indirect_delete_entry(self, table: str, handle: int) -> None:
        """Remove an entry of a table with an action profile."""
        self.control.indirect(table)
        self.control.delete_entry(table, unsigned(handle))

    def bm_mt_set_entry_ttl(self, table: str, handle: int, timeout_ms: int) -> None:
        """Let an entry expire after this time without packets."""
        self.control.set_timeout(table, unsigned(handle), unsigned(timeout_ms))

    bm_mt_indirect_set_entry_ttl = bm_mt_set_entry_ttl

    # what runs on a miss

    def bm_mt_set_default_action(self, table: str, action: str, params: Sequence[bytes]) -> None:
        """Let a table run an action on a miss."""
        self.control.set_default(DefaultAction(table, action, self.params(table, action, params)))

    def bm_mt_reset_default_entry(self, table: str) -> None:
        """Let a table run on a miss what the program says."""
        self.control.direct(table)
        self.control.reset_default(table)

    def bm_mt_indirect_set_default_member(self, table: str, member: int) -> None:
        """Let a table run a member on a miss."""
        self.control.set_indirect_default(table, member)

    def bm_mt_indirect_ws_set_default_group(self, table: str, group: int) -> None:
        """Let a table choose from a group on a miss."""
        self.control.set_indirect_group_default(table, group)

    def bm_mt_indirect_reset_default_entry(self, table: str) -> None:
        """Let a table with an action profile run on a miss what the program says."""
        self.control.indirect(table)
        self.control.reset_default(table)

    # what there is

    def bm_mt_get_entries(self, table: str) -> list[Any]:
        """All entries of a table; none of a table that is not there, as BMv2 answers."""
        if table not in self.control.program.tables:
            return []
        return [self.told(table, held) for held in self.control.entries(table)]

    def bm_mt_get_entry(self, table: str, handle: int) -> Any:
        """One entry; an empty one of a table that is not there, as BMv2 answers."""
        if table not in self.control.program.tables:
            return empty_entry()
        return self.told(table, self.control.entry(table, unsigned(handle)))

    def bm_mt_get_entry_from_key(self, table: str, key: Sequence[Any], options: Any) -> Any:
        """The entry of a key; without one, the default."""
        if table not in self.control.program.tables or not key:
            found = empty_entry()
            found.action_entry = self.bm_mt_get_default_entry(table)
            return found
        handle = self.control.find(table, self.key(table, key), options.priority or 0)
        return self.told(table, self.control.entry(table, handle))

    def bm_mt_get_default_entry(self, table: str) -> Any:
        """What a table runs on a miss; nothing for a table that is not there, as BMv2 answers."""
        if table not in self.control.program.tables:
            return no_action()
        try:
            return action_of(self.control.default(table))
        except Refused as refused:
            if refused.kind is not RefusalKind.NO_DEFAULT_ENTRY:
                raise
            return no_action()

    # parts of requests

    def key(self, table: str, parts: Sequence[Any]) -> tuple[KeyPart, ...]:
        """The key that a message gives for a table."""
        return key_of(self.table(table), parts)

    def params(self, table: str, action: str, params: Sequence[bytes]) -> tuple[int, ...]:
        """The parameters that a message gives for an action of a table."""
        return params_of(self.table(table).actions, action, params)

    def told(self, table: str, held: HeldEntry) -> Any:
        """An entry as a message has it."""
        types, entry = description(), held.entry
        priority = NO_PRIORITY if entry.priority is None else entry.priority
        named = HeldDefault(member=held.member, group=held.group)
        return types.HeldEntry(
            match_key=message_key(self.table(table), entry.key),
            options=types.Options(priority),
            entry_handle=signed(held.handle),
            action_entry=action_of(HeldDefault(entry.action, entry.params) if isinstance(entry, TableEntry) else named),
            life=life_of(held),
        )


def life_of(held: HeldEntry) -> Any | None:
    """Timeout and idle time of an entry that has a timeout."""
    idle_ms = round((held.idle_s or 0.0) * 1000)
    return description().Life(signed(held.timeout_ms), signed(idle_ms)) if held.timeout_ms else None


def action_of(held: HeldDefault) -> Any:
    """What an entry or a default runs, as a message has it."""
    types = description()
    if held.member is not None:
        return types.Action(types.ActionKind.MBR_HANDLE, mbr_handle=held.member)
    if held.group is not None:
        return types.Action(types.ActionKind.GRP_HANDLE, grp_handle=held.group)
    return types.Action(types.ActionKind.ACTION_DATA, held.action, message_params(held.params))


def no_action() -> Any:
    """Says that nothing runs."""
    return description().Action(description().ActionKind.NONE)


def empty_entry() -> Any:
    """An entry of which nothing is known."""
    return description().HeldEntry([], description().Options(), 0, no_action())
