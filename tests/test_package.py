"""What `pip install` and an sdist make of a checkout: all that the kit reads when it runs, and the whole source."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path

import pytest
from setuptools import Distribution
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parents[1]
PARTS = ("inakit/", "experiments/", "labs/", "p4/", "planner/", "switch/", "topo/", "traffic/")
"""The folders that a package is made of."""
NOT_READ = re.compile(r"\.py$|^labs/teacher/|^(planner|switch)/README\.md$|^experiments/papers/.*\.md$")
"""Modules, what students do not get, and pages for people."""
OF_THE_BUILD = re.compile(r"PKG-INFO|setup\.cfg|src/inakit\.egg-info/.*|inakit/source\.json")
"""Files of an sdist that no checkout has."""


@cache
def tracked() -> frozenset[str]:
    """The files and links that git has, and that were not deleted since."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a git checkout: {done.stderr.strip()}")
    return frozenset(name for name in done.stdout.split("\0") if name and os.path.lexists(ROOT / name))


def tracked_parts() -> list[str]:
    """The files of the package."""
    return [name for name in tracked() if name.startswith(PARTS) and not (ROOT / name).is_symlink()]


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
    return {str(Path(folder, name).resolve().relative_to(ROOT)) for _, folder, _, names in found for name in names}


def test_the_package_has_what_the_kit_reads(packaged: set[str]) -> None:
    read = {name for name in tracked_parts() if not NOT_READ.search(name)}
    assert {"p4/build/ina.json", "p4/ina.p4", "labs/7-measure/README.md", "inakit/py.typed"} <= read
    assert sorted(read - packaged) == []


def test_the_package_has_no_solutions(packaged: set[str]) -> None:
    solutions = {name for name in tracked() if name.startswith("labs/teacher/")}
    assert solutions and not solutions & packaged
    assert not [package for package in build().packages if package.startswith("inakit.labs.")]


@pytest.mark.usefixtures("packaged")
def test_every_folder_of_modules_is_in_the_package() -> None:
    modules = [name for name in tracked_parts() if name.endswith(".py") and not name.startswith("labs/")]
    packages = {package.removeprefix("inakit.").replace(".", "/") for package in build().packages}
    assert sorted({str(Path(name).parent) for name in modules} - packages) == []


def set_up(folder: Path, *command: str) -> None:
    """Run a command of setuptools' in a folder."""
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, links not followed."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git has here, as a checkout with a single commit, all files as they are in it."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    for command in ("init", "add --all", "-c user.name=a -c user.email=a@b commit -m all"):
        subprocess.run(["git", *command.split()], cwd=folder, capture_output=True, check=True)
    return folder


@pytest.fixture(scope="module")
def unpacked(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist of that checkout."""
    folder = tmp_path_factory.mktemp("sdist")
    set_up(checkout, "sdist", "--formats=tar", "--dist-dir", str(folder))
    (archive,) = folder.glob("*.tar")
    with tarfile.open(archive) as file:
        file.extractall(folder)
    return archive.with_suffix("")


def test_an_sdist_has_what_git_has_every_file_once_and_links_as_links(unpacked: Path) -> None:
    found = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_symlink() or path.is_file()}
    assert sorted({name for name in found if not OF_THE_BUILD.fullmatch(name)} ^ tracked()) == []
    links = [name for name in tracked() if (ROOT / name).is_symlink()]
    assert "inakit/topo" in links
    assert [(unpacked / name).readlink() for name in links] == [(ROOT / name).readlink() for name in links]


def test_a_package_is_the_same_from_an_sdist_and_names_the_commit(checkout: Path, unpacked: Path) -> None:
    (checkout / "build" / "lib" / "inakit" / "gone.py").parent.mkdir(parents=True)
    (checkout / "build" / "lib" / "inakit" / "gone.py").touch()  # of an earlier build
    for folder in (checkout, unpacked):
        set_up(folder, "build")
    made = contents(checkout / "build" / "lib")
    assert made == contents(unpacked / "build" / "lib")
    assert {"inakit/topo/fabric/fabric.py", "inakit/p4/build/ina.json", "inakit/__main__.py"} <= made.keys()
    assert {name.split("/")[0] for name in made} == {"inakit"} and "inakit/gone.py" not in made
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True)
    assert json.loads(made["inakit/source.json"]) == {"commit": head.stdout.strip(), "changed": False}
    assert not (checkout / "inakit" / "source.json").exists()


def test_an_editable_install_is_a_folder_with_the_package_alone(checkout: Path, tmp_path: Path) -> None:
    """Editors and type checkers read this line; a user's own `traffic.py` or `experiments/` is in nobody's way."""
    code = f"from setuptools import build_meta; build_meta.build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, check=True)
    (archive,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(archive) as file:
        (path,) = (name for name in file.namelist() if ".dist-info/" not in name)
        assert file.read(path).decode().strip() == str(checkout / "src")
    assert [name for name in tracked() if name.startswith("src/")] == ["src/inakit"]


def test_without_its_links_nothing_is_built(checkout: Path, tmp_path: Path) -> None:
    """As in a checkout on a system where git makes files of them."""
    for name in ("setup.py", "pyproject.toml", "topo/kit.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout / name, tmp_path / name)
    for name in ("inakit", "src"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "topo").write_text("../topo")
    with pytest.raises(AssertionError, match="the links in inakit/ and src/ are missing"):
        set_up(tmp_path, "build")
