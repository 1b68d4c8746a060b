"""The kit's own errors, and the packages of extras.

InakitError
├── InputError        wrong input: a file, a name, a number (exit code 2)
│   ├── FabricError   a fabric that cannot exist
│   └── PlanError     a plan that breaks a rule; names the rule, the tree and the link
├── MachineError      this machine lacks something: root, clang, simple_switch (exit code 2)
├── SolverError       a model that is infeasible, or a solver that failed (exit code 2)
├── OutputError       a file or a folder that cannot be written (exit code 2)
├── UnsupportedError  a P4 construct that a target refuses to run, by name (exit code 2)
└── RunError          a run that failed: a switch died, a worker stalled (exit code 2)

Each message names the value, what was expected, and the way out. `EXTRAS` lists the packages that a plain `pip install
inakit` does not install, with their extras in `pyproject.toml`.
"""

from __future__ import annotations

import difflib
import errno
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class InakitError(Exception):
    """Base of all errors whose message is written for users."""


class InputError(InakitError):
    """Wrong input of a user: a file, a name, a number."""


class FabricError(InputError):
    """A fabric that cannot exist."""


class PlanError(InputError):
    """A plan that breaks a rule."""


class MachineError(InakitError):
    """A requirement that this machine does not meet."""


class SolverError(InakitError):
    """A model without a solution, or a solver that failed."""


class OutputError(InakitError):
    """A file or a folder that cannot be written."""


class UnsupportedError(InakitError):
    """A P4 construct that a switch target refuses to run."""


class RunError(InakitError):
    """A run that failed."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for an unknown name, with the nearest known one."""
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1) or [each for each in choices if each.lower() == name.lower()]
    hint = f"did you mean '{near[0]}'? " if near else ""
    return InputError(f"unknown {what} '{name}': {hint}choose from {', '.join(choices)}")


def as_root() -> str:
    """The instruction to run this command as root, by its path: sudo does not search virtual environments."""
    if not os.access(sys.argv[0], os.X_OK):  # Python's own argument, such as a script or a module
        return "run the same command with sudo"
    return f"run `{shlex.join(['sudo', *sys.argv])}`"


REMEDIES = {
    errno.ENOSPC: "free some space on its disk, or choose a folder on another",
    errno.EDQUOT: "your quota is used up: delete something, or choose a folder on another disk",
    errno.EACCES: "choose a folder of your own, or run the command as who may write there",
    errno.EPERM: "choose a folder of your own, or run the command as who may write there",
    errno.EROFS: "choose a folder on another disk",
    errno.ENOTDIR: "a part of its path is a file; choose a folder",
    errno.EEXIST: "it is a file; choose a folder",
    errno.EISDIR: "it is a folder; choose the name of a file",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "its symbolic links form a loop; choose another folder",
    errno.EIO: "its disk has failed; choose a folder on another",
    errno.EFBIG: "its disk takes no file of that size; choose a folder on another",
}
"""The remedy for each error of writing. An `OSError` that is not listed here is not a mistake of the user."""

SYSTEM_REMEDIES = {
    errno.EMFILE: "this process may open no more files: raise the limit (`ulimit -n 4096`)",
    errno.ENFILE: "this machine can open no more files: end programs that hold many, or raise /proc/sys/fs/file-max",
    errno.EAGAIN: "no more processes can be started: raise the limit (`ulimit -u`, the container's --pids-limit)",
    errno.ENOMEM: "there is no more memory: allow this process more (`ulimit -v`, the container's limit)",
    errno.ENOEXEC: "the program cannot run on this machine: reinstall it, or put another one first in PATH",
    errno.ENODEV: "this kernel has no such device: load its module, or run in virtual time (--switch virtual)",
}
"""The remedy for each system error other than those of writing."""


def system_error(error: OSError) -> MachineError | None:
    """Return the error with its remedy, or None if no remedy is known."""
    remedy = SYSTEM_REMEDIES.get(error.errno or 0)
    if remedy is None:
        return None
    name = error.filename2 or error.filename
    name = os.fsdecode(name) if isinstance(name, bytes) else name
    return MachineError(": ".join(map(str, filter(None, (name, os.strerror(error.errno or 0), remedy)))))


def output_error(error: OSError, path: Path | None = None, way: str = "") -> OutputError | None:
    """Return the error with its remedy, about `path` if it names no file; None unless it is an error of writing.

    A missing file is an error of writing only if it is `path` or a folder above it, and its own folder exists: some
    file systems (/proc) allow no new files.
    """
    name = error.filename2 or error.filename or path or "a file that was being written"
    name = os.fsdecode(name) if isinstance(name, bytes) else name
    remedy = REMEDIES.get(error.errno or 0)
    if error.errno == errno.ENOENT and path and Path(name) in (path, *path.parents) and Path(name).parent.is_dir():
        remedy = "nothing new can be made there; choose another folder"
    return OutputError(f"{name}: {os.strerror(error.errno or 0)}: {way or remedy}") if remedy else None


@contextmanager
def writing(path: Path, remedy: str = "") -> Iterator[None]:
    """Turn an error of writing to `path` or below it in the block into an `OutputError`.

    `remedy` replaces the default advice to choose another folder.
    """
    try:
        yield
    except OSError as error:
        told = output_error(error, path, remedy)
        if told is None:
            raise
        raise told from error


# -- Packages that a plain `pip install inakit` does not bring, and the extra of `pyproject.toml` that brings each.

EXTRAS = {
    "pyarrow": ("pyarrow", "study"),
    "pandas": ("pandas", "notebook"),
    "google": ("protobuf", "hardware"),
    "grpc": ("grpcio", "hardware"),
    "p4": ("p4runtime", "hardware"),
    "pynng": ("pynng", "server"),
    "thriftpy2": ("thriftpy2", "server"),
    "ptf": ("ptf", "ptf"),
    "dask": ("dask", "cluster"),
    "distributed": ("distributed", "cluster"),
    "submitit": ("submitit", "cluster"),
}
"""Import name to the package's name and its extra. `inakit[all]` includes all extras."""


def lacking(imported: str, what: str) -> MachineError:
    """Return the error for `what` that needs a package of an extra; `imported` is the package's import name."""
    package, extra = EXTRAS[imported]
    return MachineError(f"{what} needs {package}, which is not installed: pip install 'inakit[{extra}]'")


def lacking_import(error: ImportError, what: str) -> MachineError | None:
    """Return the error for `what` whose import failed; None unless an extra installs the missing package."""
    imported = (error.name or "").partition(".")[0]
    return lacking(imported, what) if isinstance(error, ModuleNotFoundError) and imported in EXTRAS else None
