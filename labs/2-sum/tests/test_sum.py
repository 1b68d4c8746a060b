"""The visible tests, by step: run them in this folder with `inakit p4c sum.p4 && pytest tests`."""

import struct
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "sum.json"
PORTS = {0: 3, 1: 5, 2: 4}
"""The port of each worker."""
GRADIENT, RESULT = 1, 2


def aggregation(kind, worker, slot, number, values):
    """A packet of an aggregation."""
    ethernet = bytes.fromhex("02000000000202000000000188b5")
    return ethernet + struct.pack("!BBBBHI8I", kind, worker, 0, 0, slot, number, *values)


@pytest.fixture
def switch(p4_switch):
    """A switch that runs your program, with three workers."""
    switch = p4_switch(PROGRAM)
    for worker, port in PORTS.items():
        switch.table("worker_at").add({"standard.ingress_port": str(port)}, "is_worker", worker=worker, full=0b111)
    switch.multicast(1, PORTS.values())
    return switch


def test_step_1_other_traffic_passes(p4_switch):
    switch = p4_switch(PROGRAM)
    switch.table("ipv4_lpm").add({"hdr.ipv4.dst": "10.0.1.0/24"}, "forward", port=6)
    packet = bytes(12) + bytes.fromhex("0800450000140000000040fd00000a0002010a000109")
    switch.send(1, packet)
    switch.expect(6, packet)
    switch.expect_nothing_else()


def test_steps_3_to_5_three_gradients_make_one_result_for_each_worker(switch):
    switch.send(PORTS[1], aggregation(GRADIENT, 1, 4, 0, [1] * 8))
    switch.send(PORTS[0], aggregation(GRADIENT, 0, 4, 0, [10] * 8))
    switch.expect_nothing_else()
    switch.send(PORTS[2], aggregation(GRADIENT, 2, 4, 0, [2**32 - 1, 100, 100, 100, 100, 100, 100, 100]))
    for port in PORTS.values():
        switch.expect(port, aggregation(RESULT, 2, 4, 0, [10, 111, 111, 111, 111, 111, 111, 111]))
    switch.expect_nothing_else()


def test_step_2_a_gradient_from_a_port_without_a_worker_changes_nothing(switch):
    switch.send(PORTS[0], aggregation(GRADIENT, 0, 4, 0, [1] * 8))
    switch.send(60, aggregation(GRADIENT, 1, 4, 0, [7] * 8))
    switch.send(PORTS[1], aggregation(GRADIENT, 1, 4, 0, [10] * 8))
    switch.send(PORTS[2], aggregation(GRADIENT, 2, 4, 0, [100] * 8))
    for port in PORTS.values():
        switch.expect(port, aggregation(RESULT, 2, 4, 0, [111] * 8))
    switch.expect_nothing_else()


def test_step_6_a_gradient_that_comes_again_is_dropped(switch):
    for worker, value in ((0, 1), (0, 1), (1, 10), (2, 100)):
        switch.send(PORTS[worker], aggregation(GRADIENT, worker, 4, 0, [value] * 8))
    for port in PORTS.values():
        switch.expect(port, aggregation(RESULT, 2, 4, 0, [111] * 8))
    switch.expect_nothing_else()


def test_step_7_slots_are_summed_apart(switch):
    for worker, port in PORTS.items():
        for slot in (3, 12):
            switch.send(port, aggregation(GRADIENT, worker, slot, 0, [slot] * 8))
    for port in PORTS.values():
        for slot in (3, 12):
            switch.expect(port, aggregation(RESULT, 2, slot, 0, [3 * slot] * 8))
    switch.expect_nothing_else()


def test_step_8_a_slot_is_used_again(switch):
    for number in range(2):
        for worker, port in PORTS.items():
            switch.send(port, aggregation(GRADIENT, worker, 0, number, [number + 1] * 8))
        for port in PORTS.values():
            switch.expect(port, aggregation(RESULT, 2, 0, number, [3 * (number + 1)] * 8))
    switch.expect_nothing_else()
