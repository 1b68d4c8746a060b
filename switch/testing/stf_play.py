"""Plays an STF test on a switch: PASS, FAIL with the differences, or UNSUPPORTED with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from inakit.switch.control.simple_switch_cli import CommandReader, whole_name
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.devices import Device, open_device
from inakit.switch.testing.stf_script import Add, Expect, Line, SendPacket, SetDefault, StfNames, SwitchCommand
from inakit.topo.errors import InputError, UnsupportedError


def differences(script: Sequence[Line], received: dict[int, list[bytes]]) -> list[str]:
    """The differences between the packets of each port and the expected ones.

    A port that the script sends packets to, but expects none from, must stay silent; ports that it does not name can
    send anything.
    """
    expected: dict[int, list[tuple[int, Expect]]] = {}
    free: set[int] = set()
    for line in script:
        match line.statement:
            case Expect(port, None):
                free.add(port)
            case Expect(port):
                expected.setdefault(port, []).append((line.number, line.statement))
            case SendPacket(port):
                expected.setdefault(port, [])
    return [
        text
        for port in sorted(set(expected) - free)
        for text in differences_at(port, expected[port], received.get(port, []))
    ]


def differences_at(port: int, expected: Sequence[tuple[int, Expect]], received: Sequence[bytes]) -> Iterator[str]:
    """The differences at one port, packet by packet."""
    for place, ((number, pattern), packet) in enumerate(zip(expected, received, strict=False), start=1):
        if wrong := mismatch(pattern, packet.hex().upper()):
            yield f"port {port}, packet {place} (line {number}): {wrong}"
    for number, pattern in expected[len(received) :]:
        yield f"port {port}: nothing came for line {number}\n  expected {spaced(pattern.digits or '')}"
    for packet in received[len(expected) :]:
        yield f"port {port}: a packet came that is not expected\n  got      {spaced(packet.hex().upper())}"


def mismatch(pattern: Expect, got: str) -> str | None:
    """The reason why a packet, given in hexadecimal digits, is not the expected one; None if it is."""
    wanted = pattern.digits or ""
    both = f"\n  expected {spaced(wanted)}{' $' if pattern.complete else ''}\n  got      {spaced(got)}"
    wrong = [at for at, (want, have) in enumerate(zip(wanted, got, strict=False)) if want not in ("*", have)]
    if wrong:
        marks = "".join("^" if at in wrong else " " for at in range(wrong[-1] + 1))
        return f"byte {wrong[0] // 2} differs{both}\n           {spaced(marks)}"
    if len(got) < len(wanted):
        return f"{len(got) // 2} bytes instead of {len(wanted) // 2}{both}"
    if pattern.complete and len(got) > len(wanted):
        return f"{len(got) // 2} bytes instead of exactly {len(wanted) // 2}{both}"
    return None


def spaced(digits: str) -> str:
    """Hexadecimal digits with a space between bytes."""
    return " ".join(digits[at : at + 2] for at in range(0, len(digits), 2))


class StfVerdict(StrEnum):
    """The outcome of a test: as expected, otherwise, or not run for lack of support."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNSUPPORTED = "UNSUPPORTED"


@dataclass(frozen=True)
class Result:
    """The result of a test.

    `reasons` are the differences or the unsupported constructs; `shown` is the output of commands that read registers
    and counters; `received` are the packets that left each port.
    """

    verdict: StfVerdict
    reasons: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    received: Mapping[int, Sequence[bytes]] = field(default_factory=dict)


def play(program: Path, script: Sequence[Line], target: str) -> Result:
    """Run `script` on a fresh switch with `program` and the ports that the script names.

    If compiled code in this process does not take an entry, the whole script runs again, interpreted.
    """
    statements = [line.statement for line in script]
    ports = sorted({each.port for each in statements if isinstance(each, SendPacket | Expect)})
    try:
        with open_device(target, program, ports) as device:
            player = Player(read_program(program), device)
            for line in script:
                player.take(line)
            return player.result(script)
    except UnsupportedError as error:
        if target == "fast":
            return play(program, script, "interpreted")
        return Result(StfVerdict.UNSUPPORTED, (str(error),))


class Player:
    """Runs a test's statements one by one, and keeps the packets that the switch sends."""

    def __init__(self, program: Program, device: Device) -> None:
        self.names = StfNames(program)
        self.device = device
        self.commands = CommandReader(program)
        self.received: dict[int, list[bytes]] = {}
        self.shown: list[str] = []

    def take(self, line: Line) -> None:
        """Run one statement; `InputError` names its line."""
        try:
            self._take(line)
        except InputError as error:
            raise InputError(f"line {line.number}: '{line.text}': {error}") from error

    def _take(self, line: Line) -> None:
        match line.statement:
            case Add() as add:
                self.device.install(SwitchEntries("switch", (self.names.entry(add),)))
            case SetDefault() as given:
                self.device.install(SwitchEntries("switch", defaults=(self.names.default(given),)))
            case SendPacket(port, data):
                self.device.install(self.commands.take())
                self.keep(self.device.inject(port, data))
                self.shown += self.device.trace_lines()
            case SwitchCommand(words):
                self.command(words)

    def command(self, words: Sequence[str]) -> None:
        """Keep a command that fills the switch until the next packet; run one that reads."""
        if words[0] not in READS:
            said = self.commands.add(words)
            self.shown += [] if said is None else [said]
            return
        self.device.install(self.commands.take())
        self.shown += READS[words[0]](self.device, self.names.program, words)

    def keep(self, packets: Iterable[tuple[int, bytes]]) -> None:
        """Add packets that left the switch to those of their ports."""
        for port, packet in packets:
            self.received.setdefault(port, []).append(packet)

    def result(self, script: Sequence[Line]) -> Result:
        """The result of the whole test, after waiting for missing packets."""
        if differences(script, self.received):
            self.keep(self.device.late())
        found = tuple(differences(script, self.received))
        return Result(StfVerdict.FAIL if found else StfVerdict.PASS, found, tuple(self.shown), self.received)


def read_register(device: Device, program: Program, words: Sequence[str]) -> list[str]:
    """`register_read REGISTER [INDEX]`: a line for the element, or for each one."""
    _, name, *index = words
    values = device.read_register(whole_name("register", name, program.registers))
    chosen = [int(index[0])] if index else range(len(values))
    return [f"{name}[{each}] = {values[each]}" for each in chosen]


def read_counter(device: Device, program: Program, words: Sequence[str]) -> list[str]:
    """`counter_read COUNTER INDEX`: a line with its packets and bytes."""
    _, name, index = words
    packets, octets = device.read_counter(whole_name("counter", name, program.counters))
    return [f"{name}[{index}] = {packets[int(index)]} packets, {octets[int(index)]} bytes"]


READS: dict[str, Callable[[Device, Program, Sequence[str]], list[str]]] = {
    "register_read": read_register,
    "counter_read": read_counter,
}
