"""Mininet's host, link and interface over netlink instead of one shell command per step.

They have the interface of Mininet's classes; parameters that are not handled here go to Mininet's TCIntf.
"""

from __future__ import annotations

import re
from typing import Any

from mininet.link import TCIntf, TCLink
from mininet.node import Host

from inakit.topo.errors import MachineError
from inakit.topo.live.netlink import (
    End,
    create_pair,
    index_of,
    inside,
    let_pass,
    remove_shaping,
    set_up,
    shape,
    silence,
)

DELAY_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


class FabricHost(Host):  # type: ignore[misc]
    """A host whose interface already has its addresses when Mininet would configure it."""

    def config(self, **_params: Any) -> dict[str, Any]:
        """Do nothing: its link has already set the interface's addresses."""
        return {}


class FabricIntf(TCIntf):  # type: ignore[misc]
    """A TCIntf configured over netlink: bandwidth, delay, queue, address, state.

    `max_queue_size` is in packets and applies with and without a delay.
    """

    def config(
        self,
        *,
        bw: float | None = None,
        delay: str | None = None,
        max_queue_size: int | None = None,
        ip: str | None = None,
        up: bool = True,
        **params: Any,
    ) -> dict[str, Any]:
        """Set up the interface with Mininet's parameters: `bw` in Mbit/s, `delay` as '1ms', `ip` as 10.0.0.1/8."""
        with inside(namespace_pid(self.node)) as netlink:
            index = index_of(self.name)
            silence(self.name)
            if bw is not None:
                remove_shaping(netlink, index)
                queue_packets = max_queue_size or netlink.get_links(index)[0].get_attr("IFLA_TXQLEN")
                self.shaping = bw * 1e6, queue_packets, seconds(delay)
                shape(netlink, index, *self.shaping)
            if ip is not None:
                self.ip, self.prefixLen = ip.split("/")
                netlink.addr("replace", index=index, address=self.ip, prefixlen=int(self.prefixLen))
            if up:
                set_up(netlink, index)
        return super().config(up=None, **params) if any(params.values()) else {}

    def let_pass(self, *, up: bool) -> None:
        """Send packets again, or, with `up` false, drop all packets."""
        with inside(namespace_pid(self.node)) as netlink:
            let_pass(netlink, index_of(self.name), *self.shaping, up=up)

    def delete(self) -> None:
        """Forget the interface; the run's ledger removes the kernel's."""
        self.node.delIntf(self)
        self.link = None


class FabricLink(TCLink):  # type: ignore[misc]
    """A TCLink whose veth pair is created over netlink, in a device group of its run."""

    def __init__(self, *nodes: Any, group: int, **params: Any) -> None:
        self.group = group
        super().__init__(*nodes, cls1=FabricIntf, cls2=FabricIntf, **params)

    def makeIntfPair(self, *params: Any, **_options: Any) -> None:  # noqa: N802, Mininet's name
        """Create the veth pair; the parameters are two names, two MAC addresses, two nodes."""
        name_a, name_b, mac_a, mac_b, node_a, node_b = params
        create_pair(End(name_a, mac_a, namespace_pid(node_a)), End(name_b, mac_b, namespace_pid(node_b)), self.group)


def namespace_pid(node: Any) -> int | None:
    """The pid of a process in the node's network namespace; None for the root namespace."""
    return node.pid if node.inNamespace else None


def seconds(delay: str | None) -> float:
    """Parse '1ms' into 0.001; None is 0."""
    if delay is None:
        return 0.0
    parsed = re.fullmatch(r"([0-9.e+-]+)(us|ms|s)", delay)
    if not parsed:
        raise MachineError(f"link delay '{delay}': a number and us, ms or s is expected")
    return float(parsed[1]) * DELAY_UNITS[parsed[2]]
