"""Constraint (10), the sum of y r over tasks, in linear form, exactly.

y is an integer and r a rate, so the paper's model is quadratic, and left to the solver to linearise. Here it is done in
the open. With one task, divide by r: y <= b t, where t = 1 / r is to be minimal. With several, write y in binary: its
load y r is the sum of 2^k e[k] r, and e r is the least z >= 0 with z >= r - R (1 - e), where R bounds r. Nothing pushes
z higher, because loads are only bounded from above. QSR needs nothing else: r then is an integer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from math import floor
from typing import Any

import pulp

Term = tuple[int, Any]
"""A task's number, and an integer variable that counts its flows and has an upper bound."""

ROUNDING = 1e-9


class Rates(ABC):
    """The rates r of the tasks in a model, in units of b-bar, Eq. (11)."""

    @abstractmethod
    def limit(self, name: str, terms: Iterable[Term], b: float) -> None:
        """Add constraint (10): all `terms`, each times the rate of its task, are at most `b`."""

    @abstractmethod
    def at_least(self, rate: float) -> None:
        """Demand of every task a rate of at least `rate`, in units of b-bar."""

    @property
    @abstractmethod
    def values(self) -> list[float]:
        """The rates of the solved model, in units of b-bar."""


class OneRate(Rates):
    """A single task with a continuous rate: the model minimises its inverse `t`."""

    def __init__(self, model: pulp.LpProblem) -> None:
        self.model = model
        self.t = model.add_variable("t", lowBound=0)

    def limit(self, name: str, terms: Iterable[Term], b: float) -> None:
        """Add the row y <= b t, which is (10) divided by r."""
        self.model += pulp.lpSum(y for _, y in terms) <= b * self.t, name

    def at_least(self, rate: float) -> None:
        """Bound t from above by 1 / rate; a rate of 0 demands nothing."""
        self.t.upBound = 1 / rate if rate > 0 else None

    @property
    def values(self) -> list[float]:
        """The one rate, 1 / t."""
        return [1 / self.t.varValue]


class Continuous(Rates):
    """`r[i]`, a variable from 0 to `most[i]`."""

    levels = 1
    """How many units of r make b-bar."""
    kind = pulp.LpContinuous

    def __init__(self, model: pulp.LpProblem, most: Sequence[float]) -> None:
        self.model = model
        self.r = [model.add_variable(f"r_{i}", 0, self.floor(bound), self.kind) for i, bound in enumerate(most)]
        self.loads: dict[int, Any] = {}

    def floor(self, rate: float) -> float:
        """The largest value of r that is not above `rate` and that r may have."""
        return rate

    def limit(self, name: str, terms: Iterable[Term], b: float) -> None:
        """Add the row (10), with each product y r made of `products` of bits."""
        self.model += pulp.lpSum(self.load(self.r[i], y) for i, y in terms) <= self.floor(b), name

    def load(self, r: Any, y: Any) -> Any:
        """The product y r. It is made once for each y, because footnote 3 needs it on both directions of a link."""
        if id(y) not in self.loads:
            self.loads[id(y)] = pulp.lpSum(
                2**k * self.product(f"load_{y.name}_{k}", bit, r) for k, bit in enumerate(binary(self.model, y))
            )
        return self.loads[id(y)]

    def product(self, name: str, bit: Any, r: Any) -> Any:
        """A variable that is at least `bit` times r, and need not be more."""
        z = self.model.add_variable(name, lowBound=0)
        self.model += z >= r - r.upBound * (1 - bit), f"is_{name}"
        return z

    def at_least(self, rate: float) -> None:
        """Bound every r from below."""
        for r in self.r:
            r.lowBound = rate * self.levels

    @property
    def values(self) -> list[float]:
        """The rates r, in units of b-bar."""
        return [r.varValue for r in self.r]


class Quantized(Continuous):
    """QSR: `r[i]` counts steps of b-bar / N, 0 to N.

    What a link carries is then a whole number of steps too, so that b is rounded down to one. The paper prints this as
    rounding up, by which a link of 50.5 steps would carry 51.
    """

    kind = pulp.LpInteger

    def __init__(self, model: pulp.LpProblem, most: Sequence[float], levels: int) -> None:
        self.levels = levels
        super().__init__(model, most)

    def floor(self, rate: float) -> int:
        """The whole steps in a rate."""
        return floor(rate * self.levels * (1 + ROUNDING))

    @property
    def values(self) -> list[float]:
        """The rates r / N, in units of b-bar."""
        return [round(r.varValue) / self.levels for r in self.r]


def binary(model: pulp.LpProblem, number: Any) -> list[Any]:
    """The bits of an integer variable, the lowest first. A variable of at most 1 is its own bit."""
    if number.upBound <= 1:
        return [number]
    length = int(number.upBound).bit_length()
    bits = [model.add_variable(f"bit_{number.name}_{k}", cat=pulp.LpBinary) for k in range(length)]
    model += pulp.lpSum(2**k * bit for k, bit in enumerate(bits)) == number, f"bits_{number.name}"
    return bits
