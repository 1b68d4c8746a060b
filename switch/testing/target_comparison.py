"""Two targets get the same random packets: do they send the same, and hold the same registers?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from types import MappingProxyType

from switch.control.simple_switch_cli import read_commands
from switch.entries import SwitchEntries
from switch.program.program import Program
from switch.program.read import read_program
from switch.standalone.devices import Device, open_device
from switch.stf.differences import spaced
from switch.testing.random_entries import PORTS
from switch.testing.random_packets import Draw
from topo.errors import unknown_name

BATCH = 32
"""So many packets are given to a target at once, all at one port: BMv2 takes those of several ports in any order."""

ENTRIES_PER_TABLE = 8

Sent = dict[int, list[bytes]]


@dataclass(frozen=True)
class Comparison:
    """The result for two `targets` that got `packets` packets; the first one sent `left`.

    `difference` describes the first difference, or is None.
    """

    targets: tuple[str, str]
    packets: int
    left: int
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

    Entries are those of `commands`, a file of simple_switch_CLI's, or else random ones. The same seed draws the same.
    `limits` are the highest values of fields of packets, such as those that are indices of registers; `headers` are
    those that every packet has. `skipped` is told which of the commands are skipped.
    """
    read = read_program(program)
    check_names(read, limits, headers)
    draw = Draw(read, Random(seed), limits, headers=headers)
    entries = draw.entries(ENTRIES_PER_TABLE) if commands is None else read_commands(commands, read, skipped)
    draw.know(entries)
    with open_device(targets[0], program, PORTS) as one, open_device(targets[1], program, PORTS) as other:
        return compare_devices(ComparedSwitches(read, targets, one, other), draw, entries, count, progress)


def check_names(program: Program, limits: Mapping[str, int], headers: Collection[str]) -> None:
    """Raise `InputError` for a field or header that the program does not have."""
    for header in headers:
        if header not in program.headers:
            raise unknown_name("header", header, program.headers)
    fields = {str(field) for header in program.headers.values() for field in header.fields}
    for name in limits:
        if name not in fields:
            raise unknown_name("field", name, fields)


@dataclass
class ComparedSwitches:
    """The two switches that are compared."""

    program: Program
    targets: tuple[str, str]
    one: Device
    other: Device


def compare_devices(
    pair: ComparedSwitches, draw: Draw, entries: SwitchEntries, count: int, progress: Callable[[int], None]
) -> Comparison:
    """Give both switches the same entries and up to `count` packets; stop at the first difference."""
    for device in (pair.one, pair.other):
        device.install(entries)
    done = left = 0
    for port, packets in batches(draw, count):
        one, other = by_port(pair.one.inject_all(port, packets)), by_port(pair.other.inject_all(port, packets))
        if one != other:
            other = merged(other, by_port(pair.other.late()))
        done, left = done + len(packets), left + sum(map(len, one.values()))
        progress(len(packets))
        if one != other:
            found = f"within {len(packets)} packets at port {port}: {difference(pair.targets, one, other)}"
            return Comparison(pair.targets, done, left, found)
    return Comparison(pair.targets, done, left, next(register_differences(pair), None))


def batches(draw: Draw, count: int) -> Iterator[tuple[int, list[bytes]]]:
    """Batches of packets, each for one port."""
    packets = (packet for _, packet in draw.packets(count))
    while batch := list(islice(packets, BATCH)):
        yield draw.random.choice(PORTS), batch


def by_port(packets: Sequence[tuple[int, bytes]]) -> Sent:
    """What left each port of `PORTS`, in order."""
    sent: Sent = {}
    for port, packet in packets:
        if port in PORTS:
            sent.setdefault(port, []).append(packet)
    return sent


def merged(sent: Sent, more: Sent) -> Sent:
    """The packets of both by port, those of `more` last."""
    return {port: sent.get(port, []) + more.get(port, []) for port in {*sent, *more}}


def difference(targets: tuple[str, str], one: Sent, other: Sent) -> str:
    """The first packet that differs, at the first port that has one."""
    port = min(port for port in {*one, *other} if one.get(port) != other.get(port))
    first, second = one.get(port, []), other.get(port, [])
    same = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    lines = [f"\n  {name:12} {shown(packets, same)}" for name, packets in zip(targets, (first, second), strict=True)]
    return f"packet {same + 1} to leave port {port} differs{''.join(lines)}"


def shown(packets: Sequence[bytes], number: int) -> str:
    """Packet number `number` in hexadecimal digits, or "nothing"."""
    return spaced(packets[number].hex()) if number < len(packets) else "nothing"


def register_differences(pair: ComparedSwitches) -> Iterator[str]:
    """A line for each register element that differs."""
    for name in pair.program.registers:
        one, other = pair.one.read_register(name), pair.other.read_register(name)
        for index in (one != other).nonzero()[0]:
            yield f"register {name}[{index}]: {pair.targets[0]} {one[index]}, {pair.targets[1]} {other[index]}"
