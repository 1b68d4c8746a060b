"""The version of the code on which results depend: a hash of its sources, and of the libraries that plan.

A change of what does not matter, such as a page of the documentation or another planner of one's own, leaves it as it
is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARIES = ("highspy", "networkx", "numpy", "pulp")
SOURCES = (".py", ".c", ".h", ".csv", ".json")
"""What files of source code end in, together with the tables and the compiled program that the code reads."""


@cache
def code_version(*parts: Path, without: tuple[Path, ...] = ()) -> str:
    """The SHA-256 of the sources in files and folders, leaving some out, and of the versions of `LIBRARIES`."""
    found = hashlib.sha256(" ".join(f"{name} {installed(name)}" for name in LIBRARIES).encode())
    for path in sources(parts, without):
        found.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return found.hexdigest()


def sources(parts: Iterable[Path], without: tuple[Path, ...]) -> list[Path]:
    """The files of source code in files and folders, sorted."""
    every = {path for part in parts for path in (part.rglob("*") if part.is_dir() else [part])}
    wanted = (path for path in every if path.suffix in SOURCES and not any(path.is_relative_to(out) for out in without))
    return sorted(wanted)


def installed(library: str) -> str:
    """The version of a library; empty where it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
