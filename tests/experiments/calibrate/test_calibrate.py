"""The cost model, the search and the kept file, tested on made-up machines; and one real calibration."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from command import inakit, nothing_left
from rich.console import Console
from tolerance import undisturbed

from inakit.experiments.calibrate import limit as rate_search
from inakit.experiments.calibrate import rate_probe
from inakit.experiments.calibrate.capacity import (
    Capacity,
    Load,
    Machine,
    Use,
    announce,
    forecast,
    load_results,
    nearest,
    planned_load,
    rounded_down,
    save_result,
    this_machine,
)
from inakit.experiments.calibrate.limit import (
    CALIBRATED,
    QUANTITIES,
    STEP,
    Calibration,
    Verified,
    curve_table,
    find_limit,
    highest_rate,
    verification_table,
    write_curve,
)
from inakit.experiments.calibrate.rate_probe import RUN_S, Sampler, Trial, TrialNetwork, scaled, sequence_numbers
from inakit.experiments.cli.commands.calibrate import parse_sizes
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.planning import make_plan
from inakit.experiments.run.run import Run, carry_out
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.emulated import EmulatedWorld
from inakit.experiments.worlds.world import LiveNetwork
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared
from inakit.topo.errors import InputError, MachineError, RunError

KNOWN = Capacity("fast", 16, Load(100_000, 200_000), Use(0.8, 0.5), "2026-11-21")


def problem() -> Problem:
    return build_problem(FabricChoice("aro-figure1"), JobChoice())


def test_the_load_of_a_plan_without_aggregation_is_counted_packet_by_packet() -> None:
    """Every worker's gradients pass as many switches as its path has; results are copied where paths part."""
    one = problem()
    plan = make_plan(one, "lbmm", 0)
    packets = evaluate(one, plan).sending_rate_bps / (8 * one.fragment.wire_bytes)
    tree = plan.trees[0].tree
    gradient_passes = sum(len(branch.path) - 2 for branch in tree.branches)
    result_copies = sum(parent != tree.root for parent in tree.result_parents.values())
    load = planned_load(one, evaluate(one, plan))
    workers = len(tree.workers)
    assert load.endpoint_pps == pytest.approx(packets * (workers + workers + workers + 1))
    assert load.switch_pps == pytest.approx(packets * (gradient_passes + result_copies))


def test_collectives_have_sequence_numbers_for_all_that_a_connection_sends() -> None:
    """Each of five ranks in a ring sends the next one 2 (n - 1) of its chunks, which are a fifth of 2,141 fragments."""
    one = problem()
    assert one.fragment.count(one.jobs[0].gradient_bytes) == 2141
    assert sequence_numbers(one, make_plan(one, "ring", 0)) in range(8 * 428, 8 * 429 + 1)


def test_aggregation_takes_load_off_the_endpoints() -> None:
    """At the same sending rate the PS receives one packet for each fragment instead of one from each worker."""
    one = problem()
    loads = {}
    for name in ("aro", "lbmm"):
        prediction = evaluate(one, make_plan(one, name, 0))
        load = planned_load(one, prediction)
        loads[name] = load.endpoint_pps / prediction.sending_rate_bps
    workers = len(one.jobs[0].workers)
    assert loads["lbmm"] / loads["aro"] == pytest.approx((3 * workers + 1) / (2 * workers + 2))


def test_shares_are_proportional_to_the_load() -> None:
    use = KNOWN.use(Load(50_000, 300_000))
    assert (use.endpoint, use.switches) == pytest.approx((0.4, 0.75))


@pytest.mark.parametrize(
    ("load", "share"),
    [
        (KNOWN.load, 1.0),
        (Load(50_000, 100_000), 2.0),
        (Load(200_000, 0), 0.5),  # the endpoints limit
        (Load(0, 640_000), 0.5),  # the switches limit: they may become as busy as the endpoints were
    ],
)
def test_what_is_carried_keeps_the_busier_processors_no_busier_than_they_were(load: Load, share: float) -> None:
    assert KNOWN.carried_share(load) == pytest.approx(share)


def test_a_forecast_says_what_is_needed_or_what_would_fit() -> None:
    light, heavy = forecast(KNOWN, Load(50_000, 50_000), 1.0), forecast(KNOWN, Load(150_000, 100_000), 0.5)
    made = "(calibrated 2026-11-21 with 16 hosts)"
    assert light == (f"needs 40% of the endpoint processor and 12% of the switches' {made}", True)
    assert heavy == (f"this machine carries about 0.67 of the planned rates: --scale 0.33 fits {made}", False)


@pytest.mark.parametrize(("number", "rounded"), [(0.3333, 0.33), (1.0, 1.0), (12.99, 12.0), (0.0002, 0.0002)])
def test_rounding_down_keeps_two_digits(number: float, rounded: float) -> None:
    assert rounded_down(number) == pytest.approx(rounded)


def test_the_calibration_with_the_nearest_number_of_hosts_counts() -> None:
    sizes = [replace(KNOWN, hosts=hosts) for hosts in (16, 54, 432)] + [replace(KNOWN, target="bmv2", hosts=100)]
    assert nearest(sizes, "fast", 40) == replace(KNOWN, hosts=54)
    assert nearest(sizes, "bmv2", 16) == replace(KNOWN, target="bmv2", hosts=100)
    assert nearest(sizes[:3], "bmv2", 16) is None


def machine(limit: float, noise: float = 0.0, seed: int = 0) -> Callable[[float], bool]:
    """A made-up machine that carries rates up to its limit. A share `noise` of its trials fails by chance."""
    chance = random.Random(seed)
    return lambda rate: rate <= limit and chance.random() >= noise


@pytest.mark.parametrize("limit", [0.004, 0.5, 0.99, 1.0, 1.3, 7.0, 260.0])
def test_the_search_ends_within_a_step_below_the_limit(limit: float) -> None:
    found = highest_rate(machine(limit), 1.0)
    assert found is not None
    assert limit / STEP < found <= limit * (1 + 1e-9)


def test_a_machine_that_carries_nothing_has_no_rate() -> None:
    assert highest_rate(lambda _: False, 1.0) is None


def test_a_machine_that_carries_everything_ends_the_search() -> None:
    assert (highest_rate(lambda _: True, 1.0) or 0) > 100


def test_one_spoilt_trial_in_twenty_hardly_lowers_what_is_found() -> None:
    """Two of three trials must agree on a rate, so 1.5 times the rate found is nearly always beyond the limit."""
    found = [highest_rate(machine(3.0, noise=0.05, seed=seed), 1.0) or 0 for seed in range(200)]
    assert sum(rate > 3.0 / 1.5 for rate in found) >= 190
    assert max(found) <= 3.0


def test_a_trial_is_one_iteration_of_its_time_at_any_scale() -> None:
    one = problem()
    plan = make_plan(one, "aro", 0)
    for scale in (0.1, 1.0, 3.0):
        again, faster = scaled(one, plan, scale, RUN_S)
        prediction = evaluate(again, faster)
        assert prediction.sending_rate_bps == pytest.approx(scale * evaluate(one, plan).sending_rate_bps)
        assert prediction.communication_time_s == pytest.approx(RUN_S, rel=0.01)
        assert again.jobs[0].iterations == 1
        assert again.fabric.links[0].capacity_ab_bps == pytest.approx(scale * one.fabric.links[0].capacity_ab_bps)


def test_a_run_that_takes_much_too_long_is_ended() -> None:
    sampler = Sampler(limit_s=0.0)
    sampler(0.0)
    with pytest.raises(RunError, match="30% done in"):
        sampler(0.3)


def test_capacities_are_kept_one_for_each_target_and_size(tmp_path: Path) -> None:
    file, here = tmp_path / "inakit" / "calibration.json", this_machine()
    for capacity in (KNOWN, replace(KNOWN, hosts=54), replace(KNOWN, date="2026-12-01")):
        save_result(capacity, file, here)
    assert set(load_results(file, here).capacities) == {replace(KNOWN, hosts=54), replace(KNOWN, date="2026-12-01")}
    assert [path.name for path in file.parent.iterdir()] == [file.name]


HERE = this_machine()


@pytest.mark.parametrize(
    "other",
    [
        replace(HERE, processor="another"),
        replace(HERE, processors=99),
        replace(HERE, kernel="another"),
        replace(HERE, kit="another"),
    ],
)
def test_what_another_machine_carries_says_nothing_about_this_one(other: Machine, tmp_path: Path) -> None:
    here = HERE
    save_result(KNOWN, tmp_path / "file", other)
    assert load_results(tmp_path / "file", here).capacities == ()
    save_result(KNOWN, tmp_path / "file", here)
    assert load_results(tmp_path / "file", here).capacities == (KNOWN,)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', "\x00\xff"])
def test_a_damaged_file_is_as_good_as_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content)
    assert load_results(tmp_path / "file").capacities == ()


def test_a_file_of_another_version_is_not_read(tmp_path: Path) -> None:
    save_result(KNOWN, tmp_path / "file")
    content = json.loads((tmp_path / "file").read_text())
    (tmp_path / "file").write_text(json.dumps(content | {"version": 1}))
    assert load_results(tmp_path / "file").capacities == ()


def test_before_a_run_the_machine_is_judged_or_calibration_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one = problem()
    plans = {"aro": Prepared(one, make_plan(one, "aro", 0))}
    load = planned_load(one, plans["aro"].prediction)

    def said() -> str:
        console = Console(file=StringIO(), width=200)
        announce(console, one, plans, "fast", 1.0)
        return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]

    assert "inakit calibrate" in said()
    save_result(replace(KNOWN, load=load))
    assert said().startswith("aro: needs 80% of the endpoint processor and 50% of the switches'")
    half = Load(load.endpoint_pps / 2, load.switch_pps / 2)
    save_result(replace(KNOWN, load=half))
    assert "carries about 0.50 of the planned rates: --scale 0.5 fits" in said()


def trial(verdict: str, *reasons: str) -> Trial:
    return Trial(1.0, verdict, reasons, KNOWN.load, 20e6, KNOWN.busy)


@pytest.mark.parametrize(
    ("multiple", "verdicts", "kept"),
    [
        (0.7, ["VALID"] * 29 + ["OVERLOADED"], True),
        (0.7, ["VALID"] * 28 + ["OVERLOADED"] * 2, False),
        (0.7, ["VALID"] * 4 + ["OVERLOADED"], False),
        (1.5, ["OVERLOADED"] * 30, True),
        (1.5, ["OVERLOADED"] * 29 + ["VALID"], False),
        (4.0, ["OVERLOADED"] * 29 + ["WRONG"], False),
    ],
)
def test_a_promise_is_kept_or_broken(multiple: float, verdicts: list[str], kept: bool) -> None:
    assert Verified(multiple, tuple(map(trial, verdicts))).kept is kept


def test_the_table_of_a_verification_tells_what_caught_the_runs() -> None:
    heavy = [
        trial("OVERLOADED", "host 'h1' late by 3 s", "host 'h2' late by 4 s"),
        trial("OVERLOADED", "host 'h1' late"),
    ]
    console = Console(file=StringIO(), width=120)
    console.print(verification_table([Verified(1.5, tuple(heavy))]))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "host late by (1)" in text
    assert "host late (1)" in text
    assert "kept" in text


def test_the_curve_is_written_as_a_table_and_a_picture(tmp_path: Path) -> None:
    found = [Calibration(problem().fabric, 5, trial("VALID"), 1.5, 2_000_000)]
    table, picture = write_curve(CALIBRATED, found, tmp_path)
    header, row = table.read_text().splitlines()
    assert header.split(",") == ["fabric", *(quantity.name for quantity in QUANTITIES)]
    assert row.startswith(f"{found[0].fabric.name},{len(found[0].fabric.switches)},")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert curve_table(CALIBRATED, found).row_count == 1


def test_sizes_are_numbers() -> None:
    assert parse_sizes("4, 6,12") == [4, 6, 12]
    with pytest.raises(InputError, match="--curve 4;6: sizes"):
        parse_sizes("4;6")


@pytest.mark.root
def test_a_tiny_fabric_is_calibrated_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(rate_search, "STEP", 2.0)  # a coarse search, which is soon done
    one, console = problem(), Console(file=StringIO())
    try:
        with TrialNetwork(one, make_plan(one, "aro", 0), EmulatedWorld("fast"), run_s=0.2) as bed:
            found = find_limit(bed, console)
            slower = undisturbed(lambda: bed.trial(0.01 * found.trial.scale), lambda trial: trial.verdict == "VALID")
    except MachineError as error:
        pytest.skip(f"this machine is too busy for a valid trial: {error}")
    if slower.verdict == "OVERLOADED":
        pytest.skip(f"this machine is too busy for a valid trial at a hundredth of what it carried: {slower}")
    (kept,) = load_results().capacities
    assert (kept.target, kept.hosts, kept.load) == ("fast", 1 + len(one.jobs[0].workers), found.trial.load)
    assert (found.trial.verdict, slower.verdict) == ("VALID", "VALID")
    assert found.trial.load.endpoint_pps == pytest.approx(100 * slower.load.endpoint_pps)
    assert found.memory_bytes > 1e6
    assert console.file.getvalue().count("OVERLOADED") >= 2  # type: ignore[attr-defined]


@pytest.mark.root
def test_each_trial_begins_with_empty_slots_and_new_sequence_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier trial left, or did not send, would be taken for losses."""
    begun: list[tuple[int, int]] = []

    def noted(run: Run, network: LiveNetwork, progress: Callable[[float], None]) -> Outcome:
        assert run.options is not None
        registers = [switch.read_register("InaIngress.slot_seq") for switch in network.switches.values()]
        begun.append((run.options.worker.first_seq, sum(map(np.count_nonzero, registers))))
        return carry_out(run, network, progress)

    monkeypatch.setattr(rate_probe, "carry_out", noted)
    one = problem()
    plan = make_plan(one, "aro", 0)
    with TrialNetwork(one, plan, EmulatedWorld("fast"), run_s=0.1) as bed:
        for _ in range(2):
            bed.trial(0.01)
    (first, filled), (second, filled_again) = begun
    assert (filled, filled_again) == (0, 0)
    assert second - first > plan.trees[0].tree.reach
    assert first - plan.trees[0].tree.reach >= 1 << 31, "no look at an earlier fragment finds a register that is older"


@pytest.mark.compiler
def test_a_curve_in_virtual_time_has_time_and_memory_of_each_size(tmp_path: Path) -> None:
    options = ("--switch", "virtual", "--curve", "4,2", "--results", str(tmp_path / "results"))
    answer = inakit("calibrate", *options, at=tmp_path)
    assert answer.code == 0, answer
    (file,) = (tmp_path / "results").rglob("curve.csv")
    small, large = csv.DictReader(file.read_text().splitlines())
    assert [(row["fabric"], row["workers"]) for row in (small, large)] == [("fattree-2", "1"), ("fattree-4", "15")]
    assert int(large["hops"]) > 15 * 2 * 3 * 548_000 / 256, "every worker's fragments and results, three times"
    assert float(large["memory_mb"]) >= float(small["memory_mb"]) > 10
    assert float(large["hops_per_s"]) > 0
    assert (file.parent / "curve.png").exists()


def test_virtual_time_has_no_limit_to_be_found(tmp_path: Path) -> None:
    answer = inakit("calibrate", "--switch", "virtual", at=tmp_path)
    assert (answer.code, "carries any link rate" in answer.error) == (2, True), answer


@pytest.mark.root
@pytest.mark.beside
def test_what_cannot_be_calibrated_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with nothing_left(tmp_path):
        for arguments in (("--verify", "-1"), ("--curve", "big"), ("--planners", "none")):
            answer = inakit("calibrate", "--switch", "fast", *arguments, at=tmp_path)
            assert answer.code == 2, answer
            assert arguments[1] in answer.error
