"""The services `simple_pre` and `simple_pre_lag`: multicast groups, their nodes, and link aggregation groups."""

from __future__ import annotations

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.switch.server.thrift.handlers.handler import Handler


class SimplePreLag(Handler):
    """Requests for multicast, with link aggregation groups (LAGs). They outlast programs."""

    @property
    def control(self) -> ControlPlane:
        """What carries requests out: that of the program that runs."""
        return self.switch.control

    def bm_mc_mgrp_create(self, mgid: int) -> int:
        """Add a group without nodes, and return its handle, which is its number."""
        return self.control.create_mgrp(mgid)

    def bm_mc_mgrp_destroy(self, mgid: int) -> None:
        """Remove a group."""
        self.control.destroy_mgrp(mgid)

    def bm_mc_node_create(self, rid: int, ports: str, lags: str = "") -> int:
        """Add a node that is in no group, and return its handle."""
        return self.control.create_node(rid, numbers_of(ports), numbers_of(lags))

    def bm_mc_node_associate(self, mgid: int, node: int) -> None:
        """Put a node into a group."""
        self.control.associate_node(mgid, node)

    def bm_mc_node_dissociate(self, mgid: int, node: int) -> None:
        """Take a node out of its group."""
        self.control.dissociate_node(mgid, node)

    def bm_mc_node_destroy(self, node: int) -> None:
        """Remove a node."""
        self.control.destroy_node(node)

    def bm_mc_node_update(self, node: int, ports: str, lags: str = "") -> None:
        """Give a node other ports and LAGs."""
        self.control.update_node(node, numbers_of(ports), numbers_of(lags))

    def bm_mc_set_lag_membership(self, lag: int, ports: str) -> None:
        """Give a LAG these ports."""
        self.control.set_lag(lag, numbers_of(ports))

    def bm_mc_get_entries(self) -> str:
        """All of it, as JSON."""
        return self.control.replication()


class SimplePre(SimplePreLag):
    """The same without link aggregation groups."""


def numbers_of(bits: str) -> list[int]:
    """The numbers whose characters are 1 in a map whose last character is that of number 0."""
    if bits.strip("01"):
        raise Refused(RefusalKind.MC_ERROR, f"a map of ports is written in 0 and 1, not '{bits}'")
    return [number for number, bit in enumerate(reversed(bits)) if bit == "1"]
