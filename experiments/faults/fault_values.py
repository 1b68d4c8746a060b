"""The values of a faults file: each function turns one, as YAML has it, into what it stands for, or raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from inakit.experiments.faults.fault_plan import Link
from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError, unknown_name
from inakit.topo.files import quantities
from inakit.topo.files.reader import of_type

SHARE = "a share from 0 to 1, or such as 5%"
TIME = "a time in seconds that is not negative, or such as 500ms"
LINK = "two neighbours such as [leaf1, h3], or a switch and a port number such as [leaf1, 4]"
WHOLE = "a whole number that is not negative"
FRAME = range(64, 1515)


def version(value: object) -> int:
    """The version of the format, which is 1. Raises `ValueError`."""
    if value != 1 or isinstance(value, bool):
        raise ValueError
    return 1


def whole(value: object) -> int:
    """A whole number that is not negative. Raises `ValueError`."""
    number = quantities.whole(value)
    if number < 0:
        raise ValueError
    return number


def share(value: object) -> float:
    """A share from 0 to 1, written as a number or, such as '5%', in percent. Raises `ValueError`."""
    percent = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", value) if isinstance(value, str) else None
    found = float(percent[1]) / 100 if percent else value
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
        raise ValueError
    return float(found)


def names(value: object) -> list[str]:
    """A list of texts. Raises `ValueError`."""
    return [of_type(str)(name) for name in of_type(list)(value)]


def mean(value: object) -> float:
    """A share greater than 0 and at most 1. Raises `ValueError`."""
    found = share(value)
    if not found:
        raise ValueError
    return found


def spread(value: object) -> float:
    """A finite number that is not negative. Raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise ValueError
    return float(value)


def frame_bytes(value: object) -> int:
    """A size of frames in bytes that the network can carry. Raises `ValueError`."""
    if whole(value) not in FRAME:
        raise ValueError
    return whole(value)


def choice(what: str, known: Iterable[str]) -> Callable[[object], str]:
    """A converter that accepts the `known` names. For another name it raises `InputError` with the nearest one."""
    names = list(known)

    def convert(value: object) -> str:
        name = of_type(str)(value)
        if name not in names:
            raise unknown_name(what, name, names)
        return name

    return convert


def link_of(problem: Problem) -> Callable[[object], Link]:
    """A converter to a link, which a file names by two nodes, or by a switch and one of its ports."""
    fabric = problem.fabric
    peers: dict[tuple[str, Any], str] = {(node, port): peer for (node, peer), port in fabric.port_numbers.items()}

    def convert(value: object) -> Link:
        node, other = of_type(list)(value)
        peer = peers[node, other] if (node, other) in peers else of_type(str)(other)
        if (node, peer) not in fabric.capacities_bps:
            raise InputError(f"{node}-{other} is no link of fabric '{fabric.name}': expected {LINK}")
        return node, peer

    return convert
