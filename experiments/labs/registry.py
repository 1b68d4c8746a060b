"""The labs of the course by the names of their folders, and the files that students get."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from inakit.experiments.labs.course import (
    forward_lab,
    loss_lab,
    measure_lab,
    plan_lab,
    pool_lab,
    sum_lab,
    tree_lab,
)
from inakit.experiments.labs.grading.lab import Lab
from inakit.topo.errors import InputError, unknown_name, writing

LABS: dict[str, Lab] = {
    module.LAB.name: module.LAB
    for module in (forward_lab, sum_lab, pool_lab, loss_lab, tree_lab, plan_lab, measure_lab)
}
COURSE = Path(__file__).parents[2] / "labs"
"""The folder of the labs, in the kit's repository and in its package."""
TEACHER = COURSE / "teacher"
"""The folder of solutions and wrong solutions, which is in neither the package nor the students' copies."""


def find_lab(lab: str | Path) -> Lab:
    """The lab of this name, or of the folder of this name; `InputError` for an unknown name."""
    name = Path(lab).resolve().name
    if name not in LABS:
        raise unknown_name("lab", name, LABS)
    return LABS[name]


def lab_folder(name: str) -> Path:
    """The folder of a lab that students get; `InputError` if the kit is installed without it."""
    folder = COURSE / name
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; install the kit again: its package has the labs")
    return folder


def task_folder(folder: Path) -> Path:
    """The folder with the task of a lab that a command names by a folder, or by its name alone."""
    own = COURSE / find_lab(folder).name
    return folder if (folder / "README.md").is_file() or not own.is_dir() else own


def teacher_folder(name: str) -> Path:
    """The folder of a lab's solutions and wrong solutions; `InputError` in an installed package, which has none."""
    folder = TEACHER / name
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; solutions are in the kit's repository only, not in its package")
    return folder


def export_labs(folder: Path, names: Sequence[str]) -> list[Path]:
    """Copy the folders of labs (all, unless some are named) into a folder; return the new folders.

    An existing lab folder is refused, so that students' work is never overwritten; a failed copy leaves no files.
    """
    chosen = list(dict.fromkeys(find_lab(name).name for name in names)) or list(LABS)
    targets = {folder / name: lab_folder(name) for name in chosen}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: choose a folder")
    for target in targets:
        if target.exists():
            raise InputError(f"{target} exists already: move it away, or choose another folder")
    above = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    with writing(folder), TemporaryDirectory(prefix=".labs-", dir=above) as stage:
        for target, source in targets.items():
            shutil.copytree(source, Path(stage) / target.name, ignore=left_out)
        folder.mkdir(parents=True, exist_ok=True)
        for target in targets:
            (Path(stage) / target.name).rename(target)
    return list(targets)


def left_out(folder: str, names: list[str]) -> set[str]:
    """The files that do not belong to a lab: caches and compiled programs."""
    compiled = {f"{name.removesuffix('.p4')}.json" for name in names if name.endswith(".p4")}
    caches = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache")(folder, names)
    return caches | (compiled & set(names))
