"""Trials of a comparison: two fresh switches get the same packets in each, and what both send is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum

from inakit.switch.entries import SwitchEntries
from inakit.switch.program.program import Program
from inakit.switch.testing.devices import Device
from inakit.switch.testing.random_packets import PORTS
from inakit.switch.testing.stf_play import spaced

Batch = tuple[int, list[bytes]]
"""A port, and packets that arrive there."""

Sent = dict[int, list[bytes]]
"""What left each port, in order."""

AT_ONCE_AGAIN = ("recirculate", "resubmit")
"""With these primitives BMv2 takes packets that wait before those that come again: the order depends on their pace."""

MOST_READ = (1 << 63) - 1
"""The greatest number of a register that BMv2's control plane tells; it tells this one for greater ones too."""


class Unlike(StrEnum):
    """How two trials differ for one switch: packets are missing in one of them, or they are others."""

    LOST = "lost"
    CHANGED = "changed"


@dataclass(frozen=True)
class Contest:
    """Two targets, and how a fresh switch of each is opened. Both run `program` and get `entries`."""

    program: Program
    targets: tuple[str, str]
    opened: tuple[Callable[[], AbstractContextManager[Device]], Callable[[], AbstractContextManager[Device]]]
    entries: SwitchEntries


@dataclass
class Trial:
    """What both switches sent for each batch so far, and their registers where all batches passed without difference.

    Several trials of one contest have the same batches; each stops at the first that makes a difference.
    """

    contest: Contest
    sent: list[tuple[Sent, Sent]] = field(default_factory=list)
    registers: tuple[Mapping[str, list[int]], Mapping[str, list[int]]] = ({}, {})

    @property
    def differs(self) -> bool:
        """Whether the switches sent different packets, or hold different registers."""
        return (bool(self.sent) and self.sent[-1][0] != self.sent[-1][1]) or self.registers[0] != self.registers[1]

    def run(self, batches: Sequence[Batch], singly: bool, progress: Callable[[int], None]) -> None:
        """Give the batches to two fresh switches until they differ; `singly` waits for each packet's results."""
        with self.contest.opened[0]() as one, self.contest.opened[1]() as other:
            for device in (one, other):
                device.install(self.contest.entries)
            for number, batch in enumerate(batches, start=1):
                self.sent.append(results_singly(one, other, batch) if singly else results(one, other, batch))
                progress(number)
                if self.differs:
                    return
            self.registers = registers_of(one, self.contest.program), registers_of(other, self.contest.program)

    def difference(self) -> str:
        """The first difference between the switches, in words."""
        one, other = self.sent[-1]
        if one != other:
            return difference(self.contest.targets, one, other)
        return next(register_differences(self.contest.targets, *self.registers))

    def unlike(self, another: Trial, which: int) -> tuple[Unlike, str] | None:
        """How this switch (0 or 1) behaved otherwise in `another` trial, and the difference in words; None if alike."""
        names = (f"{self.contest.targets[which]}, once", f"{self.contest.targets[which]}, again")
        for mine, theirs in zip(self.sent, another.sent, strict=False):
            one, other = mine[which], theirs[which]
            if one != other:
                lost = is_part(one, other) or is_part(other, one)
                return Unlike.LOST if lost else Unlike.CHANGED, difference(names, one, other)
        one_registers, other_registers = self.registers[which], another.registers[which]
        if one_registers and other_registers and one_registers != other_registers:
            return Unlike.CHANGED, next(register_differences(names, one_registers, other_registers))
        return None


def results(one: Device, other: Device, batch: Batch) -> tuple[Sent, Sent]:
    """What both switches send for a batch that arrives at once. What is missing is waited for."""
    sent = by_port(one.inject_all(*batch)), by_port(other.inject_all(*batch))
    if sent[0] != sent[1]:
        sent = merged(sent[0], by_port(one.late())), merged(sent[1], by_port(other.late()))
    return sent


def results_singly(one: Device, other: Device, batch: Batch) -> tuple[Sent, Sent]:
    """What both switches send for a batch whose packets arrive one after the other.

    The switch that answers at once says how many packets the other one is waited for.
    """
    leads = one.at_once or not other.at_once
    leader, follower = (one, other) if leads else (other, one)
    port, packets = batch
    led: Sent = {}
    followed: Sent = {}
    for packet in packets:
        expected = by_port(leader.inject(port, packet))
        led = merged(led, expected)
        count = sum(map(len, expected.values()))
        followed = merged(followed, by_port(follower.inject_expecting(port, packet, count)))
    return (led, followed) if leads else (followed, led)


def by_port(packets: Sequence[tuple[int, bytes]]) -> Sent:
    """What left each port of `PORTS`, in order, without packets that have no bytes: no interface carries them."""
    sent: Sent = {}
    for port, packet in packets:
        if port in PORTS and packet:
            sent.setdefault(port, []).append(packet)
    return sent


def merged(sent: Sent, more: Sent) -> Sent:
    """The packets of both by port, those of `more` last."""
    return {port: sent.get(port, []) + more.get(port, []) for port in {*sent, *more}}


def is_part(some: Sent, whole: Sent) -> bool:
    """Whether `some` is `whole` without some of its packets."""
    return all(is_subsequence(packets, whole.get(port, [])) for port, packets in some.items())


def is_subsequence(some: Sequence[bytes], whole: Sequence[bytes]) -> bool:
    """Whether `some` are elements of `whole`, in their order."""
    rest = iter(whole)
    return all(each in rest for each in some)


def registers_of(device: Device, program: Program) -> dict[str, list[int]]:
    """All elements of all registers, greater ones as `MOST_READ`."""
    return {name: [min(int(value), MOST_READ) for value in device.read_register(name)] for name in program.registers}


def difference(names: tuple[str, str], one: Sent, other: Sent) -> str:
    """The first packet that differs, at the first port that has one."""
    port = min(port for port in {*one, *other} if one.get(port) != other.get(port))
    first, second = one.get(port, []), other.get(port, [])
    same = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    lines = [f"\n  {name:12} {shown(packets, same)}" for name, packets in zip(names, (first, second), strict=True)]
    return f"packet {same + 1} to leave port {port} differs{''.join(lines)}"


def shown(packets: Sequence[bytes], number: int) -> str:
    """Packet number `number` in hexadecimal digits, or "nothing"."""
    return spaced(packets[number].hex()) if number < len(packets) else "nothing"


def register_differences(
    names: tuple[str, str], one: Mapping[str, list[int]], other: Mapping[str, list[int]]
) -> Iterator[str]:
    """A line for each register element that differs."""
    for name, values in one.items():
        for index, (mine, theirs) in enumerate(zip(values, other[name], strict=True)):
            if mine != theirs:
                yield f"register {name}[{index}]: {names[0]} {mine}, {names[1]} {theirs}"


def comes_again(program: Program) -> bool:
    """Whether the program sends packets through the pipeline again."""
    return any(primitive.name in AT_ONCE_AGAIN for action in program.actions for primitive in action.primitives)
