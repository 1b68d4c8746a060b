"""Loads the planners of `planner/own`. A mistake in one of them is that planner's error, and the others still work."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from traceback import walk_tb
from typing import Any

import inakit.planner.own
from inakit.planner.core.method import Method, Options, OptionsT
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InakitError, InputError

SHOWN = "as planner/README.md shows"


@dataclass(frozen=True)
class OwnMethod(Method[OptionsT]):
    """A method of a module in `planner/own`: an exception in it becomes an `InputError` with file and line."""

    file: Path

    def plan(self, problem: Problem, options: Options | None = None) -> Plan:
        """The method's plan, checked. Raises `InputError` for whatever goes wrong in the planner's code."""
        with blamed_on(self.file, self.function):
            return super().plan(problem, options)


@dataclass
class Own:
    """The planners of `planner/own` by name, and of those that cannot be used, by name, the error."""

    methods: dict[str, Method[Any]] = field(default_factory=dict)
    broken: dict[str, InputError] = field(default_factory=dict)


def own_methods(taken: Container[str] = ()) -> Own:
    """Every module of `planner/own`, by its name with `-` for `_`. `taken` are names of other planners."""
    own = Own()
    for folder, module in (
        (Path(path), module) for path in inakit.planner.own.__path__ for module in iter_modules([path])
    ):
        name = module.name.replace("_", "-")
        file = folder / module.name / "__init__.py" if module.ispkg else folder / f"{module.name}.py"
        try:
            if name in taken or name in own.methods:
                raise InputError(f"{shown(file)}: there is a planner '{name}' already; give the file another name")
            own.methods[name] = load(module.name, file)
        except InputError as error:
            own.broken[name] = error
    return own


def load(module: str, file: Path) -> Method[Any]:
    """The module's `METHOD`. Raises `InputError` where the module has none, or something else under that name."""
    with blamed_on(file):
        found = getattr(import_module(f"{inakit.planner.own.__name__}.{module}"), "METHOD", None)
    if found is None:
        raise InputError(f"{shown(file)} has no METHOD: add one {SHOWN}")
    if not isinstance(found, Method):
        raise InputError(f"{shown(file)}: METHOD is {kind(found)}; Method(summary, options, plan) is expected, {SHOWN}")
    if not (isinstance(found.options, type) and issubclass(found.options, Options)):
        raise InputError(
            f"{shown(file)}: the options of METHOD are {found.options!r}; Options or a subclass is expected"
        )
    if not callable(found.function):
        raise InputError(f"{shown(file)}: METHOD has {kind(found.function)} where the planner's function is expected")
    return OwnMethod(str(found.summary), found.options, found.function, file)


@contextmanager
def blamed_on(file: Path, function: Callable[..., Any] | None = None) -> Iterator[None]:
    """Turn an exception of the block into an `InputError` that names the line of `file` from which it came.

    An error of the kit, which names value and remedy by itself, gets file and line in front.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        told = f"{error}" if isinstance(error, InakitError) else f"{type(error).__name__}: {first_line(error)}"
        kept = type(error) if isinstance(error, InakitError) else InputError
        raise kept(f"{shown(file)}{line_of(error, file, function)}: {told}") from error


def line_of(error: BaseException, file: Path, function: Callable[..., Any] | None) -> str:
    """The place of an error, such as ` line 7`: the last line of `file` that ran, or the first line of `function`."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename) == file:
        return f" line {error.lineno}"
    lines = [line for frame, line in walk_tb(error.__traceback__) if Path(frame.f_code.co_filename) == file]
    code = getattr(function, "__code__", None)
    if not lines and code is not None and Path(code.co_filename) == file:
        lines = [code.co_firstlineno]
    return f" line {lines[-1]}" if lines else ""


def first_line(error: BaseException) -> str:
    """What the exception says, on one line."""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(said.split()) or "it says no more"


def kind(value: object) -> str:
    """A value's type, and the first 40 characters of the value."""
    return f"{type(value).__name__} {value!r:.40}"


def shown(file: Path) -> str:
    """The file's path as a user knows it: from the project's folder on."""
    return str(Path(*file.parts[file.parts.index("own") - 1 :])) if "own" in file.parts else str(file)
