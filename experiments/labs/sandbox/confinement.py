"""Permanent confinement of a process: resource limits, access to files (Landlock), system calls (seccomp).

Landlock (Linux 5.13 and later) needs no root. It is called by its system calls, which have the same numbers on all
processors. The filter of system calls refuses changes that Landlock does not govern (modes, owners and times of files):
it is a list of refused calls, in classic BPF. Refused calls fail with EPERM, so that Python code sees an OSError.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """The limits of a process.

    `cpu_s` limits processor time, `wall_s` the time of one answer, `written_bytes` the size of each written file. The
    process can read below the paths of `readable` and write below those of `writable`. With `programs` it can start
    other processes.
    """

    cpu_s: int = 10
    wall_s: float = 20.0
    memory_bytes: int = 512 * MIB
    written_bytes: int = MIB
    open_files: int = 64
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    programs: bool = False


def limits_from(document: dict[str, Any]) -> Limits:
    """The limits of a JSON document that has all their fields."""
    return Limits(**document)


def set_limits(limits: Limits) -> None:
    """Set this process's resource limits; it cannot raise them again."""
    set_limit(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1)
    set_limit(resource.RLIMIT_AS, limits.memory_bytes)
    set_limit(resource.RLIMIT_FSIZE, limits.written_bytes)
    set_limit(resource.RLIMIT_NOFILE, limits.open_files)
    set_limit(resource.RLIMIT_CORE, 0)
    if not limits.programs:
        set_limit(resource.RLIMIT_NPROC, 0)


def set_limit(what: int, soft: int, hard: int | None = None) -> None:
    """Set a resource limit, or keep the present one if it is lower."""
    _, present = resource.getrlimit(what)
    most = hard if hard is not None else soft
    if present != resource.RLIM_INFINITY:
        most = min(most, present)
    resource.setrlimit(what, (min(soft, most), most))


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
"""The scopes: no abstract sockets of other processes, and no signals to them."""


def landlock_version() -> int:
    """The version of the kernel's Landlock; 0 if it is missing or disabled."""
    found = syscall(CREATE_RULESET, None, 0, ASK_VERSION)
    return max(0, found)


def give_up_files(readable: Iterable[str], writable: Iterable[str]) -> int:
    """Give up access to files outside these paths; return the version of Landlock in force, 0 if there is none."""
    found = landlock_version()
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
    """Add a rule for a path, if it exists."""
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


SET_SECCOMP, FILTER = 22, 2
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
CLONE_THREAD = 0x00010000
X32 = 0x40000000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
LOAD, JUMP, EQUAL, GREATER_OR_EQUAL, BITS, RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
MACHINES = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1), "arm64": (AARCH64, 1)}
"""By the output of `uname -m`: the kernel's name of the architecture, and the column of the tables below."""

Numbers = dict[str, tuple[int | None, int | None]]
"""System calls, and their numbers on x86_64 and aarch64."""

STARTS: Numbers = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
}  # fmt: skip
CLONE, CLONE3 = (56, 220), (435, 435)
"""The filter reports `clone3` as missing, because its flags are in memory, which no filter reads; libc then uses
`clone`."""
ALWAYS: Numbers = {
    "socket": (41, 198), "socketpair": (53, 199), "io_uring_setup": (425, 425), "kill": (62, 129),
    "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "memfd_create": (319, 279), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180), "prlimit64": (302, 261), "setrlimit": (160, 164),
    "setsid": (112, 157), "setpgid": (109, 154), "setpriority": (141, 140), "sched_setaffinity": (203, 122),
    "truncate": (76, 45), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "reboot": (169, 142), "swapon": (167, 224), "sethostname": (170, 161),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "init_module": (175, 105), "finit_module": (313, 273),
    "kexec_load": (246, 104),
}  # fmt: skip
SIGNALS = ("kill", "tkill", "tgkill", "setsid", "setpgid", "setpriority", "socketpair", "fchmod", "chmod", "prlimit64")
"""The calls that compilers make on their own processes and files."""


def filter_for(machine: str, *, programs: bool) -> bytes | None:
    """The filter for a machine, as `uname -m` names it, as bytes; None for one whose calls are not listed here.

    It is classic BPF: each line is a code, the number of lines to skip if a test holds and if not, and an operand.
    """
    if machine not in MACHINES:
        return None
    architecture, column = MACHINES[machine]
    refused = {name: each for name, each in ALWAYS.items() if name not in SIGNALS} if programs else {**ALWAYS, **STARTS}
    lines = [
        (LOAD, 0, 0, ARCHITECTURE), (EQUAL, 0, 1, architecture), (JUMP, 0, 0, 1), (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER), (GREATER_OR_EQUAL, 0, 1, X32), (RETURN, 0, 0, REFUSE | errno.ENOSYS),
    ]  # fmt: skip
    for each in refused.values():
        if (number := each[column]) is not None:
            lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | errno.EPERM)]
    if not programs:  # `clone` can start threads only
        lines += [(EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
        lines += [(EQUAL, 0, 3, CLONE[column]), (LOAD, 0, 0, FIRST_ARGUMENT), (BITS, 1, 0, CLONE_THREAD)]
        lines += [(RETURN, 0, 0, REFUSE | errno.EPERM)]
    return b"".join(struct.pack("=HBBI", *line) for line in [*lines, (RETURN, 0, 0, ALLOW)])


class Pointer(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.c_char_p)]


def refuse_calls(*, programs: bool) -> bool:
    """Permanently refuse calls that this process does not need; return whether the kernel accepted the filter."""
    lines = filter_for(platform.machine(), programs=programs)
    if platform.system() != "Linux" or lines is None:
        return False
    pointer = Pointer(len(lines) // 8, lines)
    prctl(NO_NEW_PRIVILEGES, 1)
    return prctl(SET_SECCOMP, FILTER, ctypes.addressof(pointer)) == 0
