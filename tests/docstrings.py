"""How much is documented: the share of public functions, methods and classes that have a docstring, by folder.

    python tests/docstrings.py [-v]

A definition is public unless its name or that of a class around it begins with an underscore, or it is in a function.
The command fails if a folder's share is below `LEAST`; `-v` names the definitions that have no docstring.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("topo", "planner", "switch", "traffic", "experiments")
LEAST = 0.95

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Documented:
    """The number of public definitions in a folder, and those without a docstring as `file:line name`."""

    count: int
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        """The documented part, from 0 to 1; 1 where nothing is public."""
        return 1 - len(self.missing) / self.count if self.count else 1.0


def public(node: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """The public definitions in a module or a class, and those in public classes."""
    for child in node.body:
        if isinstance(child, Definition) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public(child)


def documented(folder: Path) -> Documented:
    """Count the public definitions in all Python files below a folder."""
    found = [(path, each) for path in sorted(folder.rglob("*.py")) for each in public(ast.parse(path.read_text()))]
    missing = tuple(f"{path}:{each.lineno} {each.name}" for path, each in found if ast.get_docstring(each) is None)
    return Documented(len(found), missing)


def main(arguments: Sequence[str]) -> int:
    """Print a line for each folder, and return the exit code: 1 if a folder has too few docstrings."""
    folders = {name: documented(Path(name)) for name in FOLDERS}
    for name, each in folders.items():
        print(f"docstrings {name:12} {each.share:6.1%} of {each.count}")
        if "-v" in arguments:
            print(*each.missing, sep="\n")
    low = [name for name, each in folders.items() if each.share < LEAST]
    if low:
        print(f"less than {LEAST:.0%} in {', '.join(low)}: `python tests/docstrings.py -v` names what has none")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
