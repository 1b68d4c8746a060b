"""The switch of a submission under test: what runs its program, what a check asks of it, and the traces it shows.

The program runs in a sandbox, or on any target of the kit that runs one switch; in virtual time it is one compiled
switch with a host at each port, joined by links that take their time. A trace ends at the statement that went wrong.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

import numpy as np

from inakit.experiments.labs.course.packets import described
from inakit.experiments.labs.grading.items import Exchange, Finding, Item, Packets, WrongError
from inakit.experiments.labs.grading.submission import REFUSED, Submission, compiled_program, refusal
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.experiments.labs.sandbox.switch_runner import with_whole_names
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import SwitchEntries
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.read import read_program
from inakit.switch.testing.devices import Device, open_device
from inakit.topo.errors import InakitError, InputError, UnsupportedError
from inakit.topo.virtual.engine import PS_PER_S, Engine


class GradedSwitch(Protocol):
    """A switch that runs a student's program."""

    def fresh(self) -> None:
        """Start the switch anew, without entries."""
        ...

    def install(self, entries: SwitchEntries) -> None:
        """Add entries."""
        ...

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves for a packet."""
        ...

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        ...


class Bench:
    """Drives one switch for one item. What is random is drawn from `random`, which the seed and the item decide."""

    def __init__(self, switch: GradedSwitch, random: Random) -> None:
        self.switch, self.random = switch, random
        self.entries = SwitchEntries("switch")
        self.exchanges: list[Exchange] = []

    def start(self, entries: SwitchEntries) -> None:
        """Start the program anew, with these entries."""
        self.entries, self.exchanges = entries, []
        self.switch.fresh()
        self.switch.install(entries)

    def send(self, port: int, packet: bytes) -> Packets:
        """Send a packet to a port; what leaves."""
        got = self.switch.inject(port, packet)
        self.exchanges.append(Exchange(port, packet, tuple(got)))
        return got

    def wrong(
        self, cause: str, expected: Sequence[tuple[int, bytes]] | str = (), field: str = "port", got: str = ""
    ) -> WrongError:
        """What to raise when the last packet shows that something is wrong; `got` is told in place of what left."""
        wanted = (expected,) if isinstance(expected, str) else tuple(expected)
        return WrongError(cause, tuple(self.exchanges), wanted, field, got=(got,) if got else ())

    def same(self, got: Packets, expected: Packets, cause: str, field: str = "port") -> None:
        """Raise `WrongError` unless the same packets left, in any order of ports."""
        if sorted(got) != sorted(expected):
            raise self.wrong(cause, expected, field)

    def drawn_values(self, count: int = 8) -> tuple[int, ...]:
        """Numbers of 32 bits; a sum of two of them overflows every second time."""
        return tuple(self.random.getrandbits(32) for _ in range(count))

    def drawn_ports(self, count: int) -> list[int]:
        """Different ports, none of them 0."""
        return self.random.sample(range(1, 64), count)


PORTS = 128
RATE_BPS, DELAY_PS = 1e9, PS_PER_S // 10**6
FRAME = np.dtype([("bytes", np.uint8, 1536)])
QUIET_PS = PS_PER_S // 100
"""After so long everything that a packet causes has arrived."""


class VirtualSwitch:
    """A switch in virtual time. It starts anew by being made again; a packet goes in when the one before has left."""

    def __init__(self, path: Path) -> None:
        self.program = read_program(path)
        self.engine: Engine | None = None
        self.switch: InProcessSwitch | None = None

    def fresh(self) -> None:
        """Start the switch anew, without entries."""
        self.close()
        self.switch = InProcessSwitch(self.program)
        self.engine = Engine(2 * PORTS, [*[1] * PORTS, PORTS], FRAME)
        for port in range(PORTS):
            host, inner = (port, 0), (PORTS, port)
            self.engine.connect(2 * port, host, inner, rate_bps=RATE_BPS, delay_ps=DELAY_PS, limit=0)
            self.engine.connect(2 * port + 1, inner, host, rate_bps=RATE_BPS, delay_ps=DELAY_PS, limit=0)
        self.engine.run_on(PORTS, self.switch.take_packet, self.switch.address, self.switch)

    def install(self, entries: SwitchEntries) -> None:
        """Add entries."""
        assert self.switch is not None
        self.switch.install(with_whole_names(self.program, entries))

    def inject(self, port: int, packet: bytes) -> Packets:
        """What arrives at hosts when the host at `port` sends a packet, in the order of arrival."""
        assert self.engine is not None
        frames = np.zeros(1, FRAME)
        frames["bytes"][0, : len(packet)] = np.frombuffer(packet, np.uint8)
        self.engine.send(np.array([2 * port], np.uint32), np.array([len(packet)], np.uint32), frames)
        self.engine.run(self.engine.now_ps + QUIET_PS)
        return [(int(each["node"]), each["frame"]["bytes"][: each["length"]].tobytes()) for each in self.engine.take()]

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        assert self.switch is not None
        packets, octets = self.switch.read_counter(whole_name("counter", name, self.program.counters))
        return [(int(count), int(size)) for count, size in zip(packets, octets, strict=True)]

    def close(self) -> None:
        """Free everything."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None


SANDBOX, VIRTUAL = "sandbox", "virtual"


def refuse_target(lab: str, target: str) -> None:
    """Raise `UnsupportedError` for another target than the sandbox, in a lab without P4."""
    if target != SANDBOX:
        raise UnsupportedError(f"--target {target}: {lab} has no P4; leave the option out")


@contextmanager
def open_switch(target: str, text: str, name: str, ports: Iterable[int] = range(1, 128)) -> Iterator[GradedSwitch]:
    """A switch that runs the BMv2 JSON `text`: in a sandbox, in virtual time, or on a target of
    `inakit.switch.standalone`.

    A target on interfaces has these ports; `simple_switch` takes seconds for a hundred.
    """
    if target == SANDBOX:
        sandboxed = SandboxedSwitch(text, name)
        try:
            yield sandboxed
        finally:
            sandboxed.close()
        return
    with tempfile.TemporaryDirectory(prefix="inakit-lab-") as folder:
        path = Path(folder, f"{name}.json")
        path.write_text(text)
        device = VirtualSwitch(path) if target == VIRTUAL else DeviceSwitch(target, path, ports)
        try:
            yield device
        finally:
            device.close()


class DeviceSwitch:
    """A switch of a target, which is not confined. It starts anew by being made again."""

    def __init__(self, target: str, path: Path, ports: Iterable[int]) -> None:
        self.target, self.path, self.stack, self.ports = target, path, ExitStack(), tuple(ports)
        self.program = read_program(path)
        self.device: Device | None = None

    def fresh(self) -> None:
        """Start the switch anew, without entries."""
        self.stack.close()
        self.device = self.stack.enter_context(open_device(self.target, self.path, self.ports))

    def install(self, entries: SwitchEntries) -> None:
        """Add entries."""
        self.running.install(with_whole_names(self.program, entries))

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves for a packet."""
        return self.running.inject(port, packet)

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of a counter."""
        packets, octets = self.running.read_counter(whole_name("counter", name, self.program.counters))
        return [(int(count), int(size)) for count, size in zip(packets, octets, strict=True)]

    def close(self) -> None:
        """End the switch."""
        self.stack.close()

    @property
    def running(self) -> Device:
        assert self.device is not None
        return self.device


MOST_LINES = 16
MARK, PLAIN = "> ", "  "
LEFT_OUT = re.compile(r"Bytes parsed|Parser state|Pipeline|Replicating|Action tbl_|Action [\w.]+\d+\(\)$")
HIDDEN_TABLE = re.compile(r"(Applying table 'tbl_|Table 'tbl_)")
STATEMENT = re.compile(r"Primitive (?P<file>[^ ]+):(?P<line>\d+) (?P<text>.*)")
CONSTANT = re.compile(r"[^=(;]+;.*?: (?P<change>[\w.$]+ = 0x[0-9a-f]+)")
"""A field that is set to a constant: p4c names the line of the constant, from its value on, and not the statement's."""
TEMPORARY = re.compile(r": scalars\.tmp(_\d+)? = ")

DECIDES = ("egress_spec", "mcast_grp", "mark_to_drop", "Dropping packet")
DROPS = ("mark_to_drop", "Dropping packet")


def excerpt(lines: Sequence[str], field: str) -> tuple[str, ...]:
    """The last lines up to the one that last wrote `field`, which is marked.

    `field` is a header's, as `values.v3`, or `port` for what decided where the packet goes, or `drop`.
    """
    kept = [line for line in lines if worth_showing(line)]
    found = (deciding(kept, each) for each in (field, "port"))
    at = next((number for number in found if number is not None), len(kept) - 1)
    before = (PLAIN + shown(line) for line in kept[max(0, at + 1 - MOST_LINES) : at])
    return (*before, *(MARK + shown(line) for line in kept[at : at + 1]))


def worth_showing(line: str) -> bool:
    """Whether a line is about something that the student wrote."""
    return not (LEFT_OUT.match(line) or HIDDEN_TABLE.match(line) or TEMPORARY.search(line))


def shown(line: str) -> str:
    """A line as the report has it: a statement begins with its file and line."""
    statement = STATEMENT.match(line)
    if statement is None:
        return line
    file, text = statement["file"].rpartition("/")[2], statement["text"].replace("scalars.", "")
    constant = CONSTANT.fullmatch(text)
    if constant is not None:
        return f"{file}: {constant['change']} (the constant of line {statement['line']})"
    return f"{file}:{statement['line']}: {text}"


def deciding(lines: Sequence[str], field: str) -> int | None:
    words = {"port": DECIDES, "drop": DROPS}.get(field, (f"{field} = ",))
    found = [number for number, line in enumerate(lines) if any(word in line for word in words)]
    statements = [number for number in found if lines[number].startswith("Primitive")]
    chosen = statements or found
    return chosen[-1] if chosen else None


MOST_SENT = 8


@dataclass(frozen=True)
class SwitchLab:
    """A lab of one P4 program, called `program`."""

    name: str
    title: str
    hours: str
    program: str
    items: tuple[Item, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that students hand in."""
        return (f"{self.program}.p4",)

    @contextmanager
    def open(self, submission: Submission, target: str) -> Iterator[OpenedProgram]:
        """Compile a submission and load it into a switch."""
        text, note = compiled_program(submission, self.program)
        with open_switch(target, text, self.program) as switch:
            yield OpenedProgram(switch, (note,) if note else ())


class OpenedProgram:
    """A student's program in a switch."""

    def __init__(self, switch: GradedSwitch, said: tuple[str, ...]) -> None:
        self.switch, self.said = switch, said
        self.last: Bench | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was graded, and what of the sandbox is not enforced here."""
        return (*self.said, *lacking(self.switch))

    def bench(self, item: Item, random: Random) -> Bench:
        del item
        self.last = Bench(self.switch, random)
        return self.last

    def after(self, item: Item, *, passed: bool) -> None:
        """Nothing: items are independent."""

    def finding(self, wrong: WrongError) -> Finding:
        """The packets that show what is wrong, and the trace of the last of them."""
        if not wrong.exchanges:
            return Finding(wrong.cause)
        left = in_order(wrong.exchanges[-1].got, wrong.expected)
        got = wrong.got or tuple(f"port {port}: {described(packet)}" for port, packet in left)
        expected = tuple(e if isinstance(e, str) else f"port {e[0]}: {described(e[1])}" for e in wrong.expected)
        return Finding(
            wrong.cause, sent(wrong.exchanges), expected or ("nothing",), got or ("nothing",), self.trace(wrong)
        )

    def trace(self, wrong: WrongError) -> tuple[str, ...]:
        """The trace of the last packet: all packets are sent again, to a switch started anew."""
        if not isinstance(self.switch, SandboxedSwitch) or self.last is None:
            return ()
        try:
            self.switch.fresh()
            self.switch.install(self.last.entries)
            *before, last = wrong.exchanges
            for exchange in before:
                self.switch.inject(exchange.port, exchange.packet)
            return excerpt(self.switch.trace(last.port, last.packet).lines, wrong.field)
        except (InakitError, EndedError):
            return ()


class ProgramPart:
    """The program of a submission that has other parts, too: what is wrong with it is told where it is needed.

    `text` is its JSON, and `note` says where that is from. `opened` is None for a program that does not load.
    """

    def __init__(self, submission: Submission, name: str, target: str, stack: ExitStack) -> None:
        self.text, self.note, self.refused = "", "", ""
        self.opened: OpenedProgram | None = None
        try:
            self.text, self.note = compiled_program(submission, name)
            switch = stack.enter_context(open_switch(target, self.text, name))
            self.opened = OpenedProgram(switch, self.said)
        except REFUSED as error:
            self.refused = refusal(error)

    @property
    def said(self) -> tuple[str, ...]:
        return (self.note,) if self.note else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was graded, and what of the sandbox is not enforced here."""
        return () if self.opened is None else self.opened.notes

    @property
    def needed(self) -> OpenedProgram:
        """The program in its switch; `InputError` if there is none."""
        if self.opened is None:
            raise InputError(self.refused)
        return self.opened

    @property
    def sandboxed(self) -> SandboxedSwitch:
        """The switch of a program that was opened in the sandbox; `InputError` if there is none."""
        switch = self.needed.switch
        assert isinstance(switch, SandboxedSwitch)
        return switch


def in_order(got: Sequence[tuple[int, bytes]], expected: Sequence[tuple[int, bytes] | str]) -> Packets:
    ports = [each[0] for each in expected if not isinstance(each, str)]
    return sorted(got, key=lambda packet: ports.index(packet[0]) if packet[0] in ports else len(ports))


def sent(exchanges: tuple[Exchange, ...]) -> tuple[str, ...]:
    """The packets that were sent, each on a line; of many the last ones."""
    lines = [f"port {each.port}: {described(each.packet)}" for each in exchanges]
    left_out = len(lines) - MOST_SENT
    return ((f"({left_out} packets before)",) if left_out > 0 else ()) + tuple(lines[-MOST_SENT:])


def lacking(switch: GradedSwitch) -> tuple[str, ...]:
    """What of the sandbox is not enforced on this machine."""
    if not isinstance(switch, SandboxedSwitch):
        return ("not in a sandbox: grade only programs that you trust in this way",)
    return not_enforced(switch.process.enforced)


def not_enforced(enforced: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each limit that nothing holds on this machine; `enforced` says of each what holds it."""
    return tuple(f"not enforced on this machine: {what}" for what, by in enforced.items() if not by)
