"""WrongError solutions: each the right one with some texts replaced, and the only item that it loses.

version: 1
of: sum.p4
mutants:
  - name: bitmap not cleared
    item: rounds
    says: in round 1
    replace: {"bitmaps.write(meta.slot, 0);": ""}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from topo.errors import InputError

FILE = "mutants.yml"
SOLUTIONS = "solutions"


@dataclass(frozen=True)
class Mutant:
    """A wrong solution: the `file` that is wrong, its text, the item that it loses, and what the grader has to say."""

    name: str
    file: str
    text: str
    item: str
    says: str


def read_mutants(folder: Path) -> list[Mutant]:
    """The mutants of a lab, from the teacher's folder of it."""
    document = yaml.safe_load((folder / FILE).read_text())
    return [mutant_of(folder, document["of"], each) for each in document["mutants"]]


def mutant_of(folder: Path, file: str, described: dict[str, Any]) -> Mutant:
    """One mutant; `InputError` if a text that it replaces is not in the solution."""
    name = described.get("of", file)
    text = (folder / SOLUTIONS / name).read_text()
    for old, new in described["replace"].items():
        if old not in text:
            raise InputError(f"{folder / FILE}: mutant '{described['name']}' replaces {old!r}, which is not in {name}")
        text = text.replace(old, new)
    return Mutant(described["name"], name, text, described["item"], described["says"])
