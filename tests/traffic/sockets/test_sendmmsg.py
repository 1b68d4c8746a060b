"""Batches through sockets of this process: a receiver that is slow, one that reads nothing, and one that is gone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from inakit.topo.errors import RunError
from inakit.traffic.sockets.packet_sockets import MMSGHDR, Messages, Taken, send_all, send_batch

BYTES = 64


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A sender and a receiver; after a few packets that it has not read, there is no room for more."""
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sender, receiver:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        yield sender, receiver


def numbered(count: int) -> tuple[Messages, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
    """A batch of which packet i holds i; the array has to live as long as the messages."""
    packets = np.repeat(np.arange(count, dtype=np.uint8)[:, np.newaxis], BYTES, axis=1)
    messages = Messages()
    messages.point_at(packets, BYTES)
    return messages, packets


def test_a_full_queue_takes_a_part_and_that_is_no_error(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = ends
    messages, _packets = numbered(200)
    taken = send_batch(sender.fileno(), messages.address, 200, "w1")
    assert 0 < taken.packets < 200
    assert send_batch(
        sender.fileno(), messages.address + taken.packets * MMSGHDR.itemsize, 200 - taken.packets, "w1"
    ) == Taken(0)
    assert [receiver.recv(BYTES)[0] for _ in range(taken.packets)] == list(range(taken.packets))
    assert (
        send_batch(
            sender.fileno(), messages.address + taken.packets * MMSGHDR.itemsize, 200 - taken.packets, "w1"
        ).packets
        > 0
    )


def test_the_rest_of_a_batch_follows_when_there_is_room_each_packet_once(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = ends
    messages, _packets = numbered(200)
    heard: list[int] = []

    def read_slowly() -> None:
        for _ in range(200):
            time.sleep(0.0005)
            heard.append(receiver.recv(BYTES)[0])

    reader = threading.Thread(target=read_slowly, daemon=True)
    reader.start()
    send_all(sender.fileno(), messages.address, 200, "w1")
    reader.join(10)
    assert heard == list(range(200))


def test_a_receiver_that_takes_nothing_any_more_ends_the_wait(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, _receiver = ends
    messages, _packets = numbered(200)
    with pytest.raises(RunError, match=r"host 'w1' cannot send: its link has taken no packet for 0\.1 s"):
        send_all(sender.fileno(), messages.address, 200, "w1", stuck_s=0.1)


def test_a_socket_that_fails_is_an_error_that_names_the_host(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = ends
    messages, _packets = numbered(2)
    receiver.close()
    with pytest.raises(RunError, match="host 'w1' cannot send: Connection refused"):
        send_batch(sender.fileno(), messages.address, 2, "w1")
