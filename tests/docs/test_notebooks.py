"""The notebooks run as they are written, each in an empty folder, and show what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
TIMEOUT_S = 300


def ran(name: str, folder: Path) -> list[dict[str, Any]]:
    """What each code cell of a notebook shows when it runs in a folder: its `text` and the `kinds` of media."""
    command = [sys.executable, str(Path(__file__).with_name("notebook_cells.py")), str(FOLDER / f"{name}.ipynb")]
    wide = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=wide, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cells: list[dict[str, Any]] = json.loads(done.stdout)
    return cells


def shown(cells: list[dict[str, Any]]) -> str:
    """What the cells show as text."""
    return "\n".join(cell["text"] for cell in cells)


def kinds(cells: list[dict[str, Any]]) -> list[str]:
    """The kinds of what the cells show, such as image/svg+xml."""
    return [kind for cell in cells for kind in cell["kinds"]]


@pytest.mark.compiler
def test_the_first_plan_is_exact_and_faster_than_others(tmp_path: Path) -> None:
    cells = ran("first-plan", tmp_path)
    text = shown(cells)
    assert "('VALID', True)" in text
    assert kinds(cells).count("image/svg+xml") == 3
    assert (tmp_path / "report.html").stat().st_size > 10_000
    exact, sent_again = cells[-1]["text"].strip("()").split(", ")
    assert exact == "True"
    assert int(sent_again) > 0


@pytest.mark.compiler
def test_a_planner_of_ones_own_is_compared_and_its_mistakes_are_named(tmp_path: Path) -> None:
    cells = ran("own-planner", tmp_path)
    text = shown(cells)
    assert "Error: " in text
    assert "racks-in-turn" in text
    assert kinds(cells).count("image/svg+xml") == 2


@pytest.mark.compiler
def test_a_study_is_summarised_drawn_and_kept(tmp_path: Path) -> None:
    cells = ran("study", tmp_path)
    text = shown(cells)
    assert "<Study racks: 90 runs>" in text
    assert text.count("VALID") == 4
    assert kinds(cells).count("image/svg+xml") == 1
    assert list((tmp_path / "results" / "studies" / "kept").iterdir())


def test_every_notebook_is_run_here() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == ["first-plan", "own-planner", "study"]
