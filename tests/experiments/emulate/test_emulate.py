"""Whole runs: plan, network, packets, verdict, and what is left of them."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from command import ENTRY, TIMEOUT_S, inakit, interfaces, nothing_left, runs
from orphans import TIED
from tiers import long_unless
from tolerance import assert_within
from valid_runs import emulate, valid_run

from inakit.topo.live.signals import ENDING
from inakit.traffic.measure.processors import HOSTS, KERNEL, REST, WORKERS_AND_PS

REPOSITORY = Path(__file__).resolve().parents[3]
TARGETS = ("fast", pytest.param("bmv2", marks=pytest.mark.bmv2))
SMALL = ("--gradient-bytes", "25600", "--iterations", "2")

pytestmark = pytest.mark.root


@pytest.mark.parametrize("switch", TARGETS)
def test_figures_of_aro_figure_1(switch: str, tmp_path: Path) -> None:
    """Workers have 1/5 of a link's rate without INA, and all of it with the aggregator-aware plan (ARO, Fig. 1)."""
    capacity, link_bps = {"fast": ("2M", 2e6), "bmv2": ("500k", 500e3)}[switch]
    run = valid_run(
        tmp_path, "--topo", "aro-figure1", "--switch", switch, "--planners", "aro,lbmm", "--capacity", capacity,
        "--gradient-bytes", "51200", "--iterations", "1",
    )  # fmt: skip
    planners = run["planners"]
    assert_within(planners["lbmm"]["measured"]["sending_rate_bps"], link_bps / 5, 0.05, "no INA", "bit/s")
    assert_within(planners["aro"]["measured"]["sending_rate_bps"], link_bps, 0.05, "aro", "bit/s")
    for entry in planners.values():
        assert entry["measured"]["exact"]
        assert entry["measured"]["ps_ingress_bytes"] == entry["planned"]["ps_ingress_bytes"]
    assert (run["switch"], run["fabric"]["name"]) == (switch, "aro-figure1")


def test_a_plan_that_ignores_pipelines_is_worse_when_measured(tmp_path: Path) -> None:
    """On a fabric made to show this, `aro` has 4/5 of the link's rate, and the plan that ignores pipelines 1/3."""
    run = valid_run(
        tmp_path, "--topo", "pipelines", "--switch", "fast", "--planners", "aro,aro-unaware", "--scale", "1/10",
        "--gradient-bytes", "51200", "--iterations", "1",
    )  # fmt: skip
    rates = {name: entry["measured"]["sending_rate_bps"] for name, entry in run["planners"].items()}
    assert_within(rates["aro"], 0.8 * 2e6, 0.05, "minds pipelines", "bit/s")
    assert_within(rates["aro-unaware"], 2e6 / 3, 0.05, "ignores pipelines", "bit/s")


@pytest.mark.parametrize("switch", [pytest.param("fast", marks=pytest.mark.long), TARGETS[1]])
def test_every_worker_of_a_fat_tree_ends_with_the_exact_sum(switch: str, tmp_path: Path) -> None:
    """The README's main command, below, is the short form for `fast`."""
    capacity = {"fast": "10M", "bmv2": "500k"}[switch]
    _, run = emulate(
        tmp_path, "--k", "4", "--workers", "14", "--switch", switch, "--planners", "aro,atp", "--capacity", capacity,
        "--gradient-bytes", "12800", "--iterations", "2",
    )  # fmt: skip
    assert [entry["measured"]["exact"] for entry in run["planners"].values()] == [True, True]


@pytest.mark.beside
@pytest.mark.parametrize("switch", TARGETS)
def test_a_plan_under_several_slot_policies(switch: str, tmp_path: Path) -> None:
    """With the policies of GOAT and ESA the PS is the root. With SwitchML's it is a switch; the PS receives nothing."""
    _, run = emulate(
        tmp_path, "--topo", "aro-figure3a", "--switch", switch, "--planners", "aro", "--policies", "goat,esa,switchml",
        "--capacity", "4M", *SMALL,
    )  # fmt: skip
    ingress = {name: entry["measured"]["ps_ingress_bytes"] for name, entry in run["planners"].items()}
    assert all(entry["measured"]["exact"] for entry in run["planners"].values())
    assert list(ingress) == ["aro+goat", "aro+esa", "aro+switchml"]
    assert ingress["aro+switchml"] == 0 < ingress["aro+goat"]
    assert (tmp_path / "latest" / "aro+esa" / "plan.json").exists()


def test_replay_reaches_the_planned_rate_and_ingress(tmp_path: Path) -> None:
    run = valid_run(
        tmp_path, "--topo", "aro-figure1", "--switch", "fast", "--planners", "aro", "--mode", "replay",
        "--capacity", "2M", "--gradient-bytes", "51200", "--iterations", "1",
    )  # fmt: skip
    planned, measured = (run["planners"]["aro"][kind] for kind in ("planned", "measured"))
    assert_within(measured["sending_rate_bps"], planned["sending_rate_bps"], 0.05, "sending rate", "bit/s")
    assert measured["ps_ingress_bytes"] == planned["ps_ingress_bytes"]
    for told in run["planners"]["aro"]["replayed"]:
        assert told["command"].startswith("tcpreplay --quiet ") and f" --pps={told['rate_fps']:.6f} " in told["command"]
    used = run["planners"]["aro"]["processors"]
    assert {WORKERS_AND_PS, KERNEL, HOSTS, REST} <= set(used["parts"])
    assert sum(used["parts"][HOSTS]["processors"]) > 0
    seconds = zip(*(part["processors"] for part in used["parts"].values()), strict=True)
    assert all(0 < sum(second) <= 1.2 * used["processors"] for second in seconds)


def test_the_run_folder_has_everything(tmp_path: Path) -> None:
    _, run = emulate(
        tmp_path, "--topo", "aro-figure1", "--switch", "fast", "--planners", "aro", "--capacity", "2M", *SMALL
    )
    folder = tmp_path / "latest"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    plan = {
        "plan.json",
        "fabric.yml",
        "jobs.yml",
        "iterations.csv",
        "switches.csv",
        "entries/entries.json",
        "entries/l1.txt",
    }
    assert {f"aro/{name}" for name in plan} | {"run.json"} <= files
    assert run["planners"]["aro"]["switches"]["s1"]["completed"] == 2 * 100
    assert run["planners"]["aro"]["switches"]["s1"]["aggregation_ratio"] == 3
    planned, measured = (run["planners"]["aro"][kind] for kind in ("planned", "measured"))
    for figure in ("ps_ingress_bytes", "aggregation_ratio", "aggregated_bytes", "overhead_bytes"):
        assert measured[figure] == planned[figure]
    again = inakit(
        "check", *(str(folder / "aro" / name) for name in ("plan.json", "fabric.yml", "jobs.yml")), at=tmp_path
    )
    assert again.code == 0, again


CASES = Path(__file__).parents[1] / "cases"
THREE_JOBS = (
    "--topo", str(CASES / "two-pods.yml"), "--jobs", str(CASES / "two-pods-jobs.yml"),
    "--switch", "fast", "--planners", "aggtree-balanced", "--capacity", "6M",
)  # fmt: skip
"""Options for a run of three jobs, which arrive one after the other, and have 3, 3 and 2 iterations."""


@pytest.fixture(scope="module")
def three_jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `THREE_JOBS`, which is VALID unless the machine is too busy."""
    folder = tmp_path_factory.mktemp("three-jobs")
    with suppress(pytest.skip.Exception):
        valid_run(folder, *THREE_JOBS)
    return folder / "latest"


def test_three_jobs_have_their_own_figures_and_totals(three_jobs: Path) -> None:
    """Planned and measured figures are the same quantities. PS ingress does not depend on the run's verdict."""
    run = json.loads((three_jobs / "run.json").read_text())
    entry = run["planners"]["aggtree-balanced"]
    planned, measured = entry["planned"], entry["measured"]
    assert measured["exact"]
    assert list(planned["jobs"]) == list(measured["jobs"]) == ["1", "2", "3"]
    for number, workers in (("1", 6), ("2", 4), ("3", 7)):
        own, found = planned["jobs"][number], measured["jobs"][number]
        assert own["aggregation_ratio"] == workers
        assert found["ps_ingress_bytes"] == pytest.approx(own["ps_ingress_bytes"], rel=0.2)
    assert planned["total"]["sending_rate_bps"] == pytest.approx(17 * 2e6)
    assert planned["total"]["ps_ingress_bytes"] == 3 * 391 * 326
    totals = [sum(job["ps_ingress_bytes"] for job in side["jobs"].values()) for side in (planned, measured)]
    assert totals == [pytest.approx(side["total"]["ps_ingress_bytes"]) for side in (planned, measured)]
    with (three_jobs / "aggtree-balanced" / "jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["job"] for row in rows] == ["1", "2", "3", "total"]
    for row in rows:
        off = float(row["measured_sending_rate_bps"]) / float(row["planned_sending_rate_bps"]) - 1
        assert float(row["difference_sending_rate_bps"]) == pytest.approx(off)


def test_each_of_three_jobs_meets_its_own_plan(three_jobs: Path) -> None:
    run = json.loads((three_jobs / "run.json").read_text())
    if run["verdict"] == "OVERLOADED":
        pytest.skip(f"this machine is too busy for a valid run: {run['reasons'][:3]}")
    assert run["verdict"] == "VALID"
    entry = run["planners"]["aggtree-balanced"]
    planned, measured = entry["planned"], entry["measured"]
    for number, own in planned["jobs"].items():
        found = measured["jobs"][number]
        assert_within(found["sending_rate_bps"], own["sending_rate_bps"], 0.05, f"job {number}", "bit/s")
        assert_within(found["communication_time_s"], own["communication_time_s"], 0.15, f"job {number}", "s")
        assert_within(found["ps_ingress_bytes"], own["ps_ingress_bytes"], 0.07, f"job {number}", "bytes")
    assert_within(measured["total"]["sending_rate_bps"], 17 * 2e6, 0.05, "17 workers", "bit/s")


def start(at: Path, switch: str = "fast") -> subprocess.Popen[str]:
    """Start a run that takes long, and return when its packets flow."""
    arguments = (
        "--topo",
        "aro-figure1",
        "--planners",
        "lbmm",
        "--capacity",
        "1M",
        "--iterations",
        "100",
        "--switch",
        switch,
    )
    run = subprocess.Popen(
        [*TIED, sys.executable, "-c", ENTRY, "emulate", "--results", str(at), *arguments],
        cwd=at, env=os.environ | {"PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: sends(run.pid), "the run sends")
    return run


def sends(pid: int) -> bool:
    """Whether packets leave the switch ports of the run with this process."""
    ledgers = [path for path in Path("/run/inakit").glob("*/owner") if str(pid) in path.read_text().split()]
    return bool(ledgers) and any(
        int((interface / "statistics" / "tx_packets").read_text()) > 20
        for interface in Path("/sys/class/net").iterdir()
        if interface.name.startswith(ledgers[0].parent.name)
    )


def wait_until(happens: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not happens():
        assert time.monotonic() < end, f"{what}: not within {TIMEOUT_S} s"
        time.sleep(0.05)


@pytest.mark.beside
@pytest.mark.parametrize(
    ("number", "code"),
    [long_unless(number == signal.SIGINT, number, 128 + number) for number in ENDING],
)
def test_a_signal_ends_a_run_and_leaves_nothing(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with nothing_left():
        run = start(tmp_path)
        run.send_signal(number)
        _, error = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == code, error
    run_folder = (tmp_path / "latest").resolve()
    assert json.loads((run_folder / "run.json").read_text())["verdict"] == "INTERRUPTED"
    assert error == (
        "inakit: interrupted; every process and interface of the run has been removed; "
        f"kept what was planned: {run_folder}\n"
    )


@pytest.mark.beside
def test_a_run_after_kill_9_starts_clean(tmp_path: Path) -> None:
    before = interfaces(), runs()
    run = start(tmp_path)
    run.kill()
    run.communicate(timeout=TIMEOUT_S)
    again = inakit(
        "emulate",
        "--topo",
        "aro-figure1",
        "--switch",
        "fast",
        "--planners",
        "aro",
        "--capacity",
        "4M",
        *SMALL,
        at=tmp_path,
    )
    assert again.code in (0, 1), again
    assert (interfaces(), runs()) == before


@pytest.mark.bmv2
def test_a_switch_that_dies_is_named(tmp_path: Path) -> None:
    with nothing_left():
        run = start(tmp_path, "bmv2")
        switches = [
            child for child in psutil.Process(run.pid).children(recursive=True) if child.name() == "simple_switch"
        ]
        switches[0].kill()
        _, error = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 2, error
    assert re.search(r"switch '[ls]\d'", error)


def test_the_main_command_of_the_readme_works(tmp_path: Path) -> None:
    command = re.search(r"^    sudo (make emulate TOPO=fattree)", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
    assert command
    done = subprocess.run(
        [*command[1].split(), "SWITCH=fast", f"ARGS=--results {tmp_path} --iterations 1 --gradient-bytes 128000"],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=5 * TIMEOUT_S, check=False,
    )  # fmt: skip
    run = json.loads((tmp_path / "latest" / "run.json").read_text())
    assert done.returncode == (0 if run["verdict"] == "VALID" else 2), done.stderr
    assert list(run["planners"]) == ["aro", "atp", "lbmm"]
    assert all(entry["measured"]["exact"] for entry in run["planners"].values())
    for word in ("planned", "measured", "sending rate", "PS ingress", "comm. time", "verdict"):
        assert word in done.stdout
