"""The verdicts of figures: the words for what is not VALID, and how near a measured rate has to be to a planned one.

Which sentence of a paper holds or differs is decided in `statements`; here it is whether the figure itself can be used.
"""

from __future__ import annotations

from collections.abc import Iterable

from traffic.measure.verdict import VALID

UNPROVEN = "UNPROVEN"
"""A value that is called the optimum is not proven to be it."""
DIFFERS = "DIFFERS"
"""Valid runs, but a measured rate is not near the planned one."""
OTHERWISE = "OTHERWISE"
"""InArt's figures: valid runs, but rates are not near the planned ones, or schemes are not in the paper's order."""
SLOW = "SLOW"
"""A computation takes longer than it may."""

NEAR = 0.05
"""A measured rate bears out the planned one if it differs by at most this share of it."""


def is_near(measured: float, planned: float) -> bool:
    """Whether a measured rate bears out the planned one."""
    return abs(measured / planned - 1) <= NEAR


def first_not_valid(verdicts: Iterable[str]) -> str:
    """The first verdict that is not VALID; VALID where all are."""
    return next((verdict for verdict in verdicts if verdict != VALID), VALID)
