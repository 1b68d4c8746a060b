"""Bandwidths of a collective as nccl-tests define them (its PERFORMANCE.md), and its bytes on each tier of links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from inakit.topo.fabric.fabric import Fabric
from inakit.traffic.measure.monitor import Monitor


def algorithm_bandwidth_bps(gradient_bytes: int, seconds: float) -> float:
    """algbw: the gradient's size over the time of an all-reduce, in bit/s."""
    return 8 * gradient_bytes / seconds


def bus_bandwidth_bps(gradient_bytes: int, seconds: float, workers: int) -> float:
    """busbw: algbw times 2 (n - 1) / n, in bit/s.

    With end hosts only it is the load of each host's link, and cannot exceed its capacity. What switches sum can.
    """
    return algorithm_bandwidth_bps(gradient_bytes, seconds) * 2 * (workers - 1) / workers


def bytes_by_tier(fabric: Fabric, monitor: Monitor) -> dict[int, int]:
    """Bytes that links carried during a run, both ways, by tier: 1 for links of hosts, one more for each level.

    Circuits go through an interconnect that is no switch of the fabric; they are a level above the switches they join.
    """
    found: defaultdict[int, int] = defaultdict(int)
    for switch, ports in monitor.watched.ports.items():
        for port, interface in ports.items():
            peer = monitor.watched.peers[switch][port]
            before, after = (seen.interfaces[interface] for seen in (monitor.before, monitor.after))
            tier = 1 + min(fabric.tiers[switch], fabric.tiers.get(peer, fabric.tiers[switch]))
            found[tier] += after.sent_bytes - before.sent_bytes
            if peer in fabric.host_names:
                found[tier] += after.received_bytes - before.received_bytes
    return dict(found)


def core_bytes(by_tier: Mapping[int, int]) -> int:
    """Bytes on the links of the highest tier, which is what crosses the core; 0 where hosts have the only links."""
    highest = max(by_tier, default=1)
    return by_tier.get(highest, 0) if highest > 1 else 0
