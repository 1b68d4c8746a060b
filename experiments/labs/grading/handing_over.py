"""What teachers do around grading: an autograder for Gradescope, and the similarity of a class's submissions."""

from __future__ import annotations

import re
import zipfile
from itertools import combinations
from pathlib import Path
from shlex import quote

from inakit.experiments.labs.grading.formats import VISIBILITIES
from inakit.experiments.labs.grading.lab import Lab
from inakit.experiments.labs.grading.submission import read_submission, submissions_in
from inakit.topo.errors import InputError, unknown_name, writing

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
