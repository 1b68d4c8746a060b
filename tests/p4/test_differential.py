"""All switches make the same of the same packets: bytes, order per port, registers, counters."""

from __future__ import annotations

from collections import Counter

import pytest
from comparison import differences
from hypothesis import HealthCheck, Phase, given, settings
from reduction import reduced
from sequences import PacketSwitch
from strategies import Case, cases

from traffic.packet import Event

pytest_plugins = ["switches"]
pytestmark = pytest.mark.root

STATE = ("slot_owner", "slot_seq", "slot_bitmap", "slot_workers", "slot_overflow", "sum0", "sum63")
REGISTERS = tuple(f"InaIngress.{name}" for name in STATE)
EXAMPLES = {"in_kernel": 100, "bmv2": 40}


def fuzzing(config: pytest.Config, usual: int) -> settings:
    """`usual` examples, the same ones every time; with `--fuzz N`, N others every time."""
    wanted = config.getoption("fuzz")
    return settings(
        max_examples=wanted or usual, derandomize=wanted is None, database=None, deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )  # fmt: skip


@pytest.mark.parametrize("name", ["in_kernel", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_random_entries_and_packets(
    request: pytest.FixtureRequest,
    in_process: PacketSwitch,
    in_kernel: PacketSwitch,
    outcomes: Counter[Event],
    name: str,
) -> None:
    """Against simple_switch both forms of the embedded switch; without it, one against the other."""
    reference: PacketSwitch = request.getfixturevalue(name)
    others = {"in_process": in_process} | ({"in_kernel": in_kernel} if reference is not in_kernel else {})

    def difference(case: Case) -> str:
        expected = reference.run(case.entries, case.steps, REGISTERS)
        outcomes.update({event: int(expected.counters["InaIngress.events"][0][event]) for event in Event})
        seen = {other: switch.run(case.entries, case.steps, REGISTERS) for other, switch in others.items()}
        return "\n".join(f"{other}: {line}" for other in others for line in differences(expected, seen[other]))

    @fuzzing(request.config, EXAMPLES[name])
    @given(cases())
    def agree(case: Case) -> None:
        if difference(case):
            small = reduced(case, lambda smaller: bool(difference(smaller)))
            pytest.fail(f"{name} gives, and the others do not:\n{difference(small)}\nfor{small!r}", pytrace=False)

    agree()


def test_the_sequences_above_saw_every_outcome(outcomes: Counter[Event]) -> None:
    if not outcomes:
        pytest.skip("no random sequence ran before")
    assert not {event.name: outcomes[event] for event in Event if outcomes[event] < 10}
