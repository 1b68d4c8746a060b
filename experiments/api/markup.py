"""Tables as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", notes: Iterable[str] = ()) -> str:
    """A table with its title above and its notes below; every text is escaped."""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    above = f"<caption>{escape(title)}</caption>" if title else ""
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
