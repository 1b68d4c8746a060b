"""Captures in virtual time: the files and counts of a run in an emulated network, with the network's own times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from inakit.experiments.inspect.capture import Counts, Place, file_of
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.virtual.network import VirtualNetwork
from inakit.topo.virtual.taps import Tap


@contextmanager
def capturing(
    network: VirtualNetwork, fabric: Fabric, places: Sequence[Place], folder: Path
) -> Iterator[dict[str, Counts]]:
    """Capture at `places` during the block, to the `file_of` each; the dict gets the counts at its end."""
    found: dict[str, Counts] = {}
    peer_of = {(node, port): peer for (node, peer), port in fabric.port_numbers.items()}
    with ExitStack() as stack:
        taps = [
            stack.enter_context(Tap(network, node, peer_of[node, port], file_of((node, port), folder)))
            for node, port in dict.fromkeys(places)
        ]
        yield found
    found |= {tap.file.stem: Counts(captured=tap.packets, received=tap.packets) for tap in taps}
