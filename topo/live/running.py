"""A running network as other processes find it: what it says of itself, as JSON in its ledger's folder.

The file exists exactly while the network is up. The `handle` of a switch is passed on as it is: only the switch's own
target understands it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from inakit.topo.errors import InputError, RunError, unknown_name, writing
from inakit.topo.live import ledger

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
    """A switch of a running network; `handle` is what its target needs to look into it."""

    ports: tuple[PortFacts, ...]
    handle: dict[str, Any]


@dataclass(frozen=True)
class HostFacts:
    """A host of a running network: `interface` is in the namespace of process `pid`."""

    pid: int
    interface: str


@dataclass(frozen=True)
class RunningNetwork:
    """A network that is up, in this process or another. `id` is its ledger's, `owner` the process that runs it."""

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


def write_facts(folder: Path, facts: RunningNetwork) -> None:
    """Write what a network says of itself to its ledger's folder. A reader sees all of it or nothing."""
    draft = folder / f".{FILE}"
    with writing(draft):
        draft.write_bytes(JSON.dump_json(facts, indent=1))
        draft.replace(folder / FILE)


@contextmanager
def announced(folder: Path, facts: RunningNetwork) -> Iterator[None]:
    """Let other processes find a network during the block."""
    write_facts(folder, facts)
    try:
        yield
    finally:
        (folder / FILE).unlink(missing_ok=True)


def running_networks() -> list[RunningNetwork]:
    """Every network of this machine that is up."""
    folders = [folder for folder in ledger.run_folders() if ledger.owner_lives(folder)]
    return [network for folder in folders if (network := read_facts(folder / FILE)) is not None]


def read_facts(path: Path) -> RunningNetwork | None:
    """What a network says of itself in a file; None where the network is not up yet, or not any more."""
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
