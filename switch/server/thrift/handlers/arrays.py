"""Requests for counters, meters and registers, those of entries included, and for parser value sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inakit.switch.control.data_plane import Rates
from inakit.switch.server.thrift.description import description
from inakit.switch.server.thrift.handlers.handler import Handler
from inakit.switch.server.thrift.values import GREATEST_I64, signed, unsigned


class ArrayRequests(Handler):
    """What a program keeps in arrays."""

    # counters

    def bm_counter_read(self, counter: str, index: int) -> Any:
        """One cell of a counter."""
        return count_of(*self.control.read_counter(counter, index))

    def bm_counter_reset_all(self, counter: str) -> None:
        """Set all cells of a counter to 0."""
        self.control.reset_counters(counter)

    def bm_counter_write(self, counter: str, index: int, count: Any) -> None:
        """Set one cell of a counter."""
        self.control.write_counter(counter, index, *numbers_of(count))

    def bm_mt_read_counter(self, table: str, handle: int) -> Any:
        """What an entry has counted."""
        return count_of(*self.control.entry_counter(table, unsigned(handle)))

    def bm_mt_reset_counters(self, table: str) -> None:
        """Set the counts of all entries to 0."""
        self.control.reset_entry_counters(table)

    def bm_mt_write_counter(self, table: str, handle: int, count: Any) -> None:
        """Set what an entry has counted."""
        self.control.write_entry_counter(table, unsigned(handle), *numbers_of(count))

    # meters

    def bm_meter_array_set_rates(self, meter: str, rates: Sequence[Any]) -> None:
        """Give all cells of a meter these rates."""
        self.control.set_meter_rates(meter, None, rates_of(rates))

    def bm_meter_set_rates(self, meter: str, index: int, rates: Sequence[Any]) -> None:
        """Give one cell of a meter these rates."""
        self.control.set_meter_rates(meter, index, rates_of(rates))

    def bm_meter_get_rates(self, meter: str, index: int) -> list[Any]:
        """The rates of one cell of a meter."""
        return message_rates(self.control.meter_rates(meter, index))

    def bm_mt_set_meter_rates(self, table: str, handle: int, rates: Sequence[Any]) -> None:
        """Give an entry these rates."""
        self.control.set_entry_meter(table, unsigned(handle), rates_of(rates))

    def bm_mt_get_meter_rates(self, table: str, handle: int) -> list[Any]:
        """The rates of an entry."""
        return message_rates(self.control.entry_meter(table, unsigned(handle)))

    # registers

    def bm_register_read(self, name: str, index: int) -> int:
        """One cell of a register."""
        return cell_of(self.control.read_register(name, index))

    def bm_register_read_all(self, name: str) -> list[int]:
        """All cells of a register."""
        return [cell_of(int(value)) for value in self.control.read_registers(name)]

    def bm_register_write(self, name: str, index: int, value: int) -> None:
        """Set one cell of a register; it takes the bits that it has."""
        self.control.write_register(name, index, self.fitting(name, value))

    def bm_register_write_range(self, name: str, first: int, after: int, value: int) -> None:
        """Set the cells from `first` on before `after`."""
        self.control.write_register_range(name, first, after, self.fitting(name, value))

    def bm_register_reset(self, name: str) -> None:
        """Set all cells of a register to 0."""
        self.control.reset_register(name)

    def fitting(self, name: str, value: int) -> int:
        """The bits of a value that a cell of this register has."""
        return unsigned(value, self.control.register(name).bits)

    # parser value sets

    def bm_parse_vset_add(self, value_set: str, value: bytes) -> None:
        """Add a value."""
        self.control.add_value(value_set, int.from_bytes(value, "big"))

    def bm_parse_vset_remove(self, value_set: str, value: bytes) -> None:
        """Remove a value."""
        self.control.remove_value(value_set, int.from_bytes(value, "big"))

    def bm_parse_vset_get(self, value_set: str) -> list[bytes]:
        """All values, in order."""
        size = (self.control.value_set(value_set).bits + 7) // 8
        return [value.to_bytes(size, "big") for value in sorted(self.control.values(value_set))]

    def bm_parse_vset_clear(self, value_set: str) -> None:
        """Remove all values."""
        self.control.clear_values(value_set)


def count_of(packets: int, octets: int) -> Any:
    """Packets and bytes as a message has them."""
    return description().Count(bytes=signed(octets, 64), packets=signed(packets, 64))


def numbers_of(count: Any) -> tuple[int, int]:
    """Packets and bytes of a message."""
    return unsigned(count.packets or 0, 64), unsigned(count.bytes or 0, 64)


def rates_of(rates: Sequence[Any]) -> Rates:
    """Rates of a message."""
    return tuple((rate.units_per_micros or 0.0, unsigned(rate.burst_size or 0)) for rate in rates)


def message_rates(rates: Rates) -> list[Any]:
    """Rates as a message has them."""
    return [description().Rate(rate, signed(burst)) for rate, burst in rates]


def cell_of(value: int) -> int:
    """A register's value as a message has it: BMv2 gives the greatest number for all that are greater."""
    return min(value, GREATEST_I64)
