"""The requirements of an emulated network on this machine, all checked before anything is built.

What can be read is read (capabilities, limits); what the kernel may still refuse is tried, on a pair of interfaces
that exists for a moment and goes with the namespace of one of its ends, whatever happens. `docs/border.md` lists
every call over the system's border, and what each refusal becomes.
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
CONTAINER = "start the container with --privileged, or run on a machine itself"
PROGRAMS = {
    "mnexec": "install the package 'mininet' of your distribution",
    "bash": "apt install bash",
    "sh": "apt install dash",
    "ip": "apt install iproute2",
    "tc": "apt install iproute2",
    "ifconfig": "apt install net-tools",
}
"""How to get each program that networks are made with."""
FILES_PER_NODE, FILES_PER_SWITCH, OTHER_FILES = 4, 16, 96
"""Open files of this process: a node's shell and its pipes, a switch's maps, programs and ports, and all the rest.

Measured at once on a fat-tree with k = 4, which has 36 nodes and 20 switches: 452 on `fast`, 132 on `bmv2`.
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
    """What this process lacks to build a network, in words, or None."""
    return next((reason for ask in ASKED if (reason := ask()) is not None), None)


def missing_root() -> str | None:
    """Why this process cannot build networks as root, or None."""
    return None if os.geteuid() == 0 else f"emulating a network needs root: {as_root()}"


def missing_capabilities(*names: str) -> str | None:
    """Which of these capabilities this process has not. Each name may be several, `A or B`, of which one is enough."""
    held = -1  # all of them, where the kernel does not say
    with suppress(OSError):
        status = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        held = int(status.get("CapEff", "-1"), 16)
    lacking = [name for name in names if not any(held >> CAPABILITIES[each] & 1 for each in name.split(" or "))]
    if not lacking:
        return None
    options = " ".join(f"--cap-add={name.split(' or ')[-1].removeprefix('CAP_')}" for name in lacking)
    return f"root lacks {', '.join(lacking)}, as in a container: start that with {options}, or --privileged"


def in_user_namespace() -> bool:
    """Whether the root of this process is another user of the machine, as in a rootless container."""
    with suppress(OSError):
        return UID_MAP.read_text().split() != ["0", "0", "4294967295"]
    return False


def missing_mininet() -> str | None:
    """Which part of Mininet is not installed, or None."""
    if importlib.util.find_spec("mininet") is None:
        return (
            "Mininet is not installed: install your distribution's, where this Python sees it (--system-site-packages)"
        )
    return missing_programs("mnexec", "bash", "sh")


def missing_programs(*names: str) -> str | None:
    """Which of these programs is not installed, and how to get it."""
    lacking = (f"{name} is not installed: {PROGRAMS[name]}" for name in names if shutil.which(name) is None)
    return next(lacking, None)


def missing_namespaces() -> str | None:
    """Why mnexec cannot make a network namespace, or None. Mininet would wait forever for a shell in one."""
    tried = subprocess.run(["mnexec", "-n", "true"], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return None
    return f"mnexec cannot make a network namespace here ({tried.stderr.strip()}): {CONTAINER}"


def missing_terminals() -> str | None:
    """Why no pseudo-terminal can be opened, or None; each of Mininet's shells needs one."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        return (
            f"no pseudo-terminal can be had ({error.strerror or error}): mount one at /dev/pts "
            "(mount -t devpts devpts /dev/pts), or end programs that hold many"
        )
    return None


def missing_ledger() -> str | None:
    """Why a run cannot write its ledger, or None."""
    try:
        ROOT.mkdir(mode=0o755, exist_ok=True)
        (ROOT / f".asked-{os.getpid()}").mkdir(exist_ok=True)
        (ROOT / f".asked-{os.getpid()}").rmdir()
    except OSError as error:
        return f"{ROOT}: {error.strerror}: a run writes there what it makes, to remove it: make /run writable"
    return None


def missing_links() -> str | None:
    """Which step of making a link the kernel refuses, or None."""
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
    """Raise `MachineError` where this machine has no room for a network of this size, or no delays for its links."""
    nodes = len(fabric.hosts) + len(fabric.switches)
    allow_open_files(FILES_PER_NODE * nodes + FILES_PER_SWITCH * len(fabric.switches) + OTHER_FILES)
    wanted, free = PROCESSES_PER_NODE * nodes + OTHER_PROCESSES, free_processes()
    if free is not None and free < wanted:
        raise MachineError(
            f"a network of {nodes} nodes takes about {wanted} processes, and this control group may start {free} more "
            "(pids.max): start the container with a higher --pids-limit, or take a smaller fabric"
        )
    if any(link.delay_s for link in fabric.links):
        try_link(delay_s=0.001)


def allow_open_files(count: int) -> None:
    """Let this process open `count` files. Raises `MachineError` where its hard limit forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    highest = hard if hard == resource.RLIM_INFINITY else max(hard, count)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, highest))
    except (ValueError, OSError) as error:
        raise MachineError(
            f"this process may open {hard} files, and the network takes about {count}: raise the limit with "
            f"`ulimit -n {count}` as root (or --ulimit nofile={count} of the container)"
        ) from error


@cache
def try_link(delay_s: float = 0.0) -> None:
    """Make a link from here to a namespace of its own, as a network's are, and remove it. Raises `MachineError`.

    Where it can be made it is not tried again.
    """
    with ThreadPoolExecutor(1) as other:
        other.submit(make_link, delay_s).result()


def make_link(delay_s: float) -> None:
    """Make a link between the process's namespace and a new one, in which this thread is from then on.

    When the thread ends its namespace goes. The kernel may take a while for that, so the pair of interfaces is removed
    before.
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
    """Turn what the kernel refuses in the block into a `MachineError` that says `what` it was, and the remedy."""
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415, it takes long to import

    try:
        yield
    except (OSError, NetlinkError) as error:
        code = (error.errno if isinstance(error, OSError) else error.code) or 0
        why = os.strerror(code) + (f": {error.filename}" if isinstance(error, OSError) and error.filename else "")
        raise MachineError(f"this machine refuses {what} ({why}): {remedy}") from error
