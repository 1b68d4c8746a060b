"""What came of a run: whether its sums are exact, and if not, why; and what befell its packets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from switch.running_switch import SwitchView
from traffic.faults.endpoint_faults import FaultyPorts
from traffic.measure.figures import Measured
from traffic.wire.packet import Event


@dataclass(frozen=True)
class Ran:
    """A run that has ended. `counts`: what befell packets; `not_reached`: events that were to happen."""

    measured: Measured
    counts: Mapping[str, int]
    not_reached: tuple[str, ...]

    @property
    def failure(self) -> str:
        """Why it does not show that sums are exact; empty where it does."""
        if not self.measured.exact:
            return "; ".join(self.measured.wrong)
        if self.not_reached:
            return f"it ended before {', '.join(self.not_reached)} could happen: choose more --fragments"
        return ""


def befallen(switches: Iterable[SwitchView], ports: FaultyPorts) -> dict[str, int]:
    """What all switches did to packets since they were started, and what befell them at hosts."""
    switches = list(switches)
    read = [switch.read_counter("InaIngress.events")[0] for switch in switches]
    counted = {event.name.lower(): sum(int(events[event]) for events in read) for event in Event}
    counted["lost"] += sum(int(switch.read_counter("InaEgress.lost")[0].sum()) for switch in switches)
    counted["doubled"] += int(ports.doubled.sum())
    return counted | {"unheard": int(ports.unheard.sum())}
