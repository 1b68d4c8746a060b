"""Meters: the rates of cells that statements use (indirect), or of table entries (direct)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from inakit.switch.control.codecs import (
    ArrayCodec,
    ArraySchema,
    ById,
    Call,
    Code,
    Command,
    Fault,
    Fields,
    Message,
    ReadArgument,
    invalid,
    signed,
    unsigned,
)
from inakit.switch.control.data_plane import Rates
from inakit.switch.control.requests import Core, Entities, RefusalKind, Refused, array_of, locked
from inakit.switch.control.tables import HeldEntry, HeldTable, Tables
from inakit.switch.entries import MeterRates
from inakit.switch.program.program import Meter, Program


class Meters(Entities):
    """Requests for the rates of meters. A cell starts without rates: its packets are green."""

    def __init__(self, core: Core, tables: Tables) -> None:
        super().__init__(core)
        self.tables = tables

    def meter(self, name: str, index: int = 0) -> Meter:
        """The meter of this name, direct or not; a refusal if it does not exist or has no cell at `index`."""
        meters = self.program.meters | self.program.direct_meters
        kinds = RefusalKind.INVALID_METER_NAME, RefusalKind.INVALID_METER_INDEX
        return array_of("meter", meters, name, index, *kinds)

    @locked
    def set_rates(self, meter: str, index: int | None, rates: Rates) -> None:
        """Set the rates of one cell of a meter, or of all (`index` None), and fill the buckets."""
        found = self.meter(meter, index or 0)
        check_rates(found, rates, RefusalKind.BAD_RATES_LIST, RefusalKind.INVALID_INFO_RATE_VALUE)
        self.give(meter, index, rates)

    @locked
    def rates(self, meter: str, index: int) -> Rates:
        """The rates of one cell of a meter."""
        self.meter(meter, index)
        table = self.metered_by(meter)
        return self.data_plane.read_rates(meter, index) if table is None else table.rates_at(index)

    @locked
    def reset(self, meter: str, index: int | None) -> None:
        """Remove the rates of one cell of a meter, or of all (`index` None): every packet becomes green."""
        self.meter(meter, index or 0)
        self.give(meter, index, ())

    def give(self, meter: str, index: int | None, rates: Rates) -> None:
        """Set the rates of one cell, or of all. Cells of a direct meter keep them for later entries."""
        table = self.metered_by(meter)
        if table is None or index is None:
            self.data_plane.set_rates(MeterRates(meter, index, rates))
        elif index in table.entries:
            self.data_plane.set_entry_rates(table.entries[index].entry, rates)
        if table is not None:
            table.set_rates(index, rates)

    def metered_by(self, meter: str) -> HeldTable | None:
        """The table whose entries a direct meter measures; None for any other meter."""
        return next((table for table in self.tables.tables.values() if table.table.meter == meter), None)

    def metered(self, table: str, handle: int) -> tuple[HeldTable, HeldEntry]:
        """The table of this name, which must have a direct meter, and its entry with this handle."""
        found = self.tables.table(table)
        if found.table.meter is None:
            raise Refused(RefusalKind.METERS_DISABLED, f"table '{table}' has no direct meter")
        return found, found.at_any_version(handle)

    @locked
    def entry_rates(self, table: str, handle: int) -> Rates:
        """The rates of an entry."""
        return self.data_plane.entry_rates(self.metered(table, handle)[1].entry)

    @locked
    def set_entry_rates(self, table: str, handle: int, rates: Rates) -> None:
        """Set the rates of an entry, and fill its buckets."""
        found, held = self.metered(table, handle)
        meter = self.program.direct_meters[found.table.meter or ""]
        check_rates(meter, rates, RefusalKind.TABLE_ERROR, RefusalKind.TABLE_ERROR)
        self.data_plane.set_entry_rates(held.entry, rates)
        found.set_rates(held.index, rates)

    @locked
    def reset_entry_rates(self, table: str, handle: int) -> None:
        """Remove the rates of an entry: its packets are green."""
        found, held = self.metered(table, handle)
        self.data_plane.set_entry_rates(held.entry, ())
        found.set_rates(held.index, ())


def check_rates(meter: Meter, rates: Rates, wrong_number: RefusalKind, not_ascending: RefusalKind) -> None:
    """Refuse a wrong number of rates, and rates that are not ascending."""
    if len(rates) != meter.rates:
        raise Refused(wrong_number, f"meter '{meter.name}' takes {meter.rates} rates, not {len(rates)}")
    for (low, _), (high, _) in pairwise(rates):
        if high < low:
            raise Refused(not_ascending, f"meter '{meter.name}' takes the lowest rate first, not {high} after {low}")


# simple_switch_CLI


def set_rates_of_cell(meters: Meters, meter: str, index: int, rates: Rates) -> None:
    """Set the rates of one cell; for a direct meter, those of the entry with this handle."""
    table = meters.metered_by(meter)
    if table is None:
        meters.set_rates(meter, index, rates)
    else:
        meters.set_entry_rates(table.table.name, index, rates)


COMMANDS = {
    "meter_set_rates": Command("METER INDEX RATE:BURST...", set_rates_of_cell),
    "meter_array_set_rates": Command("METER RATE:BURST...", Meters.set_rates, {"index": None}),
}


# Thrift


def thrift_rates(types: Any, rates: Rates) -> list[Any]:
    return [types.Rate(rate, signed(burst)) for rate, burst in rates]


CALLS = {
    "bm_meter_array_set_rates": Call(Meters.set_rates, {"index": None}),
    "bm_meter_set_rates": Call(Meters.set_rates),
    "bm_meter_get_rates": Call(Meters.rates, answer=thrift_rates),
    "bm_mt_set_meter_rates": Call(Meters.set_entry_rates),
    "bm_mt_get_meter_rates": Call(Meters.entry_rates, answer=thrift_rates),
}

ARGUMENTS: dict[str, ReadArgument] = {
    "rates": lambda rates, *_: {
        "rates": tuple((each.units_per_micros or 0.0, unsigned(each.burst_size)) for each in rates)
    }
}


# P4Runtime


PER_MICROSECOND = 1e6
TWO_RATE_THREE_COLOR = 0


@dataclass(frozen=True)
class MeterSchema(ArraySchema):
    """A meter, direct or not; `type` is the number of a `MeterSpec.Type`."""

    type: int


def read_meter(each: Message, meter: Meter) -> MeterSchema:
    return MeterSchema(each.preamble.id, each.preamble.name, meter.size, each.spec.type)


def read_meters(p4info: Message, program: Program) -> ById[MeterSchema]:
    """The indirect meters of a P4Info."""
    return ById("meter", p4info.meters, program.meters, read_meter)


def read_direct_meters(p4info: Message, program: Program) -> dict[int, MeterSchema]:
    """The direct meters of a P4Info by their tables' ids, without those that the compiler has removed."""
    known = program.direct_meters
    described = (each for each in p4info.direct_meters if each.preamble.name in known)
    return {each.direct_table_id: read_meter(each, known[each.preamble.name]) for each in described}


def rates_of(config: Message, kind: int) -> Rates:
    """The two rates of a `MeterConfig` for a meter of type `kind`; a fault for values that the type does not allow."""
    numbers = (config.cir, config.cburst, config.pir, config.pburst, config.eburst)
    shown = " ".join(str(config).split()) or "0"
    if min(numbers) < 0 or config.cir > config.pir:
        raise invalid(f"a meter has rates and bursts of 0 or more, and cir is at most pir: {shown}")
    if kind == TWO_RATE_THREE_COLOR and config.eburst:
        raise invalid(f"a meter of two rates has no eburst: {shown}")
    if kind != TWO_RATE_THREE_COLOR and (config.cir, config.cburst) != (config.pir, config.pburst):
        raise invalid(f"a meter of a single rate has pir and pburst as cir and cburst: {shown}")
    if config.eburst:
        raise Fault(Code.UNIMPLEMENTED, f"BMv2's meters have no excess burst: {shown}")
    return (config.cir / PER_MICROSECOND, config.cburst), (config.pir / PER_MICROSECOND, config.pburst)


def config_fields(rates: Rates, written: Message | None) -> Fields:
    """The `MeterConfig` of rates: the client's `written` one if it gives the same rates; nothing without rates."""
    if not rates:
        return {}
    if written is not None and rates_of(written, TWO_RATE_THREE_COLOR) == tuple(rates):
        return {"config": written}
    (cir, cburst), (pir, pburst) = ((round(rate * PER_MICROSECOND), burst) for rate, burst in (rates[0], rates[-1]))
    return {"config": {"cir": cir, "cburst": cburst, "pir": pir, "pburst": pburst}}


def check_no_color_counts(message: Message, place: str = "counter_data") -> None:
    """Raise a fault if a message has counts by colour."""
    if message.HasField(place):
        why = "meters do not count the packets of each colour: leave the counter data out"
        raise Fault(Code.UNIMPLEMENTED, why)


class MeterCodec(ArrayCodec[MeterSchema]):
    """`MeterEntry`: a cell of an indirect meter. `written` holds the configs of clients, by meter and index."""

    member, id_field = "meter_entry", "meter_id"

    def __init__(self, arrays: ById[MeterSchema], meters: Meters) -> None:
        super().__init__(arrays)
        self.meters = meters
        self.written: dict[tuple[int, int], Message | None] = {}

    def modify(self, message: Message) -> None:
        check_no_color_counts(message)
        super().modify(message)

    def value(self, array: MeterSchema, message: Message) -> tuple[Rates, Message] | None:
        return (rates_of(message.config, array.type), message.config) if message.HasField("config") else None

    def put(self, array: MeterSchema, index: int | None, value: tuple[Rates, Message] | None) -> None:
        """Set the rates of one cell, or of all; without a config, remove them."""
        if value is None:
            self.meters.reset(array.name, index)
        else:
            self.meters.set_rates(array.name, index, value[0])
        for each in range(array.size) if index is None else (index,):
            self.written[array.id, each] = None if value is None else value[1]

    def read(self, message: Message) -> Iterator[Fields]:
        check_no_color_counts(message)
        return super().read(message)

    def cells(self, array: MeterSchema, indices: Sequence[int]) -> Iterator[Fields]:
        rates = [self.meters.rates(array.name, each) for each in indices]
        written = [self.written.get((array.id, each)) for each in indices]
        return (config_fields(*each) for each in zip(rates, written, strict=True))
