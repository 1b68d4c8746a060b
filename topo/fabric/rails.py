"""Pods of GPU servers on rails, as in DGX SuperPODs: NIC i of every server of a pod is joined to rail switch i."""

from __future__ import annotations

from inakit.topo.fabric.clos import DEFAULT_CAPACITY_BPS, Cable, require_few_links, require_positive, wire
from inakit.topo.fabric.fabric import Fabric

NVLINK_SHARE = 9
"""A GPU's NVLink over its NIC: 3.6 Tbit/s a direction over 400 Gbit/s, as in a DGX H100."""


def rail_pods(
    pods: int = 2,
    servers: int = 2,
    gpus: int = 8,
    spines: int | None = None,
    *,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    nvlink_bps: float | None = None,
) -> Fabric:
    """Each pod has `servers` of `gpus` each, and as many rail switches; every rail switch is joined to every spine.

    A GPU is a host under its server's NVLink switch, which any of its GPUs reaches the NICs through, one for each rail.
    NICs have `capacity_bps`. There are as many `spines` as servers in a pod unless told otherwise, which is
    non-blocking.
    """
    require_positive(pods=pods, servers=servers, gpus=gpus, spines=1 if spines is None else spines)
    require_few_links(pods * gpus * (2 * servers + (servers if spines is None else spines)))
    nvlink = capacity_bps * NVLINK_SHARE if nvlink_bps is None else nvlink_bps
    tops = [f"spine{i}" for i in range(1, (servers if spines is None else spines) + 1)]
    rails = {pod: [f"rail{pod}_{i}" for i in range(1, gpus + 1)] for pod in range(1, pods + 1)}
    nvswitches = [(pod, f"nvswitch{pod}_{i}") for pod in rails for i in range(1, servers + 1)]
    hosts = [f"h{i}" for i in range(1, len(nvswitches) * gpus + 1)]
    inside = [Cable(host, nvswitches[i // gpus][1], nvlink) for i, host in enumerate(hosts)]
    nics = [Cable(nvswitch, rail, capacity_bps) for pod, nvswitch in nvswitches for rail in rails[pod]]
    above = [Cable(rail, top, capacity_bps) for own in rails.values() for rail in own for top in tops]
    tiers = {name: 1 for _, name in nvswitches} | {rail: 2 for own in rails.values() for rail in own}
    name = f"rails-{pods}x{servers}x{gpus}"
    return wire(name, hosts, tiers | dict.fromkeys(tops, 3), inside + nics + above)
