"""Plays an STF test on a switch: PASS, FAIL with the differences, or UNSUPPORTED with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from switch.control.simple_switch_cli import CommandReader
from switch.entries import SwitchEntries
from switch.program.program import Program
from switch.program.read import read_program
from switch.standalone.devices import Device, open_device
from switch.stf.names import Names
from switch.stf.script import Add, Command, Expect, Line, Packet, SetDefault
from topo.errors import InputError, UnsupportedError


class Verdict(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    UNSUPPORTED = "UNSUPPORTED"


@dataclass(frozen=True)
class Result:
    """What became of a test.

    `reasons`: the differences, or what is unsupported; `shown`: what its reads gave; `received`: what left each port.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    received: Mapping[int, Sequence[bytes]] = field(default_factory=dict)


def play(program: Path, script: Sequence[Line], target: str) -> Result:
    """Run `script` on a fresh switch with `program`. Ports are those that the script names.

    Where compiled code in this process does not take an entry, the whole script is played again, interpreted.
    """
    statements = [line.statement for line in script]
    ports = sorted({each.port for each in statements if isinstance(each, Packet | Expect)})
    try:
        with open_device(target, program, ports) as device:
            player = Player(read_program(program), device)
            for line in script:
                player.take(line)
            return player.result(script)
    except UnsupportedError as error:
        if target == "fast":
            return play(program, script, "interpreted")
        return Result(Verdict.UNSUPPORTED, (str(error),))


class Player:
    """Takes a test's statements one by one, and keeps what the switch sends."""

    def __init__(self, program: Program, device: Device) -> None:
        self.names = Names(program)
        self.device = device
        self.commands = CommandReader(program)
        self.received: dict[int, list[bytes]] = {}
        self.shown: list[str] = []

    def take(self, line: Line) -> None:
        """Carry out one statement; `InputError` says where it stands."""
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
            case Packet(port, data):
                self.device.install(self.commands.take())
                self.keep(self.device.inject(port, data))
                self.shown += self.device.told()
            case Command(words):
                self.command(words)

    def command(self, words: Sequence[str]) -> None:
        if words[0] not in READS:
            self.commands.add(words)
            return
        self.device.install(self.commands.take())
        self.shown += READS[words[0]](self.device, words)

    def keep(self, packets: Iterable[tuple[int, bytes]]) -> None:
        for port, packet in packets:
            self.received.setdefault(port, []).append(packet)

    def result(self, script: Sequence[Line]) -> Result:
        """Compare what was sent with what was expected; wait for what is missing."""
        if differences(script, self.received):
            self.keep(self.device.late())
        found = tuple(differences(script, self.received))
        return Result(Verdict.FAIL if found else Verdict.PASS, found, tuple(self.shown), self.received)


def differences(script: Sequence[Line], received: dict[int, list[bytes]]) -> list[str]:
    """How the packets of each port differ from those expected; ports that the script does not name are free."""
    expected: dict[int, list[tuple[int, Expect]]] = {}
    free: set[int] = set()
    for line in script:
        match line.statement:
            case Expect(port, None):
                free.add(port)
            case Expect(port):
                expected.setdefault(port, []).append((line.number, line.statement))
            case Packet(port):
                expected.setdefault(port, [])
    return [
        text for port in sorted(set(expected) - free) for text in compare(port, expected[port], received.get(port, []))
    ]


def compare(port: int, expected: Sequence[tuple[int, Expect]], received: Sequence[bytes]) -> Iterator[str]:
    """The differences at one port, packet by packet."""
    for place, ((number, pattern), packet) in enumerate(zip(expected, received, strict=False), start=1):
        if wrong := mismatch(pattern, packet.hex().upper()):
            yield f"port {port}, packet {place} (line {number}): {wrong}"
    for number, pattern in expected[len(received) :]:
        yield f"port {port}: nothing came for line {number}\n  expected {in_bytes(pattern.digits or '')}"
    for packet in received[len(expected) :]:
        yield f"port {port}: a packet came that is not expected\n  got      {in_bytes(packet.hex().upper())}"


def mismatch(pattern: Expect, got: str) -> str | None:
    """Why a packet, in hexadecimal digits, is not the expected one; None if it is."""
    wanted = pattern.digits or ""
    both = f"\n  expected {in_bytes(wanted)}{' $' if pattern.complete else ''}\n  got      {in_bytes(got)}"
    wrong = [at for at, (want, have) in enumerate(zip(wanted, got, strict=False)) if want not in ("*", have)]
    if wrong:
        marks = "".join("^" if at in wrong else " " for at in range(wrong[-1] + 1))
        return f"byte {wrong[0] // 2} differs{both}\n           {in_bytes(marks)}"
    if len(got) < len(wanted):
        return f"{len(got) // 2} bytes instead of {len(wanted) // 2}{both}"
    if pattern.complete and len(got) > len(wanted):
        return f"{len(got) // 2} bytes instead of exactly {len(wanted) // 2}{both}"
    return None


def in_bytes(digits: str) -> str:
    """Digits in pairs."""
    return " ".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def read_register(device: Device, words: Sequence[str]) -> list[str]:
    _, name, *index = words
    values = device.read_register(name)
    chosen = [int(index[0])] if index else range(len(values))
    return [f"{name}[{each}] = {values[each]}" for each in chosen]


def read_counter(device: Device, words: Sequence[str]) -> list[str]:
    _, name, index = words
    packets, octets = device.read_counter(name)
    return [f"{name}[{index}] = {packets[int(index)]} packets, {octets[int(index)]} bytes"]


def not_shown(device: Device, words: Sequence[str]) -> list[str]:  # noqa: ARG001
    return [f"{' '.join(words)}: not shown; no statement depends on it"]


READS: dict[str, Callable[[Device, Sequence[str]], list[str]]] = {
    "register_read": read_register,
    "counter_read": read_counter,
    "meter_get_rates": not_shown,
    "mirroring_get": not_shown,
}
