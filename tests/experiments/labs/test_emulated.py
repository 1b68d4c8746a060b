"""`inakit grade --emulate`: labs 2 to 5 in Mininet, on the compiled solutions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiers import long_unless

from inakit.experiments.labs.course.in_mininet import check_emulation, with_emulation
from inakit.experiments.labs.grading.grade import Request
from inakit.experiments.labs.grading.lab import Grade
from inakit.experiments.labs.grading.p4c import read_archive
from inakit.experiments.labs.grading.teacher import program_in
from inakit.experiments.labs.registry import COURSE, LABS, TEACHER
from inakit.topo.errors import InputError


def handed_in(lab: str, folder: Path, change: tuple[str, str] = ("", "")) -> Path:
    """The solution of a lab with its program compiled, and a text of its Python replaced."""
    for path in (TEACHER / lab / "solutions").iterdir():
        if path.suffix == ".p4":
            text = program_in(read_archive(TEACHER / lab), path.read_text(), path.name)
            (folder / path.name).with_suffix(".json").write_text(text)
        elif path.is_file():
            shutil.copy(path, folder)
    for path in folder.glob("*.py"):
        path.write_text(path.read_text().replace(*change) if change[0] else path.read_text())
    return folder


def emulated(lab: str, folder: Path, target: str) -> Grade:
    """The run in Mininet alone."""
    return with_emulation(Request(LABS[lab], COURSE / lab, folder), Grade(lab, ()), target)


TARGETS = ["fast", pytest.param("bmv2", marks=[pytest.mark.bmv2, pytest.mark.long])]


@pytest.mark.root
@pytest.mark.beside
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "lab", [long_unless(lab in ("2-sum", "4-loss"), lab) for lab in ("2-sum", "3-pool", "4-loss", "5-tree")]
)
def test_solutions_in_mininet(lab: str, target: str, tmp_path: Path) -> None:
    found = emulated(lab, handed_in(lab, tmp_path), target)
    assert found.graded[0].finding is None
    assert found.complete
    assert "sums" in found.graded[0].item.title


@pytest.mark.root
@pytest.mark.beside
def test_a_worker_that_never_sends_again_is_found(tmp_path: Path) -> None:
    change = (
        "    def timeout(self, slot):\n        return self.current(slot)",
        "    def timeout(self, slot):\n        return []",
    )
    found = emulated("4-loss", handed_in("4-loss", tmp_path, change), "fast")
    assert found.graded[0].finding is not None
    assert "still lacks a result" in found.graded[0].finding.cause
    assert not found.complete


def test_labs_and_targets_that_cannot_be_emulated() -> None:
    with pytest.raises(InputError, match="lab 1-forward has no run in Mininet; expected one of 2-sum"):
        check_emulation("1-forward", "fast")
    with pytest.raises(InputError, match="--emulate virtual: expected bmv2 or fast"):
        check_emulation("2-sum", "virtual")
