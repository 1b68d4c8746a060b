"""Finds the files that a network file names: courses name them from the folder in which they run, or from their own."""

from __future__ import annotations

from pathlib import Path

from inakit.topo.errors import InputError


def find_file(name: str, beside: Path) -> Path:
    """The file that `beside` names: in its own folder, in the one above, or in the working folder."""
    folders = [beside.parent, beside.resolve().parent.parent, Path.cwd()]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{beside} names '{name}', which is in none of {', '.join(dict.fromkeys(map(str, folders)))}")


def find_program(name: str, beside: Path) -> Path | None:
    """The compiled program or source that `beside` names; None if it is not there, for it may be compiled later."""
    try:
        return find_file(name, beside)
    except InputError:
        return None
