"""Calculations of hashes whose parameters can change: the algorithms `crc16_custom` and `crc32_custom`."""

from __future__ import annotations

from typing import Any

from inakit.switch.control.codecs import Call, Command, ReadArgument, unsigned
from inakit.switch.control.requests import Core, Entities, RefusalKind, Refused, locked, unknown
from inakit.switch.program.program import CRC_CUSTOM, CrcParameters


class Calculations(Entities):
    """Requests for calculations; `crcs` holds the parameters that requests have set."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.crcs: dict[str, CrcParameters] = {}

    @locked
    def set_crc(self, calculation: str, bits: int, crc: CrcParameters) -> None:
        """Set the CRC parameters of a calculation that uses the custom algorithm of `bits` bits."""
        found = self.program.calculations.get(calculation)
        if found is None:
            known = self.program.calculations
            raise unknown("calculation", calculation, known, RefusalKind.INVALID_CALCULATION_NAME)
        if CRC_CUSTOM.get(found.algorithm) != bits:
            why = f"calculation '{calculation}' has the algorithm '{found.algorithm}', not crc{bits}_custom"
            raise Refused(RefusalKind.WRONG_TYPE_CALCULATION, why)
        self.data_plane.set_crc(calculation, crc)
        self.crcs[calculation] = crc

    def set_toeplitz_key(self, calculation: str, **_: object) -> None:
        """Refuse: Toeplitz hashes are not supported."""
        known = calculation in self.program.calculations
        kind = RefusalKind.WRONG_TYPE_CALCULATION if known else RefusalKind.INVALID_CALCULATION_NAME
        raise Refused(kind, f"there is no Toeplitz hash '{calculation}'")


def set_crc_of_words(calculations: Calculations, bits: int, **given: Any) -> None:
    calculations.set_crc(given.pop("calculation"), bits, CrcParameters(*given.values()))


WORDS = "CALCULATION POLYNOMIAL FIRST LAST REFLECT_DATA REFLECT_RESULT"
COMMANDS = {
    "set_crc16_parameters": Command(WORDS, set_crc_of_words, {"bits": 16}),
    "set_crc32_parameters": Command(WORDS, set_crc_of_words, {"bits": 32}),
}


def read_crc(crc: Any, bits: int) -> dict[str, object]:
    """The CRC parameters in a Thrift message."""
    numbers = (crc.polynomial, crc.initial_remainder, crc.final_xor_value)
    polynomial, first, last = (unsigned(number, bits) for number in numbers)
    reflected = bool(crc.data_reflected), bool(crc.remainder_reflected)
    return {"bits": bits, "crc": CrcParameters(polynomial, first, last, *reflected)}


ARGUMENTS: dict[str, ReadArgument] = {
    "crc16": lambda crc, *_: read_crc(crc, 16),
    "crc32": lambda crc, *_: read_crc(crc, 32),
}

CALLS = {
    "bm_set_crc16_custom_parameters": Call(Calculations.set_crc),
    "bm_set_crc32_custom_parameters": Call(Calculations.set_crc),
    "bm_set_toeplitz_hash_key": Call(Calculations.set_toeplitz_key),
}
