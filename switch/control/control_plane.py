"""The control plane of one running switch, as BMv2's simple_switch has it, whatever protocol the requests come by."""

from __future__ import annotations

from inakit.switch.control.requests.ageing import AgeingControl
from inakit.switch.control.requests.arrays import ArrayControl
from inakit.switch.control.requests.calculations import CalculationControl
from inakit.switch.control.requests.learning import LearningControl
from inakit.switch.control.requests.profiles import profiles_of
from inakit.switch.control.requests.replication import ReplicationControl
from inakit.switch.control.requests.request import locked


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
