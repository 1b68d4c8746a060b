"""Commands for cells of meters, registers and counters, for parser value sets, and for hashes."""

from __future__ import annotations

from inakit.switch.control.commands.command import Command, CommandedSwitch
from inakit.switch.control.commands.words import Words, parse_flag, parse_rate
from inakit.switch.control.commands.words import parse_number as number
from inakit.switch.control.short_names import whole_name
from inakit.switch.program.calculations import CrcParameters


def meter_set_rates(switch: CommandedSwitch, words: Words) -> None:
    """`meter_set_rates`: of one cell; of a direct meter, of the entry with this handle."""
    name, index, *given = words
    meter, rates = switch.meter(name), tuple(map(parse_rate, given))
    if meter in switch.program.meters:
        switch.control.set_meter_rates(meter, number(index), rates)
    else:
        table = next(table.name for table in switch.program.tables.values() if table.meter == meter)
        switch.control.set_entry_meter(table, number(index), rates)


def meter_array_set_rates(switch: CommandedSwitch, words: Words) -> None:
    """`meter_array_set_rates`: of all cells; of a direct meter, of all entries, also of those to come."""
    name, *given = words
    switch.control.set_meter_rates(switch.meter(name), None, tuple(map(parse_rate, given)))


def register_write(switch: CommandedSwitch, words: Words) -> None:
    """`register_write`: the value of one cell."""
    name, index, value = words
    switch.control.write_register(switch.register(name), number(index), number(value))


def register_reset(switch: CommandedSwitch, words: Words) -> None:
    """`register_reset`: all cells become 0."""
    (name,) = words
    switch.control.reset_register(switch.register(name))


def counter_write(switch: CommandedSwitch, words: Words) -> None:
    """`counter_write`: packets and bytes of one cell; of a direct counter, of the entry with this handle."""
    name, index, packets, octets = words
    counter = switch.counter(name)
    direct = switch.program.direct_counters.get(counter)
    if direct is None:
        switch.control.write_counter(counter, number(index), number(packets), number(octets))
    else:
        switch.control.write_entry_counter(direct.table, number(index), number(packets), number(octets))


def counter_reset(switch: CommandedSwitch, words: Words) -> None:
    """`counter_reset`: all cells become 0."""
    (name,) = words
    counter = switch.counter(name)
    direct = switch.program.direct_counters.get(counter)
    if direct is None:
        switch.control.reset_counters(counter)
    else:
        switch.control.reset_entry_counters(direct.table)


def add_value(switch: CommandedSwitch, words: Words) -> None:
    """`pvs_add`: a value joins a parser value set; one that is there already may come again."""
    name, value = words
    switch.control.add_value(switch.value_set(name), number(value))


def remove_value(switch: CommandedSwitch, words: Words) -> None:
    """`pvs_remove`: a value leaves a parser value set, if it is there."""
    name, value = words
    switch.control.remove_value(switch.value_set(name), number(value))


def clear_values(switch: CommandedSwitch, words: Words) -> None:
    """`pvs_clear`: a parser value set becomes empty."""
    (name,) = words
    switch.control.clear_values(switch.value_set(name))


def set_crc16(switch: CommandedSwitch, words: Words) -> None:
    """`set_crc16_parameters`: what a hash of the algorithm crc16_custom divides by, and the rest of it."""
    set_crc(switch, words, 16)


def set_crc32(switch: CommandedSwitch, words: Words) -> None:
    """`set_crc32_parameters`: the same for crc32_custom."""
    set_crc(switch, words, 32)


def set_crc(switch: CommandedSwitch, words: Words, bits: int) -> None:
    """Give a hash of the custom algorithm of this width other parameters."""
    name, *numbers, data, result = words
    polynomial, first, last = map(number, numbers)
    parameters = CrcParameters(polynomial, first, last, parse_flag(data), parse_flag(result))
    switch.control.set_crc(whole_name("calculation", name, switch.program.calculations), bits, parameters)


def reset_state(switch: CommandedSwitch, words: Words) -> None:
    """`reset_state`: the switch is as just started."""
    if words:
        raise ValueError("it takes nothing")
    switch.control.reset_state()


CRC = "CALCULATION POLYNOMIAL FIRST LAST REFLECT_DATA REFLECT_RESULT"
COMMANDS = {
    "meter_set_rates": Command("METER INDEX RATE:BURST...", meter_set_rates),
    "meter_array_set_rates": Command("METER RATE:BURST...", meter_array_set_rates),
    "register_write": Command("REGISTER INDEX VALUE", register_write),
    "register_reset": Command("REGISTER", register_reset),
    "counter_write": Command("COUNTER INDEX PACKETS BYTES", counter_write),
    "counter_reset": Command("COUNTER", counter_reset),
    "pvs_add": Command("VALUE_SET VALUE", add_value),
    "pvs_remove": Command("VALUE_SET VALUE", remove_value),
    "pvs_clear": Command("VALUE_SET", clear_values),
    "set_crc16_parameters": Command(CRC, set_crc16),
    "set_crc32_parameters": Command(CRC, set_crc32),
    "reset_state": Command("", reset_state),
}
