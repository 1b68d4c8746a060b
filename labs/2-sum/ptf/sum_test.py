"""The tests of lab 2 in the form of p4lang's PTF.

inakit switch ptf ptf --program sum.json --commands ptf/commands.txt
"""

import struct

import ptf
from ptf.base_tests import BaseTest
from ptf.mask import Mask
from ptf.testutils import send_packet, verify_no_other_packets, verify_packet

PORTS = {0: 3, 1: 5, 2: 4}
GRADIENT, RESULT = 1, 2
WORKER_AT = 15  # the byte with the number of the worker whose gradient was the last


def aggregation(kind, worker, slot, number, values):
    """A packet of an aggregation."""
    ethernet = bytes.fromhex("02000000000202000000000188b5")
    return ethernet + struct.pack("!BBBBHI8I", kind, worker, 0, 0, slot, number, *values)


class SumTest(BaseTest):
    """A switch with three workers, which commands.txt sets up."""

    def setUp(self):
        BaseTest.setUp(self)
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()

    def gradient(self, worker, slot, number, value):
        send_packet(self, PORTS[worker], aggregation(GRADIENT, worker, slot, number, [value] * 8))

    def result(self, slot, number, value):
        """Check that each worker gets the result. Packets from several ports at once can arrive in any order."""
        expected = Mask(aggregation(RESULT, 0, slot, number, [value] * 8))
        expected.set_do_not_care(8 * WORKER_AT, 8)
        for port in PORTS.values():
            verify_packet(self, expected, port)
        verify_no_other_packets(self)


class ThreeGradientsMakeOneResult(SumTest):
    """No packet leaves before the last gradient; then each worker gets the sum."""

    def runTest(self):
        self.gradient(1, slot=4, number=0, value=1)
        self.gradient(0, slot=4, number=0, value=10)
        verify_no_other_packets(self)
        self.gradient(2, slot=4, number=0, value=100)
        self.result(slot=4, number=0, value=111)


class ASlotIsUsedAgain(SumTest):
    """Several rounds in sequence, also with a repeated gradient."""

    def runTest(self):
        for number in range(3):
            self.gradient(0, slot=7, number=number, value=1)
            self.gradient(0, slot=7, number=number, value=1)
            self.gradient(1, slot=7, number=number, value=2)
            self.gradient(2, slot=7, number=number, value=3)
            self.result(slot=7, number=number, value=6)
