"""What an entry brings with it beside its action: counts, rates, an idle timeout and what its controller notes."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.data_plane import Rates
from inakit.switch.server.p4runtime.messages import Code, Fault, Message, invalid, v1
from inakit.switch.server.p4runtime.schema import Key, TableSchema

PER_MICROSECOND = 1e6
TWO_RATE_THREE_COLOR = 0


def rates_of(config: Message, kind: int) -> Rates:
    """The two rates of a config for a meter of type `kind`; a fault for what the type does not take."""
    numbers = (config.cir, config.cburst, config.pir, config.pburst, config.eburst)
    if min(numbers) < 0 or config.cir > config.pir:
        raise invalid(f"a meter has rates and bursts of 0 or more, and cir is at most pir: {shown(config)}")
    if kind == TWO_RATE_THREE_COLOR and config.eburst:
        raise invalid(f"a meter of two rates has no eburst: {shown(config)}")
    if kind != TWO_RATE_THREE_COLOR and (config.cir, config.cburst) != (config.pir, config.pburst):
        raise invalid(f"a meter of a single rate has pir and pburst as cir and cburst: {shown(config)}")
    if config.eburst:
        raise Fault(Code.UNIMPLEMENTED, f"BMv2's meters have no excess burst: {shown(config)}")
    return (config.cir / PER_MICROSECOND, config.cburst), (config.pir / PER_MICROSECOND, config.pburst)


def shown(config: Message) -> str:
    """A config in one line."""
    return " ".join(str(config).split()) or "0"


def config_message(rates: Rates, written: Message | None) -> Message | None:
    """The config of rates, which is the one that a client has `written` if that gives them; None without rates."""
    if not rates:
        return None
    if written is not None and rates_of(written, TWO_RATE_THREE_COLOR) == tuple(rates):
        return written
    (cir, cburst), (pir, pburst) = rates[0], rates[-1]
    return v1.MeterConfig(cir=per_second(cir), cburst=cburst, pir=per_second(pir), pburst=pburst)


def per_second(rate: float) -> int:
    """A rate in units per second."""
    return round(rate * PER_MICROSECOND)


@dataclass
class Note:
    """What a controller has noted on an entry. `told_ns` is how long it was idle when its controller was last told."""

    key: Key
    priority: int | None
    controller_metadata: int
    metadata: bytes
    idle_timeout_ns: int
    meter_config: Message | None
    told_ns: int = 0


def note_of(key: Key, priority: int | None, message: Message) -> Note | None:
    """What a message notes on its entry; None if it is nothing."""
    config = message.meter_config if message.HasField("meter_config") else None
    if not (message.controller_metadata or message.metadata or message.idle_timeout_ns or config):
        return None
    return Note(key, priority, message.controller_metadata, message.metadata, message.idle_timeout_ns, config)


def check_resources(table: TableSchema, message: Message) -> None:
    """Raise a fault if an update brings with it what the table does not have."""
    where = f"table '{table.name}'"
    if message.is_const:
        raise invalid(f"{where}: is_const is only for reading")
    if message.HasField("counter_data") and not table.has_counter:
        raise invalid(f"{where} has no direct counter")
    if message.HasField("meter_config"):
        rates_of(message.meter_config, expect_meter(table))
    if message.HasField("meter_counter_data"):
        expect_meter(table)
        raise no_color_counts()
    if message.idle_timeout_ns < 0:
        raise invalid(f"{where}: an idle timeout of {message.idle_timeout_ns} ns is negative")
    if (message.idle_timeout_ns or message.HasField("time_since_last_hit")) and not table.idle_timeout:
        raise invalid(f"{where} has no `support_timeout` in the program: its entries have no idle timeout")


def expect_meter(table: TableSchema) -> int:
    """The type of the table's direct meter; a fault if it has none."""
    if table.meter is None:
        raise invalid(f"table '{table.name}' has no direct meter")
    return table.meter.type


def no_color_counts() -> Fault:
    """The fault of asking for counts by colour."""
    return Fault(Code.UNIMPLEMENTED, "meters do not count the packets of each colour: leave the counter data out")


def bring(control: ControlPlane, table: TableSchema, handle: int, message: Message) -> None:
    if message.HasField("counter_data"):
        write_counts(control, table, handle, message.counter_data)
    bring_rates(control, table, handle, message)
    if message.idle_timeout_ns:
        control.set_timeout(table.name, handle, milliseconds(message.idle_timeout_ns))


def bring_anew(control: ControlPlane, table: TableSchema, handle: int, message: Message, before: Note | None) -> None:
    """Give an entry what a MODIFY brings with it; a meter that is left out is reset, a counter stays."""
    if message.HasField("counter_data"):
        write_counts(control, table, handle, message.counter_data)
    bring_rates(control, table, handle, message)
    if message.idle_timeout_ns != (before.idle_timeout_ns if before else 0):
        control.set_timeout(table.name, handle, milliseconds(message.idle_timeout_ns))


def bring_rates(control: ControlPlane, table: TableSchema, handle: int, message: Message) -> None:
    """Give an entry the rates of its message; none, if it has none, whatever its meter's cell had before."""
    if message.HasField("meter_config"):
        control.set_entry_meter(table.name, handle, rates_of(message.meter_config, expect_meter(table)))
    elif table.meter is not None:
        control.reset_entry_meter(table.name, handle)


def write_counts(control: ControlPlane, table: TableSchema, handle: int, data: Message) -> None:
    control.write_entry_counter(table.name, handle, *checked_counts(data))


def checked_counts(data: Message) -> tuple[int, int]:
    """Packets and bytes of a `CounterData`; a fault if one is negative."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid(f"a counter has {data.packet_count} packets and {data.byte_count} bytes: neither is negative")
    return data.packet_count, data.byte_count


def counts_message(packets: int, octets: int) -> Message:
    """The `CounterData` of packets and bytes; counts of 64 bits lose the highest."""
    most = (1 << 63) - 1
    return v1.CounterData(packet_count=packets & most, byte_count=octets & most)


def add_resources(
    control: ControlPlane, table: TableSchema, handle: int, wanted: Message, note: Note | None, entry: Message
) -> None:
    """Put into the message of an entry those of its resources that the request `wanted` has."""
    if table.has_counter and wanted.HasField("counter_data"):
        entry.counter_data.CopyFrom(counts_message(*control.entry_counter(table.name, handle)))
    if table.meter is not None and wanted.HasField("meter_config"):
        config = meter_config(control, table, handle, note)
        if config is not None:
            entry.meter_config.CopyFrom(config)
    if wanted.HasField("time_since_last_hit"):
        idle_s = control.entry(table.name, handle).idle_s
        entry.time_since_last_hit.elapsed_ns = int((idle_s or 0) * 1e9)


def meter_config(control: ControlPlane, table: TableSchema, handle: int, note: Note | None) -> Message | None:
    """The rates of an entry as its client has written them; None if every packet is green."""
    noted = note.meter_config if note else None
    return config_message(control.entry_meter(table.name, handle), noted)


def milliseconds(nanoseconds: int) -> int:
    """A time in milliseconds, rounded up."""
    return -(-nanoseconds // 1_000_000)
