"""Wrong solutions: each the right one with some texts replaced, and the only item that it loses.

version: 1
of: sum.p4
mutants:
  - name: bitmap not cleared
    item: rounds
    says: in round 1
    replace: {"bitmaps.write(meta.slot, 0);": ""}

A mutant may have more: `also` replaces in other files, by name; `drop` deletes lines of files that match a pattern; and
`then` is a program of the solution that is run after that, in a folder of the files, which it may change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from inakit.topo.errors import InputError

MUTANTS = "mutants.yml"
SOLUTIONS = "solutions"


@dataclass(frozen=True)
class Mutant:
    """A wrong solution: the `file` that is wrong, its text, the item that it loses, and what the grader has to say.

    `others` are the texts of other files that are wrong with it; `then` is the program that makes some of them anew.
    """

    name: str
    file: str
    text: str
    item: str
    says: str
    others: Mapping[str, str] = field(default_factory=dict)
    then: str = ""


def read_mutants(folder: Path) -> list[Mutant]:
    """The mutants of a lab, from the teacher's folder of it."""
    document = yaml.safe_load((folder / MUTANTS).read_text())
    return [mutant_of(folder, document["of"], each) for each in document["mutants"]]


def mutant_of(folder: Path, file: str, described: dict[str, Any]) -> Mutant:
    """One mutant; `InputError` if a text that it replaces is not in the solution."""
    changes = {described.get("of", file): described.get("replace", {})} | described.get("also", {})
    dropped: dict[str, str] = described.get("drop", {})
    texts = {}
    for name in {**changes, **dropped}:
        text = (folder / SOLUTIONS / name).read_text()
        for old, new in changes.get(name, {}).items():
            if old not in text:
                raise InputError(f"{folder / MUTANTS}: mutant '{described['name']}' replaces {old!r}, not in {name}")
            text = text.replace(old, new)
        texts[name] = without_lines(text, dropped[name]) if name in dropped else text
    of, *others = texts
    also = {name: texts[name] for name in others}
    then = described.get("then", "")
    return Mutant(described["name"], of, texts[of], described["item"], described["says"], also, then)


def without_lines(text: str, pattern: str) -> str:
    """A text without the lines that match a pattern."""
    return "".join(line for line in text.splitlines(keepends=True) if not re.search(pattern, line))
