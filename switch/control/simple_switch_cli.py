"""The commands of `simple_switch_CLI`, run on any control plane, or read as entries, which `SwitchEntries.cli` writes.

Names are whole, or any end of them that is unique. Commands that only read, and those without a meaning here, are
skipped and said to be. What cannot be carried out is an `InputError`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_check import by_priority
from inakit.switch.control.recorded_entries import RecordedEntries
from inakit.switch.entries import DefaultAction, KeyPart, Lpm, MirrorSession, Range, SwitchEntries, TableEntry, Ternary
from inakit.switch.program.expressions import CrcParameters
from inakit.switch.program.program import Action, MatchKey, Program, Table
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.files.reader import FileKind, read_text


def whole_name(what: str, name: str, known: Iterable[str]) -> str:
    """The name of `known` that `name` stands for; `InputError`, with the candidates, if it fits none or several."""
    choices = list(known)
    return name if name in choices else one_of(what, name, ending_with(name, choices), choices)


def ending_with(name: str, known: Iterable[str]) -> list[str]:
    """The names of `known` whose last parts, between dots, are those of `name`."""
    return [each for each in known if each.endswith(f".{name}")]


def one_of(what: str, name: str, fitting: Sequence[str], known: Iterable[str]) -> str:
    """The only element of `fitting`; `InputError` if it has none, or several."""
    if len(fitting) > 1:
        raise InputError(f"{what} '{name}' may be {' or '.join(fitting)}: write more of the name")
    if not fitting:
        raise unknown_name(what, name, known)
    return fitting[0]


class Queues(Protocol):
    """The queues in front of egress; without a port all are meant, without a priority all of the port."""

    def set_rate(self, packets_per_s: int, port: int | None = None, priority: int | None = None) -> None:
        """Give queues a rate; 0: none."""

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        """Let queues hold so many packets."""


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


Words = Sequence[str]

MAC_ADDRESS = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")


def split_at_arrow(words: Words) -> tuple[Words, Words]:
    """The words before and after `=>`; without an arrow all words are before it."""
    if "=>" not in words:
        return words, ()
    at = words.index("=>")
    return words[:at], words[at + 1 :]


def behind_arrow(words: Words) -> Words:
    """The words without an arrow before them."""
    return words[words[:1] == ["=>"] :]


def parse_params(action: Action, words: Words) -> tuple[int, ...]:
    """The parameters of an action; `ValueError` for another number of words than it takes."""
    if len(words) != len(action.parameters):
        raise ValueError(f"action '{action.name}' has {len(action.parameters)} parameters, {len(words)} values given")
    return tuple(map(parse_number, words))


def parse_key(table: Table, words: Words) -> tuple[KeyPart, ...]:
    """The key of an entry of `table`, a word for each part; `ValueError` for another number of words."""
    if len(words) != len(table.key):
        raise ValueError(f"table '{table.name}' has a key of {len(table.key)}, {len(words)} given")
    return tuple(parse_key_part(part, word) for part, word in zip(table.key, words, strict=True))


def parse_key_part(part: MatchKey, word: str) -> KeyPart:
    """One part of a key, written as its table matches it: `V`, `V/PREFIX`, `V&&&MASK` or `LOW->HIGH`."""
    match part.match:
        case "lpm":
            value, prefix = word.split("/")
            return Lpm(parse_number(value), int(prefix))
        case "ternary" if "&&&" in word:
            value, mask = word.split("&&&")
            return Ternary(parse_number(value), parse_number(mask))
        case "ternary":
            return Ternary(parse_number(word), (1 << part.bits) - 1)
        case "range":
            low, high = word.split("->")
            return Range(parse_number(low), parse_number(high))
    return parse_number(word)


def split_priority(table: Table, words: Words, count: int) -> tuple[Words, int | None]:
    """The first `count` of `words`, and the priority that follows them where entries of `table` need one."""
    expected = count + by_priority(table)
    if len(words) != expected:
        priority = " and a priority" if by_priority(table) else ""
        raise ValueError(f"{count} values{priority} expected behind =>, {len(words)} given")
    return words[:count], int(words[count]) if by_priority(table) else None


def parse_number(word: str) -> int:
    """A number in decimal, 0x, 0b or 0o; or an IPv4, IPv6 or MAC address."""
    if MAC_ADDRESS.fullmatch(word):
        return int(word.replace(":", ""), 16)
    if "." in word or ":" in word:
        return int(ip_address(word))
    return int(word) if word.isdecimal() else int(word, 0)


def parse_flag(word: str) -> bool:
    """`true`, `false`, or a number that is not 0 or is."""
    return word.lower() == "true" if word.lower() in ("true", "false") else bool(int(word, 0))


def parse_rate(word: str) -> tuple[float, int]:
    """RATE:BURST, the rate in units per microsecond."""
    per_microsecond, burst = word.split(":")
    return float(per_microsecond), int(burst)


READS = "it only reads"
QUEUES = "a switch without a network has no queues"
DEFINED = "it shows what the program says"

SKIPPED = {
    "table_dump": READS,
    "table_dump_entry": READS,
    "table_dump_entry_from_key": READS,
    "table_dump_member": READS,
    "table_dump_group": READS,
    "table_num_entries": READS,
    "act_prof_dump": READS,
    "act_prof_dump_member": READS,
    "act_prof_dump_group": READS,
    "mc_dump": READS,
    "mirroring_get": READS,
    "meter_get_rates": READS,
    "counter_read": READS,
    "register_read": READS,
    "pvs_get": READS,
    "show_ports": READS,
    "switch_info": READS,
    "get_time_elapsed": READS,
    "get_time_since_epoch": READS,
    "write_config_to_file": READS,
    "serialize_state": READS,
    "show_tables": DEFINED,
    "show_actions": DEFINED,
    "show_pvs": DEFINED,
    "table_show_actions": DEFINED,
    "table_info": DEFINED,
    "set_queue_rate": QUEUES,
    "set_queue_depth": QUEUES,
    "help": "it is for people",
    "?": "it is for people",
    "greet": "it is for people",
    "shell": "nothing is run",
    "!": "nothing is run",
    "EOF": "files end by themselves",
}
"""Why a command can be skipped: no packet leaves another way without it."""

REFUSED = {
    "load_new_config_file": "the program is the one that the command line names",
    "swap_configs": "the program is the one that the command line names",
    "port_add": "ports are chosen on the command line",
    "port_remove": "ports are chosen on the command line",
    "set_toeplitz_hash_key": "hashes of this kind are not supported",
}
"""Why a command is refused: packets would not be those that the file asks for."""


def set_rate(switch: CommandedSwitch, words: Words) -> None:
    """`set_queue_rate`: packets/s of all queues, of those of a port, or of one."""
    rate, *where = map(parse_number, words)
    assert switch.queues is not None
    switch.queues.set_rate(rate, *port_and_priority(where))


def set_depth(switch: CommandedSwitch, words: Words) -> None:
    """`set_queue_depth`: how many packets all queues hold, those of a port, or one."""
    depth, *where = map(parse_number, words)
    assert switch.queues is not None
    switch.queues.set_depth(depth, *port_and_priority(where))


def port_and_priority(numbers: list[int]) -> tuple[int | None, int | None]:
    """The port and the priority that are given, in this order; `ValueError` for more numbers."""
    if len(numbers) > 2:
        raise ValueError(f"{len(numbers)} numbers behind the first: a port and a priority are all there is")
    port, priority = (*numbers, None, None)[:2]
    return port, priority


QUEUE_COMMANDS = {
    "set_queue_rate": Command("PACKETS_PER_SECOND [PORT [PRIORITY]]", set_rate),
    "set_queue_depth": Command("PACKETS [PORT [PRIORITY]]", set_depth),
}


def meter_set_rates(switch: CommandedSwitch, words: Words) -> None:
    """`meter_set_rates`: of one cell; of a direct meter, of the entry with this handle."""
    name, index, *given = words
    meter, rates = switch.meter(name), tuple(map(parse_rate, given))
    if meter in switch.program.meters:
        switch.control.set_meter_rates(meter, parse_number(index), rates)
    else:
        table = next(table.name for table in switch.program.tables.values() if table.meter == meter)
        switch.control.set_entry_meter(table, parse_number(index), rates)


def meter_array_set_rates(switch: CommandedSwitch, words: Words) -> None:
    """`meter_array_set_rates`: of all cells; of a direct meter, of all entries, also of those to come."""
    name, *given = words
    switch.control.set_meter_rates(switch.meter(name), None, tuple(map(parse_rate, given)))


def register_write(switch: CommandedSwitch, words: Words) -> None:
    """`register_write`: the value of one cell."""
    name, index, value = words
    switch.control.write_register(switch.register(name), parse_number(index), parse_number(value))


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
        switch.control.write_counter(counter, parse_number(index), parse_number(packets), parse_number(octets))
    else:
        switch.control.write_entry_counter(
            direct.table, parse_number(index), parse_number(packets), parse_number(octets)
        )


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
    switch.control.add_value(switch.value_set(name), parse_number(value))


def remove_value(switch: CommandedSwitch, words: Words) -> None:
    """`pvs_remove`: a value leaves a parser value set, if it is there."""
    name, value = words
    switch.control.remove_value(switch.value_set(name), parse_number(value))


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
    polynomial, first, last = map(parse_number, numbers)
    parameters = CrcParameters(polynomial, first, last, parse_flag(data), parse_flag(result))
    switch.control.set_crc(whole_name("calculation", name, switch.program.calculations), bits, parameters)


def reset_state(switch: CommandedSwitch, words: Words) -> None:
    """`reset_state`: the switch is as just started."""
    if words:
        raise ValueError("it takes nothing")
    switch.control.reset_state()


CRC = "CALCULATION POLYNOMIAL FIRST LAST REFLECT_DATA REFLECT_RESULT"
ARRAY_COMMANDS = {
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


def create_member(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_create_member`: a new member."""
    name, called, *params = words
    profile = switch.profile(name)
    action = switch.profile_action(profile, called)
    switch.control.add_member(profile, action.name, parse_params(action, params))


def modify_member(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_modify_member`: another action for a member; an arrow before the parameters is allowed."""
    name, called, member, *params = words
    profile = switch.profile(name)
    action = switch.profile_action(profile, called)
    switch.control.modify_member(profile, parse_number(member), action.name, parse_params(action, behind_arrow(params)))


def delete_member(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_delete_member`: a member that nothing names goes."""
    name, member = words
    switch.control.delete_member(switch.profile(name), parse_number(member))


def create_group(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_create_group`: a new group without members."""
    (name,) = words
    profile = switch.profile(name)
    if switch.program.profiles[profile].selector is None:
        raise ValueError(f"action profile '{profile}' has no selector, so no groups")
    switch.control.create_group(profile)


def delete_group(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_delete_group`: a group that no entry names goes."""
    name, group = words
    switch.control.delete_group(switch.profile(name), parse_number(group))


def add_to_group(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_add_member_to_group`."""
    name, member, group = words
    switch.control.add_member_to_group(switch.profile(name), parse_number(member), parse_number(group))


def remove_from_group(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_remove_member_from_group`."""
    name, member, group = words
    switch.control.remove_member_from_group(switch.profile(name), parse_number(member), parse_number(group))


NAMED = {
    "act_prof_create_member": Command("PROFILE ACTION PARAMETER...", create_member),
    "act_prof_modify_member": Command("PROFILE ACTION MEMBER PARAMETER...", modify_member),
    "act_prof_delete_member": Command("PROFILE MEMBER", delete_member),
    "act_prof_create_group": Command("PROFILE", create_group),
    "act_prof_delete_group": Command("PROFILE GROUP", delete_group),
    "act_prof_add_member_to_group": Command("PROFILE MEMBER GROUP", add_to_group),
    "act_prof_remove_member_from_group": Command("PROFILE MEMBER GROUP", remove_from_group),
}
PROFILE_COMMANDS = NAMED | {name.replace("act_prof", "table_indirect"): command for name, command in NAMED.items()}
"""Each has an older name, which takes a table instead of a profile."""


def create_mgrp(switch: CommandedSwitch, words: Words) -> None:
    """`mc_mgrp_create`: a new group without nodes."""
    (group,) = words
    switch.control.create_mgrp(parse_number(group))


def destroy_mgrp(switch: CommandedSwitch, words: Words) -> None:
    """`mc_mgrp_destroy`."""
    (group,) = words
    switch.control.destroy_mgrp(parse_number(group))


def create_node(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_create`: a node with the `egress_rid` of its replicas and their ports."""
    replica, *rest = words
    switch.control.create_node(parse_number(replica), *ports_and_lags(rest))


def update_node(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_update`: other ports for a node."""
    node, *rest = words
    switch.control.update_node(parse_number(node), *ports_and_lags(rest))


def destroy_node(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_destroy`: a node goes, also out of its group."""
    (node,) = words
    switch.control.destroy_node(parse_number(node))


def associate(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_associate`: a node joins a group."""
    group, node = words
    switch.control.associate_node(parse_number(group), parse_number(node))


def dissociate(switch: CommandedSwitch, words: Words) -> None:
    """`mc_node_dissociate`: a node leaves its group."""
    group, node = words
    switch.control.dissociate_node(parse_number(group), parse_number(node))


def set_lag(switch: CommandedSwitch, words: Words) -> None:
    """`mc_set_lag_membership`: the ports of a link aggregation group."""
    lag, *ports = words
    switch.control.set_lag(parse_number(lag), map(parse_number, ports))


def mirror_to_port(switch: CommandedSwitch, words: Words) -> None:
    """`mirroring_add`: a session whose clones leave by one port."""
    session, port = words
    switch.control.put_session(MirrorSession(parse_number(session), parse_number(port)))


def mirror_to_group(switch: CommandedSwitch, words: Words) -> None:
    """`mirroring_add_mc`: a session whose clones leave by a multicast group."""
    session, group = words
    switch.control.put_session(MirrorSession(parse_number(session), group=parse_number(group)))


def delete_session(switch: CommandedSwitch, words: Words) -> None:
    """`mirroring_delete`."""
    (session,) = words
    switch.control.remove_session(parse_number(session))


def ports_and_lags(words: Words) -> tuple[list[int], list[int]]:
    """The ports, and the link aggregation groups behind `|`."""
    at = words.index("|") if "|" in words else len(words)
    return [parse_number(word) for word in words[:at]], [parse_number(word) for word in words[at + 1 :]]


REPLICATION_COMMANDS = {
    "mc_mgrp_create": Command("GROUP", create_mgrp),
    "mc_mgrp_destroy": Command("GROUP", destroy_mgrp),
    "mc_node_create": Command("REPLICA PORT... [| LAG...]", create_node),
    "mc_node_update": Command("NODE PORT... [| LAG...]", update_node),
    "mc_node_destroy": Command("NODE", destroy_node),
    "mc_node_associate": Command("GROUP NODE, the nodes counted from 0", associate),
    "mc_node_dissociate": Command("GROUP NODE, the nodes counted from 0", dissociate),
    "mc_set_lag_membership": Command("LAG PORT...", set_lag),
    "mirroring_add": Command("SESSION PORT", mirror_to_port),
    "mirroring_add_mc": Command("SESSION GROUP", mirror_to_group),
    "mirroring_delete": Command("SESSION", delete_session),
}


def add(switch: CommandedSwitch, words: Words) -> None:
    """`table_add`: a new entry."""
    name, called, *rest = words
    table = switch.table(name)
    action = switch.action(table.actions, called)
    key, given = split_at_arrow(rest)
    params, priority = split_priority(table, given, len(action.parameters))
    entry = TableEntry(table.name, parse_key(table, key), action.name, parse_params(action, params), priority)
    switch.control.add_entry(entry)


def modify(switch: CommandedSwitch, words: Words) -> None:
    """`table_modify`: another action for an entry; an arrow before the parameters is allowed."""
    name, called, handle, *params = words
    table = switch.table(name)
    action = switch.action(table.actions, called)
    switch.control.modify_entry(
        table.name, parse_number(handle), action.name, parse_params(action, behind_arrow(params))
    )


def delete(switch: CommandedSwitch, words: Words) -> None:
    """`table_delete`, `table_indirect_delete`: an entry goes."""
    name, handle = words
    switch.control.delete_entry(switch.table(name).name, parse_number(handle))


def clear(switch: CommandedSwitch, words: Words) -> None:
    """`table_clear`: all entries go; the default action stays."""
    (name,) = words
    switch.control.clear_table(switch.table(name).name)


def set_default(switch: CommandedSwitch, words: Words) -> None:
    """`table_set_default`: the action that a table runs on a miss."""
    name, called, *params = words
    table = switch.table(name)
    action = switch.action(table.actions, called)
    switch.control.set_default(DefaultAction(table.name, action.name, parse_params(action, params)))


def reset_default(switch: CommandedSwitch, words: Words) -> None:
    """`table_reset_default`: the program's own default action again."""
    (name,) = words
    switch.control.reset_default(switch.table(name).name)


def set_timeout(switch: CommandedSwitch, words: Words) -> None:
    """`table_set_timeout`: who controls the switch is told when an entry idles for so many milliseconds."""
    name, handle, timeout_ms = words
    switch.control.set_timeout(switch.table(name).name, parse_number(handle), parse_number(timeout_ms))


def add_indirect(switch: CommandedSwitch, words: Words) -> None:
    """`table_indirect_add`: an entry that names a member of the table's action profile."""
    table, key, member, priority = indirect_entry(switch, words)
    switch.control.add_indirect(table.name, key, member, priority)


def add_indirect_group(switch: CommandedSwitch, words: Words) -> None:
    """`table_indirect_add_with_group`: an entry that names a group of the table's action profile."""
    table, key, group, priority = indirect_entry(switch, words)
    switch.control.add_indirect_group(table.name, key, group, priority)


def indirect_entry(switch: CommandedSwitch, words: Words) -> tuple[Table, tuple[KeyPart, ...], int, int | None]:
    """The table, the key, the handle and the priority in `TABLE KEY... => HANDLE [PRIORITY]`."""
    name, *rest = words
    table = switch.table(name)
    key, given = split_at_arrow(rest)
    (handle,), priority = split_priority(table, given, 1)
    return table, parse_key(table, key), parse_number(handle), priority


def set_indirect_default(switch: CommandedSwitch, words: Words) -> None:
    """`table_indirect_set_default`: the member that a table runs on a miss."""
    name, member = words
    switch.control.set_indirect_default(switch.table(name).name, parse_number(member))


def set_indirect_group_default(switch: CommandedSwitch, words: Words) -> None:
    """`table_indirect_set_default_with_group`: the group of which a table runs a member on a miss."""
    name, group = words
    switch.control.set_indirect_group_default(switch.table(name).name, parse_number(group))


TABLE_COMMANDS = {
    "table_add": Command("TABLE ACTION KEY... => PARAMETER... [PRIORITY]", add),
    "table_modify": Command("TABLE ACTION HANDLE PARAMETER...", modify),
    "table_delete": Command("TABLE HANDLE", delete),
    "table_clear": Command("TABLE", clear),
    "table_set_default": Command("TABLE ACTION PARAMETER...", set_default),
    "table_reset_default": Command("TABLE", reset_default),
    "table_set_timeout": Command("TABLE HANDLE MILLISECONDS", set_timeout),
    "table_indirect_add": Command("TABLE KEY... => MEMBER [PRIORITY]", add_indirect),
    "table_indirect_add_with_group": Command("TABLE KEY... => GROUP [PRIORITY]", add_indirect_group),
    "table_indirect_delete": Command("TABLE HANDLE", delete),
    "table_indirect_set_default": Command("TABLE MEMBER", set_indirect_default),
    "table_indirect_set_default_with_group": Command("TABLE GROUP", set_indirect_group_default),
    "table_indirect_reset_default": Command("TABLE", reset_default),
}


COMMANDS = TABLE_COMMANDS | PROFILE_COMMANDS | REPLICATION_COMMANDS | ARRAY_COMMANDS | QUEUE_COMMANDS
COMMENTS = ("#", "//")
COMMAND_FILE = FileKind("file of simple_switch_CLI's commands", max_bytes=64 << 20)


def run_command(switch: CommandedSwitch, words: Sequence[str]) -> str | None:
    """Carry out one command, given as words; without words, do nothing. Return why it is skipped, if it is."""
    if not words:
        return None
    command, *rest = words
    if command not in COMMANDS or (command in QUEUE_COMMANDS and switch.queues is None):
        return unread(command)
    try:
        COMMANDS[command].run(switch, rest)
    except ValueError as error:
        usage = f"{command} {COMMANDS[command].usage}"
        raise InputError(f"'{' '.join(words)}': {error}; expected {usage}".rstrip()) from error
    return None


def unread(command: str) -> str:
    """Why a command that changes nothing is skipped; `InputError` if it must not be.

    simple_switch_CLI goes on after a line that is no command at all; a misspelt command is refused here.
    """
    if command in SKIPPED:
        return f"'{command}' is skipped: {SKIPPED[command]}"
    if command in REFUSED:
        raise InputError(f"'{command}': {REFUSED[command]}")
    if difflib.get_close_matches(command, [*COMMANDS, *SKIPPED, *REFUSED], n=1):
        raise unknown_name("command", command, COMMANDS)
    return f"'{command}' is no command of simple_switch_CLI: the line is skipped"


def run_commands(path: Path, switch: CommandedSwitch, skipped: Callable[[str], None] = lambda _: None) -> None:
    """Carry out the commands of a file, a line each, up to the first that cannot be.

    `skipped` gets a line for each command that is skipped. `InputError` names file and line.
    """
    for number, line in enumerate(read_text(path, COMMAND_FILE).splitlines(), start=1):
        try:
            said = run_command(switch, [] if line.lstrip().startswith(COMMENTS) else line.partition("#")[0].split())
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        if said is not None:
            skipped(f"{path}:{number}: {said}")


def read_commands(path: Path, program: Program, skipped: Callable[[str], None] = lambda _: None) -> SwitchEntries:
    """The entries that the commands of a file install in a switch that runs `program`."""
    recorded = RecordedEntries(program)
    run_commands(path, CommandedSwitch(ControlPlane(recorded)), skipped)
    return recorded.take()


class CommandReader:
    """Turns commands into entries, one after the other."""

    def __init__(self, program: Program) -> None:
        self.recorded = RecordedEntries(program)
        self.switch = CommandedSwitch(ControlPlane(self.recorded))

    def add(self, words: Sequence[str]) -> str | None:
        """Read one command, given as words; without words, do nothing. Return why it is skipped, if it is."""
        return run_command(self.switch, words)

    def take(self) -> SwitchEntries:
        """All entries read since the last call."""
        return self.recorded.take()
