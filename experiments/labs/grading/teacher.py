"""Grades a lab's solutions and wrong solutions (mutants): each mutant has to lose the points of its item only.

    version: 1
    of: sum.p4
    mutants:
      - name: bitmap not cleared
        item: rounds
        says: in round 1
        replace: {"bitmaps.write(meta.slot, 0);": ""}

A mutant can have a list of items, where one mistake breaks several rules, and more keys: `also` replaces in other
files, by name; `drop` deletes lines of files that match a pattern; `then` names a program of the solution that runs
afterwards, in a folder of the files, which it can change. One file keeps the compiled form of every program, for
machines without p4c.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from inakit.experiments.labs.grading.grade import Request, grade
from inakit.experiments.labs.grading.graded_switch import SANDBOX
from inakit.experiments.labs.grading.lab import Grade, Lab
from inakit.experiments.labs.grading.p4c import ARCHIVE, compile_p4, key_of, read_archive
from inakit.topo.errors import InputError

MUTANTS, SOLUTIONS = "mutants.yml", "solutions"


# -- compiled programs


def program_in(archive: Mapping[str, str], text: str, name: str) -> str:
    """The compiled form of a source; `InputError` if the source has changed since it was compiled."""
    if key_of(text) not in archive:
        raise InputError(f"{name} has changed since it was compiled: run 'inakit labs compile', where p4c is")
    return archive[key_of(text)]


def compile_all(folder: Path) -> int:
    """Compile changed solutions and mutants, and keep all; return their number. Needs p4c."""
    main = next((folder / SOLUTIONS).glob("*.p4")).name
    texts = {str(path.relative_to(folder)): path.read_text() for path in sorted((folder / SOLUTIONS).rglob("*.p4"))}
    texts |= {mutant.name: mutant.text for mutant in read_mutants(folder) if mutant.file.endswith(".p4")}
    return keep_compiled(folder, {name: (main, text) for name, text in texts.items()})


def compile_skeletons(course: Path) -> int:
    """Compile the changed programs that students get, and keep all; return their number. Needs p4c."""
    texts = {path.name: (path.name, path.read_text()) for path in sorted(course.glob("[0-9]-*/*.p4"))}
    return keep_compiled(course, texts)


def keep_compiled(folder: Path, texts: Mapping[str, tuple[str, str]]) -> int:
    """Write a folder's archive of programs, which have a name, a file's name and a text; return their number."""
    known, programs = read_archive(folder), {}
    for name, (main, text) in texts.items():
        try:
            programs[key_of(text)] = known.get(key_of(text)) or compile_p4({main: text}, main)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    # The archive's bytes depend on the programs only.
    written = json.dumps(dict(sorted(programs.items()))).encode()
    (folder / ARCHIVE).write_bytes(lzma.compress(written, preset=9))
    return len(programs)


# -- mutants


@dataclass(frozen=True)
class Mutant:
    """A wrong solution: the wrong `file`, its text, the items that it loses, and the words required in the finding.

    `others` are the texts of other changed files; `then` is the program that regenerates some of them.
    """

    name: str
    file: str
    text: str
    items: tuple[str, ...]
    says: str
    others: Mapping[str, str] = field(default_factory=dict)
    then: str = ""


def read_mutants(folder: Path) -> list[Mutant]:
    """The mutants of a lab, from its teacher's folder."""
    document = yaml.safe_load((folder / MUTANTS).read_text())
    return [mutant_of(folder, document["of"], each) for each in document["mutants"]]


def mutant_of(folder: Path, file: str, described: dict[str, Any]) -> Mutant:
    """One mutant; `InputError` if a text to replace is not in the solution."""
    changes = {described.get("of", file): described.get("replace", {})} | described.get("also", {})
    dropped: dict[str, str] = described.get("drop", {})
    texts = {}
    for name in {**changes, **dropped}:
        text = (folder / SOLUTIONS / name).read_text()
        for old, new in changes.get(name, {}).items():
            if old not in text:
                raise InputError(f"{folder / MUTANTS}: mutant '{described['name']}' replaces {old!r}, not in {name}")
            text = text.replace(old, new)
        if name in dropped:
            text = "".join(line for line in text.splitlines(keepends=True) if not re.search(dropped[name], line))
        texts[name] = text
    of, *others = texts
    also = {name: texts[name] for name in others}
    then = described.get("then", "")
    items = described["item"] if isinstance(described["item"], list) else [described["item"]]
    return Mutant(described["name"], of, texts[of], tuple(items), described["says"], also, then)


# -- trials


@dataclass(frozen=True)
class Trial:
    """A solution and its grade. `items` are the items to lose, none for a right solution; `says` is in its finding."""

    name: str
    grade: Grade
    items: tuple[str, ...] = ()
    says: str = ""

    @property
    def lost(self) -> tuple[str, ...]:
        """The items without full points."""
        return tuple(each.item.name for each in self.grade.graded if each.points < each.item.points)

    @property
    def cause(self) -> str:
        """The first cause in the grader's findings."""
        findings = (each.finding for each in self.grade.graded)
        return self.grade.problem or next((found.cause for found in findings if found is not None), "")

    @property
    def as_expected(self) -> bool:
        """Whether the solution loses its items only, for the expected cause."""
        return self.lost == self.items and self.says in self.cause


def solution_folders(folder: Path) -> list[Path]:
    """The folder of the solution, and the folders below it, which hold independently written solutions."""
    first = folder / SOLUTIONS
    return [first, *sorted(path for path in first.iterdir() if path.is_dir() and not path.name.startswith("_"))]


def texts_in(folder: Path) -> dict[str, str]:
    """The texts of the files in a folder, by name."""
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def trials_of(lab: Lab, course: Path, folder: Path, seed: str = "0") -> Iterator[tuple[str, Callable[[], Trial]]]:
    """The names of the right solutions and of the mutants of a lab, each with a function that grades it."""
    archive = read_archive(folder)

    def try_solution(name: str, texts: dict[str, str]) -> Trial:
        return Trial(name, grade_texts(lab, course, texts, archive, seed))

    for each in solution_folders(folder):
        name = "solution" if each.name == SOLUTIONS else each.name
        yield name, partial(try_solution, name, texts_in(each))
    right = texts_in(folder / SOLUTIONS)
    for mutant in read_mutants(folder):
        yield mutant.name, partial(try_mutant, lab, course, mutant, right, archive, seed)


def try_mutant(
    lab: Lab, course: Path, mutant: Mutant, right: dict[str, str], archive: dict[str, str], seed: str
) -> Trial:
    """Grade the solution with the mutant's files in place of its own."""
    texts = right | {mutant.file: mutant.text} | dict(mutant.others)
    if mutant.then:
        with tempfile.TemporaryDirectory(prefix="inakit-lab-") as scratch:
            for name, text in texts.items():
                Path(scratch, name).write_text(text)
            subprocess.run([sys.executable, mutant.then], cwd=scratch, check=True)
            texts = texts_in(Path(scratch))
    return Trial(mutant.name, grade_texts(lab, course, texts, archive, seed), mutant.items, mutant.says)


def grade_texts(
    lab: Lab, course: Path, texts: dict[str, str], archive: dict[str, str], seed: str, target: str = SANDBOX
) -> Grade:
    """Grade files of these texts, P4 in its compiled form."""
    with tempfile.TemporaryDirectory(prefix="inakit-lab-") as scratch:
        for name, text in texts.items():
            compiled = name.endswith(".p4")
            path = Path(scratch, name).with_suffix(".json") if compiled else Path(scratch, name)
            path.write_text(program_in(archive, text, name) if compiled else text)
        return grade(Request(lab, course / lab.name, Path(scratch), seed, target))
