"""All switches make the same of the same random packets: bytes, order per port, registers, counters."""

from __future__ import annotations

from collections import Counter

import pytest
from comparison import differences
from hypothesis import HealthCheck, Phase, given, settings
from reduction import reduced
from sequences import PacketSwitch
from strategies import Case, cases

from inakit.traffic.wire.packet_format import Event

pytest_plugins = ["switches"]
pytestmark = pytest.mark.root

STATE = ("slot_owner", "slot_seq", "slot_bitmap", "slot_workers", "slot_overflow", "sum0", "sum63")
REGISTERS = tuple(f"InaIngress.{name}" for name in STATE)
USUAL = settings(
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
"""`reduced` makes failing examples smaller than hypothesis does, and faster."""


@settings(USUAL, max_examples=30)
@given(case=cases())
def test_random_entries_and_packets(
    in_process: PacketSwitch, in_kernel: PacketSwitch, outcomes: Counter[Event], case: Case
) -> None:
    """Both forms of the embedded switch, one against the other."""
    compare(in_kernel, {"in_process": in_process}, case, outcomes)


@pytest.mark.bmv2
@settings(USUAL, max_examples=40)
@given(case=cases())
def test_random_entries_and_packets_on_bmv2(
    bmv2: PacketSwitch, in_process: PacketSwitch, in_kernel: PacketSwitch, outcomes: Counter[Event], case: Case
) -> None:
    compare(bmv2, {"in_process": in_process, "in_kernel": in_kernel}, case, outcomes)


def compare(reference: PacketSwitch, others: dict[str, PacketSwitch], case: Case, outcomes: Counter[Event]) -> None:
    """Fail, with the fewest packets that show it, unless the others make the same as the reference."""

    def difference(case: Case) -> str:
        expected = reference.run(case.entries, case.steps, REGISTERS)
        outcomes.update({event: int(expected.counters["InaIngress.events"][0][event]) for event in Event})
        seen = {other: switch.run(case.entries, case.steps, REGISTERS) for other, switch in others.items()}
        return "\n".join(f"{other}: {line}" for other in others for line in differences(expected, seen[other]))

    if difference(case):
        small = reduced(case, lambda smaller: bool(difference(smaller)))
        pytest.fail(f"the switches differ:\n{difference(small)}\nfor{small!r}", pytrace=False)


def test_the_sequences_above_saw_every_outcome(outcomes: Counter[Event]) -> None:
    if not outcomes:
        pytest.skip("no random sequence ran before")
    assert not {event.name: outcomes[event] for event in Event if outcomes[event] < 10}
