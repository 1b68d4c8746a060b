"""The events of a network: packets arrive, workers time out, and faults of several kinds happen."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Act(Enum):
    """What may happen. The values are the words in which a story tells it."""

    ARRIVE = "arrives"
    LATE = "arrives late"
    EXPIRE = "nothing of it is on its way, and all workers that wait time out"
    LOSE = "is lost"
    DUPLICATE = "arrives, and a copy of it will again"
    LATE_DUPLICATE = "arrives late, and a copy of it will again"
    DELAY = "is held back"
    HURRY = "times out early"
    WIPE = "forgets all slots"
    RESTART = "forgets all sums"


KINDS = {
    "loss": (Act.LOSE,),
    "duplicates": (Act.DUPLICATE, Act.LATE_DUPLICATE),
    "reordering": (Act.DELAY,),
    "impatience": (Act.HURRY,),
    "wipes": (Act.WIPE,),
    "restarts": (Act.RESTART,),
}
"""Faults by their kind."""
NETWORK_FAULTS = ("loss", "duplicates", "reordering")
FAULTS = {act for acts in KINDS.values() for act in acts}
OF_NODE = (Act.WIPE, Act.RESTART)
"""Acts that happen to a whole node."""
OF_LATE = (Act.LATE, Act.LATE_DUPLICATE)
"""Acts that happen to a packet that was held back."""


class Event(NamedTuple):
    """An act, and where it happens.

    `at` is the number of a channel. For late packets it is the position in their word, for a wipe or a restart the
    node's position among all nodes, and for `EXPIRE` the slot.
    """

    act: Act
    at: int
