"""A submission, which is a folder, a file or a zip, and its compiled program, from its P4 or its JSON.

Only regular files that the lab asks for are read, each up to a size; whatever else was handed in is ignored.
"""

from __future__ import annotations

import errno
import io
import lzma
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from inakit.experiments.labs.grading.p4c import COURSE, compile_p4, read_archive
from inakit.experiments.labs.sandbox.untrusted import printable
from inakit.switch.program.p4_source import find_compiler
from inakit.topo.errors import InputError

MOST_BYTES = 4 << 20
MOST_MEMBERS = 1000
MOST_FOLDERS = 20
MOST_TOGETHER = 4 * MOST_BYTES
UNPACKING = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, struct.error, NotImplementedError,
    RuntimeError, EOFError, OSError, ValueError, IndexError, OverflowError,
)  # fmt: skip
"""What `zipfile` raises for a damaged zip."""
EXPORTED = re.compile(r"(_\d+)?_assignsubmission_(file|onlinetext)(_.*)?$")
"""What Moodle adds to a student's name in the zip of all submissions."""
SUFFIXES = (".p4", ".json", ".py", ".csv", ".yml", ".md")


@dataclass(frozen=True)
class Submission:
    """The texts of a submission by the names of their files. `student` is its author, if known.

    `there` are all files in it, for messages.
    """

    path: Path
    texts: dict[str, str]
    student: str = ""
    there: str = ""

    def text(self, name: str) -> str:
        """The text of a file; `InputError` for a missing file names the existing ones."""
        if name not in self.texts:
            raise InputError(f"the submission has no '{name}'; it has {self.there}")
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
    stems = {path: EXPORTED.sub("", path.name if path.is_dir() else path.stem) for path in paths}
    names = {path: path.name if list(stems.values()).count(stem) > 1 else stem for path, stem in stems.items()}
    shown = [printable(os.fsencode(name).decode(errors="backslashreplace")) for name in names.values()]
    alike = {name for name in shown if shown.count(name) > 1}
    told = (f"{name} ({number})" if name in alike else name for number, name in enumerate(shown, 1))
    return dict(zip(told, names, strict=True))


def read_submission(path: Path, student: str = "", expected: Sequence[str] = ()) -> Submission:
    """Read the files of a submission that a lab asks for, P4 also in compiled form and with what it includes.

    A submission can also be one zip, inside one folder, or the lab's only file under any name. Other files are not
    read. `expected` are the names of the lab's files; without them all files of the kinds of labs are read. Raises
    `InputError` for a submission that is missing or empty, and for a file of the lab that cannot be read.
    """
    if path.is_symlink() or not path.exists():
        raise InputError(f"{path}: no such file or folder; expected a submission")
    with files_in(path, expected) as files:
        texts, most = {}, MOST_TOGETHER
        for name in sorted(filter(partial(is_wanted, expected=expected), files)):
            data = files[name]()
            most -= len(data)
            if most < 0:
                raise InputError(f"all files have more than {MOST_TOGETHER} bytes, which is the most that is read")
            texts[printable(name)] = as_text(name, data)
    there = ", ".join(map(printable, sorted(files)[:8])) or "no files"
    if not any(text.strip() for text in texts.values()):
        empty = "its files are empty" if texts else f"it has {there}"
        wanted = " and ".join(expected) or "P4 (.p4), compiled P4 (.json) or Python"
        raise InputError(f"the submission is empty: {empty}, where {wanted} is expected")
    return Submission(path, texts, student, there)


def is_wanted(name: str, expected: Sequence[str]) -> bool:
    """Whether a lab with these files reads a file of this name."""
    if not expected:
        return Path(name).suffix in SUFFIXES
    programs = [each for each in expected if each.endswith(".p4")]
    return name in expected or bool(programs and (name.endswith(".p4") or name in map(compiled_name, programs)))


def compiled_name(name: str) -> str:
    """The name of a program's compiled form, or the name of another file."""
    return f"{name.removesuffix('.p4')}.json" if name.endswith(".p4") else name


@contextmanager
def files_in(path: Path, expected: Sequence[str], outer: int = 0) -> Iterator[Mapping[str, Callable[[], bytes]]]:
    """The files of a submission by name, each with the function that reads it.

    Where no expected file is, those of the only folder or the only zip inside are taken; `outer` folders are around it.
    """
    if outer > MOST_FOLDERS:
        raise InputError(f"more than {MOST_FOLDERS} folders, each in another one, are around the files")
    if path.is_dir():
        # Hidden files, and what macOS packs beside every file, belong to nobody.
        inside = [each for each in path.iterdir() if not each.name.startswith((".", "__MACOSX"))]
        found = {each.name: partial(read_bytes, each) for each in inside if each.is_symlink() or not each.is_dir()}
        deeper = [each for each in inside if not each.is_symlink() and (each.is_dir() or each.suffix == ".zip")]
        if len(deeper) == 1 and not any(is_wanted(name, expected) for name in found):
            with files_in(deeper[0], expected, outer + 1) as files:
                yield files
        else:
            yield found
    elif path.suffix == ".zip":
        with zipped(path) as archive:
            members = [each for each in archive.infolist() if not each.is_dir() and not hidden(each.filename)]
            if len(members) > MOST_MEMBERS:
                raise InputError(f"{path.name} has {len(members)} files: at most {MOST_MEMBERS} are read")
            for each in members:
                each.filename = each.filename.replace("\\", "/")  # as some programs of Windows write it
            folders = {each.filename.rpartition("/")[0] for each in members}
            top = [folder for folder in folders if not folder.strip("/")] or sorted(folders, key=len)[:1]
            here = (each for each in members if each.filename.rpartition("/")[0] in top)
            yield {each.filename.rpartition("/")[2]: partial(read_member, archive, each) for each in here}
    else:
        yield {name_for_lab(path, expected): partial(read_bytes, path)}


def name_for_lab(path: Path, expected: Sequence[str]) -> str:
    """The name of a submission that is a file: that of the lab's only file of its kind, whatever the student's is."""
    names = [name for each in expected for name in {each, compiled_name(each)} if Path(name).suffix == path.suffix]
    return names[0] if path.name not in names and len(names) == 1 else path.name


def hidden(name: str) -> bool:
    """Whether a file of a zip is hidden, or one of those that macOS adds."""
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))


@contextmanager
def zipped(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[zipfile.ZipFile]:
    """A zip of a bounded size. Raises `InputError`."""
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path, most_bytes))) as archive:
            yield archive
    except UNPACKING as error:
        raise InputError(f"{printable(path.name)} cannot be unpacked: {printable(str(error))}") from None


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A file of a zip of a bounded size."""
    with archive.open(member) as file:
        return bounded(member.filename, file.read(MOST_BYTES + 1))


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """A regular file of a bounded size. Symbolic links are not followed."""
    name = printable(path.name)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        linked = error.errno == errno.ELOOP
        why = "is a symbolic link, which is not followed" if linked else f"cannot be read: {error.strerror}"
        raise InputError(f"{name} {why}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"{name} is no regular file")
        return bounded(name, file.read(most_bytes + 1), most_bytes)


def bounded(name: str, data: bytes, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a file; raises `InputError` if there are too many."""
    if len(data) > most_bytes:
        raise InputError(f"{printable(name)} has more than {most_bytes} bytes, which is the most that is read")
    return data


def as_text(name: str, data: bytes) -> str:
    """A file's text in UTF-8, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{printable(name)} is no text in UTF-8") from None


def compiled_program(submission: Submission, stem: str) -> tuple[str, str]:
    """The JSON of the program `stem`, and a note on its origin, which is empty if p4c has just compiled it.

    P4 is compiled if p4c is installed; without p4c a JSON file beside it is used, unless it is that of what the student
    got, which is older than the P4. Raises `InputError` or
    `MachineError`.
    """
    source = f"{stem}.p4"
    made = compiled_name(source)
    if source in submission.texts:
        compiler = find_compiler()
        if compiler is None and submission.texts.get(made, "") not in ("", *read_archive(COURSE).values()):
            return submission.texts[made], f"p4c is not installed here: {made} was graded, not {source}"
        return compile_p4(submission.sources, source, compiler), ""
    if made in submission.texts:
        return submission.texts[made], f"{made} was graded, without its P4"
    raise InputError(
        f"the submission has no '{source}' and no '{made}', but {submission.there}: give the program that name"
    )
