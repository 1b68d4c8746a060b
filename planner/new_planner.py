"""Write a new planner: a file, or a package of its own that is ready to be installed and published.

The planner is `racks_in_turn.py` of this folder under another name; planner/README.md shows all files.
"""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path

from inakit.topo.errors import InputError, writing
from inakit.topo.files.reader import write_new

EXAMPLE = "racks-in-turn"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{package}"
version = "0.1"
dependencies = ["inakit"]

[project.entry-points."inakit.planners"]
{planner} = "{module}:METHOD"

[tool.setuptools]
py-modules = ["{module}"]
"""

TEST = '''\
"""The planner's plans obey every rule, and the same seed gives the same plan."""

import inakit as ina
from {module} import METHOD


def test_plans_are_valid_and_the_same_again() -> None:
    fabric = ina.fabric("fattree", k=4)
    job = ina.job(fabric, workers=8)
    plan = ina.plan(fabric, job, METHOD, seed=1).plan  # checked
    assert plan.trees == ina.plan(fabric, job, METHOD, seed=1).plan.trees
'''


def planner_text(name: str) -> str:
    """The text of a planner file: the example under the given name."""
    return Path(__file__).with_name("racks_in_turn.py").read_text().replace(EXAMPLE, name)


def package_texts(package: str, planner: str) -> dict[str, str]:
    """The files of a package with a planner, by their names."""
    words = {"package": package, "planner": planner, "module": package.replace("-", "_")}
    return {
        "pyproject.toml": PYPROJECT.format(**words),
        "{module}.py".format(**words): planner_text(planner),
        "test_{module}.py".format(**words): TEST.format(**words),
    }


def write_planner(file: Path, taken: Container[str]) -> str:
    """Write a new planner file; return the planner's name. Raises `InputError` if the file or the name exists."""
    if file.suffix != ".py":
        raise InputError(f"{file}: a planner is a .py file, such as {file}.py; a package: --package {file}")
    name = file.stem.replace("_", "-")
    check_name(file.stem, name, taken)
    write_new({file: planner_text(name)})
    return name


def write_package(folder: Path, taken: Container[str]) -> str:
    """Write a new package in a folder of its name, such as `ina-mine`; return its planner's name, here `mine`.

    Raises `InputError` if a file or the name exists.
    """
    package = folder.absolute().name
    name = package.replace("_", "-").removeprefix("inakit-").removeprefix("ina-")
    check_name(package, name, taken)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_new({folder / file: text for file, text in package_texts(package, name).items()})
    return name


def check_name(given: str, name: str, taken: Container[str]) -> None:
    """Raise `InputError` for a name of the kit's, and for one that is not valid."""
    if not NAME.fullmatch(given):
        raise InputError(f"'{given}': a planner's name has letters, digits, - and _, and begins with a letter")
    if name in taken:
        raise InputError(f"there is a planner '{name}' already; choose another name")
