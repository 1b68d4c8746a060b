"""The search for the highest rate, against switches whose capacity is known; and one real trial per target."""

from __future__ import annotations

import re
import subprocess
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from experiments.bench.chain import FRAMES_PER_CALL, Bench
from experiments.bench.lossless_rate import LOSS_LIMITS, STEP, highest_rates
from experiments.bench.measure import Findings, Measurement, SetUp, lacking, of_program, targets_here
from experiments.bench.tables import rate_table, set_up_table
from experiments.bench.trial import RunTrial, Sender, Trial, burst_of, run_trial
from planner.install.data_plane_program import INA, PROGRAMS, DataPlaneProgram
from switch.targets import TARGETS
from topo.errors import RunError
from traffic.wire.frames import FRAGMENT


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


def cells_of(table: Table) -> list[list[str]]:
    console = Console(width=100, file=StringIO(), record=True)
    console.print(table)
    lines = [line for line in console.export_text().splitlines() if "│" in line]
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines]


def test_the_table_puts_targets_side_by_side_and_shows_how_the_ratio_grows() -> None:
    rates = {
        ("bmv2", 0.002): (10_000, 300), ("bmv2", 0.0): (0, 200),
        ("fast", 0.002): (250_000, 30_000), ("fast", 0.0): (900_000, 20_000),
    }  # fmt: skip
    table = rate_table([
        Measurement(target, "sums", switches, limit, rate)
        for (target, limit), both in rates.items()
        for switches, rate in zip((1, 45), both, strict=True)
    ])  # fmt: skip
    assert cells_of(table) == [
        ["sums", "≤ 0.2%", "1", "10,000", "250,000", "25.0"],
        ["", "", "45", "300", "30,000", "100.0"],
        ["sums", "none", "1", "0", "900,000", "-"],
        ["", "", "45", "200", "20,000", "100.0"],
    ]


def test_the_set_up_of_targets_stands_side_by_side() -> None:
    set_ups = (SetUp("bmv2", 45, 12.34, 3.0), SetUp("fast", 45, 4.21, 0.05))
    assert cells_of(set_up_table(Findings((), set_ups))) == [["45", "12.3 + 3.00", "4.2 + 0.05"]]


def test_bursts_are_small_at_low_rates() -> None:
    assert [burst_of(rate) for rate in (100, 4_000, 20_000, 1e6, None)] == [1, 2, 10, FRAMES_PER_CALL, FRAMES_PER_CALL]


def test_without_any_target_the_reasons_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert targets_here() == []
    bmv2, fast = lacking()
    assert re.match("bmv2 cannot run here: .*simple_switch is not installed", bmv2)
    assert re.match("fast cannot run here: .*(clang is not installed|root is needed)", fast)


@pytest.mark.root
@pytest.mark.parametrize("target", [pytest.param("bmv2", marks=pytest.mark.bmv2), "fast"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_gentle_trial_loses_nothing(target: str, program: DataPlaneProgram) -> None:
    with Bench(TARGETS[target], 2, program) as bench:
        for workload in of_program(program):
            trial = run_trial(bench, workload, Sender(bench, workload), 0.3, 1000)
            assert trial.loss == 0
            assert trial.rate_pps > 0


def at_host(bench: Bench, worker: str, command: str) -> None:
    """Run a command in a worker's namespace, with its interface for {}."""
    host = bench.network.hosts[worker]
    words = command.format(host.interface).split()
    subprocess.run(["nsenter", f"--net=/proc/{host.pid}/ns/net", *words], check=True, capture_output=True)


@pytest.mark.root
def test_a_full_queue_at_a_worker_slows_it_down_and_loses_nothing() -> None:
    with Bench(TARGETS["fast"], 1) as bench:
        at_host(bench, "w2", "tc qdisc add dev {} root tbf rate 8mbit burst 2kb limit 4kb")
        for workload in of_program(INA):
            trial = run_trial(bench, workload, Sender(bench, workload), 0.3, None)
            assert trial.loss == 0
            assert 0 < trial.rate_pps < 4 * 8e6 / 8 / FRAGMENT.wire_bytes


@pytest.mark.root
def test_a_workers_link_that_is_down_is_an_error() -> None:
    with Bench(TARGETS["fast"], 1) as bench:
        at_host(bench, "w2", "ip link set {} down")
        (plain, _) = of_program(INA)
        with pytest.raises(RunError, match="host 'w2' cannot send: Network is down"):
            run_trial(bench, plain, Sender(bench, plain), 0.3, None)


def test_every_program_has_a_row_of_aggregation() -> None:
    for program in PROGRAMS.values():
        assert any(workload.yield_per_packet < 1 for workload in of_program(program))
