"""The version of this inakit, as `inakit --version` prints it and every run's record and report state it.

With it goes the commit that the files of the kit come from, and whether any of them was changed since. A checkout has
its `.git`. A package has a file that its build writes: `setup.py` runs this module too, which therefore imports nothing
of the kit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

BUILT = "source.json"
"""The file in a built package `inakit` that states its source. A checkout has none."""
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
GIT_S = 5
"""The time limit for git's comparison of the files with the commit, in seconds."""


class Source(NamedTuple):
    """A commit's full hash, and whether tracked files differ from it; None if unknown."""

    commit: str | None = None
    changed: bool | None = None

    def __str__(self) -> str:
        """The text with the shortened hash; empty if the commit is unknown."""
        if self.commit is None:
            return ""
        words = {True: ", changed files", False: "", None: ", without git to tell changes"}[self.changed]
        return f"commit {self.commit[:8]}{words}"


def source_of(folder: Path) -> Source:
    """The source of the package `inakit` in a folder, which is a checkout, an unpacked sdist or `site-packages`."""
    git = folder / ".git"
    if git.exists():
        commit = head(git)
        return Source(commit, None if commit is None else changed(folder, git))
    try:
        return Source(**json.loads((folder / "inakit" / BUILT).read_text()))
    except (OSError, ValueError, TypeError):
        return Source()


def head(git: Path) -> str | None:
    """The commit that is checked out, read without git: git can be missing or refuse another user's checkout."""
    try:
        if git.is_file():  # of a further working tree
            git = git.parent / git.read_text().removeprefix("gitdir:").strip()
        commit = (git / "HEAD").read_text().strip()
        if commit.startswith("ref:"):
            commit = commit_of(git, commit.removeprefix("ref:").strip())
    except (OSError, ValueError):
        return None
    return commit if COMMIT.fullmatch(commit) else None


def commit_of(git: Path, branch: str) -> str:
    """The commit of a branch (`refs/heads/main`), from its own file or its line in `packed-refs`."""
    common = git / "commondir"
    folder = git / common.read_text().strip() if common.exists() else git
    if (folder / branch).is_file():
        return (folder / branch).read_text().strip()
    lines = (folder / "packed-refs").read_text().splitlines()
    return next((line.split()[0] for line in lines if line.endswith(f" {branch}")), "")


def changed(folder: Path, git: Path) -> bool | None:
    """Whether tracked files differ from the commit; None where git is missing, slow, or cannot tell.

    With an explicit `--git-dir` git accepts another user's folder. It writes nothing, so that no file becomes root's.
    """
    places = (f"--git-dir={git}", f"--work-tree={folder}")
    asked = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules")
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *places, *asked],
            env={name: text for name, text in os.environ.items() if not name.startswith("GIT_")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return bool(done.stdout) if done.returncode == 0 else None


@dataclass(frozen=True)
class Kit:
    """A version of inakit, and the source that it was built from."""

    version: str
    source: Source

    def __str__(self) -> str:
        """The text for people: `0.1.0 (commit ede02423, changed files)`."""
        return f"{self.version} ({self.source})" if str(self.source) else self.version


@cache
def this_kit() -> Kit:
    """The running inakit. The first call examines its files; the result is cached."""
    import inakit  # noqa: PLC0415, `setup.py` has none

    place = Path(inakit.__file__).resolve().parents[1]  # a checkout or `site-packages`
    return Kit(inakit.__version__, source_of(place))
