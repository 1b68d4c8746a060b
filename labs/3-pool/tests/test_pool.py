"""The visible tests: packets in, packets out. Run them in this folder: `inakit p4c pool.p4 && pytest tests`."""

import struct
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "pool.json"
PORTS = {0: 3, 1: 5}
"""The port of each worker."""
GRADIENT, RESULT = 1, 2


def aggregation(kind, worker, slot, version, values):
    """A packet of an aggregation."""
    ethernet = bytes.fromhex("02000000000202000000000188b5")
    return ethernet + struct.pack("!BBBBHI8I", kind, worker, 0, version, slot, 7, *values)


@pytest.fixture
def switch(p4_switch):
    """A switch that runs your program, with two workers."""
    switch = p4_switch(PROGRAM)
    for worker, port in PORTS.items():
        switch.table("worker_at").add({"standard.ingress_port": str(port)}, "is_worker", worker=worker, full=0b11)
    switch.multicast(1, PORTS.values())
    return switch


def send(switch, worker, slot, version, value):
    """Send a worker's gradient."""
    switch.send(PORTS[worker], aggregation(GRADIENT, worker, slot, version, [value] * 8))


def expect_result(switch, last, slot, version, value):
    """The result at all workers' ports."""
    for port in PORTS.values():
        switch.expect(port, aggregation(RESULT, last, slot, version, [value] * 8))


def test_step_1_only_gradients_of_workers_are_summed(switch):
    switch.send(9, aggregation(GRADIENT, 0, 5, 0, [7] * 8))  # no worker is at this port
    switch.send(PORTS[0], aggregation(GRADIENT, 1, 5, 0, [7] * 8))  # worker 1 is at another port
    switch.send(PORTS[0], aggregation(RESULT, 0, 5, 0, [7] * 8))
    switch.send(PORTS[0], aggregation(GRADIENT, 0, 5, 2, [7] * 8))
    switch.send(PORTS[0], aggregation(GRADIENT, 0, 64, 0, [7] * 8))
    switch.send(PORTS[0], bytes(60))
    send(switch, 0, 5, 0, 1)
    switch.expect_nothing_else()
    send(switch, 1, 5, 0, 2)
    expect_result(switch, 1, 5, 0, 3)
    switch.expect_nothing_else()


def test_step_2_many_slots_at_once(switch):
    for slot in range(64):
        send(switch, 0, slot, 0, slot)
    switch.expect_nothing_else()
    for slot in reversed(range(64)):
        send(switch, 1, slot, 0, 1000)
        expect_result(switch, 1, slot, 0, 1000 + slot)
    switch.expect_nothing_else()


def test_step_3_round_after_round(switch):
    for number in range(4):
        send(switch, 0, 9, number % 2, 10 * number)
        send(switch, 1, 9, number % 2, 1)
        expect_result(switch, 1, 9, number % 2, 10 * number + 1)
    switch.expect_nothing_else()


def test_step_4_a_gradient_that_comes_again_is_not_added(switch):
    send(switch, 0, 3, 0, 1)
    send(switch, 0, 3, 0, 1)
    switch.expect_nothing_else()
    send(switch, 1, 3, 0, 2)
    expect_result(switch, 1, 3, 0, 3)
    switch.expect_nothing_else()


def test_step_5_who_lacks_the_result_gets_it(switch):
    send(switch, 0, 2, 0, 1)
    send(switch, 1, 2, 0, 2)
    expect_result(switch, 1, 2, 0, 3)
    send(switch, 0, 2, 1, 10)  # worker 0 has the result, and goes on
    send(switch, 1, 2, 0, 2)  # worker 1 has not
    switch.expect(PORTS[1], aggregation(RESULT, 1, 2, 0, [3] * 8))
    send(switch, 1, 2, 1, 20)
    expect_result(switch, 1, 2, 1, 30)
    switch.expect_nothing_else()
