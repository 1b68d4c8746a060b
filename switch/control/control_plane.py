"""The control plane of one running switch, with the entities of BMv2's simple_switch; independent of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inakit.switch.control import (
    action_profiles,
    calculations,
    counters,
    digests,
    meters,
    registers,
    replication,
    tables,
    value_sets,
)
from inakit.switch.control.codecs import Call, Command, ReadArgument
from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.requests import Core


class ControlPlane(Core):
    """The entities of one switch. Requests are carried out one after the other, or raise `Refused`.

    Handles equal those that simple_switch returns for the same requests.
    """

    def __init__(self, data_plane: DataPlane) -> None:
        super().__init__(data_plane)
        self.profiles = action_profiles.ActionProfiles(self)
        self.tables = tables.Tables(self, self.profiles)
        self.counters = counters.Counters(self, self.tables)
        self.meters = meters.Meters(self, self.tables)
        self.registers = registers.Registers(self)
        self.value_sets = value_sets.ValueSets(self)
        self.replication = replication.Replication(self)
        self.digests = digests.Digests(self)
        self.calculations = calculations.Calculations(self)

    def reset_state(self) -> None:
        """Restore the state after the start: the program's entries, no groups, zeros in registers and counters.

        Mirror sessions stay, as in BMv2.
        """

        def reset() -> None:
            sessions = self.replication.sessions
            self.data_plane.reset()
            self.profiles.reset()
            for table in self.tables.tables.values():
                table.reset()
            self.value_sets.reset()
            self.replication.forget()
            self.digests.forget()
            for session in sessions.values():
                self.replication.put_session(session)

        self.carry_out(reset)


KINDS = {
    "profiles": action_profiles,
    "tables": tables,
    "counters": counters,
    "meters": meters,
    "registers": registers,
    "value_sets": value_sets,
    "replication": replication,
    "digests": digests,
    "calculations": calculations,
}
"""The module of each kind of entities, by the kind's name in a control plane."""


def of_all_kinds(table: str) -> dict[str, tuple[str, Any]]:
    """The rows of a table of this name in the modules of all kinds, each with its kind."""
    return {name: (kind, each) for kind in KINDS for name, each in getattr(KINDS[kind], table, {}).items()}


COMMANDS: Mapping[str, tuple[str, Command]] = of_all_kinds("COMMANDS")
CALLS: Mapping[str, tuple[str, Call]] = of_all_kinds("CALLS")
SESSION_CALLS: Mapping[str, tuple[str, Call]] = of_all_kinds("SESSION_CALLS")
ARGUMENTS: Mapping[str, ReadArgument] = {name: read for name, (_, read) in of_all_kinds("ARGUMENTS").items()}
