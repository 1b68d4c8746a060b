"""The folder of a run: never half written, never overwritten, always findable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_up_record import FIGURES, made_up_record, planner
from rich.console import Console

from inakit import __version__
from inakit.experiments.run import record as run_record
from inakit.experiments.run.printed_report import COLUMNS, planners_report, print_report, shortened
from inakit.experiments.run.record import JobFigures, RunRecord, versions
from inakit.experiments.run.run_folder import RunFolder


def record(**results: Any) -> RunRecord:
    return made_up_record({"aro": planner(**results)}, scale=1 / 5000)


def test_folders_of_one_second_are_distinct_and_latest_is_the_newest(tmp_path: Path) -> None:
    folders = [RunFolder(tmp_path, "small").path for _ in range(3)]
    assert len(set(folders)) == 3
    assert (tmp_path / "latest").resolve() == folders[-1]


def test_a_record_is_incomplete_until_it_is_finished(tmp_path: Path) -> None:
    folder, made = RunFolder(tmp_path, "small"), record()
    folder.write_record(made)
    assert json.loads((folder.path / "run.json").read_text())["verdict"] == "INCOMPLETE"
    made.finish("OVERLOADED", ["idle CPU"])
    folder.write_record(made)
    read = json.loads((folder.path / "run.json").read_text())
    assert (read["verdict"], read["reasons"], read["seed"]) == ("OVERLOADED", ["idle CPU"], 7)
    assert read["started"] <= read["finished"]


def test_a_record_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "small")
    folder.write_json("run.json", {"whole": True})
    with pytest.raises(ValueError, match="not JSON compliant"):
        folder.write_json("run.json", {"rate": float("nan")})
    assert json.loads((folder.path / "run.json").read_text()) == {"whole": True}


def test_versions_name_what_ran() -> None:
    found = versions()
    assert found["python"] and found["python"].startswith("3.")
    assert found["numpy"]
    assert found["inakit"] == __version__


def test_rows_are_csv(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "small")
    folder.write_rows("aro/series.csv", ("host", "bytes"), [("h1", 326), ("h2", 652)])
    assert (folder.path / "aro" / "series.csv").read_text() == "host,bytes\nh1,326\nh2,652\n"


def printed(verdict: str, exact: bool | None) -> str:
    made = record(measured={"sending_rate_bps": 19e6, "exact": exact}, verdict=verdict)
    made.finish(verdict, [] if verdict == "VALID" else ["idle CPU 1 %"])
    console = Console(width=200, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    print_report(console, made)
    return console.export_text()


def test_report_shows_planned_measured_and_difference() -> None:
    text = printed("VALID", exact=True)
    assert "planned" in text
    assert "20.000" in text
    assert "19.000" in text
    assert "-5.0%" in text
    assert "aro 95 Gbit/s" in text
    assert "exact" in text
    assert "not results" not in text


def test_report_of_an_overloaded_run_says_so_and_why() -> None:
    text = printed("OVERLOADED", exact=True)
    assert "idle CPU 1 %" in text
    assert "not results" in text


def test_wrong_sums_stand_out() -> None:
    assert "sums not exact" in printed("WRONG", exact=False)


def test_reasons_of_one_kind_are_counted() -> None:
    reasons = ["aro: worker 'h1' sent at 3 Mbit/s", "aro: worker 'h2' sent at 4.5 kbit/s", "aro: CPU: 1% idle"]
    assert list(shortened(reasons)) == [f"{reasons[0]} (and 1 more like this in run.json)", reasons[2]]


def test_difference_of_nothing_is_not_a_number() -> None:
    nothing, something = (JobFigures(**FIGURES | {COLUMNS[0].key: rate}) for rate in (0, 1))
    assert COLUMNS[0].difference(nothing, something) == ""


def test_a_planner_without_measurement_has_a_row() -> None:
    assert planners_report(record()).table.row_count == 3


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'tool version: 4.4.3 (debug)'; echo 'Copyright 2013-2022'", "tool version: 4.4.3 (debug)"),
        ("echo 'Warning in interface.c:get_list() line 93:'; echo 'May need root'; echo 'tool 4.5'", "tool 4.5"),
        ("echo 'Warning in interface.c, line 93' >&2; echo 1.15.5", "1.15.5"),
        ("echo 'version: v14' >&2; echo 'tool v14.0.6' >&2; exit 1", "tool v14.0.6"),
        ("printf 'caf\\351 2.0\\n'", "caf\ufffd 2.0"),
        ("echo no version at all", None),
        ("sleep 30", None),
    ],
)
def test_a_programs_version_is_the_line_that_has_it(
    script: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(run_record, "VERSION_S", 1)
    assert run_record.program_version("tool", "--version") == said


def test_a_program_that_cannot_be_started_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tool").write_bytes(b"\x7fELF")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert run_record.program_version("tool", "--version") is None
    assert run_record.program_version("no-such-tool", "--version") is None
