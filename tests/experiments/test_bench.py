"""The search for the highest rate, against switches whose capacity is known; and one real trial per target."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from experiments.bench import (
    LOSS_LIMITS,
    STEP,
    WORKLOADS,
    Bench,
    Measurement,
    RunTrial,
    Sender,
    Trial,
    bench_table,
    highest_rates,
    installed_targets,
    run_trial,
)
from switch.target import TARGETS
from topo.errors import MachineError


def switch_of(capacity_pps: float, sender_pps: float = 1e6, quiet_pps: float | None = None) -> RunTrial:
    """A switch that loses what exceeds its capacity, and a thousandth of the packets above `quiet_pps`."""

    def trial(_seconds: float, rate_pps: float | None) -> Trial:
        sent = min(rate_pps or sender_pps, sender_pps)
        background = 0.001 if quiet_pps is not None and sent > quiet_pps else 0.0
        return Trial(sent, max(0.0, 1 - capacity_pps / sent, background))

    return trial


@pytest.mark.parametrize("capacity_pps", [900.0, 12_345.0, 400_000.0])
def test_the_search_finds_the_capacity_from_below(capacity_pps: float) -> None:
    for rate in highest_rates(switch_of(capacity_pps)):
        assert capacity_pps * STEP <= rate <= capacity_pps / (1 - LOSS_LIMITS[0])


def test_a_switch_faster_than_the_sender_gives_the_senders_rate() -> None:
    assert highest_rates(switch_of(2e6, sender_pps=1e6)) == [1e6, 1e6]


def test_each_loss_limit_has_its_own_rate() -> None:
    tolerant, strict = highest_rates(switch_of(50_000, quiet_pps=20_000))
    assert 50_000 * STEP <= tolerant <= 50_000 / (1 - LOSS_LIMITS[0])
    assert 20_000 * STEP <= strict <= 20_000


def test_a_switch_that_always_loses_gives_zero() -> None:
    assert highest_rates(lambda _seconds, rate: Trial(rate or 1e6, 0.5)) == [0.0, 0.0]


def test_the_table_puts_targets_side_by_side() -> None:
    rates = {("bmv2", 0.002): 10_000.0, ("bmv2", 0.0): 0.0, ("fast", 0.002): 250_000.0, ("fast", 0.0): 200_000.0}
    table = bench_table([Measurement(target, "sums", 1, limit, rate) for (target, limit), rate in rates.items()])
    console = Console(width=120, file=StringIO(), record=True)
    console.print(table)
    text = console.export_text()
    rows = [[cell.strip() for cell in line.strip("│ \n").split("│")] for line in text.splitlines() if "sums" in line]
    assert rows == [["sums", "1", "≤ 0.2%", "10,000", "250,000", "25.0"], ["sums", "1", "none", "0", "200,000", "-"]]


def test_without_any_target_the_reasons_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MachineError, match=r"simple_switch is not installed.*(clang is not installed|root is needed)"):
        installed_targets()


@pytest.mark.root
@pytest.mark.parametrize("target", [pytest.param("bmv2", marks=pytest.mark.bmv2), "fast"])
def test_a_gentle_trial_loses_nothing(target: str) -> None:
    with Bench(TARGETS[target], 2) as bench:
        for workload in WORKLOADS:
            trial = run_trial(bench, workload, Sender(bench, workload), 0.3, 1000)
            assert trial.loss == 0
            assert trial.rate_pps > 0
