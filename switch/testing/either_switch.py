"""A switch that runs any program in this process, compiled where the generator has C for all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import cast

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.recorded_entries import transfer
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.fast.load.running_tables import Clock
from inakit.switch.fast.load.shared_state import SwitchState
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch, Traced, clock_from_now
from inakit.switch.interpret.switch_state import InterpretedState
from inakit.switch.program.program import Program
from inakit.switch.running_switch import StatefulSwitch
from inakit.topo.errors import MachineError, RunError, UnsupportedError

Packets = list[tuple[int, bytes]]
Inner = InProcessSwitch | InterpretedSwitch


class EitherSwitch(StatefulSwitch[SwitchState | InterpretedState]):
    """A switch that runs any v1model program in this process, compiled if possible.

    It is interpreted if the generator refuses the program, if there is no compiler, or if compiled code does not take
    an entry. After the first packet such an entry raises `UnsupportedError`, unless it comes by the control plane,
    which moves all state of the switch to the interpreter. `clock` gives nanoseconds since an arbitrary moment.
    """

    def __init__(self, program: Program, name: str = "switch", clock: Clock = time.monotonic_ns) -> None:
        self.name, self.program = name, program
        self.micros = clock_from_now(clock)
        self.steps: list[Callable[[Inner], None]] = []
        self.used = False
        self.switch: Inner
        try:
            self.switch = InProcessSwitch(program, name, clock)
        except (UnsupportedError, MachineError):
            self.switch = self.interpreted()

    @property
    def compiled(self) -> bool:
        """Whether compiled code runs; an interpreted switch stays interpreted."""
        return isinstance(self.switch, InProcessSwitch)

    @property
    def state(self) -> SwitchState | InterpretedState:  # type: ignore[override]
        """The state of the switch, compiled or interpreted."""
        return self.switch.state

    @cached_property
    def control(self) -> ControlPlane:
        """The control plane. It knows only its own changes: do not use `install` and `change` any more."""
        control = ControlPlane(cast("DataPlane", self.switch.state))
        control.fall_back = self.interpret_for
        return control

    def interpreted(self) -> InterpretedSwitch:
        return InterpretedSwitch(self.program, self.name, self.micros)

    def interpret_for(self, missing: UnsupportedError) -> None:
        """Continue interpreted, with all state from the control plane and from packets."""
        if not self.compiled:
            raise missing
        self.switch = self.interpreted()
        transfer(self.control, self.switch.state)

    def install(self, entries: SwitchEntries) -> None:
        """Add entries; if one is wrong, raise `InputError` and add none."""
        self.fill(lambda switch: switch.install(entries))

    def change(self, entries: Sequence[TableEntry]) -> None:
        self.fill(lambda switch: switch.change(entries))

    def fill(self, step: Callable[[Inner], None]) -> None:
        """Run `step`, which adds or changes entries, on the switch.

        If compiled code refuses it and no packet has passed yet, the switch continues interpreted.
        """
        try:
            step(self.switch)
        except UnsupportedError:
            if self.used or not self.compiled:
                raise
            self.interpret()
            step(self.switch)
        self.steps.append(step)

    def interpret(self) -> None:
        """Replace compiled code by the interpreter, with the same entries."""
        self.switch = self.interpreted()
        for step in self.steps:
            step(self.switch)

    def inject(self, port: int, packet: bytes) -> Packets:
        """Return the packets that leave, as (port, packet) in order, when `packet` arrives at `port`."""
        self.used = True
        return self.switch.inject(port, packet)

    def inject_all(self, packets: Sequence[tuple[int, bytes]]) -> Packets:
        """Return the packets that leave when `packets` arrive one after the other."""
        self.used = True
        return self.switch.inject_all(packets)

    def trace(self, port: int, packet: bytes) -> Traced:
        """Like `inject`, with a trace of the packet, line by line.

        Only an interpreted switch keeps a trace: `RunError` if compiled code has processed a packet before.
        """
        if isinstance(self.switch, InProcessSwitch):
            if self.used:
                raise RunError(
                    f"switch '{self.name}' runs compiled code, which keeps no trace: trace its first packet too"
                )
            self.interpret()
        assert isinstance(self.switch, InterpretedSwitch)
        self.used = True
        return self.switch.trace(port, packet)

    def check(self) -> None:
        """Do nothing: a switch in this process runs as long as the process does."""
