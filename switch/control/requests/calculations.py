"""Requests for hash functions whose parameters the control plane sets."""

from __future__ import annotations

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.switch.control.requests.request import Control, locked
from inakit.switch.program.calculations import CRC_CUSTOM, CrcParameters


class CalculationControl(Control):
    """Requests for calculations with the algorithms `crc16_custom` and `crc32_custom`."""

    def __init__(self, data_plane: DataPlane) -> None:
        super().__init__(data_plane)
        self.crcs: dict[str, CrcParameters] = {}

    @locked
    def set_crc(self, calculation: str, bits: int, parameters: CrcParameters) -> None:
        """Let a calculation of the custom algorithm of this width go on with other parameters."""
        found = self.program.calculations.get(calculation)
        if found is None:
            known = ", ".join(self.program.calculations) or "none"
            raise Refused(RefusalKind.INVALID_CALCULATION_NAME, f"no calculation '{calculation}': there are {known}")
        if CRC_CUSTOM.get(found.algorithm) != bits:
            why = f"calculation '{calculation}' has the algorithm '{found.algorithm}', not crc{bits}_custom"
            raise Refused(RefusalKind.WRONG_TYPE_CALCULATION, why)
        self.data_plane.set_crc(calculation, parameters)
        self.crcs[calculation] = parameters
