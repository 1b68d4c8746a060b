"""A command of simple_switch_CLI, and the switch that it is for, with names as short as is clear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.short_names import whole_name
from inakit.switch.program.actions import Action
from inakit.switch.program.pipelines import Table


class Queues(Protocol):
    """The queues in front of egress; without a port all are meant, without a priority all of the port."""

    def set_rate(self, packets_per_s: int, port: int | None = None, priority: int | None = None) -> None:
        """Give queues a rate; 0: none."""
        ...

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        """Let queues hold so many packets."""
        ...


class CommandedSwitch:
    """The control plane of a switch, whose parts are found by any end of their names that is unique.

    `queues` is None for a switch that has none.
    """

    def __init__(self, control: ControlPlane, queues: Queues | None = None) -> None:
        self.control, self.program, self.queues = control, control.program, queues

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
