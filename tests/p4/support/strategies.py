"""Cases for hypothesis: entries, packets and their order.

Most packets are right and depend on one another; each rule is broken at times. What fails shrinks to few changed
entries and few plain packets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from draws import anything, rarely
from entry_strategies import ARRIVAL_PORTS, EXAMPLE, entries
from foreign import FOREIGN_FRAMES
from fragment_values import VALUES
from frame_changes import CHANGES, changed
from hypothesis import strategies as st
from scenario_packets import packet
from scenarios import CHILDREN, RESULT_GROUPS, ROOT_PORT, SERVER_IP, SLOTS, UNAGGREGATED, address, worker_ip
from sequences import PORTS, Step

from inakit.switch.entries import SwitchEntries
from inakit.traffic.wire.packet_format import Flag, Kind

ESA_JOB, KEEPING_JOBS, ASKING_JOB = 5, (4, 6, 7), 7
SHARES = {4: 8, 6: 8, ASKING_JOB: 2}
"""By job, where it is not 4: how often packets are its. The more its slots do, the more."""
# A burst is five packets on average; after so many bursts the senders go on to the next fragment.
BURSTS, BURSTS_PER_FRAGMENT, BURST_PACKETS = 24, 4, 16
FIRST_FRAGMENTS = (0, 2**31 - 3, 2**32 - 3)


@dataclass(frozen=True)
class Case:
    """What a switch is given: its entries, and packets in the order in which they arrive."""

    entries: SwitchEntries
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        """The differences to the example of `scenarios`, and the packets."""
        removed = [f"without {entry.cli()}" for entry in set(EXAMPLE.tables) - set(self.entries.tables)]
        added = [f"with {entry.cli()}" for entry in set(self.entries.tables) - set(EXAMPLE.tables)]
        groups = [str(group) for group in self.entries.groups if group not in EXAMPLE.groups]
        packets = [f"port {port}: {content.hex()}" for port, content in self.steps]
        return "\n".join(["", *removed, *added, *groups, *map(str, self.entries.registers), *packets])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Print like `repr`: Hypothesis would print all entries."""
        printer.text(repr(self))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Entries, and some 100 packets whose fragments go on through the window."""
    first = draw(st.sampled_from(FIRST_FRAGMENTS))
    steps: list[Step] = []
    for number in range(BURSTS):
        newest = first + number // BURSTS_PER_FRAGMENT
        steps += draw(st.lists(packets(newest), max_size=BURST_PACKETS))
        if draw(rarely(10)):
            steps += overtaken_by_its_result(newest % 2**32)
        if draw(rarely(10)):
            steps += asked_of_its_result(newest % 2**32)
    return Case(draw(entries()), tuple(steps))


def overtaken_by_its_result(seq: int) -> list[Step]:
    """A gradient that waits in a slot, and the result that makes its wait useless."""
    of: dict[str, Any] = {"job": 1, "tree": 1, "seq": seq, "slot": seq % SLOTS}
    return [
        packet(5, kind=Kind.GRADIENT, values=1, label=14, workers=1, **of),
        packet(ROOT_PORT, kind=Kind.RESULT, values=1, **of),
    ]


def asked_of_its_result(seq: int) -> list[Step]:
    """A finished sum, the result that takes its place, and a child that missed it."""
    of: dict[str, Any] = {"job": ASKING_JOB, "tree": 1, "seq": seq, "slot": seq % SLOTS, "workers": 1}
    sent = [packet(port, kind=Kind.GRADIENT, values=1, label=label, **of) for port, label in ((5, 14), (6, 15))]
    asked = packet(5, kind=Kind.QUESTION, label=14, **of)
    return [*sent, packet(ROOT_PORT, kind=Kind.RESULT, values=2, **of), asked]


@cache
@st.composite
def packets(draw: st.DrawFn, newest: int) -> Step:
    """A packet at a time when senders have reached fragment `newest`."""
    step = draw(draw(KINDS_OF_PACKET)(newest))
    made = draw(CHANGES) if draw(rarely(12)) else []
    return Step(step.port, changed(step.packet, made))


@cache
@st.composite
def gradients(draw: st.DrawFn, newest: int) -> Step:
    """A child's gradient: at times with flags, at another port, or of an older fragment."""
    job, tree, label, port = draw(SENDERS)
    seq = (newest - draw(AGES)) % 2**32
    ina: dict[str, Any] = {"job": job, "tree": tree, "label": label, "seq": seq, "slot": seq % SLOTS, "workers": 1}
    if job == ESA_JOB:
        ina["priority"] = draw(PRIORITIES)
    if draw(rarely(50 if job in KEEPING_JOBS else 25)):
        ina["flags"] = Flag.RETRANSMITTED
    elif draw(rarely(20)):
        ina |= {"flags": draw(FLAGS), "bitmap": draw(anything(64)), "part": draw(st.integers(0, 2))}
    if draw(rarely(5)):
        port = draw(ARRIVAL_PORTS)
    kind = Kind.QUESTION if job == ASKING_JOB and draw(rarely(25)) else Kind.GRADIENT
    if job == ASKING_JOB:
        ina["bitmap"] = draw(ASKED)
    return packet(port, kind=kind, values=None if kind is Kind.QUESTION else draw(VALUES), **ina)


@cache
@st.composite
def from_root(draw: st.DrawFn, newest: int) -> Step:
    """A result or a notice, at times with flags, to any of the addresses."""
    job, tree = draw(TREES)
    kind = draw(KINDS_FROM_ROOT)
    flags = draw(FLAGS) if draw(rarely(50)) else 0
    to = draw(ADDRESSES)
    content = None if kind == Kind.NOTICE else draw(VALUES)
    ina: dict[str, Any] = {"kind": kind, "job": job, "tree": tree, "seq": newest % 2**32, "flags": flags}
    ina["slot"] = newest % SLOTS
    return packet(ROOT_PORT, dst_ip=to, values=content, **ina)


@cache
@st.composite
def foreign(draw: st.DrawFn, _newest: int) -> Step:
    """A frame of another protocol."""
    return Step(draw(ARRIVAL_PORTS), draw(FOREIGN_FRAMES))


OFTEN = [child[:4] for child in CHILDREN for _ in range(SHARES.get(child[0], 4))]
SENDERS = st.sampled_from((*OFTEN, *UNAGGREGATED))
AGES = st.sampled_from((0, 0, 0, 1, 1, 2, SLOTS))
PRIORITIES = st.sampled_from((0, 1, 3))
TREES = st.sampled_from((*[(1, 1)] * 6, *[(ASKING_JOB, 1)] * 2, *RESULT_GROUPS, (1, 3), (3, 1)))
ASKED = st.sampled_from((address(worker_ip(5)), address(worker_ip(6)), 0, 1, 21))
"""The address of who is to be asked, or the label of who has asked, plus 1."""
KINDS_FROM_ROOT = st.sampled_from((Kind.RESULT, Kind.RESULT, Kind.NOTICE, 0, 200))
ADDRESSES = st.sampled_from((SERVER_IP, *map(worker_ip, PORTS)))
FLAGS = st.sampled_from((*[Flag.RETRANSMITTED] * 4, *Flag, Flag.RETRANSMITTED | Flag.OVERFLOW)) | anything(8)
# Of 100 packets, so many of each kind; the first is the simplest.
KINDS_OF_PACKET = st.sampled_from((*[gradients] * 80, *[from_root] * 11, *[foreign] * 9))
