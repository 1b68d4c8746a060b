"""Compares two targets on the same random packets: the packets that they send, and their registers.

In each trial two fresh switches get the same packets. A difference counts only if it recurs when both start anew and
packets arrive one at a time: on a busy machine BMv2 loses packets, and a program that reads clocks or random numbers
never repeats itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from types import MappingProxyType

from inakit.switch.control.entry_files import read_entries
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program
from inakit.switch.testing.devices import Device, open_device
from inakit.switch.testing.random_packets import PORTS, Draw
from inakit.switch.testing.stf_play import spaced
from inakit.topo.errors import unknown_name

Batch = tuple[int, list[bytes]]
"""A port, and packets that arrive there."""

Sent = dict[int, list[bytes]]
"""The packets that left each port, in order."""

AT_ONCE_AGAIN = ("recirculate", "resubmit")
"""With these primitives BMv2 takes waiting packets before returning ones: the order depends on their pace."""

MOST_READ = (1 << 63) - 1
"""The greatest register value that BMv2's control plane reports, also for greater values."""


class Unlike(StrEnum):
    """The difference of two trials for one switch: packets are missing in one of them, or the packets differ."""

    LOST = "lost"
    CHANGED = "changed"


@dataclass(frozen=True)
class Contest:
    """Two targets, and the opener of a fresh switch of each. Both run `program` and get `entries`."""

    program: Program
    targets: tuple[str, str]
    opened: tuple[Callable[[], AbstractContextManager[Device]], Callable[[], AbstractContextManager[Device]]]
    entries: SwitchEntries


@dataclass
class Trial:
    """The packets that both switches sent for each batch so far; their registers once all batches were equal.

    Several trials of one contest have the same batches; each stops at the first difference.
    """

    contest: Contest
    sent: list[tuple[Sent, Sent]] = field(default_factory=list)
    registers: tuple[Mapping[str, list[int]], Mapping[str, list[int]]] = ({}, {})

    @property
    def differs(self) -> bool:
        """Whether the switches sent different packets or hold different registers."""
        return (bool(self.sent) and self.sent[-1][0] != self.sent[-1][1]) or self.registers[0] != self.registers[1]

    def run(self, batches: Sequence[Batch], singly: bool, progress: Callable[[int], None]) -> None:
        """Send the batches to two fresh switches until they differ; `singly` waits for each packet's results."""
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
        """The difference of this switch (0 or 1) in `another` trial, with a description; None if it behaved alike."""
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
    """The packets that both switches send for a batch that arrives at once, after waiting for missing packets."""
    sent = by_port(one.inject_all(*batch)), by_port(other.inject_all(*batch))
    if sent[0] != sent[1]:
        sent = merged(sent[0], by_port(one.late())), merged(sent[1], by_port(other.late()))
    return sent


def results_singly(one: Device, other: Device, batch: Batch) -> tuple[Sent, Sent]:
    """The packets that both switches send for a batch whose packets arrive one after the other.

    The switch that answers at once determines the number of packets to wait for at the other one.
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
    """The packets that left each port of `PORTS`, in order, without empty ones, which no interface carries."""
    sent: Sent = {}
    for port, packet in packets:
        if port in PORTS and packet:
            sent.setdefault(port, []).append(packet)
    return sent


def merged(sent: Sent, more: Sent) -> Sent:
    """The packets of both by port, those of `more` last."""
    return {port: sent.get(port, []) + more.get(port, []) for port in {*sent, *more}}


def is_part(some: Sent, whole: Sent) -> bool:
    """Whether `some` is `whole` with some packets missing."""
    for port, packets in some.items():
        rest = iter(whole.get(port, []))
        if not all(each in rest for each in packets):
            return False
    return True


def registers_of(device: Device, program: Program) -> dict[str, list[int]]:
    """All elements of all registers; values above `MOST_READ` become `MOST_READ`."""
    return {name: [min(int(value), MOST_READ) for value in device.read_register(name)] for name in program.registers}


def difference(names: tuple[str, str], one: Sent, other: Sent) -> str:
    """The first packet that differs, at the first port that has one."""
    port = min(port for port in {*one, *other} if one.get(port) != other.get(port))
    first, second = one.get(port, []), other.get(port, [])
    same = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    shown = (spaced(sent[same].hex()) if same < len(sent) else "nothing" for sent in (first, second))
    lines = [f"\n  {name:12} {packet}" for name, packet in zip(names, shown, strict=True)]
    return f"packet {same + 1} to leave port {port} differs{''.join(lines)}"


def register_differences(
    names: tuple[str, str], one: Mapping[str, list[int]], other: Mapping[str, list[int]]
) -> Iterator[str]:
    """A line for each register element that differs."""
    for name, values in one.items():
        for index, (mine, theirs) in enumerate(zip(values, other[name], strict=True)):
            if mine != theirs:
                yield f"register {name}[{index}]: {names[0]} {mine}, {names[1]} {theirs}"


BATCH = 32
"""The number of packets that a target gets at once, all at one port: BMv2 takes several ports' packets in any order."""

ENTRIES_PER_TABLE = 8

MOST_TRIALS = 4
"""The number of trials of two targets before their difference is attributed to losses."""


class Outcome(StrEnum):
    """The outcome of a comparison; LOST and UNSTEADY do not tell whether the targets are equivalent."""

    IDENTICAL = "identical"
    DIFFERENT = "DIFFERENT"
    LOST = "LOST"
    UNSTEADY = "UNSTEADY"


WAYS_OUT = {
    Outcome.LOST: "A target loses different packets in each trial: run again when the machine is idle.",
    Outcome.UNSTEADY: "One target differs between two trials: its program reads clocks or random numbers. "
    "This comparison does not tell whether the targets are equivalent.",
}
"""Advice for outcomes that do not tell whether the targets are equivalent."""


@dataclass(frozen=True)
class Comparison:
    """The result for two `targets` that got `packets` packets; the first one sent `left`.

    `difference` describes the first difference: between the targets, or for the outcomes LOST and UNSTEADY between two
    trials of one target. It is None if there is none.
    """

    targets: tuple[str, str]
    packets: int
    left: int
    outcome: Outcome
    difference: str | None


def compare(
    program: Path,
    targets: tuple[str, str],
    count: int,
    seed: int = 0,
    commands: Path | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
    headers: Collection[str] = (),
    progress: Callable[[int], None] = lambda _: None,
    skipped: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Send `count` random packets to a switch of each target until they differ.

    Entries come from `commands`, a file for simple_switch_CLI or an s1-runtime.json, or are random. The same seed draws
    the same packets and entries. `limits` are the highest values of fields of packets and keys, and of action
    parameters, such as indices of registers; every packet has all `headers`. `progress` gets the number of packets so
    far, `skipped` the skipped commands.
    """
    read = read_program(program)
    for header in headers:
        if header not in read.headers:
            raise unknown_name("header", header, read.headers)
    draw = Draw(read, Random(seed), whole_limits(read, limits), headers=headers)
    entries = draw.entries(ENTRIES_PER_TABLE) if commands is None else read_entries(commands, read, skipped)
    draw.know(entries)
    one, other = (partial(open_device, target, program, PORTS) for target in targets)
    return decide(Contest(read, targets, (one, other), entries), list(batches(draw, count)), progress)


def whole_limits(program: Program, limits: Mapping[str, int]) -> dict[str, int]:
    """The limits by full names of fields and parameters; `InputError` for an unknown name."""
    fields = {str(field) for header in program.headers.values() for field in header.fields}
    parameters = {f"{action.name}.{each.name}" for action in program.actions for each in action.parameters}
    return {whole_name("field or parameter", name, fields | parameters): most for name, most in limits.items()}


def comes_again(program: Program) -> bool:
    """Whether the program returns packets to the pipeline."""
    return any(primitive.name in AT_ONCE_AGAIN for action in program.actions for primitive in action.primitives)


def batches(draw: Draw, count: int) -> Iterator[Batch]:
    packets = (packet for _, packet in draw.packets(count))
    while batch := list(islice(packets, BATCH)):
        yield draw.random.choice(PORTS), batch


def decide(contest: Contest, given: list[Batch], progress: Callable[[int], None]) -> Comparison:
    """Send the batches to both targets; if they differ, repeat one packet at a time until the outcome is clear."""
    numbers = [sum(len(packets) for _, packets in given[: end + 1]) for end in range(len(given))]
    trials: list[Trial] = []
    while len(trials) < MOST_TRIALS:
        trials.append(Trial(contest))
        singly = len(trials) > 1 or comes_again(contest.program)
        trials[-1].run(given, singly, lambda passed: progress(numbers[passed - 1]))
        if not trials[-1].differs or (len(trials) > 1 and came_again(*trials[-2:])):
            break
    last = trials[-1]
    left = sum(len(packets) for one, _ in last.sent for packets in one.values())
    passed = numbers[len(last.sent) - 1] if last.sent else 0
    return Comparison(contest.targets, passed, left, *verdict(trials))


def came_again(one: Trial, other: Trial) -> bool:
    """Whether both trials ended with the same difference."""
    return other.differs and (one.sent, one.registers) == (other.sent, other.registers)


def verdict(trials: list[Trial]) -> tuple[Outcome, str | None]:
    """The outcome of several trials, and the difference that supports it."""
    last = trials[-1]
    if not last.differs:
        return Outcome.IDENTICAL, None
    if len(trials) > 1 and came_again(*trials[-2:]):
        return Outcome.DIFFERENT, last.difference()
    found = [unlike for pair in pairwise(trials[1:]) for which in (0, 1) if (unlike := pair[0].unlike(pair[1], which))]
    changed = [words for kind, words in found if kind is Unlike.CHANGED]
    if changed:
        return Outcome.UNSTEADY, changed[0]
    return Outcome.LOST, found[0][1]
