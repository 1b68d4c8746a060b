"""Finds user-defined planners (in `planner/own`, packages, files), loads them on first use, and writes new ones.

- a file `planner/own/racks_in_turn.py`, or a folder with `__init__.py`, is the planner `racks-in-turn`;
- an installed package names its planners as entry points of the group `inakit.planners`;
- the path of a file or of such a folder can replace a planner's name everywhere: `./racks_in_turn.py`.

Finding planners runs none of their code. A mistake in one is reported as that planner's error; the others still work.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from traceback import walk_tb
from types import ModuleType
from typing import Any

import inakit.planner.own
from inakit.planner.core.method import Method, Options, OptionsT
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InakitError, InputError, writing
from inakit.topo.files.reader import write_new

GROUP = "inakit.planners"
"""The group of entry points in which packages declare their planners."""
SHOWN = "as planner/README.md shows"
NAME_LETTERS = 12


@dataclass(frozen=True)
class OwnMethod(Method[OptionsT]):
    """A user-defined method: an exception in its code becomes an `InputError` with file and line."""

    planner: OwnPlanner

    def plan(self, problem: Problem, options: Options | None = None) -> Plan:
        """Return the method's plan, checked. Raises `InputError` for every failure in the planner's code."""
        with self.planner.blamed(self.function):
            return super().plan(problem, options)


@dataclass(frozen=True)
class OwnPlanner:
    """A planner that is not part of the kit.

    - `where`: its origin as users see it: `planner/own/mine.py`, `package ina-mine 1.2`
    - `root`: its file or its folder; for a package, the imported one
    - `shown`: the path of `root` in errors
    - `find`: imports its code, and returns its `Method`, or the module that has it as METHOD
    - `rename`: how to rename it
    - `package`: name and version, for a planner of a package
    - `clash`: why its name cannot be used; empty if it can
    """

    name: str
    where: str
    root: Path
    shown: str
    find: Callable[[], object] = field(repr=False)
    rename: str = "give the file another name"
    package: tuple[str, str] | None = None
    clash: str = ""

    @cached_property
    def method(self) -> Method[Any]:
        """Its method, loaded by running its code. Raises `InputError` for code that fails or that has no METHOD."""
        if self.clash:
            raise InputError(f"{self.where}: {self.clash}; {self.rename}")
        with self.blamed():
            found = self.find()
        at = self.place(self.main)
        if isinstance(found, ModuleType):
            found = getattr(found, "METHOD", None)
        if found is None:
            raise InputError(f"{at} has no METHOD: add one {SHOWN}")
        if not isinstance(found, Method):
            raise InputError(f"{at}: METHOD is {kind(found)}; Method(summary, options, plan) is expected, {SHOWN}")
        if not (isinstance(found.options, type) and issubclass(found.options, Options)):
            raise InputError(f"{at}: the options of METHOD are {found.options!r}; Options or a subclass is expected")
        if not callable(found.function):
            raise InputError(f"{at}: METHOD has {kind(found.function)} where the planner's function is expected")
        return OwnMethod(str(found.summary), found.options, found.function, self)

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of its file or, for a folder, of all files in it."""
        if self.root.is_file():
            return sha256(self.root.read_bytes()).hexdigest()
        found = sha256()
        for file in sorted(self.root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(f"\0{file.relative_to(self.root)}\0".encode() + file.read_bytes())
        return found.hexdigest()

    @property
    def record(self) -> dict[str, str]:
        """The planner's part of a run's record: its file, or its package and version, and the SHA-256 of its code."""
        if self.package is None:
            return {"file": self.where, "sha256": self.sha256}
        name, version = self.package
        return {"package": name, "version": version, "sha256": self.sha256}

    @property
    def main(self) -> Path:
        """Its first file."""
        return self.root / "__init__.py" if self.root.is_dir() else self.root

    def place(self, file: Path, line: str = "") -> str:
        """A file of the planner's, such as `planner/own/mine.py`, and a line."""
        inside = "" if file == self.root else f"/{file.relative_to(self.root)}"
        return f"{self.shown}{inside}{line}" + (f" ({self.where})" if self.package else "")

    def owns(self, file: str) -> bool:
        """Whether a file belongs to the planner's code."""
        return Path(file).is_relative_to(self.root)

    @contextmanager
    def blamed(self, function: Callable[..., Any] | None = None) -> Iterator[None]:
        """Turn an exception of the block into an `InputError` that names the line that raised it.

        An error of the kit, which names value and remedy itself, gets file and line in front.
        """
        try:
            yield
        except (Exception, SystemExit) as error:
            told = f"{error}" if isinstance(error, InakitError) else f"{type(error).__name__}: {first_line(error)}"
            kept = type(error) if isinstance(error, InakitError) else InputError
            raise kept(f"{self.place(*self.line_of(error, function))}: {told}") from error

    def line_of(self, error: BaseException, function: Callable[..., Any] | None) -> tuple[Path, str]:
        """The file and the line of an error: the planner's last line that ran, or the first line of `function`."""
        if isinstance(error, SyntaxError) and error.filename and self.owns(error.filename):
            return Path(error.filename), f" line {error.lineno}"
        places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        code = getattr(function, "__code__", None)
        first = [(code.co_filename, code.co_firstlineno)] if code else []
        for file, line in (*reversed(places), *first):
            if self.owns(file):
                return Path(file), f" line {line}"
        return self.main, ""


def of_folder() -> Iterator[OwnPlanner]:
    """Every module of `planner/own`, by its name with `-` for `_`."""
    for folder in map(Path, inakit.planner.own.__path__):
        for module in iter_modules([str(folder)]):
            root = folder / module.name if module.ispkg else folder / f"{module.name}.py"
            entry = EntryPoint(root.stem, f"{inakit.planner.own.__name__}.{module.name}", GROUP)
            where = f"planner/own/{root.name}"
            yield OwnPlanner(module.name.replace("_", "-"), where, root, where, entry.load)


def of_packages() -> Iterator[OwnPlanner]:
    """Every entry point of the group `inakit.planners`."""
    for entry in entry_points(group=GROUP):
        assert entry.dist is not None
        package = entry.dist.name, entry.dist.version
        root = importable(entry.module.partition(".")[0])
        rename = f"its entry point in {GROUP} needs another name"
        yield OwnPlanner(entry.name, f"package {' '.join(package)}", root, root.name, entry.load, rename, package)


def importable(module: str) -> Path:
    """The file or the folder of a top-level module, found without running it."""
    spec: ModuleSpec | None = find_spec(module)
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(f"{module}.py" if spec is None or spec.origin is None else spec.origin)


def is_path(text: str) -> bool:
    """Whether a planner is given by path: the text ends in `.py`, or contains a `/`."""
    path = text.partition(":")[0]
    return path.endswith(".py") or os.sep in path


def name_of(text: str) -> str:
    """The name under which a planner is shown: `mine:depth=2` for `./papers/mine.py:depth=2`."""
    name, *options = text.split(":")
    return ":".join([root_of(name).stem.replace("_", "-") if is_path(name) else name, *options])


def root_of(path: str) -> Path:
    """The file, or the folder with `__init__.py`, at a path."""
    given = Path(path).expanduser()
    root = given.absolute() if given.name.strip(".") else given.resolve()
    return root.parent if root.name == "__init__.py" else root


def of_path(path: str, taken: Container[str] = ()) -> OwnPlanner:
    """The planner of a file, or of a folder with `__init__.py`. Raises `InputError` if there is none."""
    root = root_of(path)
    if root.is_dir() and not (root / "__init__.py").is_file():
        raise InputError(f"there is no planner in folder '{path}': give a .py file, or a folder with __init__.py")
    if not root.exists():
        raise InputError(f"there is no planner file '{path}': `inakit planners new {path}` writes one to begin with")
    planner = OwnPlanner(name_of(path), path, root, path.rstrip("/"), lambda: run_file(planner))
    return with_clashes([planner], taken)[planner.name]


def run_file(planner: OwnPlanner) -> ModuleType:
    """Import the module of a path. Its name depends on its contents, so that an edited file runs again."""
    content = sha256(f"{planner.root} {planner.sha256}".encode()).hexdigest()[:NAME_LETTERS]
    name = f"{planner.root.stem}_{content}"
    if name in sys.modules:
        return sys.modules[name]
    inside = [str(planner.root)] if planner.root.is_dir() else None
    spec = spec_from_file_location(name, planner.main, submodule_search_locations=inside)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        exec(compile(planner.main.read_bytes(), planner.main, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def with_clashes(planners: Iterable[OwnPlanner], taken: Container[str]) -> dict[str, OwnPlanner]:
    """The planners by name. One with a name of the kit or of another planner cannot be used until it is renamed."""
    found: dict[str, OwnPlanner] = {}
    for planner in planners:
        if planner.name in taken:
            found.setdefault(planner.name, replace(planner, clash=f"there is a planner '{planner.name}' already"))
        elif planner.name in found:
            first = found[planner.name]
            found[planner.name] = replace(first, clash=f"{planner.where} has a planner '{planner.name}' too")
        else:
            found[planner.name] = planner
    return found


def first_line(error: BaseException) -> str:
    """The exception's message on one line."""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(said.split()) or "no message"


def kind(value: object) -> str:
    """A value's type, and the first 40 characters of the value."""
    return f"{type(value).__name__} {value!r:.40}"


# -- A new planner: a file, or a package of its own that is ready to be installed and published.
#
# The planner is `racks_in_turn.py` of this folder under another name; planner/README.md shows all files.

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
