"""The bench that tests a submission: its switch, the packets sent to it, and their trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from inakit.experiments.labs.grading.graded_switch import SANDBOX, GradedSwitch, open_switch
from inakit.experiments.labs.grading.lab import WrongError
from inakit.experiments.labs.grading.packets import described
from inakit.experiments.labs.grading.submission import Submission, compiled_program
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.switch.entries import SwitchEntries
from inakit.switch.interpret.interpreted_switch import Packets
from inakit.topo.errors import InakitError, InputError, MachineError

Made = TypeVar("Made")
MOST_SENT = 8


@dataclass(frozen=True)
class Exchange:
    """A packet that was sent to a port of a switch, and the packets that the switch sent."""

    port: int
    packet: bytes
    got: tuple[tuple[int, bytes], ...]
    switch: str = ""

    @property
    def sent(self) -> str:
        """The packet that was sent, as one line."""
        return f"port {self.port}: {described(self.packet)}"


class Bench:
    """A submission under test.

    Checks draw all random values from `random`, which the seed and the item determine. `failed` has the parts
    (`Item.part`) that have lost points so far. `of_item` is closed when the next item begins, `stack` at the end. The
    grade shows the `notes`.
    """

    def __init__(self, submission: Submission, target: str = SANDBOX) -> None:
        self.submission, self.target = submission, target
        self.random = Random()
        self.failed: set[str] = set()
        self.notes: list[str] = []
        self.stack, self.of_item = ExitStack(), ExitStack()
        self.stack.callback(self.end_item)
        self.program = ""
        self.loaded: GradedSwitch | None = None
        self.refused = ""
        self.not_here: MachineError | None = None
        self.entries = SwitchEntries("switch")
        self.exchanges: list[Exchange] = []
        self.made: dict[Callable[..., Any], Any] = {}

    def begin(self, random: Random) -> None:
        """Begin an item."""
        self.end_item()
        self.of_item, self.random = ExitStack(), random
        self.entries, self.exchanges = SwitchEntries("switch"), []

    def end_item(self) -> None:
        """Close the resources that the item has opened."""
        self.of_item.close()

    def once(self, make: Callable[[Bench], Made]) -> Made:
        """The value of a function of the bench; the function is called once per submission."""
        if make not in self.made:
            self.made[make] = make(self)
        found: Made = self.made[make]
        return found

    # -- the switch

    def load(self, stem: str) -> None:
        """Compile the program of the submission, and load it into a switch of the target."""
        self.program, note = compiled_program(self.submission, stem)
        self.notes += [note] if note else []
        self.loaded = self.stack.enter_context(open_switch(self.target, self.program, stem))
        if isinstance(self.loaded, SandboxedSwitch):
            self.note_limits(self.loaded.process.enforced)
        else:
            self.notes.append("not in a sandbox: grade only programs that you trust in this way")

    def note_limits(self, enforced: Mapping[str, str]) -> None:
        """Note each limit that this machine does not enforce; `enforced` has each limit's mechanism."""
        lacking = (f"not enforced on this machine: {what}" for what, by in enforced.items() if not by)
        self.notes += [note for note in lacking if note not in self.notes]

    @property
    def switch(self) -> GradedSwitch:
        """The switch that runs the program.

        Raises `InputError` if the program does not load, `MachineError` if this machine cannot compile it.
        """
        if self.not_here is not None:
            raise self.not_here
        if self.loaded is None:
            raise InputError(self.refused)
        return self.loaded

    @property
    def sandboxed(self) -> SandboxedSwitch:
        """The switch in its sandbox; `InputError` if the program does not load."""
        switch = self.switch
        assert isinstance(switch, SandboxedSwitch)
        return switch

    def start(self, entries: SwitchEntries) -> None:
        """Restart the program with these entries."""
        self.entries, self.exchanges = entries, []
        self.switch.fresh()
        self.switch.install(entries)

    def send(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; return the packets that leave."""
        got = self.switch.inject(port, packet)
        self.exchanges.append(Exchange(port, packet, tuple(got)))
        return got

    def wrong(
        self, cause: str, expected: Sequence[tuple[int, bytes]] | str = (), field: str = "port", got: str = ""
    ) -> WrongError:
        """The error to raise when the last packet shows a fault.

        `expected` are the packets that should have left. `field` names the wrong field, such as `values.v3`, or `port`,
        for the trace. `got` replaces the packets that left in the message.
        """
        if not self.exchanges:
            return WrongError(cause)
        lines = [each.sent for each in self.exchanges]
        before = [f"({len(lines) - MOST_SENT} packets before)"] if len(lines) > MOST_SENT else []
        packets = [] if isinstance(expected, str) else list(expected)
        there = in_order(self.exchanges[-1].got, [port for port, _ in packets])
        wanted, left = ([line_of(*each) for each in some] for some in (packets, there))
        if wanted == left:  # words leave Ethernet addresses out
            wanted, left = ([f"port {port}: {packet.hex()}" for port, packet in some] for some in (packets, there))
        wanted = [expected] if isinstance(expected, str) else wanted
        return WrongError(
            cause,
            sent=before + lines[-MOST_SENT:],
            expected=wanted or ["nothing"],
            got=[got] if got else left or ["nothing"],
            trace=trace_of(self.loaded, self.entries, [(each.port, each.packet) for each in self.exchanges], field),
        )

    def same(self, got: Packets, expected: Packets, cause: str, field: str = "port") -> None:
        """Raise `WrongError` unless the same packets left, in any order of ports."""
        if sorted(got) != sorted(expected):
            raise self.wrong(cause, expected, field)

    # -- random values

    def drawn_values(self) -> tuple[int, ...]:
        """Random numbers of 32 bits; the sum of two overflows in half of the cases."""
        return tuple(self.random.getrandbits(32) for _ in range(8))

    def drawn_ethernet(self) -> bytes:
        """Random Ethernet addresses of a packet's receiver and sender."""
        return self.random.randbytes(12)

    def drawn_ports(self, count: int) -> list[int]:
        """Random different ports other than 0."""
        return self.random.sample(range(1, 64), count)


def line_of(port: int, packet: bytes) -> str:
    """A packet at a port, as one line."""
    return f"port {port}: {described(packet)}"


def in_order(got: Sequence[tuple[int, bytes]], ports: Sequence[int]) -> Packets:
    """Packets in the order of these ports; packets at other ports come last."""
    return sorted(got, key=lambda packet: ports.index(packet[0]) if packet[0] in ports else len(ports))


# -- traces


def trace_of(
    switch: GradedSwitch | None, entries: SwitchEntries, packets: Sequence[tuple[int, bytes]], field: str
) -> tuple[str, ...]:
    """The excerpt of the last packet's trace; all packets are sent again to a restarted switch."""
    if not isinstance(switch, SandboxedSwitch):
        return ()
    try:
        switch.fresh()
        switch.install(entries)
        *before, last = packets
        for port, packet in before:
            switch.inject(port, packet)
        return excerpt(switch.trace(*last).lines, field)
    except (InakitError, EndedError):
        return ()


MOST_LINES = 16
NOT_OF_STUDENTS = re.compile(
    r"Bytes parsed|Parser state|Pipeline|Replicating|Action tbl_|Action [\w.]+\d+\(\)$|Applying table 'tbl_|Table 'tbl_"
)
TEMPORARY = re.compile(r": scalars\.tmp(_\d+)? = ")
STATEMENT = re.compile(r"Primitive (?P<file>[^ ]+):(?P<line>\d+) (?P<text>.*)")
CONSTANT = re.compile(r"[^=(;]+;.*?: (?P<change>[\w.$]+ = 0x[0-9a-f]+)")
"""Matches a field that is set to a constant: p4c names the line of the constant, from its value on, not the
statement's."""
DROPS = ("mark_to_drop", "Dropping packet")
DECIDES = ("egress_spec", "mcast_grp", *DROPS)


def excerpt(lines: Sequence[str], field: str) -> tuple[str, ...]:
    """The last lines about the student's code, up to the last write of `field`, which is marked.

    `field` is a header field such as `values.v3`, or `port` for the statement that chose the packet's port, or `drop`.
    """
    kept = [line for line in lines if not NOT_OF_STUDENTS.match(line) and not TEMPORARY.search(line)]
    at = len(kept) - 1
    for words in ({"port": DECIDES, "drop": DROPS}.get(field, (f"{field} = ",)), DECIDES):
        found = [number for number, line in enumerate(kept) if any(word in line for word in words)]
        if found:
            statements = [number for number in found if kept[number].startswith("Primitive")]
            at = (statements or found)[-1]
            break
    before = (f"  {shown(line)}" for line in kept[max(0, at + 1 - MOST_LINES) : at])
    return (*before, *(f"> {shown(line)}" for line in kept[at : at + 1]))


def shown(line: str) -> str:
    """A line in the report's form: a statement begins with its file and line."""
    statement = STATEMENT.match(line)
    if statement is None:
        return line
    file, text = statement["file"].rpartition("/")[2], statement["text"].replace("scalars.", "")
    constant = CONSTANT.fullmatch(text)
    if constant is not None:
        return f"{file}: {constant['change']} (the constant of line {statement['line']})"
    return f"{file}:{statement['line']}: {text}"
