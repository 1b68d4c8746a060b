"""Faults on demand: which packets they hit is known beforehand, and nothing else changes."""

from __future__ import annotations

import pytest
from inprocess import InProcess
from scenario_packets import columns, gradient, packet, result
from scenarios import ROOT_PORT, example_entries, worker_ip
from sequences import Seen, Step

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from inakit.switch.program.bmv2_json import read_program
from inakit.traffic.wire.packet_format import PROGRAM, TERMINAL, Event, Kind

ALWAYS, HALF, NEVER = 2**32 - 1, 2**31, 0
ARRIVAL_DRAWS, DEPARTURE_DRAWS = "InaIngress.arrival.draws", "InaEgress.departure.draws"


def draws(begin: int, count: int) -> list[int]:
    """The random numbers of a port, by the generator of the P4 source written once more."""
    found = [begin]
    for _ in range(count):
        found.append((found[-1] * 1664525 + 1013904223) % 2**32)
    return found[1:]


def arriving(port: int, lost: int, held: int = NEVER) -> TableEntry:
    return TableEntry("InaIngress.arrival.arriving", (port,), "InaIngress.arrival.faulty", (lost, held))


def leaving(port: int, lost: int) -> TableEntry:
    return TableEntry("InaEgress.departure.leaving", (port,), "InaEgress.departure.faulty", (lost,))


def doubled(port: int, group: int, share: int, into: int) -> TableEntry:
    return TableEntry("InaIngress.doubling.ways", (port, group), "InaIngress.doubling.doubled", (share, into))


def run(faults: list[TableEntry], steps: list[Step], *more: MulticastGroup | RegisterPreset) -> Seen:
    """What the example's switch with faults makes of packets."""
    example = example_entries()
    groups = tuple(each for each in more if isinstance(each, MulticastGroup))
    presets = tuple(each for each in more if isinstance(each, RegisterPreset))
    entries = SwitchEntries("s1", (*example.tables, *faults), (*example.groups, *groups), presets)
    return InProcess(read_program(PROGRAM)).run(entries, steps, ())


def events(seen: Seen) -> dict[Event, int]:
    """How often each outcome happened, without the last packets of the sequence."""
    counted = {event: int(seen.counters["InaIngress.events"][0][event]) for event in Event}
    counted[Event.SENT_UNICAST] -= 8
    return {event: count for event, count in counted.items() if count}


def passing(seq: int) -> Step:
    """A gradient of job 3, which is not aggregated here."""
    return packet(1, values=seq, kind=Kind.GRADIENT, job=3, tree=1, label=11, seq=seq, workers=1)


def seqs(seen: Seen, port: int = ROOT_PORT) -> list[int]:
    return [seq for (seq,) in columns(seen.sent[port], "seq")]


@pytest.mark.parametrize("begin", [0, 1, 0xDEADBEEF])
def test_lost_are_those_whose_random_number_is_below_the_share(begin: int) -> None:
    share = 2**32 // 10
    seen = run([arriving(1, share)], [passing(s) for s in range(500)], RegisterPreset(ARRIVAL_DRAWS, 1, begin))
    kept = [seq for seq, drawn in enumerate(draws(begin, 500)) if drawn >= share]
    assert seqs(seen) == kept
    assert events(seen) == {Event.SENT_UNICAST: len(kept), Event.LOST: 500 - len(kept)}
    assert 0.05 < 1 - len(kept) / 500 < 0.15


def test_ports_draw_apart_from_one_another() -> None:
    one, other = ([gradient(port, 10 + port, s) for s in range(60)] for port in (1, 2))
    alternating = [step for pair in zip(one, other, strict=True) for step in pair]
    faults, presets = [arriving(1, HALF), arriving(2, HALF)], [RegisterPreset(ARRIVAL_DRAWS, p, p) for p in (1, 2)]
    turns, together = run(faults, [*one, *other], *presets), run(faults, alternating, *presets)
    assert events(turns)[Event.LOST] == events(together)[Event.LOST]
    lost = sum(drawn < HALF for port in (1, 2) for drawn in draws(port, 60))
    assert events(turns)[Event.LOST] == lost


def test_a_held_packet_goes_on_instead_of_the_next_one() -> None:
    seen = run([arriving(1, NEVER, ALWAYS)], [passing(s) for s in range(4)])
    assert seqs(seen) == [0, 1, 2]
    assert events(seen) == {Event.HELD: 1, Event.OVERTAKEN: 3, Event.SENT_UNICAST: 3}


def test_packets_overtake_one_another_and_stay_whole() -> None:
    steps = [passing(s) for s in range(300)]
    seen = run([arriving(1, NEVER, HALF)], steps)
    arrived = seqs(seen)
    assert arrived != sorted(arrived)
    assert len(arrived) == len(set(arrived)) == 299
    sent = {step.packet for step in steps}
    assert all(content in sent for content in seen.sent[ROOT_PORT])


def test_a_result_held_back_is_multicast_in_the_end() -> None:
    seen = run([arriving(ROOT_PORT, NEVER, ALWAYS)], [result(7, values=9), result(8)])
    assert [seqs(seen, port) for port in (1, 2, 3, 5, 6)] == [[7]] * 5
    assert events(seen) == {Event.HELD: 1, Event.OVERTAKEN: 1, Event.SENT_MULTICAST: 1}


def test_what_has_no_values_is_not_held_but_can_be_lost() -> None:
    notice = packet(ROOT_PORT, kind=Kind.NOTICE, job=1, tree=1, seq=3)
    assert events(run([arriving(ROOT_PORT, NEVER, ALWAYS)], [notice])) == {Event.SENT_MULTICAST: 1}
    assert events(run([arriving(ROOT_PORT, ALWAYS)], [notice])) == {Event.LOST: 1}


def test_copies_of_a_result_are_lost_port_by_port() -> None:
    preset = RegisterPreset(DEPARTURE_DRAWS, 2, 77)
    seen = run([leaving(2, HALF)], [result(s) for s in range(100)], preset)
    kept = [seq for seq, drawn in enumerate(draws(77, 100)) if drawn >= HALF]
    assert seqs(seen, 2) == kept
    assert seqs(seen, 1) == list(range(100))
    sent, replicated, lost = (seen.counters[f"InaEgress.{name}"][0] for name in ("sent", "replicated", "lost"))
    assert int(lost[2]) == 100 - len(kept)
    assert int(sent[2]) == len(kept) + 1  # the last packet
    assert int(replicated[2]) == 100


def test_one_packet_becomes_two_by_one_port() -> None:
    faults = [arriving(1, NEVER), doubled(ROOT_PORT, 0, ALWAYS, 9)]
    seen = run(faults, [passing(0), passing(1)], MulticastGroup(9, (ROOT_PORT,), ((0, ROOT_PORT),)))
    assert seqs(seen) == [0, 0, 1, 1]
    assert events(seen) == {Event.SENT_UNICAST: 2, Event.DOUBLED: 2}
    assert int(seen.counters["InaEgress.replicated"][0][ROOT_PORT]) == 2


def test_a_multicast_is_doubled_on_some_of_its_ports() -> None:
    faults = [arriving(ROOT_PORT, NEVER), doubled(0, 1, ALWAYS, 9)]
    seen = run(faults, [result(5)], MulticastGroup(9, (1, 2, 3, 5, 6), ((2, 3), (2, 6))))
    assert {port: len(seqs(seen, port)) for port in (1, 2, 3, 5, 6)} == {1: 1, 2: 1, 3: 2, 5: 1, 6: 2}
    assert events(seen) == {Event.SENT_MULTICAST: 1, Event.DOUBLED: 1}


def test_other_traffic_meets_with_no_fault() -> None:
    udp = packet(1, dst_ip=worker_ip(2)).packet.replace(b"\x49\x4e\x49\x4e", b"\0\x09\0\x09", 1)
    seen = run([arriving(1, ALWAYS), leaving(2, ALWAYS)], [Step(1, udp)])
    assert events(seen) == {Event.SENT_UNICAST: 1}


def test_every_packet_ends_in_one_outcome() -> None:
    faults = [arriving(port, HALF // 4, HALF // 2) for port in (1, 2, 3, ROOT_PORT)]
    steps = [gradient(port, 10 + port, s) for s in range(200) for port in (1, 2, 3)] + [result(s) for s in range(200)]
    seen = run(faults, steps)
    assert sum(events(seen).get(event, 0) for event in TERMINAL) == len(steps)
    assert min(events(seen)[event] for event in (Event.LOST, Event.OVERTAKEN)) > 20
