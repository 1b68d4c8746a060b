"""The pages that a person reads, taken apart: their code blocks, and the commands in blocks and in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / folder / "README.md" for folder in ("containers", "planner", "switch", "vagrant")),
    *sorted((ROOT / "experiments" / "papers").glob("*.md")),
)

FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
"""A block; one in a tab is indented."""
INDENTED = re.compile(r"(?:^    (?!\s).*\n)+", re.MULTILINE)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
COMMAND = re.compile(r"(?:[A-Z]+=\S+ )*(?:sudo )?(?:\S*\.venv/bin/)?(?:inakit|make|pytest|python) [^ ]|\.ci/")
"""How a command begins that can be looked into: the project's own, its tests' and its modules'."""
PLACEHOLDER = re.compile(r"^[A-Z]+$|\.\.\.|…")
"""A word of a command that stands for any, as in `inakit COMMAND --help`."""


@dataclass(frozen=True)
class Block:
    """A fenced block of code, by the word behind its first fence, and the number of its first line."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """Where it stands, for a person."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command in a page. `output` is what the page says that it prints, where it says so; `block` if in one."""

    place: str
    text: str
    output: str | None = None
    block: bool = False


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text()
    for found in FENCED.finditer(text):
        yield Block(page, text.count("\n", 0, found.start()) + 2, found[2], dedent(found[3]))


def commands(page: Path) -> list[Command]:
    """All commands of a page: of its blocks line by line, then of its text."""
    inside = [command for block in blocks(page) for command in commands_of(block)]
    text = FENCED.sub(lambda found: "\n" * found[0].count("\n"), page.read_text())
    spans = [(text.count("\n", 0, span.start()) + 1, " ".join(span[1].split())) for span in SPAN.finditer(text)]
    for found in INDENTED.finditer(text):
        first = text.count("\n", 0, found.start()) + 1
        spans += [(first + number, line.strip()) for number, line in enumerate(found[0].splitlines())]
    name = page.relative_to(ROOT)
    outside = [Command(f"{name}:{line}", span) for line, span in sorted(spans) if COMMAND.match(span)]
    return [each for each in (*inside, *outside) if not any(PLACEHOLDER.search(word) for word in each.text.split())]


def commands_of(block: Block) -> Iterator[Command]:
    """The commands of a block: every line of shell, and what follows a `$` in a session with its output."""
    if block.language == "sh":
        for line in filter(None, map(str.strip, block.text.splitlines())):
            yield Command(block.place, line, block=True)
    if block.language == "console":
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield Command(block.place, line, output, block=True)


def files_of(page: Path) -> dict[str, str]:
    """The files that a page writes down, by the names in their first lines."""
    named = ((re.match(r"(?:# |// |<!-- )(\S+\.\w+)(?: -->)?\n", block.text), block) for block in blocks(page))
    return {name[1]: block.text for name, block in named if name and block.language}
