"""The visible tests: run them in this folder with `inakit p4c loss.p4 && pytest tests`."""

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


def send(switch, worker, number, value):
    """Send a worker's gradient for a round of slot 2."""
    switch.send(PORTS[worker], aggregation(GRADIENT, worker, 2, number, [value] * 8))


def expect_result(switch, number, value):
    """The result at all workers' ports, which worker 1 has completed."""
    for port in PORTS.values():
        switch.expect(port, aggregation(RESULT, 1, 2, number, [value] * 8))


def test_step_1_round_after_round(switch):
    for number in range(4):
        send(switch, 0, number, 10 * number)
        switch.expect_nothing_else()
        send(switch, 1, number, 1)
        expect_result(switch, number, 10 * number + 1)


def test_step_2_a_gradient_that_comes_again_is_not_added(switch):
    send(switch, 0, 0, 1)
    send(switch, 0, 0, 1)
    switch.expect_nothing_else()
    send(switch, 1, 0, 2)
    expect_result(switch, 0, 3)


def test_step_3_who_lacks_the_result_gets_it(switch):
    send(switch, 0, 0, 1)
    send(switch, 1, 0, 2)
    expect_result(switch, 0, 3)
    send(switch, 0, 0, 1)  # its result was lost
    switch.expect(PORTS[0], aggregation(RESULT, 0, 2, 0, [3] * 8))
    switch.expect_nothing_else()


def test_step_4_a_round_that_is_over_changes_nothing(switch):
    for number in range(2):
        send(switch, 0, number, 1)
        send(switch, 1, number, 2)
        expect_result(switch, number, 3)
    send(switch, 0, 2, 10)
    send(switch, 1, 0, 2)  # a copy that is two rounds late
    switch.expect_nothing_else()
    send(switch, 1, 2, 20)
    expect_result(switch, 2, 30)


def test_steps_5_and_6_the_worker_sends_its_fragments_and_sends_again():
    worker = Worker(0, 2, 1, [[1] * 8, [2] * 8])
    sent = worker.start()
    assert len(sent) == 1
    first = sent[0]
    assert (first.kind, first.worker, first.slot, first.round) == (GRADIENT, 0, 0, 0)
    sent = worker.receive(Packet(RESULT, 1, 0, 0, (5,) * 8))
    assert len(sent) == 1
    second = sent[0]
    assert (second.round, list(second.values)) == (1, [2] * 8)
    assert worker.timeout(0) == [second]
    assert worker.receive(Packet(RESULT, 1, 0, 1, (7,) * 8)) == []
    assert {fragment: list(values) for fragment, values in worker.results.items()} == {0: [5] * 8, 1: [7] * 8}


def test_step_7_a_result_that_comes_again_changes_nothing():
    worker = Worker(0, 2, 1, [[1] * 8, [2] * 8])
    worker.start()
    worker.receive(Packet(RESULT, 1, 0, 0, (5,) * 8))
    assert worker.receive(Packet(RESULT, 1, 0, 0, (5,) * 8)) == []
    assert set(worker.results) == {0}
