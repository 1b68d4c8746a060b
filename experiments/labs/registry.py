"""The labs of the course by the names of their folders."""

from __future__ import annotations

from pathlib import Path

from inakit.experiments.labs.course import forward
from inakit.experiments.labs.course import sum as sum_lab
from inakit.experiments.labs.course.switch_lab import SwitchLab
from inakit.experiments.labs.grading.grade import Lab
from inakit.experiments.labs.loss.lab import LossLab
from inakit.experiments.labs.measure.lab import MeasureLab
from inakit.experiments.labs.plan.lab import PlanLab
from inakit.experiments.labs.pool.lab import PoolLab
from inakit.experiments.labs.tree.lab import TreeLab
from inakit.topo.errors import InputError, unknown_name

IN_ORDER: tuple[Lab, ...] = (
    SwitchLab("1-forward", "A router: the tools", "3 to 5", "forward", forward.ITEMS),
    SwitchLab("2-sum", "One switch sums", "4 to 6", "sum", sum_lab.ITEMS),
    PoolLab(),
    LossLab(),
    TreeLab(),
    PlanLab(),
    MeasureLab(),
)
LABS = {lab.name: lab for lab in IN_ORDER}
COURSE = Path(__file__).parents[2] / "labs"
"""The folder of the labs, in the kit's repository and in its package."""
TEACHER = COURSE / "teacher"
"""What neither students nor the package get: solutions, and wrong solutions."""


def find_lab(folder: Path) -> Lab:
    """The lab of a folder, by its name; `InputError` for another name."""
    return lab_named(folder.resolve().name)


def lab_named(name: str) -> Lab:
    """The lab of this name; `InputError` for another name."""
    if name not in LABS:
        raise unknown_name("lab", name, LABS)
    return LABS[name]


def lab_folder(name: str) -> Path:
    """What students get of a lab; `InputError` where the kit is installed without it."""
    folder = COURSE / name
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; install the kit again: its package has the labs")
    return folder


def teacher_folder(name: str) -> Path:
    """A lab's solutions and wrong solutions; `InputError` where the kit is a package, which has none."""
    folder = TEACHER / name
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; solutions are in the kit's repository only, not in its package")
    return folder
