"""How much switches aggregated in a run, from what their programs counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inakit.planner.core.evaluate import SwitchAggregation
from inakit.traffic.measure.measured import Measured
from inakit.traffic.wire.packet_format import Event


def measured_aggregation(events: Mapping[int, int]) -> SwitchAggregation:
    """The gradient packets of a whole run, from the counts of a switch's `Event`s.

    Results leave a switch by multicast and gradients do not: what it sent by unicast is gradients.
    """
    sent = events[Event.SENT_UNICAST]
    return SwitchAggregation(sent + events[Event.ABSORBED] + events[Event.DUPLICATE], sent)


def gradient_bytes_on_links(measured: Measured, switches: Iterable[SwitchAggregation], wire_bytes: int) -> int:
    """The volume of gradients on all links (InArt's network throughput): what workers and switches sent, in bytes.

    `wire_bytes`: the size of a whole frame.
    """
    by_workers = sum(sum(i.sent_bytes.values()) for i in measured.iterations)
    return by_workers + wire_bytes * sum(switch.packets_out for switch in switches)
