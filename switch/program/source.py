"""Where in the P4 source a construct stands, as p4c notes it in the JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A line of P4, and the fragment of it that the construct was compiled from."""

    file: str
    line: int
    fragment: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.fragment}"
