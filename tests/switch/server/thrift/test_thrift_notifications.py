"""What a switch publishes unasked, byte for byte as BMv2 does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from served_interpreter import ServedInterpreter, served
from thrift_clients import connected, exact

from pynng import Sub0
from switch.server.thrift.description import description
from switch.server.thrift.notifications import Publisher, default_address, learning_message, port_message
from switch.control.requests.learning import DigestBatch
from topo.errors import MachineError

TYPES = description()
TABLE = "TestIngress.exact_table"
LEARNED = bytes.fromhex("00000000000a 0001")
"""A digest of commanded.p4: the source of a packet, and its port."""


@contextmanager
def subscribed(address: str) -> Iterator[Sub0]:
    """Somebody who gets all notifications of an address."""
    with Sub0(dial=address, recv_timeout=2000) as subscriber:
        subscriber.subscribe(b"")
        time.sleep(0.1)  # the subscription takes effect when the connection is there: nobody says when
        yield subscriber


@pytest.fixture
def station() -> Iterator[tuple[ServedInterpreter, object, Sub0]]:
    with served() as (switch, service), connected(service.port) as clients:
        address = clients.standard.bm_mgmt_get_info().notifications_socket
        with subscribed(address) as subscriber:
            yield switch, clients.standard, subscriber


def learn(switch: ServedInterpreter, standard: object) -> None:
    """Let packets of port 1 be learnt, and send one."""
    standard.bm_mt_set_default_action(0, TABLE, "TestIngress.learn", [])
    switch.switch.inject(1, bytes.fromhex("000000000005 00000000000a 0800") + bytes(46))
    standard.bm_learning_set_buffer_size(0, 1, 1)


def header(letters: str, *fields: tuple[int, int]) -> bytes:
    """The 32 bytes in front, of the letters, the switch's number 7, and (number, bytes)."""
    found = letters.encode() + (7).to_bytes(8, "little")
    return (found + b"".join(number.to_bytes(size, "little") for number, size in fields)).ljust(32, b"\0")
