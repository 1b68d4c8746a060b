"""A command of simple_switch_CLI, and the switch that it is for, with names as short as is clear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from switch.control.control_plane import ControlPlane
from switch.control.short_names import whole_name
from switch.program.actions import Action
from switch.program.pipelines import Table


class CommandedSwitch:
    """The control plane of a switch, whose parts are found by any end of their names that is unique."""

    def __init__(self, control: ControlPlane) -> None:
        self.control, self.program = control, control.program

    def table(self, name: str) -> Table:
        """The table that `name` stands for."""
        return self.program.tables[whole_name("table", name, self.program.tables)]

    def action(self, actions: Sequence[Action], name: str) -> Action:
        """The one of `actions` that `name` stands for."""
        by_name = {action.name: action for action in actions}
        return by_name[whole_name("action", name, by_name)]

    def profile(self, name: str) -> str:
        """The action profile that `name` stands for: its own name, or that of a table that has it."""
        tables = {table.name: table.profile for table in self.program.tables.values() if table.profile is not None}
        found = whole_name("action profile", name, [*self.program.profiles, *tables])
        return tables.get(found, found)

    def profile_action(self, profile: str, name: str) -> Action:
        """The action that `name` stands for, among those of the tables that have this profile."""
        tables = (table for table in self.program.tables.values() if table.profile == profile)
        return self.action([action for table in tables for action in table.actions], name)

    def meter(self, name: str) -> str:
        """The meter, direct or not, that `name` stands for."""
        return whole_name("meter", name, self.program.meters | self.program.direct_meters)

    def counter(self, name: str) -> str:
        """The counter, direct or not, that `name` stands for."""
        return whole_name("counter", name, self.program.counters | self.program.direct_counters)

    def register(self, name: str) -> str:
        """The register that `name` stands for."""
        return whole_name("register", name, self.program.registers)

    def value_set(self, name: str) -> str:
        """The parser value set that `name` stands for."""
        return whole_name("parser value set", name, self.program.value_sets)


@dataclass(frozen=True)
class Command:
    """What follows a command's name, and the function that carries it out with these words.

    The function raises `ValueError` for words that cannot be, and `InputError` for what the switch does not take.
    """

    usage: str
    run: Callable[[CommandedSwitch, Sequence[str]], None]
