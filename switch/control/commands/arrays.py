"""Commands that set cells of meters and registers, reset counters, and fill parser value sets."""

from __future__ import annotations

from collections.abc import Sequence

from switch.control.commands.command import Command
from switch.control.commands.tables import WrittenTables
from switch.control.commands.words import parse_number, parse_rate
from switch.control.short_names import whole_name
from switch.entries import MeterRates, RegisterPreset, ValueSetMember
from switch.program.program import Program


class WrittenArrays:
    """The rates, values of registers and members of value sets that commands have set so far.

    `fresh` says that no packet can have passed yet: all cells that are not set are 0.
    """

    def __init__(self, program: Program, tables: WrittenTables) -> None:
        self.program, self.tables = program, tables
        self.fresh = True
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        self.meters: list[MeterRates] = []
        self.registers: list[RegisterPreset] = []
        self.value_sets: dict[ValueSetMember, None] = {}

    def take(self) -> tuple[tuple[MeterRates, ...], tuple[RegisterPreset, ...], tuple[ValueSetMember, ...]]:
        """What was set since the last call."""
        meters = tuple(map(self.placed, self.meters))
        taken = meters, tuple(self.registers), tuple(self.value_sets)
        self.begin()
        self.fresh = False
        return taken

    def placed(self, rates: MeterRates) -> MeterRates:
        """The rates with the number of the entry instead of its handle, if the meter is a direct one."""
        if rates.meter not in self.program.direct_meters or rates.index is None:
            return rates
        table = next(table.name for table in self.program.tables.values() if table.meter == rates.meter)
        return MeterRates(rates.meter, self.tables.entry_number(table, rates.index), rates.rates)

    def meter(self, name: str) -> str:
        """The meter, direct or not, that `name` stands for."""
        return whole_name("meter", name, self.program.meters | self.program.direct_meters)

    def register(self, name: str) -> str:
        """The register that `name` stands for."""
        return whole_name("register", name, self.program.registers)

    def meter_set_rates(self, words: Sequence[str]) -> None:
        """`meter_set_rates`: of one cell, or of the entry with this handle."""
        name, index, *rates = words
        self.meters.append(MeterRates(self.meter(name), parse_number(index), tuple(map(parse_rate, rates))))

    def meter_array_set_rates(self, words: Sequence[str]) -> None:
        """`meter_array_set_rates`: of all cells of a meter."""
        name, *rates = words
        self.meters.append(MeterRates(self.meter(name), None, tuple(map(parse_rate, rates))))

    def register_write(self, words: Sequence[str]) -> None:
        """`register_write`: the value of one element."""
        name, index, value = words
        self.registers.append(RegisterPreset(self.register(name), parse_number(index), parse_number(value)))

    def register_reset(self, words: Sequence[str]) -> None:
        """`register_reset`: all elements become 0."""
        (name,) = words
        register = self.program.registers[self.register(name)]
        self.registers = [preset for preset in self.registers if preset.register != register.name]
        if not self.fresh:
            self.registers += [RegisterPreset(register.name, index, 0) for index in range(register.size)]

    def counter_reset(self, words: Sequence[str]) -> None:
        """`counter_reset`: all cells become 0, which they are before the first packet."""
        (name,) = words
        whole_name("counter", name, self.program.counters | self.program.direct_counters)
        if not self.fresh:
            raise ValueError("counters can be reset before the first packet only")

    def value_set(self, name: str) -> str:
        """The parser value set that `name` stands for."""
        return whole_name("parser value set", name, self.program.value_sets)

    def add_value(self, words: Sequence[str]) -> None:
        """`pvs_add`: a value joins a parser value set; one that is there already may come again."""
        name, value = words
        self.value_sets[ValueSetMember(self.value_set(name), parse_number(value))] = None

    def remove_value(self, words: Sequence[str]) -> None:
        """`pvs_remove`: a value leaves a parser value set, if it is there."""
        name, value = words
        self.value_sets.pop(ValueSetMember(self.value_set(name), parse_number(value)), None)

    def clear_values(self, words: Sequence[str]) -> None:
        """`pvs_clear`: a parser value set becomes empty."""
        (name,) = words
        cleared = self.value_set(name)
        self.value_sets = {member: None for member in self.value_sets if member.value_set != cleared}


COMMANDS: dict[str, Command[WrittenArrays]] = {
    "meter_set_rates": Command("METER INDEX RATE:BURST...", WrittenArrays.meter_set_rates),
    "meter_array_set_rates": Command("METER RATE:BURST...", WrittenArrays.meter_array_set_rates),
    "register_write": Command("REGISTER INDEX VALUE", WrittenArrays.register_write),
    "register_reset": Command("REGISTER", WrittenArrays.register_reset),
    "counter_reset": Command("COUNTER", WrittenArrays.counter_reset),
    "pvs_add": Command("VALUE_SET VALUE", WrittenArrays.add_value),
    "pvs_remove": Command("VALUE_SET VALUE", WrittenArrays.remove_value),
    "pvs_clear": Command("VALUE_SET", WrittenArrays.clear_values),
}
