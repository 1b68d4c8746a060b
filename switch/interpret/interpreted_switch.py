"""A switch that interprets any v1model program in this process, one packet at a time, by BMv2's rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.data_plane import Digest
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry, group_of_nodes
from inakit.switch.interpret.architecture import SimpleSwitch
from inakit.switch.interpret.live_state import LiveState
from inakit.switch.interpret.packet import PacketPlaces, Trace, TraceLines
from inakit.switch.interpret.switch_state import Clock, Context, Target
from inakit.switch.interpret.table_state import Installed
from inakit.switch.program.bmv2_json import MALFORMED, not_p4c
from inakit.switch.program.program import Program

Packets = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Traced:
    """What left for one packet, and what happened to it, a line for each step."""

    sent: Packets
    lines: tuple[str, ...]


class InterpretedSwitch:
    """A switch that runs `program` in this process. It has all port numbers.

    `clock` gives the microseconds since the switch started, for timestamps and meters; `seed` begins the program's
    random numbers. `UnsupportedError` names what nothing here runs of the program.
    """

    def __init__(
        self,
        program: Program,
        name: str = "switch",
        clock: Clock | None = None,
        seed: int = 0,
        target: Target = Target(),  # noqa: B008, it is immutable
    ) -> None:
        self.name, self.program = name, program
        try:
            self.state = LiveState(program, clock or clock_from_now(), Random(seed), target)
            self.switch = self.made(Trace())
        except MALFORMED as error:
            raise not_p4c(program.name, error) from error
        self.lines: TraceLines | None = None
        self.traced = self.switch

    def made(self, trace: Trace) -> SimpleSwitch:
        """The program's functions, which work on this switch's state and tell `trace` what happens."""
        return SimpleSwitch(Context(self.program, PacketPlaces(self.program), self.state, trace))

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves, as (port, packet) in order, when `packet` arrives at `port`."""
        return self.switch.process(port, packet)

    def inject_all(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        """What leaves when `packets` arrive one after the other."""
        return [sent for port, packet in packets for sent in self.switch.process(port, packet)]

    def trace(self, port: int, packet: bytes) -> Traced:
        """Like `inject`, with all that happens to the packet in the words of BMv2's log."""
        if self.lines is None:
            self.lines = TraceLines(PacketPlaces(self.program))
            self.traced = self.made(self.lines)
        self.lines.lines.clear()
        sent = self.traced.process(port, packet)
        return Traced(sent, tuple(self.lines.lines))

    def install(self, entries: SwitchEntries) -> None:
        """Add entries, groups, defaults, mirror sessions, rates and presets; `InputError` if one of them is wrong."""
        self.state.install(entries)

    def change(self, entries: Sequence[TableEntry]) -> None:
        self.state.change_checked(entries)

    def wipe(self) -> None:
        self.state.wipe()

    def check(self) -> None:
        """Do nothing: a switch in this process runs as long as the process does."""

    def read_table(self, name: str) -> list[TableEntry]:
        return [entry_of(name, each) for each in self.state.installed(name)]

    def read_groups(self) -> list[MulticastGroup]:
        return [normal(self.state.groups[number]) for number in sorted(self.state.groups)]

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array, as Python integers if they have more than 64 bits."""
        return self.state.read_register(name)

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of every element of a counter.

        Those of a direct counter are of every entry, in the order of `read_table`.
        """
        packets, octets = self.state.counts(name)
        return np.array(packets, np.uint64), np.array(octets, np.uint64)

    def read_digests(self) -> list[Digest]:
        """The digests that packets have left since the last call, as (name, values of the fields)."""
        return self.state.read_digests()


def normal(group: MulticastGroup) -> MulticastGroup:
    """The group with each of its replicas once, in order."""
    return group_of_nodes(group.group, ((replica, port) for replica, ports in group.nodes.items() for port in ports))


def entry_of(table: str, found: Installed) -> TableEntry:
    """An installed entry as it was given, with the first of its actions."""
    call = found.calls[0]
    return TableEntry(table, found.key, call.action.name, call.values, found.priority)


def clock_from_now(clock_ns: Callable[[], int] = time.monotonic_ns) -> Clock:
    """A clock that counts microseconds from now on, by one that gives nanoseconds."""
    start = clock_ns()
    return lambda: (clock_ns() - start) // 1000
