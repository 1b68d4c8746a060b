"""Studies from file to table, summaries and figures."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from pyarrow import parquet
from rich.console import Console

from inakit.experiments.run.scheduled import CenterChanges, Scheduled, read_problem
from inakit.experiments.study.commands import run_file, show_file
from inakit.experiments.study.summary import counting, differences_of, groups_of
from inakit.experiments.study.table import COLUMNS, row_of
from inakit.experiments.sweeps.trial import Finished, Trial
from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.job_traces import TraceReading
from inakit.topo.errors import InputError

FILE = """\
version: 1
name: small
stays: {world: WORLD, fabric: "leafspine:leaves=4,spines=2,hosts_per_leaf=2", gradient_bytes: 4096, ina: 0.5}
varies:
  - workers: [2, 4]
  - {planner: [atp, lbmm], seed: 0..1}
figures:
  - {x: workers, y: sending_rate_bps}
  - {x: planner, y: planned_ps_ingress_bytes, colour: workers}
"""


def study(folder: Path, world: str) -> Path:
    path = folder / "small.yml"
    path.write_text(FILE.replace("WORLD", world))
    return path


def run(file: Path, again: str = "") -> tuple[bool, str]:
    console = Console(file=StringIO(), width=100)
    good = run_file(file, "loky", 1, again, file.parent, console)
    return good, console.file.getvalue()  # type: ignore[attr-defined]


def test_a_study_of_plans_becomes_a_table_summaries_and_figures(tmp_path: Path) -> None:
    file, console = study(tmp_path, "none"), Console(file=StringIO(), width=100)
    assert run(file)[0]
    folder = tmp_path / "studies" / "small"
    table = parquet.read_table(folder / "results.parquet")
    assert table.num_rows == 8
    assert {"planned_sending_rate_bps", "gradient_bytes", "aggregation_rate_bps"} <= set(table.column_names)
    assert table["error"].to_pylist() == [None] * 8
    before = (folder / "results.parquet").read_bytes()
    show_file(file, (), (), "", tmp_path, console)
    assert (folder / "results.parquet").read_bytes() == before
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "8 runs" in printed and "above ATP, in pairs" in printed
    assert r"\toprule" in (folder / "tables.tex").read_text()
    assert len((folder / "groups.csv").read_text().splitlines()) == 1 + 3 * 4
    assert len((folder / "differences.csv").read_text().splitlines()) == 1 + 3 * 2
    drawn = sorted(folder.glob("*.pdf"))
    assert len(drawn) == 2
    assert all(path.read_bytes().startswith(b"%PDF") for path in drawn)


CENTER = """\
version: 1
center:
  units:
    - {name: a, servers: 4, optical_ports: 4, switch_bps: 64.0e+9, inc_jobs: 1}
    - {name: b, servers: 4, optical_ports: 4, switch_bps: 64.0e+9, inc_jobs: 1}
  port_bps: 8.0e+9
  reconfiguration_s: 0.01
  slot_s: 1.0
  step_bps: 1.0e+9
"""
SCHEDULES = """\
version: 1
name: slots
stays: {center: CENTER, trace: TRACE, first_jobs: 3}
varies:
  - {optical_ports: [1, 4], slot_s: [0.5, 2], reconfiguration_s: [0.01, 0.2]}
  - {planner: [INC-FCFS, INC-TW], seed: 0..2}
against: INC-FCFS
figures:
  - {x: slot_s, y: mean_jct_s, facet: optical_ports}
"""


def schedules(folder: Path) -> Path:
    """The file of a study of schedules, with its data centre and its trace, whose fourth job no run has."""
    (folder / "center.yml").write_text(CENTER)
    rows = "".join(f"{number},6,2000000000,0.1\n" for number in range(3))
    (folder / "jobs.csv").write_text("arrival_s,workers,gradient_bytes,update_s\n" + rows + "9,99,4,0\n")
    path = folder / "slots.yml"
    text = SCHEDULES.replace("CENTER", str(folder / "center.yml")).replace("TRACE", str(folder / "jobs.csv"))
    path.write_text(text)
    return path


def test_a_study_of_schedules_sweeps_the_data_centre_and_pairs_schedulers(tmp_path: Path) -> None:
    file, console = schedules(tmp_path), Console(file=StringIO(), width=120)
    assert run(file)[0]
    rows = parquet.read_table(tmp_path / "studies" / "slots" / "results.parquet").to_pylist()
    assert len(rows) == 2 * 2 * 2 * 2 * 3
    problem, _ = read_problem(
        tmp_path / "center.yml", tmp_path / "jobs.csv", TraceReading(jobs=3, seed=2), CenterChanges(1, 2.0, 0.2)
    )
    alone = Scheduled.by("INC-TW", problem, SolverOptions(seed=2))
    (same,) = [
        row for row in rows
        if (row["optical_ports"], row["slot_s"], row["reconfiguration_s"], row["planner"], row["seed"])
        == (1, 2.0, 0.2, "INC-TW", 2)
    ]  # fmt: skip
    assert same["planned_mean_jct_s"] == alone.mean_jct_s
    assert (same["planned_connections"], same["ct_bti_s"]) == (alone.figures.connections, alone.figures.ct_bti_s)
    ends = {ports: [row["ct_bti_s"] for row in rows if row["optical_ports"] == ports] for ports in (1, 4)}
    assert sum(ends[1]) > sum(ends[4])
    show_file(file, (), (), "", tmp_path, console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "mean JCT (ms): above INC-FCFS, in pairs" in printed and "CT-BTI (s)" in printed


@pytest.mark.compiler
def test_a_study_of_schedules_runs_them_by_packets(tmp_path: Path) -> None:
    file = schedules(tmp_path)
    text = file.read_text().replace("first_jobs: 3", "first_jobs: 2, world: virtual, scale: 1/5000, seed: 1")
    file.write_text(text.replace("[1, 4]", "[4]").replace("[0.5, 2]", "[1]").replace("[0.01, 0.2]", "[0.01]")
                    .replace(", seed: 0..2", ""))  # fmt: skip
    assert run(file)[0]
    rows = parquet.read_table(tmp_path / "studies" / "slots" / "results.parquet").to_pylist()
    assert [(row["verdict"], row["exact"]) for row in rows] == [("VALID", True)] * 2
    for row in rows:
        assert row["measured_mean_jct_s"] == pytest.approx(row["planned_mean_jct_s"], rel=0.05)
        assert row["measured_connections"] == row["planned_connections"]


@pytest.mark.compiler
def test_a_study_in_virtual_time_measures_what_it_planned(tmp_path: Path) -> None:
    file = study(tmp_path, "virtual")
    file.write_text(file.read_text().replace("[2, 4]", "[2]").replace("0..1", "[0]"))
    assert run(file)[0]
    table = parquet.read_table(tmp_path / "studies" / "small" / "results.parquet").to_pylist()
    assert [row["verdict"] for row in table] == ["VALID", "VALID"]
    assert all(row["exact"] for row in table)
    for row in table:
        assert row["measured_sending_rate_bps"] == pytest.approx(row["planned_sending_rate_bps"], rel=0.05)


def test_a_run_that_fails_is_a_row_with_its_error_and_is_tried_again_when_asked(tmp_path: Path) -> None:
    file = study(tmp_path, "none")
    file.write_text(file.read_text().replace("[2, 4]", "[4, 40]"))
    good, told = run(file)
    assert not good
    assert "4 runs; left out: 4 failed" in told and "40 workers: fabric" in told
    assert "left out: 4 failed" in run(file, "failed")[1]
    with pytest.raises(InputError, match="no run of this study begins with this"):
        run(file, "nothing")
    (row, *_) = [
        row for row in parquet.read_table(tmp_path / "studies/small/results.parquet").to_pylist() if row["error"]
    ]
    assert row["workers"] == 40 and row["planned_sending_rate_bps"] is None


def test_a_study_that_has_not_run_says_how_to_run_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run them: inakit study run "):
        show_file(study(tmp_path, "none"), (), (), "", tmp_path, Console(file=StringIO()))


def row(planner: str, seed: int, rate: float, verdict: str = "VALID") -> dict[str, object]:
    given = {"planner": planner, "seed": seed, "world": "virtual"}
    found = {"measured_sending_rate_bps": rate, "verdict": verdict}
    return row_of(Trial("", dict, given), Finished("", found, None, 0.0, "", ""))


ROWS = [
    *(row("atp", seed, 10.0 * seed) for seed in (1, 2, 3)),
    *(row("aro", seed, 10.0 * seed + 2) for seed in (1, 2, 3)),
]


def test_groups_have_mean_median_and_interval() -> None:
    aro, _ = sorted(groups_of(ROWS, ["planner"], ["sending_rate_bps"]), key=lambda group: group.names)
    assert (aro.names, aro.runs, aro.mean.value, aro.median) == (("aro",), 3, 22.0, 22.0)
    assert aro.mean.low is not None and aro.mean.high is not None
    assert 12.0 <= aro.mean.low < 22.0 < aro.mean.high <= 32.0


def test_differences_are_between_runs_with_the_same_seed() -> None:
    """The planners differ by 2 in every pair, which their means over seeds, 20 apart from each other, would hide."""
    (found,) = differences_of([*ROWS, row("aro", 9, 500.0)], ["planner"], ["sending_rate_bps"], "atp")
    assert (found.planner, found.against, len(found.mean.draws)) == ("aro", "atp", 3)
    assert (found.mean.value, found.mean.low, found.mean.high) == (2.0, 2.0, 2.0)
    assert found.share == pytest.approx(0.1)


def test_runs_that_are_no_results_are_counted_and_left_out() -> None:
    rows, left = counting([*ROWS, row("atp", 4, 1.0, "OVERLOADED"), {**ROWS[0], "error": "it broke"}])
    assert len(rows) == 6
    assert left.words == "6 runs; left out: 1 OVERLOADED, 1 failed"


def test_every_column_of_a_row_is_known() -> None:
    assert set(ROWS[0]) == set(COLUMNS)
