"""An interference that installs other entries than those of the plan."""

from __future__ import annotations

from inakit.experiments.run.interference import Interference, Scene
from inakit.experiments.run.record import InterferenceRecord
from inakit.planner.prepared import Prepared
from inakit.switch.entries import Entries
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.measure.monitor import Monitor


class OtherEntries(Interference):
    def __init__(self, chosen: Entries) -> None:
        self.chosen = chosen

    def entries(self, prepared: Prepared, installed: Entries) -> Entries:  # noqa: ARG002
        return self.chosen

    def excuses(self, scene: Scene) -> Excuses:  # noqa: ARG002
        return Excuses()

    def as_record(self, monitor: Monitor) -> InterferenceRecord:  # noqa: ARG002
        return InterferenceRecord(kind="other entries", said=[])
