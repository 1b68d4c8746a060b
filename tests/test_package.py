"""The package that `pip install` makes of a checkout: it has every file that the kit reads when it runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from setuptools import Distribution
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parents[1]
PARTS = ("inakit", "experiments", "labs", "p4", "planner", "switch", "topo", "traffic")
"""The folders that a package is made of."""
NOT_READ = re.compile(r"\.py$|^labs/teacher/|^(planner|switch)/README\.md$|^experiments/papers/.*NOTES\.md$")
"""Modules, what students do not get, and pages for people."""


def tracked() -> Iterator[str]:
    """The files of `PARTS` that git has."""
    done = subprocess.run(["git", "ls-files", "-z", *PARTS], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a git checkout: {done.stderr.strip()}")
    return (name for name in done.stdout.split("\0") if name and not (ROOT / name).is_symlink())


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
    return {f"{folder}/{name}".removeprefix("inakit/") for _, folder, _, names in found for name in names}


def test_the_package_has_what_the_kit_reads(packaged: set[str]) -> None:
    read = {name for name in tracked() if not NOT_READ.search(name)}
    assert {"p4/build/ina.json", "p4/ina.p4", "labs/7-measure/README.md"} <= read
    assert sorted(read - packaged) == []


def test_the_package_has_no_solutions(packaged: set[str]) -> None:
    solutions = {name for name in tracked() if name.startswith("labs/teacher/")}
    assert solutions and not solutions & packaged
    assert not [package for package in build().packages if package.startswith("inakit.labs.")]


@pytest.mark.usefixtures("packaged")
def test_every_folder_of_modules_is_in_the_package() -> None:
    folders = {str(Path(name).parent) for name in tracked() if name.endswith(".py") and not name.startswith("labs/")}
    packages = {package.removeprefix("inakit.").replace(".", "/") for package in build().packages}
    assert sorted(folders - packages) == []
