"""The parts of a switch's entries that are handed over to hardware: multicast groups and table entries."""

from __future__ import annotations

from dataclasses import fields

from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.topo.errors import UnsupportedError

HANDED_OVER = ("switch", "tables", "groups")

Part = MulticastGroup | TableEntry


def in_order(entries: SwitchEntries) -> list[Part]:
    """Groups and entries in an order in which a switch can take them: groups before the entries that name them.

    Raises `UnsupportedError` for entries with anything else, such as the registers of faults.
    """
    for field in fields(entries):
        if field.name not in HANDED_OVER and getattr(entries, field.name):
            raise UnsupportedError(
                f"switch '{entries.switch}': {field.name} are not handed over, only tables and groups: hand over a "
                "plan without faults"
            )
    return [*entries.groups, *entries.tables]
