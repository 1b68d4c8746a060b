"""The packets between workers and the switch, in worker.py's form. The grader provides a module of this name, too."""

from typing import NamedTuple

GRADIENT, RESULT = 1, 2


class Packet(NamedTuple):
    """A packet of an aggregation."""

    kind: int
    worker: int
    slot: int
    round: int
    values: tuple
