"""Senders wait for the processors' input queues: from a copy of /proc/net/softnet_stat that the test writes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from inakit.traffic.sockets import packet_sockets
from inakit.traffic.sockets.packet_sockets import AT_ONCE, LENGTH, ROOM, ROOM_FOR_COPIES, Backlog, backlog_drops


@pytest.fixture
def softnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "softnet_stat"
    monkeypatch.setattr(packet_sockets, "SOFTNET", path)
    return path


def table(*queues: int, dropped: int = 0) -> str:
    """One row per processor, as the kernel writes it."""
    blank = [0] * (LENGTH - 2)
    return "".join(" ".join(f"{n:08x}" for n in (77, dropped, *blank, length, 0)) + "\n" for length in queues)


def test_lengths_and_drops_are_read(softnet: Path) -> None:
    softnet.write_text(table(3, 310, dropped=18))
    assert backlog_drops() == (18, 18)
    with Backlog() as queues:
        assert queues.longest() == 310


def test_a_kernel_that_tells_no_lengths_makes_nobody_wait(softnet: Path) -> None:
    softnet.write_text("0000004d 00000012\n")
    with Backlog() as queues:
        queues.admit(10 * AT_ONCE, 1)
        assert queues.waited_s == 0


@pytest.mark.parametrize(("copies", "room"), [(1, ROOM), (50, ROOM_FOR_COPIES)])
def test_a_sender_waits_until_there_is_room(
    softnet: Path, monkeypatch: pytest.MonkeyPatch, copies: int, room: int
) -> None:
    softnet.write_text(table(0, room + 1))
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            softnet.write_text(table(0, room))

    monkeypatch.setattr(time, "sleep", pause)
    with Backlog() as queues:
        queues.admit(AT_ONCE, copies)
        assert len(pauses) == 3
        queues.admit(1, 1)
    assert len(pauses) == 3, "a few packets more are sent without a look"


def test_waiting_ends_when_it_does_not_help(softnet: Path) -> None:
    softnet.write_text(table(ROOM + 500))
    with Backlog() as queues:
        queues.admit(AT_ONCE, 1)
        assert queues.waited_s > 0
