"""The tests that you see: run them in this folder with `inakit p4c loss.p4 && pytest tests`."""

import struct
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
sys.path.insert(0, str(FOLDER))

from packet import GRADIENT, RESULT, Packet  # noqa: E402
from worker import Worker  # noqa: E402

PORTS = {0: 3, 1: 5}


def aggregation(kind, worker, slot, number, values):
    """A packet of an aggregation."""
    ethernet = bytes.fromhex("02000000000202000000000188b5")
    return ethernet + struct.pack("!BBBBHI8I", kind, worker, 0, 0, slot, number, *values)


@pytest.fixture
def switch(p4_switch):
    """A switch that runs your program, with two workers."""
    switch = p4_switch(FOLDER / "loss.json")
    for worker, port in PORTS.items():
        switch.table("worker_at").add({"standard.ingress_port": str(port)}, "is_worker", worker=worker, full=0b11)
    switch.multicast(1, PORTS.values())
    return switch


def test_who_lacks_the_result_gets_it(switch):
    switch.send(PORTS[0], aggregation(GRADIENT, 0, 2, 0, [1] * 8))
    switch.send(PORTS[1], aggregation(GRADIENT, 1, 2, 0, [2] * 8))
    for port in PORTS.values():
        switch.expect(port, aggregation(RESULT, 1, 2, 0, [3] * 8))
    switch.send(PORTS[0], aggregation(GRADIENT, 0, 2, 0, [1] * 8))  # its result was lost
    switch.expect(PORTS[0], aggregation(RESULT, 0, 2, 0, [3] * 8))
    switch.expect_nothing_else()


def test_the_worker_sends_one_fragment_after_the_other():
    worker = Worker(0, 2, 1, [[1] * 8, [2] * 8])
    (first,) = worker.start()
    assert (first.kind, first.worker, first.slot, first.round) == (GRADIENT, 0, 0, 0)
    (second,) = worker.receive(Packet(RESULT, 1, 0, 0, (5,) * 8))
    assert (second.round, list(second.values)) == (1, [2] * 8)
    assert worker.timeout(0) == [second]
    assert worker.receive(Packet(RESULT, 1, 0, 1, (7,) * 8)) == []
    assert {fragment: list(values) for fragment, values in worker.results.items()} == {0: [5] * 8, 1: [7] * 8}
