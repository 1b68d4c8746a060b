"""The notebooks run as they are written, each in an empty folder, and show what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
TIMEOUT_S = 120


def ran(name: str, folder: Path) -> list[Any]:
    """The code cells of a notebook after it has run in a folder; a cell that raises an error ends the test."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cells: list[Any]) -> str:
    """What the cells show as text."""
    outputs = [output for cell in cells for output in cell.outputs]
    return "\n".join(output.get("text") or output["data"].get("text/plain", "") for output in outputs)


def kinds(cells: list[Any]) -> list[str]:
    """The kinds of what the cells show, such as image/svg+xml."""
    return [kind for cell in cells for output in cell.outputs for kind in output.get("data", {})]


@pytest.mark.compiler
def test_the_first_plan_is_exact_and_faster_than_others(tmp_path: Path) -> None:
    cells = ran("first-plan", tmp_path)
    text = shown(cells)
    assert "('VALID', True)" in text
    assert kinds(cells).count("image/svg+xml") == 3
    assert (tmp_path / "report.html").stat().st_size > 10_000
    exact, sent_again = cells[-1].outputs[0]["data"]["text/plain"].strip("()").split(", ")
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
