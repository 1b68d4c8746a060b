"""Which constructs of v1model run where, read from the tables of handlers themselves.

`python -m inakit.switch.features` prints the table of the README. A construct that is in no table is refused when a
program is loaded, with its name and its line of P4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inakit.switch.control.entry_check import KEY_TYPES
from inakit.switch.fast.compile.actions import PRIMITIVES as COMPILED_PRIMITIVES
from inakit.switch.fast.compile.calculations import ALGORITHMS as COMPILED_ALGORITHMS
from inakit.switch.fast.compile.expressions import OPERATORS as COMPILED_OPERATORS
from inakit.switch.fast.compile.expressions import REWRITTEN
from inakit.switch.fast.compile.parser import PARSER_OPERATIONS as COMPILED_PARSER_OPERATIONS
from inakit.switch.interpret.actions import HANDLERS, JUMPING
from inakit.switch.interpret.calculations import ALGORITHMS
from inakit.switch.interpret.expressions import ON_STACKS, OPERATORS
from inakit.switch.interpret.parser import PARSER_OPERATIONS
from inakit.switch.program.program import STANDARD_METADATA
from inakit.switch.program.read import read_program
from inakit.switch.running_switch import PROGRAM


@dataclass(frozen=True)
class Features:
    """Constructs of one kind: those that the generator compiles (for the kernel and a process), and the others."""

    kind: str
    compiled: tuple[str, ...]
    interpreted: tuple[str, ...]


def features() -> list[Features]:
    """Every construct that has a handler, by kind."""
    fields = read_program(PROGRAM).headers[STANDARD_METADATA].fields
    standard = [field.name for field in fields if not field.name.startswith("_")]  # padding, which p4c adds
    return [
        split("primitives", COMPILED_PRIMITIVES, HANDLERS | JUMPING),
        split("parser", COMPILED_PARSER_OPERATIONS, PARSER_OPERATIONS),
        split("operators", [*COMPILED_OPERATORS, *REWRITTEN], OPERATORS | ON_STACKS),
        split("hashes", COMPILED_ALGORITHMS, ALGORITHMS),
        split("keys", KEY_TYPES, KEY_TYPES),
        split("standard_metadata", standard, standard),
    ]


def split(kind: str, compiled: Iterable[str], handled: Iterable[str]) -> Features:
    """The features of one kind, from the names that are compiled and all that are handled."""
    names = set(compiled)
    return Features(kind, tuple(sorted(names)), tuple(sorted(set(handled) - names)))


def markdown() -> str:
    """The table of `switch/README.md`."""
    lines = ["| | kernel and in process | in process only |", "|---|---|---|"]
    for each in features():
        cells = (" ".join(f"`{name}`" for name in names) for names in (each.compiled, each.interpreted))
        lines.append(f"| {each.kind} | {' | '.join(cells)} |".replace("`|`", "`\\|`"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
