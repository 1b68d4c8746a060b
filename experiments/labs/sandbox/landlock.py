"""Landlock: a process gives up all files but those that it names, without root (Linux 5.13 and later).

It is called by its system calls, which have the same numbers on all processors. What it does not govern (modes, owners
and times of files) the filter of `seccomp` refuses.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
PATH_BENEATH = 1
NO_NEW_PRIVILEGES = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE = 1 << 14
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | 1 << 15
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""The rights over files that each version of Landlock governs; later versions govern those of version 5."""
TCP = 0b11
SCOPES = 0b11
"""No abstract sockets of others, and no signals to others."""


def version() -> int:
    """The version of the kernel's Landlock; 0 where it has none, or it is switched off."""
    found = syscall(CREATE_RULESET, None, 0, ASK_VERSION)
    return max(0, found)


def restrict(readable: Iterable[str], writable: Iterable[str]) -> int:
    """Give up all files but those below these paths; the version of Landlock that holds, 0 if none does."""
    found = version()
    if not found:
        return 0
    handled = RIGHTS[min(found, max(RIGHTS))]
    parts = [handled, *([TCP] if found >= 4 else []), *([SCOPES] if found >= 6 else [])]
    attribute = struct.pack(f"={len(parts)}Q", *parts)
    ruleset = syscall(CREATE_RULESET, attribute, len(attribute), 0)
    for path in readable:
        allow(ruleset, path, READ & handled)
    for path in writable:
        allow(ruleset, path, handled)
    prctl(NO_NEW_PRIVILEGES, 1)
    refused = ruleset < 0 or syscall(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return 0 if refused else found


def allow(ruleset: int, path: str, rights: int) -> None:
    """Let a ruleset allow these rights below a path, if there is such a path."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        rights &= OF_FILES
    syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    os.close(descriptor)


def prctl(option: int, value: int, address: int = 0) -> int:
    """`prctl` with two arguments."""
    return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(address), 0, 0))


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """A system call; -1 if it fails."""
    libc = ctypes.CDLL(None)
    libc.syscall.restype = ctypes.c_long
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return int(libc.syscall(ctypes.c_long(number), *values))
