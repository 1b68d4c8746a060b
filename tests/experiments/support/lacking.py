"""Takes something from the process that a command is about to run in, by the means that the system has for it.

Entries of `command.inakit` call these before they run the command.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import subprocess

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x20000
CAPABILITY_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two times 32 bits of each kind


def capabilities(*numbers: int) -> None:
    """Take these capabilities from this process; it cannot get them back."""
    header, held = struct.pack("Ii", CAPABILITY_VERSION, 0), ctypes.create_string_buffer(24)
    must(libc.capget(header, held))
    words = list(struct.unpack("6I", held.raw))
    for number in numbers:
        at = 3 * (number // 32)
        words[at : at + 3] = (word & ~(1 << number % 32) for word in words[at : at + 3])
        must(libc.prctl(24, number, 0, 0, 0))  # PR_CAPBSET_DROP, so that programs that it starts lack it as well
    must(libc.capset(header, struct.pack("6I", *words)))


def open_files(count: int) -> None:
    """Let this process open no more files, and lack the right to change that (CAP_SYS_RESOURCE)."""
    capabilities(24)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def memory(more: int) -> None:
    """Let this process take only so many bytes more than it has."""
    pages = int(open("/proc/self/statm").read().split()[0])  # noqa: PTH123, SIM115
    most = pages * os.sysconf("SC_PAGE_SIZE") + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def own_mounts() -> None:
    """Let what this process mounts be seen by it alone."""
    must(libc.unshare(CLONE_NEWNS))
    mount("--make-rprivate", "/")


def writing_to(folder: str) -> None:
    """Mount a folder of the system read-only, as containers do."""
    own_mounts()
    mount("--bind", folder, folder)
    mount("-o", "remount,bind,ro", folder)


def program(path: str) -> None:
    """Let there be nothing that can be started at `path`."""
    own_mounts()
    mount("--bind", "/dev/null", os.path.realpath(path))


def disk(folder: str, *options: str) -> None:
    """Mount a small disk with these options at `folder`, which is new, and fill it where it has a size."""
    own_mounts()
    os.mkdir(folder)  # noqa: PTH102
    mount("-t", "tmpfs", "-o", ",".join(options or ("size=4k",)), "inakit-test", folder)
    if not options:
        with open(f"{folder}/filler", "w") as file:  # noqa: PTH123
            file.write("full")


def streams(*numbers: int, instead: str | None = None) -> None:
    """Close these streams, or let them go to the file `instead`."""
    for number in numbers:
        if instead is None:
            os.close(number)
        else:
            os.dup2(os.open(instead, os.O_WRONLY), number)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def must(code: int) -> None:
    if code:
        raise OSError(ctypes.get_errno(), "")
