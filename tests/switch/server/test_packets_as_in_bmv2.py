"""After the same requests, the same packets leave simple_switch and a served switch, with the same contents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from bmv2_requests import Bmv2Requests, bmv2_requests
from random_requests import RandomRequests, Request, asked
from served_program import INGRESS, SERVED, Served, asking, entry

from inakit.switch.control.requests import RefusalKind
from inakit.switch.entries import MirrorSession, TableEntry, Ternary
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.testing.devices import Wires, open_wires

pytestmark = [pytest.mark.root, pytest.mark.bmv2]

PORTS = range(1, 8)
QUIET_S = 0.3
QUEUE = slice(21, 29)
"""Where a packet says what its queue was like, which no two runs of BMv2 have in common."""

Packet = tuple[int, bytes]


class Pair:
    """A simple_switch and a served switch that are asked the same."""

    def __init__(self, bmv2: Bmv2Requests, wires: Wires) -> None:
        self.bmv2, self.wires, self.ours = bmv2, wires, Served()

    def ask(self, name: str, *arguments: Any, **named: Any) -> Any:
        """The answer of both, which must be the same."""
        answers = [asked(each, (name, arguments, named)) for each in (self.ours.control, self.bmv2)]
        assert answers[0] == answers[1]
        return answers[0]

    def try_to_ask(self, request: Request) -> None:
        """Ask both, if ours does not refuse."""
        if not isinstance(asked(self.ours.control, request), RefusalKind):
            asked(self.bmv2, request)

    def check(self, packets: Sequence[bytes], port: int = 1) -> None:
        """The same must leave both when these packets come to `port`, in the same order at each port."""
        expected = [without_queue(*each) for packet in packets for each in self.ours.switch.inject(port, packet)]
        for packet in packets:
            self.wires.send(port, packet)
            time.sleep(0.002)  # BMv2 loses packets of a burst
        left = [without_queue(*each) for each in self.wires.received(QUIET_S)]
        for each in PORTS:
            assert [packet for at, packet in left if at == each] == [packet for at, packet in expected if at == each]


def without_queue(port: int, packet: bytes) -> Packet:
    """The packet without what it says of its queue."""
    return port, packet[: QUEUE.start] + packet[QUEUE.stop :]


@contextmanager
def pair() -> Iterator[Pair]:
    """Both switches, without entries."""
    with open_wires(PORTS) as wires:
        interfaces = (part for port, name in wires.interfaces.items() for part in ("-i", f"{port}@{name}"))
        with bmv2_requests(SERVED, read_program(SERVED), *interfaces) as bmv2:
            yield Pair(bmv2, wires)


def test_groups_of_action_profiles_choose_the_same_members() -> None:
    with pair() as both:
        group = both.ask("profiles.create_group", INGRESS + "groups")
        members = [
            both.ask("profiles.add_member", INGRESS + "groups", INGRESS + "send", (port,)) for port in (2, 3, 4, 5)
        ]
        for member in members:
            both.ask("profiles.add_to_group", INGRESS + "groups", member, group)
        both.ask("tables.add", INGRESS + "chosen", (7,), group=group)
        packets = [asking("chosen", 7, value) for value in range(60)]
        both.check(packets)
        both.ask("profiles.remove_from_group", INGRESS + "groups", members[1], group)
        both.ask("profiles.modify_member", INGRESS + "groups", members[2], INGRESS + "mark", (6, 77))
        both.check(packets)


def test_copies_of_nodes_lags_and_mirrors_are_the_same() -> None:
    with pair() as both:
        both.ask("tables.add_entry", TableEntry(INGRESS + "exact_match", (7,), INGRESS + "spread", (9,)))
        both.ask("tables.add_entry", TableEntry(INGRESS + "exact_match", (8,), INGRESS + "copy", (3, 2)))
        both.ask("replication.create_group", 9)
        for replica, ports, lags in ((5, (4, 2), (0,)), (1, (2,), ()), (0, (3, 4, 5), (1,))):
            both.ask("replication.associate", 9, both.ask("replication.create_node", replica, ports, lags))
        both.ask("replication.set_lag", 0, (6, 7))
        both.ask("replication.set_lag", 1, (2, 3, 7))
        both.ask("replication.put_session", MirrorSession(3, port=4))
        both.check([asking("exact_match", 7), asking("exact_match", 8, 50)])
        both.ask("replication.put_session", MirrorSession(3, group=9))
        both.check([asking("exact_match", 8, 60)])


def test_of_entries_with_one_priority_the_same_wins() -> None:
    with pair() as both:
        keys = [Ternary(1, 1), Ternary(2, 2), Ternary(4, 4)]
        handles = [
            both.ask("tables.add_entry", entry("masked", (key, Ternary(0, 0)), 2 + n, 5)) for n, key in enumerate(keys)
        ]
        packets = [asking("masked", key) for key in range(8)]
        both.check(packets)
        both.ask("tables.delete", INGRESS + "masked", handles[0])
        both.ask("tables.add_entry", entry("masked", (Ternary(6, 6), Ternary(0, 0)), 6, 5))
        both.check(packets)


@pytest.mark.parametrize("seed", range(3))
def test_packets_meet_the_same_after_random_requests(seed: int) -> None:
    draw = Random(seed)
    requests = RandomRequests(draw)
    with pair() as both:
        for _ in range(600):
            both.try_to_ask(requests.request())
        tables = (
            "exact_match",
            "longest_prefix",
            "masked",
            "in_range",
            "maybe",
            "given",
            "shared",
            "chosen",
            "keyless",
        )
        keys = (*range(8), 1 << 29, 3 << 29)
        both.check([asking(table, key, draw.randrange(9)) for table in tables for key in keys])
