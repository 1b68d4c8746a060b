"""Which action an entry runs: its own, or one that the selector of its action profile chooses."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.expressions.calculations import calculation_of
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet
from inakit.switch.interpret.state.tables.table_state import Installed
from inakit.switch.program.program import ActionCall
from inakit.switch.program.program import Table

ONES = (1 << 32) - 1
"""BMv2 chooses by the low 32 bits of a hash."""

Choice = Callable[[Packet, Installed], ActionCall | None]


# {"type": "indirect_ws", "action_profile": "ap"}; {"name": "ap", "selector": {"algo": "crc16", "input": [...]}}
def call_of(context: Context, table: Table) -> Choice:
    """The function that gives the action and parameters for a packet and the entry that it found.

    It gives None for an entry whose group is empty.
    """
    selector = context.program.profiles[table.profile].selector if table.profile else None
    if selector is None:
        return lambda _packet, found: found.calls[0]
    hashed = calculation_of(context, selector)
    return lambda packet, found: found.calls[(hashed(packet) & ONES) % len(found.calls)] if found.calls else None
