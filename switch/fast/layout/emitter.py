"""Writes C, one line at a time. Indentation follows `with`; names and comments are made safe here and only here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "auto break case char const continue default do double else enum extern float for goto if inline int long "
        "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile "
        "while asm typeof u8 u16 u32 u64 s64",
    )
)


def identifier(name: str) -> str:
    """`name` as a C identifier; different names can give the same one."""
    safe = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not safe or safe[0].isdigit():
        return f"_{safe}"
    return f"{safe}_" if safe in KEYWORDS else safe


class Identifiers:
    """C identifiers for P4 names: always the same one for a name, and never one for two names."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The identifier of a P4 name."""
        if name not in self.given:
            wanted = chosen = identifier(name)
            number = 2
            while chosen in self.given.values():
                chosen, number = f"{wanted}_{number}", number + 1
            self.given[name] = chosen
        return self.given[name]


class Emitter:
    """The text of a C file that grows."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def line(self, text: str = "") -> None:
        """Add a line, at the indentation of the blocks that are open."""
        self.lines.append("    " * self.depth + text if text else "")

    def comment(self, text: object) -> None:
        """Add a comment of one line, whatever `text` holds."""
        self.line("// " + re.sub(r"[^ -~]+", " ", str(text)).rstrip("\\ "))

    @contextmanager
    def block(self, head: str, tail: str = "") -> Iterator[None]:
        """Write `head {`, then what is written inside the `with`, then `}tail`."""
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line(f"}}{tail}")

    def text(self) -> str:
        """The whole file. A block that is still open is a fault of the generator."""
        assert self.depth == 0, "a block of the generated C was not closed"
        return "\n".join(self.lines) + "\n"
