"""Every error that the kit raises on purpose.

InakitError
├── InputError        something a person wrote is wrong: a file, a name, a number (exit code 2)
│   ├── FabricError   a fabric that cannot exist
│   └── PlanError     a plan that breaks a rule; names the rule, the tree and the link
├── MachineError      something this machine lacks: root, clang, simple_switch (exit code 2)
├── SolverError       a model that is infeasible, or a solver that failed (exit code 2)
├── OutputError       a file or a folder that cannot be written (exit code 2)
├── UnsupportedError  a P4 construct that a target refuses to run, by name (exit code 2)
└── RunError          a run that broke: a switch died, a worker stalled (exit code 2)

Each message names the value, what was expected, and the way out.

Packages that a plain `pip install inakit` does not bring, and the extra of `pyproject.toml` that brings each.
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
    """Base of all errors whose message is meant for a person."""


class InputError(InakitError):
    """Something a person wrote is wrong."""


class FabricError(InputError):
    """A fabric that cannot exist."""


class PlanError(InputError):
    """A plan that breaks a rule."""


class MachineError(InakitError):
    """Something that this machine lacks."""


class SolverError(InakitError):
    """A model without a solution, or a solver that failed."""


class OutputError(InakitError):
    """A file or a folder that cannot be written."""


class UnsupportedError(InakitError):
    """A P4 construct that a switch target refuses to run."""


class RunError(InakitError):
    """A run that broke while it ran."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that no registry has, with the nearest one that it has."""
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1) or [each for each in choices if each.lower() == name.lower()]
    hint = f"did you mean '{near[0]}'? " if near else ""
    return InputError(f"unknown {what} '{name}': {hint}choose from {', '.join(choices)}")


def as_root() -> str:
    """What to type to run the present command as root: sudo does not look into the folder of an environment."""
    if not os.access(sys.argv[0], os.X_OK):  # Python's own argument, such as a script or a module
        return "run the same command with sudo"
    return f"run `{shlex.join(['sudo', *sys.argv])}`"


REMEDIES = {
    errno.ENOSPC: "free some space on its disk, or choose a folder on another",
    errno.EDQUOT: "your quota is used up: delete something, or choose a folder on another disk",
    errno.EACCES: "choose a folder of your own, or run the command as who may write there",
    errno.EPERM: "choose a folder of your own, or run the command as who may write there",
    errno.EROFS: "choose a folder on another disk",
    errno.ENOTDIR: "something on the way to it is a file; choose a folder",
    errno.EEXIST: "it is a file; choose a folder",
    errno.EISDIR: "it is a folder; choose the name of a file",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "its symbolic links lead in a circle; choose another folder",
    errno.EIO: "its disk has failed; choose a folder on another",
    errno.EFBIG: "its disk takes no file of that size; choose a folder on another",
}
"""What to do about an error of writing. An `OSError` that is not listed here is not a mistake of the user."""

SYSTEM_REMEDIES = {
    errno.EMFILE: "this process may open no more files: raise the limit (`ulimit -n 4096`)",
    errno.ENFILE: "this machine has no more open files: end what holds many, or raise /proc/sys/fs/file-max",
    errno.EAGAIN: "no more processes can be started: raise the limit (`ulimit -u`, the container's --pids-limit)",
    errno.ENOMEM: "there is no more memory: allow this process more (`ulimit -v`, the container's limit)",
    errno.ENOEXEC: "the program cannot run on this machine: install it anew, or another at the head of PATH",
    errno.ENODEV: "this kernel has no such device: load its module, or run in virtual time (--switch virtual)",
}
"""What to do about errors of the system other than those of writing."""


def system_error(error: OSError) -> MachineError | None:
    """The error in words, if a remedy is known."""
    remedy = SYSTEM_REMEDIES.get(error.errno or 0)
    if remedy is None:
        return None
    name = error.filename2 or error.filename
    name = os.fsdecode(name) if isinstance(name, bytes) else name
    return MachineError(": ".join(map(str, filter(None, (name, os.strerror(error.errno or 0), remedy)))))


def output_error(error: OSError, path: Path | None = None, way: str = "") -> OutputError | None:
    """The error in words, for `path` where the error itself names no file; None unless it is one of writing.

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
    """Turn an error of writing into `path` or below it, which is raised in the block, into an `OutputError`.

    `remedy` is what to do about it, where that is not to choose another folder.
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
"""By the name under which Python imports it, each package's own name and an extra. `inakit[all]` has them all."""


def lacking(imported: str, what: str) -> MachineError:
    """The error for `what` that needs a package of an extra, by the name under which it is imported."""
    package, extra = EXTRAS[imported]
    return MachineError(f"{what} needs {package}, which is not installed: pip install 'inakit[{extra}]'")


def lacking_import(error: ImportError, what: str) -> MachineError | None:
    """The error for `what` whose import failed; None unless an extra brings the package that was not found."""
    imported = (error.name or "").partition(".")[0]
    return lacking(imported, what) if isinstance(error, ModuleNotFoundError) and imported in EXTRAS else None
