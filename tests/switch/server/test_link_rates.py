"""What only an interpreted switch has: queues in front of egress that say how long they are, very short packets."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import pytest
from model_programs import MODEL
from served_program import SERVED, answer_of, asking, entry
from veth_wires import Wires

from inakit.switch.fast.load.port_queues import PortQueues, tc
from inakit.switch.program.bmv2_json import program_of, read_program
from inakit.switch.server.engines import VARIABLE, choose, only_interpreted_of
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.switch_options import Options

PACKETS, BYTES = 500, 1400
RATE_PPS, DEPTH = 20, 3
COMMANDED = SERVED.with_name("commanded.json")


@contextmanager
def served(wires: Wires) -> Iterator[None]:
    """An interpreted switch on these wires, whose packets with key 7 leave by port 2."""
    with patch.dict("os.environ", {VARIABLE: "interpreted"}):
        switch = ServedSwitch(Options())
        try:
            switch.load(SERVED.read_text())
            switch.swap()
            for port, interface in wires.names.items():
                switch.ports.add(port, interface)
            switch.control.tables.add_entry(entry("exact_match", (7,), 2))
            yield
        finally:
            switch.close()


def test_a_program_that_reads_the_depth_of_its_queue_is_interpreted() -> None:
    with patch.dict("os.environ", {VARIABLE: "auto"}):
        choice = choose(read_program(SERVED), Options())
    assert choice.compiled is None
    assert "enq_qdepth" in choice.why or "deq_qdepth" in choice.why


@pytest.mark.parametrize(("length", "interpreted"), [("0x10", True), ("0x80", False)])
def test_a_program_that_cuts_packets_within_their_headers_is_interpreted(length: str, interpreted: bool) -> None:
    document = json.loads((MODEL / "copies.json").read_text())
    for action in document["actions"]:
        for primitive in action["primitives"]:
            if primitive["op"] == "truncate":
                primitive["parameters"][0]["value"] = length
    why = only_interpreted_of(program_of(document))
    assert (why is not None) == interpreted
    assert why is None or "truncate(20)" in why


@pytest.mark.root
def test_a_link_that_is_shaped_fills_the_queue_of_its_port() -> None:
    with Wires((1, 2)) as wires, served(wires):
        shaping = ["tc", "qdisc", "add", "dev", wires.names[2], "root", "tbf", "rate", "2mbit"]
        subprocess.run([*shaping, "burst", "5000", "limit", "1000000"], check=True)
        for _ in range(PACKETS):
            wires.send(1, asking("exact_match", 7).ljust(BYTES, b"\0"))
        depths = [answer_of(2, packet).queued for packet in wires.receive(2, PACKETS, patience_s=3.0)]
    assert depths[0] == 0
    assert max(depths) > 50
    assert len(depths) < PACKETS  # a queue that is full loses packets, as BMv2's does


@pytest.mark.root
def test_what_others_send_by_the_interface_of_a_port_has_come_to_it() -> None:
    with Wires((1, 2)) as wires, served(wires):
        send_by(wires.names[1], asking("exact_match", 7))
        assert len(wires.receive(2, 1)) == 1


@pytest.mark.root
@pytest.mark.parametrize("engine", ["interpreted", "kernel"])
def test_a_queue_has_a_rate_and_a_depth_in_packets(engine: str) -> None:
    """Whatever the sizes of packets: those that the queue does not hold are lost."""
    sizes = (60, 1400, 60, 1500, 600, 60, 1400, 60)
    with Wires((1, 3)) as wires, commanded(engine, wires) as switch:
        switch.queues.set_rate(RATE_PPS)
        switch.queues.set_depth(DEPTH, port=3)
        assert switch.ports.engine is not None
        assert switch.ports.engine.what.startswith({"kernel": "compiled"}.get(engine, engine))
        wires.send(1, asking("exact_match", 7))
        assert len(wires.receive(3, 1)) == 1
        began = time.monotonic()
        for size in sizes:
            wires.send(1, asking("exact_match", 7).ljust(size, b"\0"))
        times = [time.monotonic() - began for _ in iter(partial(wires.receive, 3, 1, 0.5), [])]
        assert len(times) == DEPTH
        assert times[-1] > (DEPTH - 1) / RATE_PPS
        switch.queues.set_rate(0)
        wires.send(1, asking("exact_match", 7))
        assert len(wires.receive(3, 1)) == 1


@pytest.mark.root
def test_a_rate_on_an_interface_that_has_one_already_is_the_interpreters() -> None:
    with Wires((1, 3)) as wires:
        shaping = ["tc", "qdisc", "add", "dev", wires.names[3], "root", "tbf", "rate", "2mbit"]
        subprocess.run([*shaping, "burst", "5000", "limit", "1000000"], check=True)
        with commanded("kernel", wires) as switch:
            switch.queues.set_rate(RATE_PPS)
            assert switch.ports.engine is not None
            assert switch.ports.engine.what.startswith("interpreted")


@pytest.mark.root
def test_the_queue_of_a_switch_that_was_killed_is_taken_over() -> None:
    with Wires((1, 3)) as wires:
        killed = PortQueues(read_program(COMMANDED))
        killed.add(3, wires.names[3])
        killed.set_rate(1, None)
        with commanded("kernel", wires) as switch:
            switch.queues.set_rate(RATE_PPS)
            assert switch.ports.engine is not None
            assert switch.ports.engine.what.startswith("compiled")
        assert "tbf" not in tc("qdisc", "show", "dev", wires.names[3])


@contextmanager
def commanded(engine: str, wires: Wires) -> Iterator[ServedSwitch]:
    """A switch on these wires, whose egress does nothing; packets leave by port 3."""
    with patch.dict("os.environ", {VARIABLE: engine}):
        switch = ServedSwitch(Options())
        try:
            switch.load(COMMANDED.read_text())
            switch.swap()
            for port, interface in wires.names.items():
                switch.ports.add(port, interface)
            yield switch
        finally:
            switch.close()


def send_by(interface: str, packet: bytes) -> None:
    """Send a packet by an interface of this host."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        sender.send(packet)
