"""A switch in a sandbox: it takes packets and returns packets, for any program."""

from __future__ import annotations

import pickle
import sysconfig
from typing import Any

from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import ROOT, Sandboxed, python_paths
from inakit.switch.entries import SwitchEntries
from inakit.switch.interpret.interpreted_switch import Packets, Traced
from inakit.switch.program.program import NEVER_APPLIED
from inakit.topo.errors import InputError, UnsupportedError


def switch_limits() -> Limits:
    """The limits of a switch. It reads the kit's switches and installed packages, and writes nothing."""
    folders = (str(ROOT / "inakit" / "switch"), str(ROOT / "inakit" / "topo"), sysconfig.get_path("purelib"))
    return Limits(cpu_s=8, wall_s=12.0, memory_bytes=768 * MIB, readable=(*python_paths(), *folders))


MOST_LETTERS = 300
"""The letters of a line of a trace: a program can have names of any length."""


class SandboxedSwitch:
    """A switch that runs the text of BMv2 JSON; `InputError` or `UnsupportedError` if the program cannot run here.

    Each method raises `EndedError` when the process that runs the program has ended.
    """

    def __init__(self, text: str, name: str, limits: Limits | None = None) -> None:
        errors = {"refused": UnsupportedError, "input": InputError}
        module = "inakit.experiments.labs.sandbox.switch_runner"
        self.process = Sandboxed(module, limits or switch_limits(), errors, load=("load", text, name), site=True)
        self.process.start()

    def fresh(self) -> None:
        """Restart the switch without entries, in a new process if the old one has ended."""
        self.process.ask("fresh")

    def choose(self, name: str) -> None:
        """Select the switch of this name for all later calls; a new name makes a new switch."""
        self.process.ask("choose", name)

    def install(self, entries: SwitchEntries) -> None:
        """Add entries; `InputError` if the program has no such table or action."""
        try:
            self.process.ask("install", pickle.dumps(entries).hex())
        except InputError as error:
            hint = f"keep the skeleton's tables and actions ({NEVER_APPLIED})"
            raise InputError(f"the program does not take the task's entries: {error}; {hint}") from None

    def inject(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; return the packets that leave, as (port, packet) in order."""
        return packets_in(self.process.ask("inject", port, packet.hex()))

    def trace(self, port: int, packet: bytes) -> Traced:
        """Like `inject`, with the packet's trace, line by line."""
        sent, lines = self.process.ask("trace", port, packet.hex())
        return Traced(packets_in(sent), tuple(str(line)[:MOST_LETTERS] for line in lines))

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        packets, octets = self.process.ask("counter", name)
        return [(int(count), int(size)) for count, size in zip(packets, octets, strict=True)]

    def state(self) -> int:
        """A number that identifies the contents of all registers."""
        return int(self.process.ask("state"))

    def step(self, state: int, port: int, packet: bytes) -> tuple[int, Packets]:
        """Send a packet to the switch in a state; return the next state and the packets that leave."""
        after, sent = self.process.ask("step", state, port, packet.hex())
        return int(after), packets_in(sent)

    def close(self) -> None:
        """End the process."""
        self.process.close()


def packets_in(answer: Any) -> Packets:
    """The packets of an answer."""
    return [(int(port), bytes.fromhex(packet)) for port, packet in answer]
