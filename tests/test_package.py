"""The package that `pip install` makes of a checkout: it has every file that the kit reads when it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from setuptools import Distribution
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parents[1]
PARTS = ("experiments", "labs", "p4", "planner", "switch", "topo", "traffic")
"""The folders that a package is made of."""
NOT_READ = re.compile(r"\.py$|^labs/teacher/|^(planner|switch)/README\.md$|^experiments/papers/.*NOTES\.md$")
"""Modules, what students do not get, and pages for people."""


def tracked() -> Iterator[str]:
    """The files of `PARTS` that git has."""
    done = subprocess.run(["git", "ls-files", "-z", *PARTS], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a git checkout: {done.stderr.strip()}")
    return (name for name in done.stdout.split("\0") if name)


@cache
def build() -> build_py:
    """setuptools' command that copies modules and data, as `pyproject.toml` of the current folder sets it."""
    distribution = Distribution()
    distribution.parse_config_files(["pyproject.toml"])
    command = build_py(distribution)
    command.ensure_finalized()
    return command


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The data files that the package has, by their paths in the checkout."""
    monkeypatch.chdir(ROOT)
    found = build().get_data_files_without_manifest()
    return {f"{folder}/{name}" for _, folder, _, names in found for name in names}


def test_the_package_has_what_the_kit_reads(packaged: set[str]) -> None:
    read = {name for name in tracked() if not NOT_READ.search(name)}
    assert {"p4/build/ina.json", "p4/ina.p4", "labs/7-measure/README.md"} <= read
    assert sorted(read - packaged) == []


def test_the_package_has_no_solutions(packaged: set[str]) -> None:
    solutions = {name for name in tracked() if name.startswith("labs/teacher/")}
    assert solutions and not solutions & packaged


@pytest.mark.usefixtures("packaged")
def test_every_folder_of_modules_is_in_the_package() -> None:
    folders = {str(Path(name).parent) for name in tracked() if name.endswith(".py") and not name.startswith("labs/")}
    packages = {package.replace(".", "/") for package in build().packages}
    assert sorted(folders - packages) == []


@pytest.mark.long
@pytest.mark.compiler
def test_a_wheel_runs_without_the_checkout(tmp_path: Path) -> None:
    """A plan, a run in virtual time and what students get of a lab; solutions are refused in one line."""
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(wheel(tmp_path)).extractall(unpacked)

    def inakit(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from experiments.cli.main import main; main()", *arguments]
        environment = os.environ | {"PYTHONPATH": str(unpacked)}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    emulated = inakit("emulate", "--topo", "fattree", "--switch", "virtual", "--planners", "aro")
    assert "verdict: VALID" in emulated.stdout, emulated.stderr
    assert inakit("labs", "export", "course", "--lab", "7-measure").returncode == 0
    assert (tmp_path / "course" / "7-measure" / "measure.ipynb").is_file()
    graded = inakit("grade", "course/7-measure", "course/7-measure")
    assert "0 of 100 points" in graded.stdout, graded.stderr
    refused = inakit("labs", "mutants", "7-measure")
    assert refused.returncode == 2 and "solutions are in the kit's repository only" in " ".join(refused.stderr.split())


def wheel(folder: Path) -> Path:
    """The package of a copy of the checkout, as pip makes it."""
    copy = folder / "copy"
    for name in (*tracked(), "pyproject.toml", "README.md"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), "."]
    subprocess.run([sys.executable, *command], cwd=copy, check=True)
    return next(folder.glob("*.whl"))
