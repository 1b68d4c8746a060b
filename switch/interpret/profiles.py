"""What a table's entry runs: an action of its own, or that of a member of the table's action profile."""

from __future__ import annotations

from collections.abc import Callable

from switch.interpret.calculations import calculation_of
from switch.interpret.context import Context
from switch.interpret.packet import Packet
from switch.interpret.tables import Installed
from switch.program import ActionCall, Table
from topo.errors import RunError

Choice = Callable[[Packet, Installed], ActionCall | None]


# {"type": "indirect_ws", "action_profile": "ap"}; {"name": "ap", "selector": {"algo": "crc16", "input": [...]}}
def call_of(context: Context, table: Table) -> Choice:
    """The function that gives the call of an entry that was found."""
    if table.profile is None:
        return lambda _packet, found: found.call
    profile, state = context.program.profiles[table.profile], context.state.profiles[table.profile]
    hashed = calculation_of(context, profile.selector) if profile.selector else lambda _packet: 0

    def choose(packet: Packet, found: Installed) -> ActionCall:
        if found.group is None:
            return state.members[found.member or 0]
        members = state.groups[found.group]
        if not members:
            raise RunError(f"group {found.group} of action profile '{profile.name}' is empty, and a packet chose it")
        return state.members[members[hashed(packet) % len(members)]]

    return choose
