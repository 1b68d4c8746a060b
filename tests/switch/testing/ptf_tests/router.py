"""PTF tests of an IPv4 router whose table has a route to port 2, as a course would have them."""

from __future__ import annotations

import ptf
from ptf import testutils
from ptf.base_tests import BaseTest

NEAR, FAR, NEXT = "02:00:00:00:00:01", "02:00:00:00:00:09", "02:00:00:00:00:02"


class RouterTest(BaseTest):  # type: ignore[misc]
    """Knows the data plane."""

    def setUp(self) -> None:
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()


class Routed(RouterTest):
    """A packet with a route leaves by its port."""

    def runTest(self) -> None:  # noqa: N802, PTF calls it so
        sent = testutils.simple_tcp_packet(eth_dst=NEAR, eth_src=FAR, ip_dst="10.0.1.9", ip_ttl=64)
        expected = testutils.simple_tcp_packet(eth_dst=NEXT, eth_src=NEAR, ip_dst="10.0.1.9", ip_ttl=63)
        testutils.send_packet(self, 1, sent)
        testutils.verify_packets(self, expected, [2])


class Dropped(RouterTest):
    """A packet without a route leaves nowhere."""

    def runTest(self) -> None:  # noqa: N802, PTF calls it so
        testutils.send_packet(self, 1, testutils.simple_tcp_packet(ip_dst="11.0.0.1"))
        testutils.verify_no_other_packets(self)


class Wrong(RouterTest):
    """Expects the packet at another port: it must fail."""

    def runTest(self) -> None:  # noqa: N802, PTF calls it so
        sent = testutils.simple_tcp_packet(eth_dst=NEAR, eth_src=FAR, ip_dst="10.0.1.9", ip_ttl=64)
        testutils.send_packet(self, 1, sent)
        testutils.verify_packets(self, sent, [3])
