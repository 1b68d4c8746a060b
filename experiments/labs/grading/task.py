"""The lines of a lab's README that an item is about."""

from __future__ import annotations

from pathlib import Path

README = "README.md"


def task_lines(lab: Path, step: str) -> tuple[str, ...]:
    """The heading of a step and the lines below it, each with the number of its line; none if the README has none."""
    path = lab / README
    if not path.is_file():
        return ()
    lines = path.read_text().splitlines()
    first = next((n for n, line in enumerate(lines) if is_heading(line, step)), None)
    if first is None:
        return ()
    after = next((n for n in range(first + 1, len(lines)) if lines[n].startswith("#")), len(lines))
    chosen = [(n, lines[n]) for n in range(first, after) if lines[n].strip()][:8]
    return tuple(f"{README}:{n + 1}: {line}" for n, line in chosen)


def is_heading(line: str, step: str) -> bool:
    """Whether a line is the heading of a step."""
    return line.startswith("#") and line.lstrip("# ").startswith((f"{step}:", f"{step} "))
