"""The state of a switch in the kernel changes while packets pass: each sees all of the old or all of the new."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from same_switches import shown_when_wrong
from small_programs import PROGRAM_PORTS, PROGRAMS, Packets, packet
from veth_wires import Wires

from inakit.switch.entries import DefaultAction, Lpm, MulticastGroup, Range, SwitchEntries, TableEntry, Ternary
from inakit.switch.fast.load.kernel_switch import KernelSwitch, compile_program
from inakit.switch.fast.load.shared_state import SwitchState
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program

FORK = multiprocessing.get_context("fork")
COUNT, RATE_PPS, BURST = 60_000, 100_000, 50
BUFFER_BYTES, SO_RCVBUFFORCE = 1 << 28, 33

Change = TableEntry | DefaultAction | MulticastGroup


def entry(table: str, key: tuple[object, ...], action: str, *params: int, priority: int | None = None) -> TableEntry:
    """An entry of one of the small programs."""
    return TableEntry(f"TestIngress.{table}", key, f"TestIngress.{action}", params, priority)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    """What changes to and fro in a program, each as (old, new); what comes and goes meanwhile; and what is sent."""

    program: str
    changing: tuple[tuple[Change, Change], ...]
    passing: tuple[TableEntry, ...]
    fields: tuple[dict[str, int], ...]


CASES = {
    "exact, default, group": Case(
        "control",
        (
            (entry("by_key", (7, 1), "to_port", 4, 20), entry("by_key", (7, 1), "to_port", 2, 90)),
            (entry("by_port", (1,), "add", 1), TableEntry("TestIngress.by_port", (1,), "NoAction")),
            (
                DefaultAction("TestIngress.by_key", "TestIngress.to_port", (9, 30)),
                DefaultAction("TestIngress.by_key", "TestIngress.to_port", (1, 60)),
            ),
            (MulticastGroup(3, (2,)), MulticastGroup(3, (4,))),
            (entry("by_key", (8, 1), "to_group", 3), entry("by_key", (8, 1), "to_port", 9, 40)),
        ),
        (
            entry("by_key", (10, 1), "to_port", 1, 1),
            entry("by_key", (11, 1), "to_port", 2, 2),
            entry("by_port", (3,), "add", 9),
        ),
        ({"key": 7}, {"key": 8}, {"key": 9}),
    ),
    "prefixes, masks, ranges": Case(
        "lists",
        (
            (entry("by_prefix", (1, Lpm(0, 96)), "prefix", 10), entry("by_prefix", (1, Lpm(0, 96)), "prefix", 11)),
            (
                entry("by_mask", (Ternary(0, 0), Ternary(80, 0xFF), 1), "mask", 20, priority=50),
                TableEntry("TestIngress.by_mask", (Ternary(0, 0), Ternary(80, 0xFF), 1), "NoAction", (), 50),
            ),
            (
                entry("by_range", (Range(70, 90), 1), "range_", 30, priority=50),
                entry("by_range", (Range(70, 90), 1), "range_", 31, priority=50),
            ),
        ),
        (
            *(entry("by_prefix", (1, Lpm(1 << 127, n)), "prefix", 1) for n in (1, 99, 128)),
            entry("by_prefix", (1, Lpm(0, 5)), "prefix", 2),
            *(entry("by_mask", (Ternary(0, 0), Ternary(p, 0xFF), 1), "mask", 3, priority=p) for p in (1, 40, 49)),
            *(entry("by_mask", (Ternary(0, 0), Ternary(0, 0), 1), "mask", 4, priority=p) for p in (51, 90)),
            entry("by_range", (Range(91, 300), 1), "range_", 5, priority=1),
            entry("by_range", (Range(0, 300), 1), "range_", 6, priority=60),
        ),
        ({"address": 7, "port": 80, "kind": 1},),
    ),
}


def installed(chosen: Sequence[Change]) -> SwitchEntries:
    """The entries, defaults and groups among `chosen`."""
    return SwitchEntries(
        "s",
        tuple(each for each in chosen if isinstance(each, TableEntry)),
        tuple(each for each in chosen if isinstance(each, MulticastGroup)),
        defaults=tuple(each for each in chosen if isinstance(each, DefaultAction)),
    )


def possible(program: Program, case: Case, packets: Sequence[bytes]) -> set[tuple[int, bytes]]:
    """What can leave for these packets, whichever side each of the changes is on."""
    found = set()
    for chosen in product(*case.changing):
        model = InterpretedSwitch(program)
        model.install(installed(chosen))
        found |= {sent for each in packets for sent in model.inject(1, each)}
    return found


def make(state: SwitchState, change: Change) -> None:
    """Let the switch have what `change` says instead of what it had."""
    match change:
        case TableEntry():
            state.change([change])
        case DefaultAction():
            state.set_default(change)
        case MulticastGroup():
            state.put_group(change)


def send_at_rate(wires: Wires, packets: Sequence[bytes]) -> None:
    """Send `COUNT` packets into port 1 in bursts, at most `RATE_PPS`."""
    start = time.monotonic()
    for number in range(COUNT):
        if number % BURST == 0:
            while time.monotonic() < start + number / RATE_PPS:
                pass
        wires.sockets[1].send(packets[number % len(packets)])


def backlog_drops() -> int:
    """How many packets have found a processor's backlog full."""
    return sum(int(line.split()[1], 16) for line in Path("/proc/net/softnet_stat").read_text().splitlines())


def all_received(wires: Wires) -> Packets:
    """What has come by all ports."""
    return [(port, each) for port in wires.sockets for each in wires.receive(port, 0)]


@pytest.mark.root
@pytest.mark.parametrize("name", CASES)
def test_each_packet_sees_the_old_or_the_new_and_none_is_lost(name: str) -> None:
    case = CASES[name]
    program = read_program(PROGRAMS / f"{case.program}.json")
    packets = [packet(program, **fields) for fields in case.fields]
    with Wires(PROGRAM_PORTS) as wires:
        switch = KernelSwitch(compile_program(program))
        wires.attach(switch)
        for each in wires.sockets.values():
            each.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        switch.install(installed([old for old, _ in case.changing]))
        dropped, turns = backlog_drops(), 0
        sender = FORK.Process(target=send_at_rate, args=(wires, packets))
        sender.start()
        while sender.is_alive():
            turns += 1
            switch.state.add(case.passing)
            for pair in case.changing:
                make(switch.state, pair[turns % 2])
            switch.state.remove(case.passing)
        sender.join()
        came = Counter(all_received(wires))
    with shown_when_wrong(switch.source):
        assert set(came) <= possible(program, case, packets)
        assert sum(came.values()) == COUNT - (backlog_drops() - dropped)
        assert turns > 20


@pytest.mark.root
def test_changes_are_made_on_the_processor_of_the_switch() -> None:
    """There each packet is processed from beginning to end between two steps of the writer."""
    switch = KernelSwitch(compile_program(read_program(PROGRAMS / "control.json")))
    seen, allowed = [], os.sched_getaffinity(0)
    with closing(switch), pytest.MonkeyPatch.context() as patched:
        patched.setattr(switch.state.groups.tables, "put", lambda *_: seen.append(os.sched_getaffinity(0)))
        switch.state.put_group(MulticastGroup(1, (2,)))
    assert (seen, os.sched_getaffinity(0)) == ([{switch.cpu}], allowed)
