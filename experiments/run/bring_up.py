"""A fabric as a running network with its switches' table entries installed: what every emulated run begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from switch.circuit_switch import CircuitSwitch, circuit_class
from switch.entries import Entries
from switch.targets import Target
from topo.fabric.circuits import patch_panel
from topo.fabric.fabric import Fabric
from topo.live.network import DEFAULT_QUEUE_PACKETS, Network

BUILDING = 0.9
"""About this share of the time of a set-up goes into nodes and links, the rest into entries."""


@contextmanager
def brought_up(
    fabric: Fabric,
    target: Target,
    installed: Entries,
    run_dir: Path,
    *,
    panel: bool = False,
    queue_packets: int = DEFAULT_QUEUE_PACKETS,
    progress: Callable[[float], None] = lambda _: None,
) -> Iterator[Network]:
    """The network, up until the block ends. `run_dir` takes the switches' logs; `progress` the fraction that is set up.

    With a `panel` all optical links go through one circuit switch, their circuits lit. Raises `FabricError` for a
    panel without optical links, `MachineError` where this machine cannot build a network.
    """
    interconnect = patch_panel(fabric) if panel else None
    with Network(
        fabric, target.node_class(), run_dir=run_dir, queue_packets=queue_packets,
        interconnect=interconnect, circuit_class=circuit_class(target), progress=lambda done: progress(BUILDING * done),
    ) as network:  # fmt: skip
        if interconnect is not None:
            CircuitSwitch(interconnect, network.circuit_switch)
        for number, (name, switch) in enumerate(network.switches.items()):
            progress(BUILDING + (1 - BUILDING) * number / len(network.switches))
            switch.install(installed.of(name))
        yield network
