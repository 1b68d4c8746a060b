"""The requirements of an emulated network on this machine, all checked before anything is built.

Capabilities and limits are read. Operations that the kernel can still refuse are tried on a temporary pair of
interfaces, which disappears with the namespace of one of its ends in any case. `docs/border.md` lists every call to the
system and the result of each refusal.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from inakit.topo.errors import MachineError, as_root
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.live.ledger import ROOT
from inakit.topo.live.netlink import End, create_pair, index_of, inside, new_namespace, set_up, shape, silence
from inakit.topo.live.priority import free_processes

CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21, "CAP_BPF": 39}
"""Numbers of the kernel's capabilities (capabilities(7))."""
FOR_NETWORKS = ("CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN")
STATUS, UID_MAP = Path("/proc/self/status"), Path("/proc/self/uid_map")
CONTAINER = "start the container with --privileged, or run outside a container"
PROGRAMS = {
    "mnexec": "install the package 'mininet' of your distribution",
    "bash": "apt install bash",
    "sh": "apt install dash",
    "ip": "apt install iproute2",
    "tc": "apt install iproute2",
    "ifconfig": "apt install net-tools",
}
"""The remedy for each missing program."""
FILES_PER_NODE, FILES_PER_SWITCH, OTHER_FILES = 4, 16, 96
"""Open files of this process: per node (its shell and pipes), per switch (maps, programs, ports), and the rest.

Measured on a fat-tree with k = 4 (36 nodes, 20 of them switches): 452 open at once on `fast`, 132 on `bmv2`.
"""
PROCESSES_PER_NODE, OTHER_PROCESSES = 1, 16


def check_machine() -> None:
    """Raise `MachineError` unless this process can build a network."""
    if (reason := missing_for_networks()) is not None:
        raise MachineError(reason)


def check_programs(*names: str) -> None:
    """Raise `MachineError` unless these programs are installed."""
    if (reason := missing_programs(*names)) is not None:
        raise MachineError(reason)


def missing_for_networks() -> str | None:
    """The first unmet requirement of building a network, as a message, or None."""
    return next((reason for ask in ASKED if (reason := ask()) is not None), None)


def missing_root() -> str | None:
    """A message if this process lacks root, or None."""
    return None if os.geteuid() == 0 else f"emulating a network needs root: {as_root()}"


def missing_capabilities(*names: str) -> str | None:
    """A message about the capabilities that this process lacks, or None. `A or B` requires one of the two."""
    held = -1  # all capabilities, if the kernel does not state them
    with suppress(OSError):
        status = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        held = int(status.get("CapEff", "-1"), 16)
    lacking = [name for name in names if not any(held >> CAPABILITIES[each] & 1 for each in name.split(" or "))]
    if not lacking:
        return None
    options = " ".join(f"--cap-add={name.split(' or ')[-1].removeprefix('CAP_')}" for name in lacking)
    return f"root lacks {', '.join(lacking)}, as in a container: start the container with {options}, or --privileged"


def in_user_namespace() -> bool:
    """Whether the root of this process is another user of the machine, as in a rootless container."""
    with suppress(OSError):
        return UID_MAP.read_text().split() != ["0", "0", "4294967295"]
    return False


def missing_mininet() -> str | None:
    """A message about the missing part of Mininet, or None."""
    if importlib.util.find_spec("mininet") is None:
        return (
            "Mininet is not installed: install your distribution's, where this Python sees it (--system-site-packages)"
        )
    return missing_programs("mnexec", "bash", "sh")


def missing_programs(*names: str) -> str | None:
    """A message about the first of these programs that is not installed, or None."""
    lacking = (f"{name} is not installed: {PROGRAMS[name]}" for name in names if shutil.which(name) is None)
    return next(lacking, None)


def missing_namespaces() -> str | None:
    """A message if mnexec cannot make a network namespace, or None. Without it Mininet waits forever for a shell."""
    tried = subprocess.run(["mnexec", "-n", "true"], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return None
    return f"mnexec cannot make a network namespace here ({tried.stderr.strip()}): {CONTAINER}"


def missing_terminals() -> str | None:
    """A message if no pseudo-terminal can be opened, or None; each of Mininet's shells needs one."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        return (
            f"no pseudo-terminal can be opened ({error.strerror or error}): mount devpts at /dev/pts "
            "(mount -t devpts devpts /dev/pts), or end programs that hold many"
        )
    return None


def missing_ledger() -> str | None:
    """A message if a run cannot write its ledger, or None."""
    try:
        ROOT.mkdir(mode=0o755, exist_ok=True)
        (ROOT / f".asked-{os.getpid()}").mkdir(exist_ok=True)
        (ROOT / f".asked-{os.getpid()}").rmdir()
    except OSError as error:
        return f"{ROOT}: {error.strerror}: a run records there what it creates and must remove: make /run writable"
    return None


def missing_links() -> str | None:
    """A message about the step of making a link that the kernel refuses, or None."""
    try:
        try_link()
    except MachineError as refused:
        return str(refused)
    return None


ASKED: tuple[Callable[[], str | None], ...] = (
    missing_root,
    lambda: missing_capabilities(*FOR_NETWORKS),
    missing_mininet,
    missing_namespaces,
    missing_terminals,
    missing_ledger,
    missing_links,
)
"""The checks in their order: each assumes that those before it have passed."""


def check_fabric(fabric: Fabric) -> None:
    """Raise `MachineError` if this machine has too few processes or files for the network, or no delays of links."""
    nodes = len(fabric.hosts) + len(fabric.switches)
    allow_open_files(FILES_PER_NODE * nodes + FILES_PER_SWITCH * len(fabric.switches) + OTHER_FILES)
    wanted, free = PROCESSES_PER_NODE * nodes + OTHER_PROCESSES, free_processes()
    if free is not None and free < wanted:
        raise MachineError(
            f"a network of {nodes} nodes needs about {wanted} processes, and this control group can start {free} more "
            "(pids.max): start the container with a higher --pids-limit, or choose a smaller fabric"
        )
    if any(link.delay_s for link in fabric.links):
        try_link(delay_s=0.001)


def allow_open_files(count: int) -> None:
    """Raise this process's limit to `count` open files. Raises `MachineError` if its hard limit is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    highest = hard if hard == resource.RLIM_INFINITY else max(hard, count)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, highest))
    except (ValueError, OSError) as error:
        raise MachineError(
            f"this process can open {hard} files, and the network needs about {count}: raise the limit with "
            f"`ulimit -n {count}` as root (or --ulimit nofile={count} of the container)"
        ) from error


@cache
def try_link(delay_s: float = 0.0) -> None:
    """Make a link from here to a new namespace, as networks do, and remove it. Raises `MachineError`.

    A success is cached.
    """
    with ThreadPoolExecutor(1) as other:
        other.submit(make_link, delay_s).result()


def make_link(delay_s: float) -> None:
    """Make a link between the process's namespace and a new one, into which this thread moves.

    The namespace disappears when the thread ends. The kernel can take a while for that, so the pair of interfaces is
    removed first.
    """
    name = f"in{threading.get_native_id()}"
    ends = End(f"{name}a", "06:00:00:00:00:01", os.getpid()), End(f"{name}b", "06:00:00:00:00:02", None)
    with asked("network namespaces", CONTAINER):
        new_namespace()
    with asked("packet sockets", "load the module af_packet (CONFIG_PACKET)"):
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    with asked("pairs of interfaces (veth)", f"load the module veth, or {CONTAINER}"):
        create_pair(*ends, 0)
    with inside(None) as netlink:
        index = index_of(ends[1].interface)
        try:
            with asked("to switch IPv6 and offloads off", f"mount -o remount,rw /proc/sys, or {CONTAINER}"):
                silence(ends[1].interface)
            with asked("shapers and queues (tc)", f"load the modules sch_htb and sch_netem, or {CONTAINER}"):
                shape(netlink, index, 1e6, 10, delay_s)
            with asked("to set an interface up", CONTAINER):
                set_up(netlink, index)
        finally:
            netlink.link("del", index=index)


@contextmanager
def asked(what: str, remedy: str) -> Iterator[None]:
    """Turn a refusal of the kernel in the block into a `MachineError` with the refused operation and the remedy."""
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415, it takes long to import

    try:
        yield
    except (OSError, NetlinkError) as error:
        code = (error.errno if isinstance(error, OSError) else error.code) or 0
        why = os.strerror(code) + (f": {error.filename}" if isinstance(error, OSError) and error.filename else "")
        raise MachineError(f"this machine refuses {what} ({why}): {remedy}") from error
