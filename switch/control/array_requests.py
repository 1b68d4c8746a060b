"""Requests for registers, counters, meters and parser value sets, and for the counts and rates of table entries."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.data_plane import DataPlane, Rates
from inakit.switch.control.requests import RefusalKind, Refused, index_of, locked
from inakit.switch.control.table_requests import Held, HeldTable, TableControl
from inakit.switch.entries import MeterRates, ValueSetMember
from inakit.switch.program.program import Counter, Meter, Register, ValueSet


class ArrayControl(TableControl):
    """Requests for what statements and entries count, keep and measure."""

    def __init__(self, data_plane: DataPlane) -> None:
        super().__init__(data_plane)
        self.value_sets: dict[str, dict[int, None]] = {name: {} for name in self.program.value_sets}

    # registers

    @locked
    def read_register(self, name: str, index: int) -> int:
        """One cell of a register."""
        register = self.register(name, index)
        return int(self.data_plane.read_register(register.name)[index])

    @locked
    def read_registers(self, name: str) -> NDArray[np.uint64]:
        """All cells of a register, as Python integers if they have more than 64 bits."""
        return self.data_plane.read_register(self.register(name).name)

    @locked
    def write_register(self, name: str, index: int, value: int) -> None:
        """Write one cell of a register; the value is cut to its bits."""
        register = self.register(name, index)
        self.data_plane.write_register(name, index, value & (1 << register.bits) - 1)

    @locked
    def write_register_range(self, name: str, first: int, end: int, value: int) -> None:
        """Write the cells from `first` to `end`, which is excluded."""
        register = self.register(name)
        if not 0 <= first <= end <= register.size:
            why = f"register '{name}' has no cells {first} to {end}: it has {register.size}"
            raise Refused(RefusalKind.INVALID_REGISTER_INDEX, why)
        for index in range(first, end):
            self.data_plane.write_register(name, index, value & (1 << register.bits) - 1)

    @locked
    def write_registers(self, name: str, value: int) -> None:
        """Write all cells of a register."""
        register = self.register(name)
        self.data_plane.write_register(name, None, value & (1 << register.bits) - 1)

    @locked
    def reset_register(self, name: str) -> None:
        """Set all cells of a register to 0."""
        self.data_plane.write_register(self.register(name).name, None, 0)

    def register(self, name: str, index: int = 0) -> Register:
        """The register of this name, if it has a cell at `index`; or a refusal."""
        register = self.program.registers.get(name)
        if register is None:
            raise Refused(RefusalKind.INVALID_REGISTER_NAME, unknown("register", name, self.program.registers))
        if not 0 <= index < max(register.size, 1):
            raise Refused(RefusalKind.INVALID_REGISTER_INDEX, no_cell("register", name, index, register.size))
        return register

    # counters

    @locked
    def read_counter(self, name: str, index: int) -> tuple[int, int]:
        """Packets and bytes of one cell of a counter."""
        packets, octets = self.data_plane.read_counter(self.counter(name, index).name)
        return int(packets[index]), int(octets[index])

    @locked
    def read_counters(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of all cells of a counter."""
        return self.data_plane.read_counter(self.counter(name).name)

    @locked
    def write_counter(self, name: str, index: int, packets: int, octets: int) -> None:
        """Set packets and bytes of one cell of a counter."""
        self.data_plane.write_counter(self.counter(name, index).name, index, packets, octets)

    @locked
    def write_counters(self, name: str, packets: int, octets: int) -> None:
        """Set packets and bytes of all cells of a counter."""
        self.data_plane.write_counter(self.counter(name).name, None, packets, octets)

    @locked
    def reset_counters(self, name: str) -> None:
        """Set all cells of a counter to 0."""
        self.data_plane.write_counter(self.counter(name).name, None, 0, 0)

    def counter(self, name: str, index: int = 0) -> Counter:
        """The indirect counter of this name, if it has a cell at `index`; or a refusal."""
        counter = self.program.counters.get(name)
        if counter is None:
            raise Refused(RefusalKind.INVALID_COUNTER_NAME, unknown("counter", name, self.program.counters))
        if not 0 <= index < max(counter.size, 1):
            raise Refused(RefusalKind.INVALID_COUNTER_INDEX, no_cell("counter", name, index, counter.size))
        return counter

    # meters

    @locked
    def set_meter_rates(self, name: str, index: int | None, rates: Rates) -> None:
        """Give one cell of a meter, or all (`index` None), these rates and full buckets."""
        meter = self.meter(name, index or 0)
        if len(rates) != meter.rates:
            raise Refused(RefusalKind.BAD_RATES_LIST, f"meter '{name}' takes {meter.rates} rates, not {len(rates)}")
        check_rates(name, rates)
        self.give_rates(name, index, rates)

    @locked
    def meter_rates(self, name: str, index: int) -> Rates:
        """The rates of one cell of a meter; none if they were never set."""
        self.meter(name, index)
        table = self.metered_by(name)
        return self.data_plane.read_rates(name, index) if table is None else table.rates.at(index)

    @locked
    def reset_meter_rates(self, name: str, index: int) -> None:
        """Let one cell of a meter give green to every packet."""
        self.meter(name, index)
        self.give_rates(name, index, ())

    def give_rates(self, name: str, index: int | None, rates: Rates) -> None:
        """Let a cell of a meter, or all, have rates; the cells of a direct meter are for entries to come as well."""
        table = self.metered_by(name)
        if table is None or index is None:
            self.data_plane.set_rates(MeterRates(name, index, rates))
        elif index in table.entries:
            self.data_plane.set_entry_rates(table.entries[index].entry, rates)
        if table is not None:
            table.rates.set(index, rates)

    def metered_by(self, name: str) -> HeldTable | None:
        """The table whose entries a direct meter measures; None for any other meter."""
        return next((table for table in self.tables.values() if table.table.meter == name), None)

    def meter(self, name: str, index: int = 0) -> Meter:
        """The meter of this name, direct or not, if it has a cell at `index`; or a refusal."""
        meters = self.program.meters | self.program.direct_meters
        meter = meters.get(name)
        if meter is None:
            raise Refused(RefusalKind.INVALID_METER_NAME, unknown("meter", name, meters))
        if not 0 <= index < max(meter.size, 1):
            raise Refused(RefusalKind.INVALID_METER_INDEX, no_cell("meter", name, index, meter.size))
        return meter

    # what entries count and measure

    @locked
    def entry_counter(self, table: str, handle: int) -> tuple[int, int]:
        """Packets and bytes of an entry."""
        return self.data_plane.entry_counts(self.counted(table).at_any_version(handle).entry)

    @locked
    def write_entry_counter(self, table: str, handle: int, packets: int, octets: int) -> None:
        """Set packets and bytes of an entry."""
        self.data_plane.write_entry_counts(self.counted(table).at_any_version(handle).entry, packets, octets)

    @locked
    def reset_entry_counters(self, table: str) -> None:
        """Set packets and bytes of all entries of a table to 0."""
        for _, held in self.counted(table).items():
            self.data_plane.write_entry_counts(held.entry, 0, 0)

    @locked
    def entry_meter(self, table: str, handle: int) -> Rates:
        """The rates of an entry; none if they were never set."""
        return self.data_plane.entry_rates(self.metered(table, handle).entry)

    @locked
    def set_entry_meter(self, table: str, handle: int, rates: Rates) -> None:
        """Give an entry these rates and full buckets."""
        held, found = self.metered(table, handle), self.table(table)
        meter = self.program.direct_meters[found.table.meter or ""]
        if len(rates) != meter.rates:
            raise Refused(RefusalKind.TABLE_ERROR, f"meter '{meter.name}' takes {meter.rates} rates, not {len(rates)}")
        check_rates(meter.name, rates, RefusalKind.TABLE_ERROR)
        self.data_plane.set_entry_rates(held.entry, rates)
        found.rates.set(index_of(handle), rates)

    @locked
    def reset_entry_meter(self, table: str, handle: int) -> None:
        """Let an entry give green to every packet."""
        self.data_plane.set_entry_rates(self.metered(table, handle).entry, ())
        self.table(table).rates.set(index_of(handle), ())

    def counted(self, name: str) -> HeldTable:
        """The table of this name, which must have a direct counter."""
        found = self.table(name)
        if not found.table.counted:
            raise Refused(RefusalKind.COUNTERS_DISABLED, f"table '{name}' has no direct counter")
        return found

    def metered(self, name: str, handle: int) -> Held:
        """An entry of the table of this name, which must have a direct meter."""
        found = self.table(name)
        if found.table.meter is None:
            raise Refused(RefusalKind.METERS_DISABLED, f"table '{name}' has no direct meter")
        return found.at_any_version(handle)

    # value sets

    @locked
    def add_value(self, value_set: str, value: int) -> None:
        """Add a value to a parser value set; do nothing if it is in it."""
        bits = self.value_set(value_set).bits
        if value >> bits:
            why = f"value set '{value_set}' takes values of {bits} bits, not {value.bit_length()}"
            raise Refused(RefusalKind.PARSE_VSET_ERROR, why)
        if value not in self.value_sets[value_set]:
            self.data_plane.add_value(ValueSetMember(value_set, value))
            self.value_sets[value_set][value] = None

    @locked
    def remove_value(self, value_set: str, value: int) -> None:
        """Remove a value from a parser value set; do nothing if it is not in it."""
        self.value_set(value_set)
        if value in self.value_sets[value_set]:
            self.data_plane.remove_value(ValueSetMember(value_set, value))
            del self.value_sets[value_set][value]

    @locked
    def clear_values(self, value_set: str) -> None:
        """Remove all values from a parser value set."""
        for value in self.values(value_set):
            self.remove_value(value_set, value)

    @locked
    def values(self, value_set: str) -> list[int]:
        """The values of a parser value set, in the order in which they were added."""
        self.value_set(value_set)
        return list(self.value_sets[value_set])

    def value_set(self, name: str) -> ValueSet:
        """The parser value set of this name, or a refusal."""
        if name not in self.program.value_sets:
            why = unknown("parser value set", name, self.program.value_sets)
            raise Refused(RefusalKind.INVALID_PARSE_VSET_NAME, why)
        return self.program.value_sets[name]


def check_rates(name: str, rates: Rates, kind: RefusalKind = RefusalKind.INVALID_INFO_RATE_VALUE) -> None:
    """Refuse rates that are not ascending, or bursts that cannot be."""
    for (low, _), (high, _) in pairwise(rates):
        if high < low:
            why = f"meter '{name}' takes the lowest rate first, not {high} after {low}"
            raise Refused(kind, why)


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Why a name is refused."""
    return f"no {what} '{name}': there are {', '.join(known) or 'none'}"


def no_cell(what: str, name: str, index: int, size: int) -> str:
    """Why an index is refused."""
    return f"{what} '{name}' has no cell {index}: it has {size}"
