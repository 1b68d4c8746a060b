"""Positions of the parser, and the places where it finds headers; all are known before any packet comes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Position:
    """A state entered `offset` bytes into the packet, with so many elements of each header stack `filled`.

    `offset` leaves out fields of variable length: `passed` of them, which have at most `behind` bytes together.
    """

    state: str | None
    offset: int = 0
    filled: tuple[tuple[str, int], ...] = ()
    passed: int = 0
    behind: int = 0

    @property
    def label(self) -> str:
        """A name that no other position of a parser has."""
        filled = "".join(f" {stack} {count}" for stack, count in self.filled)
        passed = f" behind {self.passed}" if self.passed else ""
        return f"{self.state}_at_{self.offset}{filled}{passed}"

    def filled_of(self, stack: str) -> int:
        """How many elements of a stack are filled."""
        return dict(self.filled).get(stack, 0)

    def filling(self, stack: str, count: int) -> Position:
        """The position with `count` elements of a stack filled."""
        return replace(self, filled=tuple(sorted((dict(self.filled) | {stack: count}).items())))


@dataclass
class HeaderPlaces:
    """The offsets at which headers are found (`of`), and how far into the packet the parser looks (`furthest`)."""

    of: dict[str, set[int]] = field(default_factory=dict)
    furthest: int = 0
