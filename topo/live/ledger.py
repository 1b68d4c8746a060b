"""The ledger of a run, and the published facts of a running network.

Everything that a run creates on the machine is recorded in its ledger first, so that it can always be removed.

A run's folder `/run/inakit/<id>/` holds `owner` (the run's process) and `created`, with one `kind value` per line:

pid 4711 88211 a process: its id and start time, so that a later process of that id is spared group 1734623 a device
group: all interfaces that were put into it interface 7f2a-mon one interface of the root namespace path /sys/fs/bpf/7f2a
a file or a folder setting /sys/kernel/rcu_expedited 0 a file of the kernel, and its earlier content

A run that ends removes everything in its ledger. After `kill -9` the next run does it, in `clean_dead_runs`.
"""

from __future__ import annotations

import errno
import os
import random
import select
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from inakit.topo.errors import InputError, MachineError, RunError, as_root, unknown_name, writing

ROOT = Path("/run/inakit")
ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
ID_LENGTH = 4
KILL_TIMEOUT_S = 5.0


class Ledger:
    """The ledger of this process's run. A context manager: leaving it removes everything recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls) -> Ledger:
        """Start a ledger under an id that no run or interface of this machine uses."""
        try:
            ROOT.mkdir(mode=0o755, exist_ok=True)
            return cls(claim_folder())
        except PermissionError as denied:
            raise MachineError(f"cannot write {ROOT}: emulating a network needs root: {as_root()}") from denied

    @property
    def id(self) -> str:
        """The run's id of four letters and digits, the prefix of its interfaces' names."""
        return self.folder.name

    def record(self, kind: str, value: object) -> None:
        """Record that `value` is about to be created; a pid is recorded just after its creation."""
        if kind not in REMOVERS:
            raise ValueError(f"a ledger has {', '.join(REMOVERS)}; not '{kind}'")
        text = f"{value} {start_time(int(str(value)))}" if kind == "pid" else str(value)
        with (self.folder / "created").open("a") as ledger:
            ledger.write(f"{kind} {text}\n")

    def close(self) -> None:
        """Remove everything recorded, and the ledger."""
        remove_run(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def claim_folder() -> Path:
    """Create a folder under a free id; it contains its owner from the moment at which others can see it."""
    draft = ROOT / f".{os.getpid()}"
    draft.mkdir(exist_ok=True)
    (draft / "owner").write_text(f"{os.getpid()} {start_time(os.getpid())}\n")
    while True:
        folder = ROOT / "".join(random.choices(ID_ALPHABET, k=ID_LENGTH))
        taken = any(name.startswith(f"{folder.name}-") for name in interface_names())
        if not taken and not folder.exists():
            return draft.rename(folder)


def clean_dead_runs() -> list[str]:
    """Remove the remains of runs whose process is gone, and return their ids. Live runs are not touched."""
    dead = [folder for folder in run_folders() if not owner_lives(folder)]
    for folder in dead:
        remove_run(folder)
    return [folder.name for folder in dead]


def run_folders() -> Iterator[Path]:
    """Yield the ledger folders of all runs of this machine, in the order of their ids."""
    if ROOT.is_dir():
        yield from (folder for folder in sorted(ROOT.iterdir()) if (folder / "owner").is_file())


def owner_lives(folder: Path) -> bool:
    """Whether the process that owns a ledger still runs."""
    try:
        pid, started = (folder / "owner").read_text().split()
    except FileNotFoundError:
        return False  # removed meanwhile
    except ValueError:
        return True  # its owner is writing it
    return start_time(int(pid)) == int(started)


def remove_run(folder: Path) -> None:
    """Remove all that a ledger records, kind by kind in the order of `REMOVERS`, and the ledger."""
    created = folder / "created"
    lines = created.read_text().splitlines() if created.exists() else []
    values: dict[str, list[str]] = {kind: [] for kind in REMOVERS}
    for kind, _, value in (line.partition(" ") for line in lines):
        if kind in values:
            values[kind].append(value)
    for kind, remove in REMOVERS.items():
        remove(values[kind])
    shutil.rmtree(folder, ignore_errors=True)


def interface_names() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def start_time(pid: int) -> int | None:
    """The start time of a process in clock ticks since boot; None if it is gone.

    A later process with the same id has another start time.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])


def kill_processes(values: list[str]) -> None:
    """Kill the recorded processes ("pid start-time") and wait until they are dead; their parents reap them.

    A process with a recorded id but another start time is spared.
    """
    with ExitStack() as stack:
        doomed = [process for value in values if (process := open_process(stack, *value.split())) is not None]
        for process in doomed:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        for process in doomed:
            death = select.poll()
            death.register(process, select.POLLIN)
            death.poll(1000 * KILL_TIMEOUT_S)


def open_process(stack: ExitStack, pid: str, started: str) -> int | None:
    """A descriptor of the process, which stays valid if the id is reused; None if the process is gone."""
    try:
        descriptor = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor if str(start_time(int(pid))) == started else None


def delete_interfaces(**selector: object) -> None:
    """Delete the interfaces of the root namespace that match these netlink keywords."""
    from pyroute2 import IPRoute  # noqa: PLC0415, it takes long to import
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415

    with IPRoute() as netlink:
        try:
            netlink.link("del", **selector)
        except NetlinkError as error:
            if error.code != errno.ENODEV:  # ENODEV: removed already
                raise


def delete_groups(values: list[str]) -> None:
    """Delete all interfaces of these device groups."""
    for group in values:
        delete_interfaces(group=int(group))


def delete_named(values: list[str]) -> None:
    """Delete these interfaces of the root namespace if they still exist."""
    for name in interface_names().intersection(values):
        delete_interfaces(ifname=name)


def delete_paths(values: list[str]) -> None:
    """Delete these files and folders recursively, if they still exist."""
    for path in map(Path, values):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def restore_settings(values: list[str]) -> None:
    """Restore the earlier contents of the kernel's files, where writing is allowed."""
    for value in set(values):
        path, _, before = value.rpartition(" ")
        with suppress(OSError):
            Path(path).write_text(before)


REMOVERS: dict[str, Callable[[list[str]], None]] = {
    "pid": kill_processes,
    "group": delete_groups,
    "interface": delete_named,
    "path": delete_paths,
    "setting": restore_settings,
}
"""The function that removes each kind, in this order: processes first, because they hold the rest open."""


# -- Grace periods of the kernel's RCU, which changes of network devices wait for.
#
# Attaching a program to an interface, detaching it, and closing a packet socket each wait for one. An ordinary grace
# period takes about 10 ms, which added two seconds to building a fat-tree with k = 4 and two to removing it. Expedited
# ones take about 0.02 ms, but interrupt every processor, so they are used only while networks are built and removed,
# not while packets are measured. The setting is machine-wide (the kernel's documentation, RCU, "rcu_expedited").

EXPEDITED = Path("/sys/kernel/rcu_expedited")


class GracePeriods:
    """The setting of expedited grace periods during a run. The run's ledger has its earlier value.

    A run changes the setting only if it finds grace periods ordinary, so that no run restores another run's setting.
    """

    def __init__(self, ledger: Ledger, setting: Path = EXPEDITED) -> None:
        self.ledger, self.setting = ledger, setting
        self.changed = False

    def expedite(self) -> None:
        """Expedite grace periods from now on. If the kernel refuses, they stay ordinary, which is only slower."""
        with suppress(OSError):
            if self.setting.read_text().strip() == "0":
                self.ledger.record("setting", f"{self.setting} 0")
                self.setting.write_text("1")
                self.changed = True

    def relax(self) -> None:
        if self.changed:
            self.setting.write_text("0")
            self.changed = False


# -- The facts of a running network for other processes, as JSON in its ledger's folder.
#
# The file exists exactly while the network is up. The `handle` of a switch is passed on unchanged: only the switch's
# own target interprets it.

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
    """A switch of a running network; its target uses `handle` to inspect it."""

    ports: tuple[PortFacts, ...]
    handle: dict[str, Any]


@dataclass(frozen=True)
class HostFacts:
    """A host of a running network: `interface` is in the namespace of process `pid`."""

    pid: int
    interface: str


@dataclass(frozen=True)
class RunningNetwork:
    """A running network, in this process or another. `id` is its ledger's id, `owner` the process that runs it."""

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
        folder = ROOT / self.id
        return (folder / FILE).exists() and owner_lives(folder)


JSON = TypeAdapter(RunningNetwork)


def write_facts(folder: Path, facts: RunningNetwork) -> None:
    """Write a network's facts to its ledger's folder. A reader sees the complete file or none."""
    draft = folder / f".{FILE}"
    with writing(draft):
        draft.write_bytes(JSON.dump_json(facts, indent=1))
        draft.replace(folder / FILE)


@contextmanager
def announced(folder: Path, facts: RunningNetwork) -> Iterator[None]:
    """Publish the facts of a network during the block."""
    write_facts(folder, facts)
    try:
        yield
    finally:
        (folder / FILE).unlink(missing_ok=True)


def running_networks() -> list[RunningNetwork]:
    """Every network of this machine that is up."""
    found = []
    for folder in filter(owner_lives, run_folders()):
        with suppress(FileNotFoundError):  # not up yet, or not any more
            found.append(JSON.validate_json((folder / FILE).read_bytes()))
    return found


def find_network(run: str | None = None) -> RunningNetwork:
    """Return the network with the id `run`, or the only one. Raises `InputError`; `RunError` if none is running."""
    found = {network.id: network for network in running_networks()}
    if not found:
        raise RunError("no network is running: start one, such as `sudo make emulate`, and inspect it while it runs")
    if run is not None:
        if run not in found:
            raise unknown_name("running network", run, found)
        return found[run]
    if len(found) > 1:
        names = ", ".join(f"{network.id} ({network.fabric}, process {network.owner})" for network in found.values())
        raise InputError(f"{len(found)} networks are running: {names}; choose one with --run ID")
    return next(iter(found.values()))
