"""What may happen in a network: packets arrive, workers lose patience, and faults, by their kind."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Act(Enum):
    """What may happen, in words."""

    ARRIVE = "arrives"
    LATE = "arrives late"
    EXPIRE = "nothing of it is on its way, and all who wait lose patience"
    LOSE = "is lost"
    DUPLICATE = "arrives, and a copy of it will again"
    LATE_DUPLICATE = "arrives late, and a copy of it will again"
    DELAY = "is held back"
    HURRY = "loses patience early"
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
OF_LATE = (Act.LATE, Act.LATE_DUPLICATE)


class Event(NamedTuple):
    """`at` is a channel; for late packets their position, for a wipe or a restart the node's."""

    act: Act
    at: int
