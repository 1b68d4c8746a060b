"""Registers: arrays of numbers that statements read and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.codecs import (
    ArrayCodec,
    ArraySchema,
    ById,
    Call,
    Command,
    Fields,
    Message,
    ReadArgument,
    invalid,
    unsigned,
)
from inakit.switch.control.p4data import Layout, layout_of
from inakit.switch.control.requests import Entities, RefusalKind, Refused, array_of, locked
from inakit.switch.program.program import Program, Register


class Registers(Entities):
    """Requests for registers. Values are cut to the bits of a cell."""

    def register(self, name: str, index: int = 0) -> Register:
        """The register of this name; a refusal if it does not exist or has no cell at `index`."""
        kinds = RefusalKind.INVALID_REGISTER_NAME, RefusalKind.INVALID_REGISTER_INDEX
        return array_of("register", self.program.registers, name, index, *kinds)

    @locked
    def read(self, register: str, index: int) -> int:
        """One cell."""
        return int(self.data_plane.read_register(self.register(register, index).name)[index])

    @locked
    def read_all(self, register: str) -> NDArray[np.uint64]:
        """All cells, as Python integers if they have more than 64 bits."""
        return self.data_plane.read_register(self.register(register).name)

    @locked
    def write(self, register: str, index: int | None, value: int) -> None:
        """Write one cell, or all (`index` None)."""
        self.put(self.register(register, index or 0), index, value)

    @locked
    def write_range(self, register: str, first: int, after: int, value: int) -> None:
        """Write the cells from `first` up to, but not including, `after`."""
        found = self.register(register)
        if not 0 <= first <= after <= found.size:
            why = f"register '{register}' has no cells {first} to {after}: it has {found.size}"
            raise Refused(RefusalKind.INVALID_REGISTER_INDEX, why)
        for index in range(first, after):
            self.put(found, index, value)

    def put(self, register: Register, index: int | None, value: int) -> None:
        self.data_plane.write_register(register.name, index, unsigned(value, register.bits))


RESET: dict[str, object] = {"index": None, "value": 0}

COMMANDS = {
    "register_write": Command("REGISTER INDEX VALUE", Registers.write),
    "register_reset": Command("REGISTER", Registers.write, RESET),
}


GREATEST_I64 = (1 << 63) - 1
"""BMv2's Thrift services return this number for all greater values."""

CALLS = {
    "bm_register_read": Call(Registers.read, answer=lambda _, value: min(value, GREATEST_I64)),
    "bm_register_read_all": Call(
        Registers.read_all, answer=lambda _, values: [min(int(value), GREATEST_I64) for value in values]
    ),
    "bm_register_write": Call(Registers.write),
    "bm_register_write_range": Call(Registers.write_range),
    "bm_register_reset": Call(Registers.write, RESET),
}

ARGUMENTS: dict[str, ReadArgument] = {"name": lambda name, *_: {"register": name}}


# P4Runtime


@dataclass(frozen=True)
class RegisterSchema(ArraySchema):
    """A register, and the type of its cells."""

    layout: Layout


def read_registers(p4info: Message, program: Program) -> ById[RegisterSchema]:
    """The registers of a P4Info."""

    def read(each: Message, register: Register) -> RegisterSchema:
        layout = layout_of(each.type_spec, p4info.type_info)
        return RegisterSchema(each.preamble.id, each.preamble.name, register.size, layout)

    return ById("register", p4info.registers, program.registers, read)


class RegisterCodec(ArrayCodec[RegisterSchema]):
    """`RegisterEntry`: a cell of a register."""

    member, id_field = "register_entry", "register_id"

    def __init__(self, arrays: ById[RegisterSchema], registers: Registers) -> None:
        super().__init__(arrays)
        self.registers = registers

    def value(self, array: RegisterSchema, message: Message) -> int:
        if not message.HasField("data"):
            raise invalid(f"register '{array.name}': the data to write are missing")
        (value,) = array.layout.decode(message.data, array.name)
        return value

    def put(self, array: RegisterSchema, index: int | None, value: int) -> None:
        self.registers.write(array.name, index, value)

    def cells(self, array: RegisterSchema, indices: Sequence[int]) -> Iterator[Fields]:
        values = self.registers.read_all(array.name)
        return ({"data": array.layout.encode(iter([int(values[each])]))} for each in indices)
