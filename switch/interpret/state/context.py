"""What the stages share while a program is made into functions of a packet; and refusals by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from inakit.switch.interpret.state.packets.packet import PacketPlaces
from inakit.switch.interpret.state.packets.trace import Trace
from inakit.switch.interpret.state.switch_state import State
from inakit.switch.program.program import Program
from inakit.switch.program.expressions import Source
from inakit.topo.errors import UnsupportedError

ELSEWHERE = "write it with what v1model.p4 declares, or run the program on BMv2 (SWITCH=bmv2)"


class Context:
    """One program being made into functions: the places of its fields, the switch's state, and the trace."""

    def __init__(self, program: Program, places: PacketPlaces, state: State, trace: Trace) -> None:
        self.program = program
        self.places = places
        self.state = state
        self.trace = trace
        self.source: Source | None = None

    @contextmanager
    def located(self, source: Source | None) -> Iterator[None]:
        """Whatever is refused inside is said to be at `source` in the P4 program."""
        outer, self.source = self.source, source or self.source
        try:
            yield
        finally:
            self.source = outer

    def refusal(self, what: str, instead: str = ELSEWHERE) -> UnsupportedError:
        """The error for a construct that no table of the interpreter has."""
        where = f" ({self.source})" if self.source else ""
        return UnsupportedError(f"program '{self.program.name}' uses {what}{where}, which nothing here runs: {instead}")
