"""What teachers do around grading: exports of learning platforms, an autograder for Gradescope, similarities."""

from __future__ import annotations

import re
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations, takewhile
from pathlib import Path
from shlex import quote

from inakit.experiments.labs.grading.formats import VISIBILITIES, csv_text
from inakit.experiments.labs.grading.lab import Lab
from inakit.experiments.labs.grading.submission import MOST_BYTES, hidden, read_submission, submissions_in, zipped
from inakit.experiments.labs.sandbox.untrusted import printable
from inakit.topo.errors import InputError, unknown_name, writing

MOST_EXPORT, MOST_LETTERS = 1 << 30, 60
"""The bytes of a class's zip, and the letters of a name in it."""
SETUP = """#!/usr/bin/env bash
set -e
apt-get update
apt-get install -y python3-venv gcc libc6-dev
python3 -m venv /autograder/kit
/autograder/kit/bin/pip install {wheel}
"""
RUN = """#!/usr/bin/env bash
cd /autograder/source
/autograder/kit/bin/inakit grade {lab} /autograder/submission --seed-file seed.txt {options} \\
    --gradescope /autograder/results/results.json
test -s /autograder/results/results.json
"""


def write_bundle(
    out: Path, lab: Lab, wheel: Path, seed: str | None, visibility: str, *, unconfined: bool = False
) -> Path:
    """Write the zip that Gradescope takes as an autograder. Raises `InputError` and `OutputError`."""
    if seed is None:
        raise InputError("an autograder needs a seed that students do not know: --seed-file FILE")
    if visibility not in VISIBILITIES:
        raise unknown_name("visibility", visibility, VISIBILITIES)
    if wheel.suffix != ".whl" or not wheel.is_file():
        raise InputError(f"{wheel}: no wheel; `pip wheel --no-deps .` in the kit's folder writes one")
    options = f"--visibility {visibility}{' --unconfined' if unconfined else ''}"
    extra = "[study]" if lab.name == "7-measure" else ""
    texts = {
        "setup.sh": SETUP.format(wheel=quote(f"/autograder/source/{wheel.name}{extra}")),
        "run_autograder": RUN.format(lab=lab.name, options=options),
        "seed.txt": f"{seed}\n",
    }
    with writing(out), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            about = zipfile.ZipInfo(name)
            about.external_attr = 0o755 << 16
            archive.writestr(about, text)
        archive.write(wheel, wheel.name)
    return out


EXPORTS = (
    re.compile(r"(?P<student>.+?)(?:_(?P<id>\d+))?_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*))?"),
    re.compile(r"(?P<student>.+_.+?)_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_(?P<file>.+)|\.txt)"),
    re.compile(r"(?P<late>LATE_)?(?P<student>anon_[^_]+)_\d+_(?P<file>.+)"),
    re.compile(r"(?P<student>.+?)_(?P<late>LATE_)?(?P<id>\d+)_\d+_(?P<file>.+)"),
)
"""How Moodle, Blackboard and Canvas (also without names) name what students handed in, in the zip of all submissions.

Moodle's group of all without a group has no number. Before a name Blackboard has that of the task, and both can have
underscores: `words_of_task`.
"""
AGAIN = re.compile(r"-\d+(?=\.\w+$)")
"""What Canvas adds to the name of a file that is handed in again."""
DUE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d)")


@dataclass
class Collected:
    """What a student handed in: files by their paths, the time of the last one, and whether it is late."""

    student: str
    files: dict[str, bytes] = field(default_factory=dict)
    when: str = ""
    late: bool = False
    group: str = ""

    def add(self, about: dict[str, str | None], name: str, data: bytes, when: str) -> None:
        """Add a file. One of a later attempt takes the place of all before; one of an earlier attempt is left out."""
        if about.get("when") and when > self.when:
            self.files.clear()
        if not about.get("when") or when >= self.when:
            self.files[name] = data
        self.when, self.late = max(self.when, when), self.late or bool(about.get("late"))


def collect(export: Path, folder: Path, due: str = "") -> list[Collected]:
    """Write a folder for each student, or group, of a platform's zip, and `folder.csv` with names, times and lateness.

    Students of a group are those whose names begin alike, up to a hyphen, and whose files are the same: Moodle puts the
    name of a group before each student's. What was handed in after `due`, such as 2026-11-30 23:59, is late. Raises
    `InputError` and `OutputError`.
    """
    if folder.exists():
        raise InputError(f"{folder} exists already: choose a new folder")
    if due and not DUE.fullmatch(due):
        raise InputError(f"--due {due}: expected a date and a time, such as '2026-11-30 23:59'")
    collected = collected_from(export)
    if not collected:
        raise InputError(f"{export}: no submissions in it; expected the zip of all of Moodle, Canvas or Blackboard")
    for each in collected:
        head = each.student.partition("-")[0]
        alike = [other for other in collected if other.student.startswith(f"{head}-") and other.files == each.files]
        each.group = head if len(alike) > 1 else ""
        each.late = each.late or bool(due and each.when > DUE.sub(r"\1-\2-\3-00", due))
    rows = sorted((each.student, each.group, each.when, "late" if each.late else "") for each in collected)
    with writing(folder):
        for each in collected:
            for name, data in each.files.items():
                path = folder / (each.group or each.student) / name
                # A student can name a file as a folder of theirs: then one of both is kept.
                with suppress(NotADirectoryError, IsADirectoryError, FileExistsError):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
        folder.with_name(f"{folder.name}.csv").write_text(csv_text([("student", "group", "handed in", "late"), *rows]))
    return collected


def collected_from(export: Path) -> list[Collected]:
    """The submissions in a platform's zip. Students of the same name have the platform's number behind it."""
    found: dict[tuple[str, str], Collected] = {}
    tasks: set[str] = set()
    with zipped(export, MOST_EXPORT) as archive:
        for member in archive.infolist():
            parts = member.filename.replace("\\", "/").split("/")
            matches = ((at, form.fullmatch(part)) for at, part in enumerate(parts) for form in EXPORTS)
            at, match = next(((at, match) for at, match in matches if match), (0, None))
            if match is None or member.is_dir() or hidden(member.filename):
                continue
            about = match.groupdict()
            inside = [safe_name(each) for each in (about["file"], *parts[at + 1 :]) if each]
            if not inside:
                continue
            name = AGAIN.sub("", "/".join(inside)) if "late" in about else "/".join(inside)
            when = about.get("when") or "{}-{:02}-{:02}-{:02}-{:02}-{:02}".format(*member.date_time)
            with archive.open(member) as file:
                data = file.read(MOST_BYTES + 1)
            student = match["student"]
            found.setdefault((student, about.get("id") or ""), Collected(student)).add(about, name, data, when)
            tasks |= {student} if "when" in about else set()
    before = words_of_task(tasks)
    names = [safe_name("_".join(name.split("_")[before:]) if name in tasks else name) for name, _ in found]
    for count, ((_, number), each) in enumerate(found.items()):
        each.student = f"{names[count]} ({number or count + 1})" if names.count(names[count]) > 1 else names[count]
    return list(found.values())


def words_of_task(names: set[str]) -> int:
    """The number of words, between underscores, before the students' in names that begin with that of the task."""
    words = [each.split("_") for each in names]
    common = len(list(takewhile(lambda each: len({*each}) == 1, zip(*words, strict=False))))
    return min([common, *(len(each) - 1 for each in words)])


def safe_name(name: str) -> str:
    """A name for a file or folder below another: printable, of a bounded length, and not one of those with dots."""
    return printable(name)[:MOST_LETTERS].lstrip(".") or "_"


SHINGLE = 6
"""The number of successive words and signs that are compared as one."""
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|#[^\n]*", re.DOTALL)
WORD = re.compile(r"\w+|[^\w\s]")


def shingles(texts: dict[str, str]) -> set[tuple[str, ...]]:
    """The sequences of words and signs in texts, without comments and spaces."""
    words = [WORD.findall(COMMENT.sub(" ", text)) for _, text in sorted(texts.items())]
    return {tuple(each[at : at + SHINGLE]) for each in words for at in range(len(each) - SHINGLE + 1)}


def similarities(lab: Lab, skeleton: Path, folder: Path) -> list[tuple[str, str, float]]:
    """The pairs of a class, and of the smaller one's sequences the share that both have, the most similar first.

    What the skeleton has does not count. Submissions that cannot be read, and tables of measurements, are left out.
    """
    given = shingles(written(lab, skeleton))
    own = {}
    for student, path in submissions_in(folder).items():
        try:
            own[student] = shingles(written(lab, path)) - given
        except InputError:
            continue
    pairs = ((a, b, len(own[a] & own[b]) / max(1, min(len(own[a]), len(own[b])))) for a, b in combinations(own, 2))
    return sorted(pairs, key=lambda each: (-each[2], each[:2]))


def written(lab: Lab, path: Path) -> dict[str, str]:
    """The texts that a student writes, without compiled programs and tables."""
    texts = read_submission(path, expected=lab.files).texts
    return {name: text for name, text in texts.items() if Path(name).suffix in (".p4", ".py", ".md")}
