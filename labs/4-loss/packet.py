"""What workers and the switch send to each other, as worker.py sees it. The grader has a module of this name, too."""

from typing import NamedTuple

GRADIENT, RESULT = 1, 2


class Packet(NamedTuple):
    """A packet of an aggregation."""

    kind: int
    worker: int
    slot: int
    round: int
    values: tuple
