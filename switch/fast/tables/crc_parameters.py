"""The parameters of hash functions that the control plane sets, while packets are hashed."""

from __future__ import annotations

import numpy as np

from inakit.switch.fast.layout.crc_parameters import CHOSEN, PARAMETERS, crc_array
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import COPIES
from inakit.switch.fast.tables.rows import Memory
from inakit.switch.program.expressions import CRC_CUSTOM, CrcParameters


def write_crc(layout: ProgramLayout, memory: Memory, calculation: str, parameters: CrcParameters) -> None:
    """Let a calculation go on with these parameters: packets read one copy of them while the other is written."""
    bits = CRC_CUSTOM[layout.program.calculations[calculation].algorithm]
    chosen = layout.view(memory, CHOSEN)[calculation]
    other = int(chosen[0]) % COPIES + 1
    place = layout.view(memory, crc_array(calculation))[other % COPIES : other % COPIES + 1]
    place.view(np.uint8)[:] = np.frombuffer(packed(parameters, bits), np.uint8)
    chosen[0] = other


def packed(parameters: CrcParameters, bits: int) -> bytes:
    """The parameters of a check of so many bits, as `crc_custom` of hashes.h takes them."""
    flips = (not parameters.reflect_data, not parameters.reflect_result)
    return PARAMETERS.pack(
        (reversed_bits(parameters.polynomial, bits), reversed_bits(parameters.first, bits), parameters.last, *flips)
    )


def reversed_bits(value: int, bits: int) -> int:
    """`value` with its lowest `bits` bits in the opposite order."""
    return int(f"{value:0{bits}b}"[::-1], 2)
