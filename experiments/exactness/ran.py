"""What came of a run: whether its sums are exact, and if not, which; and what befell its packets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from switch.target import SwitchView
from traffic.faults import FaultyPorts
from traffic.measure import Measured
from traffic.packet import Event
from traffic.reliable import Loop


@dataclass(frozen=True)
class Ran:
    """A run that has ended. `counts`: what befell packets; `not_reached`: events that were to happen."""

    measured: Measured
    loop: Loop
    counts: Mapping[str, int]
    not_reached: tuple[str, ...]

    @property
    def failure(self) -> str:
        """Why it does not show that sums are exact; empty where it does."""
        if not self.measured.exact:
            return "; ".join(wrong_sums(self.loop))
        if self.not_reached:
            return f"it ended before {', '.join(self.not_reached)} could happen: choose more --fragments"
        return ""


def wrong_sums(loop: Loop) -> Iterator[str]:
    """Which workers hold wrong sums, and of what."""
    memory, layout = loop.memory, loop.layout
    for stream, (host, tree) in enumerate(zip(layout.streams.host, layout.streams.tree, strict=True)):
        part = layout.parts[tree]
        differs = memory.sums(memory.rows(stream)) != memory.cut(memory.expected[part.job_index], tree)
        wrong = np.flatnonzero(differs.any(axis=1))
        if wrong.size:
            yield (
                f"worker {layout.hosts[host].name} holds {wrong.size} wrong sums of tree {part.tree.number}, "
                f"the first that of fragment {wrong[0]}"
            )


def befallen(switches: Iterable[SwitchView], ports: FaultyPorts) -> dict[str, int]:
    """What all switches did to packets since they were started, and what befell them at hosts."""
    switches = list(switches)
    read = [switch.read_counter("InaIngress.events")[0] for switch in switches]
    counted = {event.name.lower(): sum(int(events[event]) for events in read) for event in Event}
    counted["lost"] += sum(int(switch.read_counter("InaEgress.lost")[0].sum()) for switch in switches)
    counted["doubled"] += int(ports.doubled.sum())
    return counted | {"unheard": int(ports.unheard.sum())}
