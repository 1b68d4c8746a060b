"""The search for the highest rate, against switches whose capacity is known; and one real trial per target."""

from __future__ import annotations

import re
import subprocess
from contextlib import nullcontext
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from inakit.experiments.bench.switch_rates import (
    FRAMES_PER_CALL,
    LOSS_LIMITS,
    STEP,
    WORKLOADS,
    Bench,
    Case,
    ChainRates,
    Findings,
    Measurement,
    RateTrial,
    RunTrial,
    Sender,
    SetUp,
    Workload,
    burst_of,
    highest_rates,
    lacking,
    print_findings,
    rate_table,
    run_bench,
    run_trial,
    set_up_table,
    targets_here,
)
from inakit.planner.install.ina_program import INA, PROGRAMS, DataPlaneProgram
from inakit.switch.targets import TARGETS
from inakit.topo.errors import OutputError, RunError
from inakit.traffic.wire.packet_format import FRAGMENT


def switch_of(capacity_pps: float, sender_pps: float = 1e6, quiet_pps: float | None = None) -> RunTrial:
    """A switch that loses what exceeds its capacity, and a thousandth of the packets above `quiet_pps`."""

    def trial(_seconds: float, rate_pps: float | None) -> RateTrial:
        sent = min(rate_pps or sender_pps, sender_pps)
        background = 0.001 if quiet_pps is not None and sent > quiet_pps else 0.0
        return RateTrial(sent, max(0.0, 1 - capacity_pps / sent, background))

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
    assert highest_rates(lambda _seconds, rate: RateTrial(rate or 1e6, 0.5)) == [0.0, 0.0]


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
    measured = tuple(
        Measurement(target, "sums", switches, limit, rate)
        for (target, limit), both in rates.items()
        for switches, rate in zip((1, 45), both, strict=True)
    )
    assert cells_of(rate_table(Findings(measured, ()))) == [
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


def of_program(program: DataPlaneProgram) -> list[Workload]:
    return [workload for workload in WORKLOADS if workload.program is program]


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


def bench_of(monkeypatch: pytest.MonkeyPatch, ending: type[BaseException] | None = None) -> tuple[Findings, str]:
    """A bench of two chains of both targets, of which one case fails; and what it prints, also where it is ended."""
    bmv2, fast = TARGETS["bmv2"], TARGETS["fast"]

    def measured(case: Case) -> ChainRates:
        if (case.target, case.switches) == (fast, 45):
            raise RunError("switch 's7' died") if ending is None else ending
        return ChainRates(
            case.rates((1000.0, 500.0 * case.switches)), SetUp(case.target.name, case.switches, 1.5, 0.25)
        )

    monkeypatch.setattr("inakit.experiments.bench.switch_rates.measure_case", measured)
    console = Console(width=100, file=StringIO(), record=True)
    shown: list[Findings] = []

    def show(findings: Findings) -> None:
        shown.append(findings)
        print_findings(console, findings)

    with nullcontext() if ending is None else pytest.raises(ending):
        run_bench((bmv2, fast), console, show, lengths=(1, 45))
    return shown[0], console.export_text()


def test_a_case_that_fails_says_why_in_its_row_and_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    findings, text = bench_of(monkeypatch)
    lines = text.splitlines()
    assert (
        lines[0]
        == "1 of 12: bmv2, chain of 1, plain forwarding: 1,000 packets/s (loss ≤ 0.2%); 500 packets/s (no loss)"
    )
    assert lines[7] == "8 of 12: fast, chain of 45, plain forwarding: failed: switch 's7' died"
    assert [case.workload for case, _ in findings.failed] == list(WORKLOADS)
    assert cells_of(rate_table(findings))[:4] == [
        ["plain forwarding", "≤ 0.2%", "1", "1,000", "1,000", "1.0"],
        ["", "", "45", "1,000", "failed", "-"],
        ["plain forwarding", "none", "1", "500", "500", "1.0"],
        ["", "", "45", "22,500", "failed", "-"],
    ]
    assert lines[-1] == "fast, chain of 45, 64-element aggregation, ina_hw failed: switch 's7' died"


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, OutputError])
def test_what_was_measured_is_shown_when_a_bench_is_ended(
    monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    findings, text = bench_of(monkeypatch, ending)
    assert len(findings.rates) == 2 * 7
    assert ["", "", "45", "1,000", "-", "-"] in cells_of(rate_table(findings))
    assert "Packets per second into the first switch" in text
    assert cells_of(set_up_table(findings)) == [["1", "1.5 + 0.25", "1.5 + 0.25"], ["45", "1.5 + 0.25", "-"]]
