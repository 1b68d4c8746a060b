"""A switch in a sandbox of its own: packets in, packets out, whatever the program is."""

from __future__ import annotations

import sysconfig
from typing import Any

from inakit.experiments.labs.sandbox.confinement import MIB, Limits
from inakit.experiments.labs.sandbox.process import ROOT, EndedError, Sandboxed, printable, python_paths
from inakit.experiments.labs.sandbox.switch_runner import entries_to
from inakit.switch.entries import SwitchEntries
from inakit.switch.interpret.interpreted_switch import Packets, Traced
from inakit.switch.program.program import NEVER_APPLIED
from inakit.topo.errors import InputError, UnsupportedError

MODULE = "inakit.experiments.labs.sandbox.switch_runner"
HINT = f"; keep the skeleton's tables and actions ({NEVER_APPLIED})"


def switch_limits() -> Limits:
    """What a switch may use. It reads the kit's switches and installed packages, and writes nothing."""
    folders = (str(ROOT / "switch"), str(ROOT / "topo"), sysconfig.get_path("purelib"))
    return Limits(cpu_s=8, wall_s=12.0, memory_bytes=768 * MIB, readable=(*python_paths(), *folders))


class SandboxedSwitch:
    """A program as a switch. Each method raises `EndedError` when the process that runs it has ended."""

    def __init__(self, text: str, name: str, limits: Limits | None = None) -> None:
        """Load the text of BMv2 JSON; `InputError` or `UnsupportedError` if it is no program that runs here."""
        self.text, self.name, self.limits = text, name, limits or switch_limits()
        self.process = Sandboxed(MODULE, self.limits, site=True)
        try:
            self.ask("load", text, name)
        except BaseException:
            self.close()
            raise

    def ask(self, *question: Any) -> Any:
        """The value of the answer to a question."""
        answer = self.process.ask(list(question))
        if not isinstance(answer, list) or len(answer) != 2:
            raise EndedError("its answer is none")
        kind, value = answer
        if kind == "ok":
            return value
        raise {"refused": UnsupportedError, "input": InputError}.get(str(kind), EndedError)(printable(str(value)))

    def fresh(self) -> None:
        """Start the switch anew, without entries; in a new process if the old one has ended."""
        if self.process.process.poll() is not None:
            self.process.close()
            self.process = Sandboxed(MODULE, self.limits, site=True)
            self.ask("load", self.text, self.name)
            return
        self.ask("fresh")

    def choose(self, name: str) -> None:
        """Let all questions be about the switch of this name from now on; a new name is a new switch."""
        self.ask("choose", name)

    def install(self, entries: SwitchEntries) -> None:
        """Add entries; `InputError` if the program has no such table or action."""
        try:
            self.ask("install", entries_to(entries))
        except InputError as error:
            raise InputError(f"the program does not take the task's entries: {error}{HINT}") from None

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves, as (port, packet) in order, when `packet` arrives at `port`."""
        return packets_in(self.ask("inject", port, packet.hex()))

    def trace(self, port: int, packet: bytes) -> Traced:
        """Like `inject`, with what happens to the packet, line by line."""
        sent, lines = self.ask("trace", port, packet.hex())
        return Traced(packets_in(sent), tuple(map(str, lines)))

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        packets, octets = self.ask("counter", name)
        return [(int(count), int(size)) for count, size in zip(packets, octets, strict=True)]

    def state(self) -> int:
        """A number that stands for the content of all registers."""
        return int(self.ask("state"))

    def step(self, state: int, port: int, packet: bytes) -> tuple[int, Packets]:
        """The state after a packet that came in a state, and what left."""
        after, sent = self.ask("step", state, port, packet.hex())
        return int(after), packets_in(sent)

    def close(self) -> None:
        """End the process."""
        self.process.close()


def packets_in(answer: Any) -> Packets:
    return [(int(port), bytes.fromhex(packet)) for port, packet in answer]
