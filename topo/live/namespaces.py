"""Network namespaces: the calling thread enters that of another process, and comes back."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from inakit.topo.errors import MachineError, RunError

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def network_namespace(pid: int) -> Iterator[None]:
    """Run the block, in this thread, in the network namespace of process `pid`: its sockets are made there.

    Needs root. Raises `RunError` where the process is gone, `MachineError` where its namespace cannot be entered.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(entered(pid))
        except FileNotFoundError as error:
            raise RunError(f"process {pid} is gone, and its host with it: start the network again") from error
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise MachineError(f"cannot enter a network namespace: {why}; run as root") from error
        yield


@contextmanager
def entered(pid: int) -> Iterator[None]:
    """The same as `network_namespace`, but it raises what the system says: `OSError`."""
    home = os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter_namespace(f"/proc/{pid}/ns/net")
        yield
    finally:
        set_namespace(home)
        os.close(home)


def enter_namespace(path: str) -> None:
    """Move the calling thread to the network namespace at a path such as `/proc/17/ns/net`."""
    target = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        set_namespace(target)
    finally:
        os.close(target)


def set_namespace(descriptor: int) -> None:
    """Move the calling thread to the network namespace of an open file. Raises `OSError`."""
    if libc.setns(descriptor, CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")


def new_namespace() -> None:
    """Move the calling thread to a network namespace of its own. Raises `OSError`."""
    if libc.unshare(CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"unshare: {os.strerror(code)}")
