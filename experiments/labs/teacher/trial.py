"""Grades a lab's own solutions and mutants: what each has, and whether that is what it has to have."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from inakit.experiments.labs.compiler.p4c import compile_p4
from inakit.experiments.labs.grading.grade import Lab, Request, grade
from inakit.experiments.labs.grading.item import Grade
from inakit.experiments.labs.teacher.archive import key_of, program_in, read_archive, write_archive
from inakit.experiments.labs.teacher.mutants import SOLUTIONS, Mutant, read_mutants
from inakit.topo.errors import InputError


@dataclass(frozen=True)
class Trial:
    """A solution, and its grade. `item` is what it has to lose, empty for a right one; `says` what has to be said."""

    name: str
    grade: Grade
    item: str = ""
    says: str = ""

    @property
    def lost(self) -> tuple[str, ...]:
        """The items that have not all points."""
        return tuple(each.item.name for each in self.grade.graded if each.points < each.item.points)

    @property
    def cause(self) -> str:
        """What the grader says of the first item that was lost."""
        findings = (each.finding for each in self.grade.graded)
        return self.grade.problem or next((found.cause for found in findings if found is not None), "")

    @property
    def as_expected(self) -> bool:
        """Whether it loses what it has to lose, and nothing else, for the cause that it has."""
        return self.lost == ((self.item,) if self.item else ()) and self.says in self.cause


def p4_texts(folder: Path) -> dict[str, str]:
    """All P4 of a lab's solutions and mutants, by names for messages."""
    right = {str(path.relative_to(folder)): path.read_text() for path in sorted((folder / SOLUTIONS).rglob("*.p4"))}
    return right | {mutant.name: mutant.text for mutant in read_mutants(folder) if mutant.file.endswith(".p4")}


def compile_all(folder: Path) -> int:
    """Compile what has changed, and keep it; how many programs there are. Needs p4c."""
    main = next((folder / SOLUTIONS).glob("*.p4")).name
    texts, known = p4_texts(folder), read_archive(folder)
    programs = {key_of(text): known.get(key_of(text)) or compiled(name, text, main) for name, text in texts.items()}
    write_archive(folder, programs)
    return len(programs)


def compiled(name: str, text: str, main: str) -> str:
    """The compiled form of a program; `InputError` names the mutant that does not compile."""
    try:
        return compile_p4({main: text}, main)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def solution_folders(folder: Path) -> list[Path]:
    """The solution, and those that were written independently of it: each a folder, or the folder of all itself."""
    first = folder / SOLUTIONS
    return [first, *sorted(path for path in first.iterdir() if path.is_dir() and not path.name.startswith("_"))]


def trials_of(lab: Lab, course: Path, folder: Path, seed: str = "0") -> Iterator[tuple[str, Callable[[], Trial]]]:
    """The names of the right solutions and of the mutants in the teacher's folder of a lab, and what grades each.

    A mutant is graded in the place of its file of the solution.
    """
    archive = read_archive(folder)
    for each in solution_folders(folder):
        name = "solution" if each.name == SOLUTIONS else each.name
        yield name, partial(try_solution, lab, course, name, texts_in(each), archive, seed)
    right = texts_in(folder / SOLUTIONS)
    for mutant in read_mutants(folder):
        yield mutant.name, partial(try_mutant, lab, course, mutant, right, archive, seed)


def texts_in(folder: Path) -> dict[str, str]:
    """The files of a folder, by name."""
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def try_solution(lab: Lab, course: Path, name: str, texts: dict[str, str], archive: dict[str, str], seed: str) -> Trial:
    """Grade a right solution."""
    return Trial(name, grade_texts(lab, course, texts, archive, seed))


def try_mutant(
    lab: Lab, course: Path, mutant: Mutant, right: dict[str, str], archive: dict[str, str], seed: str
) -> Trial:
    """Grade one mutant."""
    texts = right | {mutant.file: mutant.text} | dict(mutant.others)
    if mutant.then:
        texts = made_anew(texts, mutant.then)
    return Trial(mutant.name, grade_texts(lab, course, texts, archive, seed), mutant.item, mutant.says)


def made_anew(texts: dict[str, str], program: str) -> dict[str, str]:
    """The files that a program of the course's own makes of files."""
    with tempfile.TemporaryDirectory(prefix="inakit-lab-") as scratch:
        for name, text in texts.items():
            Path(scratch, name).write_text(text)
        subprocess.run([sys.executable, program], cwd=scratch, check=True)
        return texts_in(Path(scratch))


def grade_texts(
    lab: Lab, course: Path, texts: dict[str, str], archive: dict[str, str], seed: str, target: str = "sandbox"
) -> Grade:
    """Grade files of these texts, P4 in its compiled form."""
    with tempfile.TemporaryDirectory(prefix="inakit-lab-") as scratch:
        for name, text in texts.items():
            compiled = name.endswith(".p4")
            path = Path(scratch, name).with_suffix(".json") if compiled else Path(scratch, name)
            path.write_text(program_in(archive, text, name) if compiled else text)
        return grade(Request(lab, course / lab.name, Path(scratch), seed, target))
