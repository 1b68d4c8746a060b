"""Requests to a simple_switch by Thrift, under the names that `ControlPlane` has for them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inakit.switch.bmv2.simple_switch_process import SimpleSwitchProcess, free_port
from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.entries import KeyPart, Lpm, MirrorSession, Range, TableEntry, Ternary
from inakit.switch.program.program import Program

CONTEXT = 0

GROUPS = {
    "InvalidTableOperation": ("table", "TableOperationErrorCode"),
    "InvalidCounterOperation": ("counter", "CounterOperationErrorCode"),
    "InvalidMeterOperation": ("meter", "MeterOperationErrorCode"),
    "InvalidRegisterOperation": ("register", "RegisterOperationErrorCode"),
    "InvalidParseVSetOperation": ("parse_vset", "ParseVSetOperationErrorCode"),
    "InvalidLearnOperation": ("learn", "LearnOperationErrorCode"),
    "InvalidMcOperation": ("mc", "McOperationErrorCode"),
    "InvalidMirroringOperation": ("mirroring", "MirroringOperationErrorCode"),
}
"""The group of refusals and the codes of each of Thrift's exceptions."""


def refusal_of(error: Any) -> Refused:
    """The refusal that an exception of Thrift stands for."""
    group, codes = GROUPS[type(error).__name__]
    module = __import__(type(error).__module__, fromlist=[codes])
    return Refused(RefusalKind(f"{group}.{getattr(module, codes)._VALUES_TO_NAMES[error.code].lower()}"), str(error))


def octets(value: int, bits: int) -> bytes:
    """A number as Thrift's requests have it."""
    return value.to_bytes((bits + 7) // 8, "big")


def port_map(ports: Any) -> str:
    """Ports as a text of ones and zeros, the highest first."""
    return format(sum(1 << port for port in set(ports)), "b")


class Kind:
    """The requests to one kind of entities."""

    def __init__(self, requests: Bmv2Requests, kind: str) -> None:
        self._requests, self._kind = requests, kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._requests, f"{self._kind}_{name}")


class Bmv2Requests:
    """The requests of a control plane, to the simple_switch at `port`: `tables_add` is `tables.add`."""

    def __init__(self, port: int, program: Program) -> None:
        from bm_runtime.simple_pre_lag import SimplePreLAG  # noqa: PLC0415, only where BMv2 is
        from bm_runtime.standard import Standard, ttypes  # noqa: PLC0415
        from sswitch_runtime import SimpleSwitch  # noqa: PLC0415
        from thrift.protocol import TBinaryProtocol, TMultiplexedProtocol  # noqa: PLC0415
        from thrift.transport import TSocket, TTransport  # noqa: PLC0415

        transport = TTransport.TBufferedTransport(TSocket.TSocket("127.0.0.1", port))
        binary = TBinaryProtocol.TBinaryProtocol(transport)

        def client(kind: Any, name: str) -> Any:
            return kind.Client(TMultiplexedProtocol.TMultiplexedProtocol(binary, name))

        self.standard, self.types = client(Standard, "standard"), ttypes
        self.multicast = client(SimplePreLAG, "simple_pre_lag")
        self.switch = client(SimpleSwitch, "simple_switch")
        self.program = program
        for kind in ("tables", "profiles", "counters", "meters", "registers", "value_sets", "replication"):
            setattr(self, kind, Kind(self, kind))
        transport.open()

    def call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """What a method answers; `Refused` where it throws one of its exceptions."""
        try:
            return method(CONTEXT, *arguments)
        except Exception as error:
            if type(error).__name__ in GROUPS:
                raise refusal_of(error) from error
            raise

    # tables

    def key(self, table: str, key: tuple[KeyPart, ...]) -> list[Any]:
        """The key of an entry."""
        parts = self.program.tables[table].key if table in self.program.tables else ()
        return [self.part(part.bits, value) for part, value in zip(parts, key, strict=True)]

    def part(self, bits: int, value: KeyPart) -> Any:
        """One part of a key."""
        t = self.types
        match value:
            case Lpm(number, prefix):
                return t.BmMatchParam(type=t.BmMatchParamType.LPM, lpm=t.BmMatchParamLPM(octets(number, bits), prefix))
            case Ternary(number, mask):
                both = t.BmMatchParamTernary(octets(number, bits), octets(mask, bits))
                return t.BmMatchParam(type=t.BmMatchParamType.TERNARY, ternary=both)
            case Range(low, high):
                ends = t.BmMatchParamRange(octets(low, bits), octets(high, bits))
                return t.BmMatchParam(type=t.BmMatchParamType.RANGE, range=ends)
        return t.BmMatchParam(type=t.BmMatchParamType.EXACT, exact=t.BmMatchParamExact(octets(value, bits)))

    def data(self, action: str, params: tuple[int, ...]) -> list[bytes]:
        """The parameters of an action."""
        found = next((a for t in self.program.tables.values() for a in t.actions if a.name == action), None)
        widths = [each.bits for each in found.parameters] if found else []
        widths += [8] * (len(params) - len(widths))
        return [octets(value, bits) for value, bits in zip(params, widths, strict=False)]

    def options(self, priority: int | None) -> Any:
        """What an entry is added with."""
        return self.types.BmAddEntryOptions(priority=priority)

    def tables_add_entry(self, entry: TableEntry) -> int:
        data, options = self.data(entry.action, entry.params), self.options(entry.priority)
        key = self.key(entry.table, entry.key)
        return int(self.call(self.standard.bm_mt_add_entry, entry.table, key, entry.action, data, options)) % (1 << 32)

    def tables_add(
        self, table: str, key: Any, *, member: int | None = None, group: int | None = None, priority: int | None = None
    ) -> int:
        standard, named = self.standard, group if member is None else member
        add = standard.bm_mt_indirect_ws_add_entry if member is None else standard.bm_mt_indirect_add_entry
        return int(self.call(add, table, self.key(table, key), named, self.options(priority))) % (1 << 32)

    def tables_modify(
        self,
        table: str,
        handle: int,
        action: str | None = None,
        params: tuple[int, ...] = (),
        *,
        member: int | None = None,
        group: int | None = None,
    ) -> None:
        standard = self.standard
        if action is not None:
            self.call(standard.bm_mt_modify_entry, table, signed(handle), action, self.data(action, params))
        elif member is not None:
            self.call(standard.bm_mt_indirect_modify_entry, table, signed(handle), member)
        else:
            self.call(standard.bm_mt_indirect_ws_modify_entry, table, signed(handle), group)

    def tables_delete(self, table: str, handle: int) -> None:
        indirect = table in self.program.tables and self.program.tables[table].profile is not None
        method = self.standard.bm_mt_indirect_delete_entry if indirect else self.standard.bm_mt_delete_entry
        self.call(method, table, signed(handle))

    def tables_clear(self, table: str, reset_default: bool = False) -> None:
        self.call(self.standard.bm_mt_clear_entries, table, reset_default)

    def tables_count(self, table: str) -> int:
        return int(self.call(self.standard.bm_mt_get_num_entries, table))

    def tables_find(self, table: str, key: Any, priority: int | None = None) -> int:
        found = self.call(self.standard.bm_mt_get_entry_from_key, table, self.key(table, key), self.options(priority))
        return int(found.entry_handle) % (1 << 32)

    def tables_set_timeout(self, table: str, handle: int, timeout_ms: int) -> None:
        self.call(self.standard.bm_mt_set_entry_ttl, table, signed(handle), timeout_ms)

    def tables_set_default(
        self,
        table: str,
        action: str | None = None,
        params: tuple[int, ...] = (),
        *,
        member: int | None = None,
        group: int | None = None,
    ) -> None:
        if action is not None:
            self.call(self.standard.bm_mt_set_default_action, table, action, self.data(action, params))
        elif member is not None:
            self.call(self.standard.bm_mt_indirect_set_default_member, table, member)
        else:
            self.call(self.standard.bm_mt_indirect_ws_set_default_group, table, group)

    def tables_reset_default(self, table: str) -> None:
        indirect = table in self.program.tables and self.program.tables[table].profile is not None
        standard = self.standard
        self.call(
            standard.bm_mt_indirect_reset_default_entry if indirect else standard.bm_mt_reset_default_entry, table
        )

    def tables_default(self, table: str) -> Any:
        return self.call(self.standard.bm_mt_get_default_entry, table)

    def tables_entries(self, table: str) -> list[Any]:
        return list(self.call(self.standard.bm_mt_get_entries, table))

    # action profiles

    def profiles_add_member(self, profile: str, action: str, params: tuple[int, ...] = ()) -> int:
        return int(self.call(self.standard.bm_mt_act_prof_add_member, profile, action, self.data(action, params)))

    def profiles_modify_member(self, profile: str, member: int, action: str, params: tuple[int, ...] = ()) -> None:
        self.call(self.standard.bm_mt_act_prof_modify_member, profile, member, action, self.data(action, params))

    def profiles_delete_member(self, profile: str, member: int) -> None:
        self.call(self.standard.bm_mt_act_prof_delete_member, profile, member)

    def profiles_create_group(self, profile: str) -> int:
        return int(self.call(self.standard.bm_mt_act_prof_create_group, profile))

    def profiles_delete_group(self, profile: str, group: int) -> None:
        self.call(self.standard.bm_mt_act_prof_delete_group, profile, group)

    def profiles_add_to_group(self, profile: str, member: int, group: int) -> None:
        self.call(self.standard.bm_mt_act_prof_add_member_to_group, profile, member, group)

    def profiles_remove_from_group(self, profile: str, member: int, group: int) -> None:
        self.call(self.standard.bm_mt_act_prof_remove_member_from_group, profile, member, group)

    def profiles_members(self, profile: str) -> list[Any]:
        return list(self.call(self.standard.bm_mt_act_prof_get_members, profile))

    def profiles_groups(self, profile: str) -> list[Any]:
        return list(self.call(self.standard.bm_mt_act_prof_get_groups, profile))

    # arrays

    def registers_read(self, name: str, index: int) -> int:
        return int(self.call(self.standard.bm_register_read, name, index))

    def registers_write(self, name: str, index: int | None, value: int) -> None:
        if index is None:
            assert value == 0, "only a reset is for all cells"
            self.call(self.standard.bm_register_reset, name)
        else:
            self.call(self.standard.bm_register_write, name, index, value)

    def registers_write_range(self, name: str, first: int, end: int, value: int) -> None:
        self.call(self.standard.bm_register_write_range, name, first, end, value)

    def counters_read(self, name: str, index: int) -> tuple[int, int]:
        found = self.call(self.standard.bm_counter_read, name, index)
        return found.packets, found.bytes

    def counters_write(self, name: str, index: int | None, packets: int, octets: int) -> None:
        if index is None:
            assert packets == octets == 0, "only a reset is for all cells"
            self.call(self.standard.bm_counter_reset_all, name)
        else:
            value = self.types.BmCounterValue(bytes=octets, packets=packets)
            self.call(self.standard.bm_counter_write, name, index, value)

    def meters_set_rates(self, name: str, index: int | None, rates: Any) -> None:
        configured = [self.types.BmMeterRateConfig(rate, burst) for rate, burst in rates]
        if index is None:
            self.call(self.standard.bm_meter_array_set_rates, name, configured)
        else:
            self.call(self.standard.bm_meter_set_rates, name, index, configured)

    def meters_rates(self, name: str, index: int) -> tuple[tuple[float, int], ...]:
        found = self.call(self.standard.bm_meter_get_rates, name, index)
        return tuple((each.units_per_micros, each.burst_size) for each in found)

    def counters_read_entry(self, table: str, handle: int) -> tuple[int, int]:
        found = self.call(self.standard.bm_mt_read_counter, table, signed(handle))
        return found.packets, found.bytes

    def counters_write_entry(self, table: str, handle: int, packets: int, octets: int) -> None:
        value = self.types.BmCounterValue(bytes=octets, packets=packets)
        self.call(self.standard.bm_mt_write_counter, table, signed(handle), value)

    def meters_set_entry_rates(self, table: str, handle: int, rates: Any) -> None:
        configured = [self.types.BmMeterRateConfig(rate, burst) for rate, burst in rates]
        self.call(self.standard.bm_mt_set_meter_rates, table, signed(handle), configured)

    def meters_entry_rates(self, table: str, handle: int) -> tuple[tuple[float, int], ...]:
        found = self.call(self.standard.bm_mt_get_meter_rates, table, signed(handle))
        return tuple((each.units_per_micros, each.burst_size) for each in found)

    def value_sets_add(self, value_set: str, value: int) -> None:
        self.call(self.standard.bm_parse_vset_add, value_set, octets(value, 16))

    def value_sets_remove(self, value_set: str, value: int) -> None:
        self.call(self.standard.bm_parse_vset_remove, value_set, octets(value, 16))

    def value_sets_values(self, value_set: str) -> list[int]:
        found = self.call(self.standard.bm_parse_vset_get, value_set)
        return [int.from_bytes(each, "big") for each in found]

    # replication and mirroring

    def replication_create_group(self, number: int) -> int:
        return int(self.call(self.multicast.bm_mc_mgrp_create, number))

    def replication_destroy_group(self, number: int) -> None:
        self.call(self.multicast.bm_mc_mgrp_destroy, number)

    def replication_create_node(self, replica: int, ports: Any, lags: Any = ()) -> int:
        return int(self.call(self.multicast.bm_mc_node_create, replica, port_map(ports), port_map(lags)))

    def replication_associate(self, number: int, handle: int) -> None:
        self.call(self.multicast.bm_mc_node_associate, number, handle)

    def replication_dissociate(self, number: int, handle: int) -> None:
        self.call(self.multicast.bm_mc_node_dissociate, number, handle)

    def replication_update_node(self, handle: int, ports: Any, lags: Any = ()) -> None:
        self.call(self.multicast.bm_mc_node_update, handle, port_map(ports), port_map(lags))

    def replication_destroy_node(self, handle: int) -> None:
        self.call(self.multicast.bm_mc_node_destroy, handle)

    def replication_set_lag(self, number: int, ports: Any) -> None:
        self.call(self.multicast.bm_mc_set_lag_membership, number, port_map(ports))

    def replication_dump(self) -> str:
        return str(self.call(self.multicast.bm_mc_get_entries))

    def replication_put_session(self, session: MirrorSession) -> None:
        from sswitch_runtime.ttypes import MirroringSessionConfig  # noqa: PLC0415, only where BMv2 is

        config = MirroringSessionConfig(port=session.port, mgid=session.group)
        self.alone(self.switch.mirroring_session_add, session.session, config)

    def replication_remove_session(self, number: int) -> None:
        self.alone(self.switch.mirroring_session_delete, number)

    def replication_session(self, number: int) -> MirrorSession:
        found = self.alone(self.switch.mirroring_session_get, number)
        return MirrorSession(number, found.port, found.mgid)

    def alone(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """What a method without a context answers."""
        return self.call(lambda _context, *rest: method(*rest), *arguments)

    def reset_state(self) -> None:
        self.standard.bm_reset_state()


def signed(handle: int) -> int:
    """A handle as a signed number of 32 bits."""
    return handle - (1 << 32) if handle >= 1 << 31 else handle


@contextmanager
def bmv2_requests(path: Path, program: Program, *arguments: str) -> Iterator[Bmv2Requests]:
    """A simple_switch that runs `program`, to be asked."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="inakit-") as folder:
        command = ["simple_switch", "--thrift-port", str(port), *arguments, str(path)]
        process = SimpleSwitchProcess("switch", command, port, Path(folder, "log"))
        try:
            process.wait_until_ready()
            yield Bmv2Requests(port, program)
        finally:
            process.stop()


def sorted_replication(text: str) -> Any:
    """Groups, nodes and LAGs, each sorted by number."""
    found = json.loads(text)
    return {name: sorted(each, key=lambda item: item.get("id", item.get("handle"))) for name, each in found.items()}
