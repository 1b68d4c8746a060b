"""Arrays that statements use by index: counters, meters and registers. Each cell is an entity that is modified."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.server.p4runtime.entities.container import Container, cell, expect_id, index_in, indices
from inakit.switch.server.p4runtime.entities.direct_resources import checked_counts, counts_message, no_color_counts
from inakit.switch.server.p4runtime.entities.rates import config_message, rates_of
from inakit.switch.server.p4runtime.protocol.faults import invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.schema import CounterSchema, MeterSchema, RegisterSchema


class Counters(Container):
    """`CounterEntry`: packets and bytes."""

    member = "counter_entry"

    def scope(self, message: Message) -> int:
        """The id of the counter."""
        return int(message.counter_id)

    def modify(self, message: Message) -> None:
        """Write one cell, or all; without data, do nothing."""
        expect_id(message.counter_id, "counter")
        counter = self.schema.find(self.schema.counters, message.counter_id, "counter")
        wanted = indices(index_in(message), counter.counter.size, counter.name)
        if not message.HasField("data"):
            return
        packets, octets = checked_counts(message.data)
        if not message.HasField("index"):
            self.control.write_counters(counter.name, packets, octets)
            return
        for index in wanted:
            self.control.write_counter(counter.name, index, packets, octets)

    def read(self, message: Message) -> Iterator[Message]:
        """One cell, all of one counter, or all of all."""
        if not message.counter_id:
            found = [self.cells(counter, None) for counter in self.schema.counters.values()]
        else:
            counter = self.schema.find(self.schema.counters, message.counter_id, "counter")
            found = [self.cells(counter, index_in(message))]
        return (each for cells in found for each in cells)

    def cells(self, counter: CounterSchema, index: Message | None) -> Iterator[Message]:
        """The cells of a counter that an index selects, as they are now."""
        wanted = indices(index, counter.counter.size, counter.name)
        packets, octets = self.control.read_counters(counter.name)
        return (
            v1.CounterEntry(
                counter_id=counter.id, index=cell(each), data=counts_message(int(packets[each]), int(octets[each]))
            )
            for each in wanted
        )


class Meters(Container):
    """`MeterEntry`: rates. `written` has the configs as clients have written them, by meter and index."""

    member = "meter_entry"

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.written: dict[tuple[int, int], Message] = {}

    def scope(self, message: Message) -> int:
        """The id of the meter."""
        return int(message.meter_id)

    def modify(self, message: Message) -> None:
        """Give one cell rates, or all; without a config, let it give green to every packet."""
        expect_id(message.meter_id, "meter")
        meter = self.schema.find(self.schema.meters, message.meter_id, "meter")
        if message.HasField("counter_data"):
            raise no_color_counts()
        wanted = indices(index_in(message), meter.meter.size, meter.name)
        rates = rates_of(message.config, meter.type) if message.HasField("config") else None
        for index in wanted:
            if rates is None:
                self.control.reset_meter_rates(meter.name, index)
                self.written.pop((meter.id, index), None)
            else:
                self.control.set_meter_rates(meter.name, index, rates)
                self.written[meter.id, index] = message.config

    def read(self, message: Message) -> Iterator[Message]:
        """One cell, all of one meter, or all of all."""
        if message.HasField("counter_data"):
            raise no_color_counts()
        if not message.meter_id:
            found = [self.cells(meter, None) for meter in self.schema.meters.values()]
        else:
            meter = self.schema.find(self.schema.meters, message.meter_id, "meter")
            found = [self.cells(meter, index_in(message))]
        return (each for cells in found for each in cells)

    def cells(self, meter: MeterSchema, index: Message | None) -> Iterator[Message]:
        """The cells of a meter that an index selects, as they are now."""
        wanted = indices(index, meter.meter.size, meter.name)
        rates = {each: self.control.meter_rates(meter.name, each) for each in wanted}
        written = {each: self.written.get((meter.id, each)) for each in wanted}
        return (
            v1.MeterEntry(meter_id=meter.id, index=cell(each), config=config_message(rates[each], written[each]))
            for each in wanted
        )


class Registers(Container):
    """`RegisterEntry`: what statements keep."""

    member = "register_entry"

    def scope(self, message: Message) -> int:
        """The id of the register."""
        return int(message.register_id)

    def modify(self, message: Message) -> None:
        """Write one cell, or all."""
        expect_id(message.register_id, "register")
        register = self.schema.find(self.schema.registers, message.register_id, "register")
        wanted = indices(index_in(message), register.register.size, register.name)
        if not message.HasField("data"):
            raise invalid(f"register '{register.name}': the data to write are missing")
        (value,) = register.layout.decode(message.data, register.name)
        if not message.HasField("index"):
            self.control.write_registers(register.name, value)
            return
        for index in wanted:
            self.control.write_register(register.name, index, value)

    def read(self, message: Message) -> Iterator[Message]:
        """One cell, all of one register, or all of all."""
        if not message.register_id:
            found = [self.cells(register, None) for register in self.schema.registers.values()]
        else:
            register = self.schema.find(self.schema.registers, message.register_id, "register")
            found = [self.cells(register, index_in(message))]
        return (each for cells in found for each in cells)

    def cells(self, register: RegisterSchema, index: Message | None) -> Iterator[Message]:
        """The cells of a register that an index selects, as they are now."""
        wanted = indices(index, register.register.size, register.name)
        values = self.control.read_registers(register.name)
        return (
            v1.RegisterEntry(
                register_id=register.id, index=cell(each), data=register.layout.encode(iter([int(values[each])]))
            )
            for each in wanted
        )
