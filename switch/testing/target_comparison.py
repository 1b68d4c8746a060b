"""Two targets get the same random packets: do they send the same, and hold the same registers?

A difference counts only if it comes again when both start anew and packets arrive one at a time: on a busy machine
BMv2 loses packets, and a program that reads clocks or random numbers never does the same twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from types import MappingProxyType

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.entry_files import read_entries
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import TableEntry
from inakit.switch.program.program import Program
from inakit.switch.program.read import read_program
from inakit.switch.testing.devices import open_device
from inakit.switch.testing.random_packets import PORTS, Draw
from inakit.switch.testing.random_trials import Batch, Contest, Trial, Unlike, comes_again
from inakit.switch.testing.stf_script import Add, SetDefault, StfNames
from inakit.topo.errors import unknown_name

BATCH = 32
"""So many packets are given to a target at once, all at one port: BMv2 takes those of several ports in any order."""

ENTRIES_PER_TABLE = 8

MOST_TRIALS = 4
"""So often two targets are started before their difference is put down to losses."""


class Outcome(StrEnum):
    """How a comparison ended; LOST and UNSTEADY say nothing of whether the targets do the same."""

    IDENTICAL = "identical"
    DIFFERENT = "DIFFERENT"
    LOST = "LOST"
    UNSTEADY = "UNSTEADY"


WAYS_OUT = {
    Outcome.LOST: "A target loses packets, others in each trial: run again when the machine is idle.",
    Outcome.UNSTEADY: "One target does not do the same twice: its program reads clocks or random numbers. "
    "Nothing is said of whether the targets do the same.",
}
"""What can be done about an outcome that says nothing of the targets."""


@dataclass(frozen=True)
class Comparison:
    """The result for two `targets` that got `packets` packets; the first one sent `left`.

    `difference` describes the first difference: between the targets, or if the outcome is LOST or UNSTEADY, between two
    trials of one target. It is None where they are identical.
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
    """Give `count` random packets to a switch of each target, until they differ.

    Entries are those of `commands`, a file of simple_switch_CLI's or a s1-runtime.json, or else random ones. The same
    seed draws the same. `limits` are the highest values of fields of packets and keys, and of parameters of actions,
    such as those that are indices of registers; `headers` are those that every packet has. `progress` is told how many
    packets have passed, `skipped` which of the commands are skipped.
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
    """The limits by whole names of fields and of parameters; `InputError` for a name that the program does not have."""
    fields = {str(field) for header in program.headers.values() for field in header.fields}
    parameters = {f"{action.name}.{each.name}" for action in program.actions for each in action.parameters}
    return {whole_name("field or parameter", name, fields | parameters): most for name, most in limits.items()}


def batches(draw: Draw, count: int) -> Iterator[Batch]:
    packets = (packet for _, packet in draw.packets(count))
    while batch := list(islice(packets, BATCH)):
        yield draw.random.choice(PORTS), batch


def decide(contest: Contest, given: list[Batch], progress: Callable[[int], None]) -> Comparison:
    """Give the batches to both targets; where they differ again, one packet at a time, until the outcome is clear."""
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
    """Whether both trials ended in the same difference."""
    return other.differs and (one.sent, one.registers) == (other.sent, other.registers)


def verdict(trials: list[Trial]) -> tuple[Outcome, str | None]:
    """The outcome of several trials, and the difference that it stands on."""
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


Key = Mapping[str, object]


@dataclass(frozen=True)
class TestedTable:
    """The table `name`. Keys are {field: value}, values those of STF; the highest `priority` wins, as in STF."""

    __test__ = False
    control: ControlPlane
    names: StfNames
    name: str

    def add(self, key: Key, action: str, priority: int | None = None, **params: object) -> None:
        self.control.tables.add_entry(self._entry(key, priority, action, params))

    def change(self, key: Key, action: str, priority: int | None = None, **params: object) -> None:
        entry = self._entry(key, priority, action, params)
        self.control.tables.modify(self.name, self._handle(key, priority), entry.action, entry.params)

    def delete(self, key: Key, priority: int | None = None) -> None:
        self.control.tables.delete(self.name, self._handle(key, priority))

    def clear(self) -> None:
        """Remove all entries."""
        self.control.tables.clear(self.name)

    def entries(self) -> list[TableEntry]:
        """The entries by their handles. Of their priorities the lowest wins, as in BMv2."""
        return [held.entry for held in self.control.tables.entries(self.name) if isinstance(held.entry, TableEntry)]

    def counter(self, key: Key, priority: int | None = None) -> tuple[int, int]:
        """Packets and bytes that the entry with this key has counted: its table has a direct counter."""
        return self.control.counters.read_entry(self.name, self._handle(key, priority))

    def set_default(self, action: str, **params: object) -> None:
        """Choose the action that the table runs on a miss."""
        default = self.names.default(SetDefault(self.name, action, as_text(params)))
        self.control.tables.set_default(default.table, default.action, default.params)

    def reset_default(self) -> None:
        """Let the table run on a miss what its program says."""
        self.control.tables.reset_default(self.name)

    def _entry(self, key: Key, priority: int | None, action: str, params: Key) -> TableEntry:
        return self.names.entry(Add(self.name, priority, as_text(key), action, as_text(params)))

    def _handle(self, key: Key, priority: int | None) -> int:
        found = self.names.matched(Add(self.name, priority, as_text(key), "", ()))
        return self.control.tables.find(self.name, *found)


def as_text(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Names and values as an STF statement has them."""
    return tuple((name, str(value)) for name, value in values.items())
