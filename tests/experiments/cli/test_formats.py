"""Every table printed has its JSON and its CSV; other words then go to standard error, or with --quiet nowhere."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from command import inakit
from rich.console import Console
from rich.table import Table
from test_options import ALL

from inakit.experiments.run.console import Amount, NamedTable, Printing, Screen, data_of, listing, names, printing

FIGURE1 = "--topo aro-figure1 --capacity 100G"
TABLES = {
    "plan": f"plan {FIGURE1} --details",
    "several plans": f"plan {FIGURE1} --planners aro,atp",
    "emulate": f"emulate {FIGURE1} --switch virtual --planners aro,atp --iterations 1 --details",
    "planners": "planners",
    "labs list": "labs list",
    "reproduce": "reproduce",
    "schedule": "schedule center.yml --trace jobs.csv",
    "place": "place --queue queue.yml",
    "exactness": "exactness --levels 1 --policies atp --conditions CONDITION --fragments 8",
    "hardware fit": "hardware fit planned --chip tofino1",
    "check": "check planned",
    "design": "design --workers 3 --aggregators 2 --common 2 --ports 4",
}
QUEUE = """version: 1
jobs:
- {workers: 3, servers: 1, gradient_bytes: 548000, arrival_s: 0, iterations: 2}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert inakit("schedule", "--starter", str(tmp_path), at=tmp_path).code == 0
    assert inakit("plan", "--output", "planned", at=tmp_path).code == 0
    (tmp_path / "queue.yml").write_text(QUEUE)
    return tmp_path


WORD = re.compile(r"[A-Za-z]{4,}")


@pytest.mark.compiler
@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_its_json(name: str, folder: Path) -> None:
    arguments = [each.replace("CONDITION", "no loss") for each in TABLES[name].split()]
    shown, found = (inakit(*arguments, *more, at=folder) for more in (("--quiet",), ("--format", "json")))
    assert (shown.code, found.code) == (0, 0), (shown, found)
    tables = json.loads(found.output)["tables"]
    values = [value for table in tables for row in table["rows"] for value in row.values()]
    assert values
    said = " ".join(map(str, values)) + " ".join(table["title"] + table["caption"] for table in tables)
    said += " ".join({key for table in tables for row in table["rows"] for key in row}).replace("_", " ")
    lacking = [word for word in WORD.findall(shown.output) if word.lower() not in said.lower().replace("-", " ")]
    assert set(lacking) <= {"Gbit", "Mbit", "kbit"}
    text = inakit(*arguments, "--format", "csv", at=folder).output
    wanted = len(tables[0]["rows"])
    assert len(list(csv.reader(StringIO(text)))) > wanted


@pytest.mark.compiler
@pytest.mark.parametrize("name", TABLES)
def test_no_table_is_cut(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a pipe, whose width nobody knows, nor in a narrow terminal, where lines may be broken."""
    arguments = [each.replace("CONDITION", "no loss") for each in TABLES[name].split()]
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = inakit(*arguments, at=folder).output
    for width in ("60", "80", "120"):
        narrow = inakit(*arguments, at=folder, environment={"COLUMNS": width}).output
        assert "…" not in piped + narrow
        assert set(WORD.findall(piped)) <= set(WORD.findall(narrow))


def test_all_that_print_tables_are_tried() -> None:
    """Of what is left, a run takes long or needs a network or a folder of submissions."""
    left = {
        "train", "study show", "dump", "calibrate", "bench", "agree", "validate", "switch replay", "labs similar",
        "labs throughput", "labs leaderboard", "labs mutants", "labs class", "labs collect", "grade", "hardware diff",
    }  # fmt: skip
    having = {name for name, command in ALL.items() if command.row.tables or command.row.details}
    assert having == left | {
        name.replace("several plans", "plan").replace("planners", "planners list") for name in TABLES
    }


def printed(table: Any, **how: Any) -> tuple[str, str]:
    """What is printed of a table, and of a note beside it."""
    text, then = StringIO(), Printing(**how)
    with printing(then):
        Screen(file=text, width=200).print(table)
        Screen(file=text, width=200).print("a note")
    return text.getvalue(), json.dumps(then.tables)


def rates() -> Table:
    table = Table(*names("planner"), "rate\n", "time")
    table.add_row("aro", Amount(100e9, "bit/s"), Amount(56.4e-6, "s"))
    table.add_row("", Amount(2.5e9, "bit/s"), Amount(0, "s"))
    return table


def test_a_unit_fits_its_column_and_json_has_exact_values() -> None:
    text, _ = printed(rates())
    assert "(Gbit/s)" in text
    assert "100.000" in text
    assert "time (µs)" in text
    assert "56.40 " in text
    rows = data_of(NamedTable(rates()))["rows"]
    assert rows == [
        {"planner": "aro", "rate_bps": 100e9, "time_s": 56.4e-6},
        {"planner": "aro", "rate_bps": 2.5e9, "time_s": 0},
    ]


def test_quiet_leaves_notes_away() -> None:
    assert "a note" in printed(rates())[0]
    assert "a note" not in printed(rates(), quiet=True)[0]


def test_a_table_in_a_pipe_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = StringIO()
    wide = listing([f"column {number}" for number in range(30)], [["a long cell"] * 30])
    Screen(file=text).print(wide)
    assert text.getvalue().count("a long cell") == 30
    assert len(text.getvalue().splitlines()) == 2
    assert Console(file=StringIO()).width == 80


def test_csv_and_json_of_an_error_are_nothing(tmp_path: Path) -> None:
    failed = inakit("plan", "--planners", "nope", "--format", "json", at=tmp_path)
    assert (failed.code, failed.output) == (2, "")
    unknown = inakit("plan", "--format", "jsn", at=tmp_path)
    assert (unknown.code, unknown.output) == (2, "")
    assert "did you mean 'json'?" in unknown.error


def test_a_plan_is_checked_by_its_folder(tmp_path: Path) -> None:
    assert inakit("plan", "--output", "planned", at=tmp_path).code == 0
    assert inakit("check", "planned", at=tmp_path).output == "planned: valid\n"
    (tmp_path / "planned" / "jobs.yml").unlink()
    missing = inakit("check", "planned", at=tmp_path)
    assert missing.code == 2
    assert "planned/jobs.yml" in missing.error
