"""A submission, which is a folder or a file, and its compiled program, from its P4 or its JSON.

Only regular files of the expected kinds are read, each up to a size.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inakit.experiments.labs.grading.p4c import compile_p4, find_compiler, needed_compiler
from inakit.experiments.labs.sandbox.untrusted import printable
from inakit.topo.errors import InputError

MOST_BYTES = 4 << 20
MOST_FILES = 24
SUFFIXES = (".p4", ".json", ".py", ".csv", ".yml", ".md")


@dataclass(frozen=True)
class Submission:
    """The texts of a submission by the names of their files. `student` is its author, if known."""

    path: Path
    texts: dict[str, str]
    student: str = ""

    def text(self, name: str) -> str:
        """The text of a file; `InputError` for a missing file names the existing ones."""
        if name not in self.texts:
            there = ", ".join(sorted(self.texts)) or "nothing"
            raise InputError(f"the submission has no '{name}'; it has {there}")
        return self.texts[name]

    @property
    def sources(self) -> dict[str, str]:
        """The P4 sources."""
        return {name: text for name, text in self.texts.items() if name.endswith(".p4")}


def submissions_in(folder: Path) -> dict[str, Path]:
    """The submissions of a class, by student: the name of a folder, or of a file without its suffix.

    Bytes of a name that are no text have the form `\\xff`. Of several with one name each keeps its whole name, with a
    number if these look alike. Raises `InputError` for a missing folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with a submission for each student")
    paths = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    stems = {path: path.name if path.is_dir() else path.stem for path in paths}
    names = {path: path.name if list(stems.values()).count(stem) > 1 else stem for path, stem in stems.items()}
    shown = [printable(os.fsencode(name).decode(errors="backslashreplace")) for name in names.values()]
    alike = {name for name in shown if shown.count(name) > 1}
    told = (f"{name} ({number})" if name in alike else name for number, name in enumerate(shown, 1))
    return dict(zip(told, names, strict=True))


def read_submission(path: Path, student: str = "", expected: Sequence[str] = ()) -> Submission:
    """Read a submission of the files `expected`; `InputError` if it is missing, empty, or no regular file."""
    if path.is_symlink() or not path.exists():
        raise InputError(f"{path}: no such file or folder; expected a submission")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    chosen = [each for each in files if each.suffix in SUFFIXES]
    if len(chosen) > MOST_FILES:
        raise InputError(
            f"the submission has {len(chosen)} files of P4, JSON and Python: at most {MOST_FILES} are read"
        )
    texts = {printable(each.name): read_file(each) for each in chosen}
    if not any(text.strip() for text in texts.values()):
        there = ", ".join(f"{printable(each.name)}{'/' if each.is_dir() else ''}" for each in files[:8])
        empty = "its files are empty" if texts else f"it has {there or 'no files'}"
        wanted = " and ".join(expected) or "P4 (.p4), compiled P4 (.json) or Python"
        raise InputError(f"the submission is empty: {empty}, where {wanted} is expected")
    return Submission(path, texts, student)


def read_file(path: Path) -> str:
    """The text of a regular file of a bounded size. Symbolic links are not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"{path.name} cannot be read, and symbolic links are not followed: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path.name} is no regular file")
        if found.st_size > MOST_BYTES:
            raise InputError(f"{path.name} has {found.st_size} bytes: at most {MOST_BYTES} are read")
        data = file.read(MOST_BYTES)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is no text in UTF-8") from None


def compiled_program(submission: Submission, stem: str) -> tuple[str, str]:
    """The JSON of the program `stem`, and a note on its origin, which is empty if p4c has just compiled it.

    P4 is compiled if p4c is installed; without p4c a JSON file beside it is used. Raises `InputError` or
    `MachineError`.
    """
    source, made = f"{stem}.p4", f"{stem}.json"
    if source in submission.texts:
        compiler = find_compiler()
        if compiler is None and made in submission.texts:
            return submission.texts[made], f"p4c is not installed here: {made} was graded, not {source}"
        return compile_p4(submission.sources, source, compiler or needed_compiler()), ""
    if made in submission.texts:
        return submission.texts[made], f"{made} was graded, without its P4"
    there = ", ".join(sorted(submission.texts))
    raise InputError(f"the submission has no '{source}' and no '{made}', but {there}: give the program that name")
