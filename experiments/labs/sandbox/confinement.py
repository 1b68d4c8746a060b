"""Permanent confinement of a process: resource limits, files out of reach, and the system calls that are left.

Files are kept away by Landlock (Linux 5.13 and later), or by a mount namespace with nothing but the readable files in
it; neither needs root. The filter of system calls, in classic BPF, has a list of the allowed ones. Others fail with
EPERM, and those of newer kernels with ENOSYS, for which C libraries have older calls.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import stat
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
    written_bytes: int = 0
    open_files: int = 64
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    programs: bool = False


def confine(limits: Limits) -> dict[str, str]:
    """Confine this process; return the mechanism that holds each kind of limit, empty where this machine has none."""
    prctl(DEATH_SIGNAL, 9)
    with suppress(OSError):  # where memory runs out, the kernel ends this process and not another one
        Path("/proc/self/oom_score_adj").write_text("1000")
    set_limits(limits)
    files = give_up_files(limits.readable, limits.writable)
    calls = "seccomp" if refuse_calls(programs=limits.programs) else ""
    return {"time and memory": "resource limits", "files": files, "network, processes and signals": calls}


# -- resources


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


def prctl(option: int, value: int, address: int = 0) -> int:
    """`prctl` with two arguments; -1 where there is no such call."""
    if platform.system() != "Linux":
        return -1
    return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(address), 0, 0))


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """A system call of Linux; -1 if it fails."""
    if platform.system() != "Linux":
        return -1
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return int(libc.syscall(ctypes.c_long(number), *values))


# -- files, by Landlock, whose calls have the same numbers on all processors

DEATH_SIGNAL, NO_NEW_PRIVILEGES = 1, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
PATH_BENEATH = 1

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
    return max(0, syscall(CREATE_RULESET, None, 0, ASK_VERSION))


def give_up_files(readable: Iterable[str], writable: Iterable[str]) -> str:
    """Give up access to files outside these paths; return the mechanism, which is empty if there is none here."""
    if version := by_landlock(readable, writable):
        return f"Landlock {version}"
    return "a mount namespace" if by_namespace(readable, writable) else ""


def by_landlock(readable: Iterable[str], writable: Iterable[str]) -> int:
    """Confine this process by Landlock; return its version, 0 if it is not in force."""
    found = landlock_version()
    if not found:
        return 0
    handled = RIGHTS[min(found, max(RIGHTS))]
    ruleset = -1
    for parts in ((handled, TCP, SCOPES), (handled, TCP), (handled,)):  # older kernels refuse what they do not know
        attribute = struct.pack(f"={len(parts)}Q", *parts)
        ruleset = ruleset if ruleset >= 0 else syscall(CREATE_RULESET, attribute, len(attribute), 0)
    for path in readable:
        allow(ruleset, path, READ & handled)
    for path in writable:
        allow(ruleset, path, handled)
    prctl(NO_NEW_PRIVILEGES, 1)
    refused = ruleset < 0 or syscall(RESTRICT_SELF, ruleset, 0)
    if ruleset >= 0:
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


# -- files, by a mount namespace

NEW_NAMESPACE, NEW_USER = 0x20000, 0x10000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18
KEPT_FLAGS = 0b1110 | 1024 | 2048
"""The flags of a mount that a remount has to keep: no set-user-id, no devices, no programs, and no times of access."""
DETACH = 2
NEW_ROOT = "/sys"
"""A folder that every Linux has and that no program reads here: the new root is mounted over it."""


def by_namespace(readable: Iterable[str], writable: Iterable[str]) -> bool:
    """Move this process to a root that has only these paths; return False if the kernel refuses.

    A process without root gets its rights over mounts from a user namespace.
    """
    if platform.system() != "Linux":
        return False
    user, group, here = os.getuid(), os.getgid(), Path.cwd()
    libc = ctypes.CDLL(None)

    def mount(source: str, target: str, kind: str | None, flags: int) -> None:
        name = None if kind is None else kind.encode()
        if libc.mount(os.fsencode(source), os.fsencode(target), name, ctypes.c_ulong(flags), None):
            raise OSError(errno.EPERM, f"mount {target}")

    try:
        if libc.unshare(NEW_NAMESPACE | (NEW_USER if user else 0)):
            return False
        if user:
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                Path("/proc/self", name).write_text(text)
        mount("none", "/", None, RECURSIVE | PRIVATE)
        mount("inakit", NEW_ROOT, "tmpfs", 0)
        for path in sorted({*readable, *writable}, key=len):
            place_in(path, mount, may_write=path in writable)
        mount("none", NEW_ROOT, None, REMOUNT | BIND | READ_ONLY)
        os.chdir(NEW_ROOT)
        if libc.syscall(PIVOT_ROOT[column()], b".", b".") or libc.umount2(b".", DETACH):
            return False
        os.chdir(here if here.is_dir() else "/")
    except OSError:
        return False
    return True


def place_in(path: str, mount: Callable[[str, str, str | None, int], None], *, may_write: bool) -> None:
    """Mount a file or folder in the new root under its path, unless it is missing or a mounted folder has it."""
    source, place = Path(path).resolve(), Path(NEW_ROOT + path)
    if not source.exists() or place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.mkdir() if source.is_dir() else place.touch()
    mount(str(source), str(place), None, BIND)
    if not may_write:
        mount("none", str(place), None, REMOUNT | BIND | READ_ONLY | os.statvfs(place).f_flag & KEPT_FLAGS)


# -- system calls

SET_SECCOMP, FILTER = 22, 2
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
LOAD, JUMP, EQUAL, GREATER_OR_EQUAL, BITS, RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
NEWER = 424
"""From this number on calls are the same on all processors, and newer than the C libraries that have to do without."""

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
MACHINES = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1), "arm64": (AARCH64, 1)}
"""By the output of `uname -m`: the kernel's name of the architecture, and the column of the tables below."""

Numbers = dict[str, tuple[int | None, int | None]]
"""System calls, and their numbers on x86_64 and aarch64."""

ALLOWED: Numbers = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "close": (3, 57),
    "open": (2, None), "openat": (257, 56), "lseek": (8, 62), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24),
    "stat": (4, None), "lstat": (6, None), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291),
    "access": (21, None), "faccessat": (269, 48), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fadvise64": (221, 223), "statfs": (137, 43),
    "fstatfs": (138, 44),
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226), "madvise": (28, 233),
    "brk": (12, 214), "futex": (202, 98), "membarrier": (324, 283), "getrandom": (318, 278),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "restart_syscall": (219, 128), "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153),
    "getrusage": (98, 165), "getrlimit": (97, 163), "sysinfo": (99, 179), "uname": (63, 160), "getpid": (39, 172),
    "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "arch_prctl": (158, None),
    "set_tid_address": (218, 96), "set_robust_list": (273, 99), "rseq": (334, 293), "exit": (60, 93),
    "exit_group": (231, 94),
}  # fmt: skip
COMPILERS: Numbers = {
    "execve": (59, 221), "fork": (57, None), "vfork": (58, None), "wait4": (61, 260), "pipe": (22, None),
    "pipe2": (293, 59), "pwrite64": (18, 68), "umask": (95, 166), "getpgrp": (111, None), "mkdir": (83, None),
    "mkdirat": (258, 34), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276),
}  # fmt: skip
"""What programs that start others, such as p4c, call besides."""
FCNTL, IOCTL, PRLIMIT, CLONE, PIVOT_ROOT = (72, 25), (16, 29), (302, 261), (56, 220), (155, 41)
COMMANDS = (0, 1, 2, 3, 1030)
"""Of `fcntl`: copies of descriptors, and their flags. The others set who gets which signals, leases and locks."""
REQUESTS = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)
"""Of `ioctl`: what a terminal is and has ready, and whether a descriptor stays open in a new program."""
LEAVES = 0x7E02A000
"""The flags of `clone` with which a process would get namespaces, or the parent or tracer of its own parent."""

Line = tuple[int, int, int, int]
"""A line of classic BPF: a code, the number of lines to skip if a test holds and if not, and an operand."""
PASS: Line = (RETURN, 0, 0, ALLOW)
FAIL: Line = (RETURN, 0, 0, REFUSE | errno.EPERM)


def column() -> int:
    """The column of this machine in the tables of calls."""
    return MACHINES.get(platform.machine(), (0, 0))[1]


def filter_for(machine: str, *, programs: bool) -> bytes | None:
    """The filter for a machine, as `uname -m` names it, as bytes; None for one whose calls are not listed here."""
    if machine not in MACHINES:
        return None
    architecture, own = MACHINES[machine]
    lines: list[Line] = [
        (LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER), (GREATER_OR_EQUAL, 0, 1, NEWER), (RETURN, 0, 0, REFUSE | errno.ENOSYS),
    ]  # fmt: skip
    for each in (ALLOWED | COMPILERS if programs else ALLOWED).values():
        if (number := each[own]) is not None:
            lines += [(EQUAL, 0, 1, number), PASS]
    lines += of_call(FCNTL[own], [argument(1), *one_of(COMMANDS), FAIL])
    lines += of_call(IOCTL[own], [argument(1), *one_of(REQUESTS), FAIL])
    nothing_set = [argument(2), (EQUAL, 0, 3, 0), argument(2, high=True), (EQUAL, 0, 1, 0), PASS, FAIL]
    lines += of_call(PRLIMIT[own], nothing_set)
    if programs:
        lines += of_call(CLONE[own], [argument(0), (BITS, 1, 0, LEAVES), PASS, FAIL])
    return as_bytes([*lines, FAIL])


def as_bytes(lines: Iterable[Line]) -> bytes:
    """The lines in the kernel's form."""
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def of_call(number: int, decision: list[Line]) -> list[Line]:
    """The lines that decide on a call by its arguments."""
    return [(EQUAL, 0, len(decision), number), *decision]


def argument(position: int, *, high: bool = False) -> Line:
    """The line that loads the low or the high half of an argument."""
    return (LOAD, 0, 0, ARGUMENTS + 8 * position + 4 * high)


def one_of(values: Iterable[int]) -> list[Line]:
    """The lines that allow a call whose loaded argument is one of these."""
    return [line for value in values for line in ((EQUAL, 0, 1, value), PASS)]


class Pointer(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.c_char_p)]


def refuse_calls(*, programs: bool) -> bool:
    """Permanently refuse the calls that this process does not need; return whether the kernel accepted the filter."""
    lines = filter_for(platform.machine(), programs=programs)
    return lines is not None and install(lines)


def install(lines: bytes) -> bool:
    """Install a filter; return whether the kernel accepted it."""
    pointer = Pointer(len(lines) // 8, lines)
    prctl(NO_NEW_PRIVILEGES, 1)
    return prctl(SET_SECCOMP, FILTER, ctypes.addressof(pointer)) == 0
