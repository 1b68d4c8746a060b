"""How the values of a block of a study are combined: each with each, side by side, or some that are drawn."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from inakit.topo.errors import InputError

ALL, SIDE_BY_SIDE = "all", "side by side"
COMBINE = "all, side by side, or a sample of 40"
SAMPLE = re.compile(r"(?:a )?sample of ([1-9][0-9]*)")


@dataclass(frozen=True)
class Block:
    """Lists of values by key, and how they are combined. `draw` is the seed of a sample."""

    values: Mapping[str, Sequence[Any]]
    combine: str = ALL
    draw: int = 0

    def combinations(self) -> list[dict[str, Any]]:
        """The combinations, in the order of the lists. Raises `InputError` for lists that do not fit."""
        if self.combine == SIDE_BY_SIDE:
            return [dict(zip(self.values, each, strict=True)) for each in self.side_by_side()]
        if drawn := SAMPLE.fullmatch(self.combine):
            return list(self.sample(int(drawn[1])))
        if self.combine != ALL:
            raise InputError(f"combine: '{self.combine}': expected {COMBINE}")
        return [dict(zip(self.values, each, strict=True)) for each in product(*self.values.values())]

    def side_by_side(self) -> Iterator[tuple[Any, ...]]:
        """The first values together, the second ones, and so on. Raises `InputError` for lists of unequal length."""
        lengths = {key: len(values) for key, values in self.values.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{key} {length}" for key, length in lengths.items())
            raise InputError(f"side by side, lists are equally long, but these have so many values: {told}")
        return zip(*self.values.values(), strict=True)

    def sample(self, size: int) -> Iterator[dict[str, Any]]:
        """So many different ones of all combinations, drawn by `draw`; all where there are no more."""
        count = prod(map(len, self.values.values()))
        for number in sorted(random.Random(self.draw).sample(range(count), min(size, count))):
            yield dict(self.combination(number))

    def combination(self, number: int) -> Iterator[tuple[str, Any]]:
        """Combination `number` of all, from 0."""
        for key, values in reversed(list(self.values.items())):
            number, place = divmod(number, len(values))
            yield key, values[place]


def combined(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Every combination of each block with every one of the others, each once."""
    found: dict[str, dict[str, Any]] = {}
    for each in product(*(block.combinations() for block in blocks)):
        joined = {key: value for part in each for key, value in part.items()}
        found.setdefault(repr(sorted(joined.items())), joined)
    return list(found.values())
