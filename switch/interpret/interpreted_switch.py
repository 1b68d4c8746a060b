"""A switch that interprets any v1model program in this process, one packet at a time, by BMv2's rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from inakit.switch.interpret.architecture import SimpleSwitch
from inakit.switch.interpret.packet import PacketPlaces, Trace, TraceLines
from inakit.switch.interpret.switch_state import Clock, Context, InterpretedState, Target
from inakit.switch.program.bmv2_json import MALFORMED, not_p4c
from inakit.switch.program.program import Program
from inakit.switch.running_switch import StatefulSwitch

Packets = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Traced:
    """The packets that left because of one packet, and its trace, one line per step."""

    sent: Packets
    lines: tuple[str, ...]


class InterpretedSwitch(StatefulSwitch[InterpretedState]):
    """A switch that runs `program` in this process. It has all port numbers.

    `clock` gives the microseconds since the switch started, for timestamps and meters; `seed` starts the program's
    random numbers. `UnsupportedError` names a construct that the interpreter does not support.
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
            self.state = InterpretedState(program, clock or clock_from_now(), Random(seed), target)
            self.switch = self.made(Trace())
        except MALFORMED as error:
            raise not_p4c(program.name, error) from error
        self.lines: TraceLines | None = None
        self.traced = self.switch

    def made(self, trace: Trace) -> SimpleSwitch:
        """The program's functions, which work on this switch's state and report events to `trace`."""
        return SimpleSwitch(Context(self.program, PacketPlaces(self.program), self.state, trace))

    def inject(self, port: int, packet: bytes) -> Packets:
        """Return the packets that leave, as (port, packet) in order, when `packet` arrives at `port`."""
        return self.switch.process(port, packet)

    def inject_all(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        """Return the packets that leave when `packets` arrive one after the other."""
        return [sent for port, packet in packets for sent in self.switch.process(port, packet)]

    def trace(self, port: int, packet: bytes) -> Traced:
        """Like `inject`, with a trace of the packet in the words of BMv2's log."""
        if self.lines is None:
            self.lines = TraceLines(PacketPlaces(self.program))
            self.traced = self.made(self.lines)
        self.lines.lines.clear()
        sent = self.traced.process(port, packet)
        return Traced(sent, tuple(self.lines.lines))

    def check(self) -> None:
        """Do nothing: a switch in this process runs as long as the process does."""


def clock_from_now(clock_ns: Callable[[], int] = time.monotonic_ns) -> Clock:
    """A clock that counts microseconds from now on, based on one that gives nanoseconds."""
    start = clock_ns()
    return lambda: (clock_ns() - start) // 1000
