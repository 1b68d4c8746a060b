"""The control plane of one running switch, as BMv2's simple_switch has it, whatever protocol the requests come by."""

from __future__ import annotations

from inakit.switch.control.array_requests import ArrayControl
from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.learning_and_ageing import AgeingControl, LearningControl
from inakit.switch.control.profile_requests import profiles_of
from inakit.switch.control.replication_requests import ReplicationControl
from inakit.switch.control.requests import Control, RefusalKind, Refused, locked
from inakit.switch.program.expressions import CRC_CUSTOM, CrcParameters


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


class ControlPlane(ArrayControl, AgeingControl, ReplicationControl, LearningControl, CalculationControl):
    """Requests to one switch, carried out one after the other; `Refused` says why one is not.

    Handles are those that simple_switch gives for the same requests.
    """

    @locked
    def reset_state(self) -> None:
        """Let the switch be as just started: no entries but those of the program, no groups, zeros.

        Mirror sessions stay, as in BMv2.
        """
        sessions = self.sessions
        self.data_plane.reset()
        self.profiles = profiles_of(self.program)
        for table in self.tables.values():
            table.reset()
        self.value_sets = {name: {} for name in self.program.value_sets}
        self.forget_replication()
        self.forget_samples()
        for session in sessions.values():
            self.put_session(session)
