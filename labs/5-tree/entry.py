"""The types that entries.py returns. The grader provides a module of this name, too."""

from typing import NamedTuple


class Entry(NamedTuple):
    """An entry of a table: its key and the parameters of its action are tuples of numbers."""

    table: str
    key: tuple
    action: str
    params: tuple = ()


class Group(NamedTuple):
    """A multicast group: a packet sent to group `number` leaves once by each of `ports`."""

    number: int
    ports: tuple
