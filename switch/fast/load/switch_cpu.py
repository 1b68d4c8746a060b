"""The one CPU of each switch: which it is, and how all that arrives at the switch's ports is steered to it."""

from __future__ import annotations

import itertools

from topo.errors import MachineError
from topo.live.processors import steer_packets, steering_file, switch_processors

turns = itertools.count()


def next_cpu() -> int:
    """The processor of the next switch: those of `switch_processors` in turn."""
    cpus = switch_processors()
    return cpus[next(turns) % len(cpus)]


def steer(interface: str, cpu: int) -> None:
    """Let `cpu` process whatever arrives at an interface, whichever CPU sent it."""
    try:
        steer_packets(interface, cpu)
    except OSError as error:
        raise MachineError(
            f"{steering_file(interface)}: {error.strerror}; target 'fast' needs receive packet steering to keep a "
            "switch on one CPU: use a kernel with CONFIG_RPS, or run on BMv2 (SWITCH=bmv2)"
        ) from error
