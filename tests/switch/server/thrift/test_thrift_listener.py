"""Many clients at once, clients that leave or talk nonsense, and the end of the server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from thrift_clients import TIMEOUT_S, connected
from thrift_stations import Station, stationed
from thriftpy2.transport import TTransportException

from inakit.switch.server.thrift.listener import Listener
from inakit.switch.server.thrift.services import description
from inakit.topo.errors import MachineError

TYPES = description()
TABLE = "TestIngress.prefixes"
CLIENTS, EACH = 50, 10


@pytest.fixture
def station() -> Iterator[Station]:
    with stationed() as found:
        yield found


def add_some(port: int, client: int) -> list[int]:
    """The handles of entries that one client adds."""
    with connected(port) as clients:
        keys = [TYPES.LpmPart(bytes([client, 0, 0, last]), 32) for last in range(EACH)]
        return [
            clients.standard.bm_mt_add_entry(0, TABLE, [TYPES.KeyPart(1, lpm=key)], "NoAction", [], TYPES.Options())
            for key in keys
        ]


def test_many_clients_write_at_once(station: Station) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        handles = [
            handle for each in pool.map(lambda n: add_some(station.server.port, n), range(CLIENTS)) for handle in each
        ]
    assert sorted(handles) == list(range(CLIENTS * EACH))
    assert station.standard.bm_mt_get_num_entries(0, TABLE) == CLIENTS * EACH


def test_who_talks_nonsense_is_sent_away_alone(station: Station) -> None:
    with socket.create_connection(("localhost", station.server.port), TIMEOUT_S) as visitor:
        visitor.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert visitor.recv(1) == b""
    assert station.standard.bm_mt_get_num_entries(0, TABLE) == 0


def test_who_stops_within_a_message_keeps_nobody_waiting(station: Station) -> None:
    with socket.create_connection(("localhost", station.server.port), TIMEOUT_S) as visitor:
        visitor.sendall(bytes.fromhex("80010001 00000010"))
        assert station.standard.bm_mt_get_num_entries(0, TABLE) == 0


def test_messages_that_come_together_are_answered_in_order(station: Station) -> None:
    standard = station.standard
    for handle in range(3):
        standard._send("bm_mt_add_entry", cxt_id=0, table=TABLE, key=[key_of(handle)], action="NoAction", params=[])
    assert [standard._recv("bm_mt_add_entry") for _ in range(3)] == [0, 1, 2]


def key_of(last: int) -> object:
    """A part of a key that is a whole address."""
    return TYPES.KeyPart(1, lpm=TYPES.LpmPart(bytes([10, 0, 0, last]), 32))


def test_the_connections_end_with_the_server() -> None:
    with stationed() as station:
        station.standard.bm_mgmt_get_info()
        station.server.close()
        with pytest.raises((TTransportException, OSError)):
            station.standard.bm_mgmt_get_info()
        with pytest.raises(ConnectionError):
            socket.create_connection(("localhost", station.server.port), TIMEOUT_S)
        Listener(station.server.port).close()


def test_a_port_belongs_to_one_server(station: Station) -> None:
    with pytest.raises(MachineError, match="choose another --thrift-port"):
        Listener(station.server.port)


def test_clients_of_ipv4_and_of_ipv6_are_answered(station: Station) -> None:
    for host in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
        socket.create_connection((host, station.server.port), TIMEOUT_S).close()
