"""Both switch targets make the same of the same packets: bytes, order per port, registers, counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from fuzz import random_entries, random_steps
from inprocess import InProcess
from sequences import COUNTERS, PORTS, PacketSwitch, Seen

from switch.read import read_program
from traffic.packet import FRAGMENT, PROGRAM, Event

pytestmark = [pytest.mark.root, pytest.mark.bmv2]

STATE = ("slot_owner", "slot_seq", "slot_bitmap", "slot_workers", "slot_overflow")
SEEDS = range(12)
PACKETS = 1500
# What BMv2's control plane reports of a value that its signed 64 bits cannot hold.
LARGEST_REPORTED = np.uint64(2**63 - 1)


@pytest.fixture(scope="module")
def bmv2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PacketSwitch]:
    from reference import running_reference  # noqa: PLC0415, needs p4-utils, as only this fixture does

    with running_reference(tmp_path_factory.mktemp("bmv2")) as reference:
        yield reference


@pytest.fixture(scope="module")
def fast() -> InProcess:
    return InProcess(read_program(PROGRAM))


@pytest.fixture(scope="module")
def outcomes() -> Counter[Event]:
    """How often each outcome happened in all sequences of this module together."""
    return Counter()


def differences(reference: Seen, other: Seen) -> Iterator[str]:
    """What `other` did otherwise, a line for each thing."""
    for port in PORTS:
        yield from packet_differences(port, reference.sent[port], other.sent[port])
    for name, values in reference.registers.items():
        reported = np.minimum(other.registers[name], LARGEST_REPORTED)
        for index in np.flatnonzero(values != reported)[:5]:
            yield f"{name}[{index}]: {values[index]:#x}, not {reported[index]:#x}"
    for name in COUNTERS:
        for what, left, right in zip(("packets", "bytes"), reference.counters[name], other.counters[name], strict=True):
            for index in np.flatnonzero(left != right)[:12]:
                yield f"{name}[{index}]: {left[index]} {what}, not {right[index]}"


def packet_differences(port: int, reference: list[bytes], other: list[bytes]) -> Iterator[str]:
    if len(reference) != len(other):
        yield f"port {port} sent {len(reference)} packets, not {len(other)}"
    for number, (left, right) in enumerate(zip(reference, other, strict=False)):
        if left != right:
            yield f"port {port}, packet {number}:\n    {left.hex()}\nnot {right.hex()}"
            return


@pytest.mark.parametrize("seed", SEEDS)
def test_random_entries_and_packets(bmv2: PacketSwitch, fast: InProcess, outcomes: Counter[Event], seed: int) -> None:
    rng = Random(seed)
    entries, steps = random_entries(rng), random_steps(rng, PACKETS)
    sums = sorted(rng.sample(range(FRAGMENT.values), 2))
    registers = [f"InaIngress.{name}" for name in (*STATE, *(f"sum{i}" for i in sums))]
    reference = bmv2.run(entries, steps, registers)
    found = "\n".join(differences(reference, fast.run(entries, steps, registers)))
    assert not found, f"seed {seed}: the reference gives\n{found}\nwith the entries\n{entries.cli()}"
    outcomes.update({event: int(reference.counters["InaIngress.events"][0][event]) for event in Event})


def test_the_sequences_above_saw_every_outcome(outcomes: Counter[Event]) -> None:
    if not outcomes:
        pytest.skip("no random sequence ran before")
    assert min(outcomes[event] for event in Event) >= 10, outcomes
