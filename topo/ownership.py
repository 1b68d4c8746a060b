"""Ownership of new files: files that root creates get the owner of their folder.

A network needs root, but its results, plans, captures and cached programs should be readable and removable without
root. While a command runs as root, every file and folder that this process creates, in any module or library, is noted
and given away when the command ends in any way.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

made: set[Path] = set()
"""Paths that did not exist before."""


@contextmanager
def given_to_owners() -> Iterator[None]:
    """Give the files and folders made in the block to their folders' owners. Without root it has no effect."""
    if os.geteuid() == 0:
        watch()
    try:
        yield
    finally:
        give()


@cache
def watch() -> None:
    """Note the files and folders that this process makes from now on. Python cannot remove an audit hook."""
    sys.addaudithook(note)


def note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        new = isinstance(flags, int) and flags & os.O_CREAT
    elif event == "os.mkdir":
        path, new = arguments[0], True
    elif event in ("os.rename", "os.symlink", "os.link"):
        path, new = arguments[1], True
    else:
        return
    if new and isinstance(path, str | bytes | os.PathLike):
        with suppress(OSError, ValueError):
            found = Path(os.fsdecode(path)).absolute()
            if event == "os.rename" or not os.path.lexists(found):
                made.add(found)


def give() -> None:
    """Give all noted paths away, folders with their contents, and forget them."""
    for path in sorted(made):
        with suppress(OSError):
            found, owner = path.lstat(), owner_of(path.parent)
            if owner is None or found.st_uid:
                continue
            if stat.S_ISDIR(found.st_mode):
                for _, folders, files, folder in os.fwalk(path):
                    for name in (*folders, *files):
                        os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)
            os.chown(path, *owner, follow_symlinks=False)
    made.clear()


def owner_of(folder: Path) -> tuple[int, int] | None:
    """The user and group that get root's files in a folder; None for root's own folders.

    In a world-writable folder such as /tmp, it is the user who called sudo.
    """
    found = folder.stat()
    if found.st_uid:
        return found.st_uid, found.st_gid
    if found.st_mode & stat.S_ISVTX and (user := os.environ.get("SUDO_UID", "")).isdecimal() and int(user):
        return int(user), int(os.environ.get("SUDO_GID", user))
    return None
