"""What root makes belongs to whom the folder belongs to in which it is made.

A network needs root, what it leaves is read and removed without: results, plans, captures, compiled programs in the
cache of a user. So while a command runs as root every file and folder that it makes is noted, whichever module or
library makes it, and given away when the command ends, by whatever way.
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
    """Give away what the block has made. It changes nothing unless root runs it."""
    if os.geteuid() == 0:
        watch()
    try:
        yield
    finally:
        give()


@cache
def watch() -> None:
    """Note from now on what this process makes. Python cannot take an audit hook back."""
    sys.addaudithook(note)


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """Note the path of what an event is about to make."""
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
    """Give everything that was noted away, folders with all that is in them, and forget it."""
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
    """To which user and group that is given which root makes in a folder; None for root's own folders.

    In a folder of everybody, such as /tmp, it is who has called sudo.
    """
    found = folder.stat()
    if found.st_uid:
        return found.st_uid, found.st_gid
    if found.st_mode & stat.S_ISVTX and (user := os.environ.get("SUDO_UID", "")).isdecimal() and int(user):
        return int(user), int(os.environ.get("SUDO_GID", user))
    return None
