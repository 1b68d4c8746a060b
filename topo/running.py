"""A running network as other processes find it: what it says of itself, as JSON in its ledger's folder.

The file is there exactly while the network is up. A switch's `handle` is data of its own, which nothing
here looks into.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from topo import ledger
from topo.errors import InputError, RunError, unknown_name, writing
from topo.processors import endpoint_processor, switch_processors

if TYPE_CHECKING:
    from topo.network import Network

FILE = "network.json"


@dataclass(frozen=True)
class PortFacts:
    """A switch's port: its interface in the root namespace, and the capacity of its link each way, in bit/s."""

    number: int
    interface: str
    peer: str
    out_bps: float
    in_bps: float


@dataclass(frozen=True)
class SwitchFacts:
    """A switch of a running network."""

    ports: tuple[PortFacts, ...]
    handle: dict[str, Any]


@dataclass(frozen=True)
class HostFacts:
    """A host of a running network: `interface` is in the namespace of process `pid`."""

    pid: int
    interface: str


@dataclass(frozen=True)
class RunningNetwork:
    """A network that is up, in this process or another. `id` is that of its ledger."""

    id: str
    fabric: str
    owner: int
    endpoint_processors: tuple[int, ...]
    switch_processors: tuple[int, ...]
    hosts: dict[str, HostFacts]
    switches: dict[str, SwitchFacts]

    def switch(self, name: str) -> SwitchFacts:
        """The switch called `name`. Raises `InputError` with the nearest name."""
        if name not in self.switches:
            raise unknown_name(f"switch of network '{self.id}' ({self.fabric})", name, self.switches)
        return self.switches[name]

    def port(self, switch: str, number: int) -> PortFacts:
        """A port of a switch by its number. Raises `InputError`."""
        ports = {port.number: port for port in self.switch(switch).ports}
        if number not in ports:
            known = ", ".join(f"{port.number} (to {port.peer})" for port in ports.values())
            raise InputError(f"switch '{switch}' has no link at port {number}: it has {known}")
        return ports[number]

    @property
    def up(self) -> bool:
        """Whether the network still runs."""
        folder = ledger.ROOT / self.id
        return (folder / FILE).exists() and ledger.owner_lives(folder)


JSON = TypeAdapter(RunningNetwork)


def describe(network: Network) -> RunningNetwork:
    """What `network`, which is up, says of itself."""
    return RunningNetwork(
        id=network.ledger.id,
        fabric=network.fabric.name,
        owner=os.getpid(),
        endpoint_processors=(endpoint_processor(),),
        switch_processors=tuple(switch_processors()),
        hosts={host.name: HostFacts(host.pid, host.interface) for host in network.hosts.values()},
        switches={
            name: SwitchFacts(tuple(ports_of(network, name)), dict(node.handle()) if hasattr(node, "handle") else {})
            for name, node in network.switches.items()
        },
    )


def ports_of(network: Network, switch: str) -> Iterator[PortFacts]:
    """The ports of `switch` that have a link, by number."""
    for number, link in sorted(network.ports(switch).items()):
        forth, back = link.capacity_ab_bps, link.capacity_ba_bps
        yield PortFacts(
            number=number,
            interface=network.interface_at(switch, number).name,
            peer=link.peer_of(switch),
            out_bps=forth if link.a == switch else back,
            in_bps=back if link.a == switch else forth,
        )


def write_facts(network: Network) -> None:
    """Write what `network` says of itself, so that a reader sees all of it or, at first, nothing."""
    draft = network.ledger.folder / f".{FILE}"
    with writing(draft):
        draft.write_bytes(JSON.dump_json(describe(network), indent=1))
        draft.replace(network.ledger.folder / FILE)


@contextmanager
def announced(network: Network) -> Iterator[None]:
    """Let other processes find `network` during the block."""
    write_facts(network)
    try:
        yield
    finally:
        (network.ledger.folder / FILE).unlink(missing_ok=True)


def running_networks() -> list[RunningNetwork]:
    """Every network of this machine that is up."""
    folders = [folder for folder in ledger.run_folders() if ledger.owner_lives(folder)]
    return [network for folder in folders if (network := read_facts(folder / FILE)) is not None]


def read_facts(path: Path) -> RunningNetwork | None:
    """None where no network is up (yet, or any more)."""
    try:
        return JSON.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None


def find_network(run: str | None = None) -> RunningNetwork:
    """The network with the id `run`, or the only one. Raises `InputError`, `RunError` where none is up."""
    found = {network.id: network for network in running_networks()}
    if not found:
        raise RunError("no network is running: start one, such as `sudo make emulate`, and look into it meanwhile")
    if run is not None:
        if run not in found:
            raise unknown_name("running network", run, found)
        return found[run]
    if len(found) > 1:
        names = ", ".join(f"{network.id} ({network.fabric}, process {network.owner})" for network in found.values())
        raise InputError(f"{len(found)} networks are running: {names}; say which one with --run ID")
    return next(iter(found.values()))
