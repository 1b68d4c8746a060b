"""A filter of system calls: no network, no processes, no signals to others, no change of what files are.

It is a list of what is refused, in classic BPF. Refused calls fail with EPERM, so that Python code sees an OSError.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from inakit.experiments.labs.sandbox.landlock import NO_NEW_PRIVILEGES, prctl

SET_SECCOMP, FILTER = 22, 2
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
CLONE_THREAD = 0x00010000
X32 = 0x40000000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
LOAD, EQUAL, GREATER_OR_EQUAL, BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
MACHINES = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1), "arm64": (AARCH64, 1)}
"""For what `uname -m` says: the kernel's name of the architecture, and the column of the tables below."""

Numbers = dict[str, tuple[int | None, int | None]]
"""System calls, and their numbers on x86_64 and aarch64."""

STARTS: Numbers = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
}  # fmt: skip
CLONE: Numbers = {"clone": (56, 220)}
CLONE3: Numbers = {"clone3": (435, 435)}
"""Its flags are in memory, where no filter reads. Told that there is none, libc takes `clone`."""
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
"""What compilers do to their own processes and files."""


class Program:
    """Lines of classic BPF, each a code, two jumps and an operand."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int, int, int]] = []

    def load(self, offset: int) -> None:
        """Look at a word of the call from now on."""
        self.lines.append((LOAD, 0, 0, offset))

    def unless(self, test: int, operand: int, lines: int) -> None:
        """Skip so many lines unless the test holds."""
        self.lines.append((test, 0, lines, operand))

    def end(self, value: int) -> None:
        """Decide about the call."""
        self.lines.append((RETURN, 0, 0, value))

    def refuse(self, number: int, error: int = errno.EPERM) -> None:
        """Refuse a call with an error."""
        self.unless(EQUAL, number, 1)
        self.end(REFUSE | error)

    def packed(self) -> bytes:
        """The lines as the kernel reads them."""
        return b"".join(struct.pack("=HBBI", *line) for line in self.lines)


def filter_for(machine: str, *, programs: bool) -> bytes | None:
    """The filter for a machine, as `uname -m` names it, as bytes; None for one whose calls are not listed here."""
    if machine not in MACHINES:
        return None
    architecture, column = MACHINES[machine]
    program = Program()
    program.load(ARCHITECTURE)
    program.unless(EQUAL, architecture, 1)
    program.lines.append((0x05, 0, 0, 1))  # the architecture is the expected one: pass over the end
    program.end(KILL)
    program.load(NUMBER)
    program.unless(GREATER_OR_EQUAL, X32, 1)
    program.end(REFUSE | errno.ENOSYS)
    for number in refused(column, programs=programs):
        program.refuse(number)
    if not programs:
        refuse_processes(program, column)
    program.end(ALLOW)
    return program.packed()


def refused(column: int, *, programs: bool) -> list[int]:
    """The numbers of the calls that are refused whatever their arguments are."""
    chosen = {name: each for name, each in ALWAYS.items() if name not in SIGNALS} if programs else {**ALWAYS, **STARTS}
    return [number for each in chosen.values() if (number := each[column]) is not None]


def refuse_processes(program: Program, column: int) -> None:
    """Refuse `clone`, unless it starts a thread."""
    program.refuse(CLONE3["clone3"][column] or 0, errno.ENOSYS)
    program.unless(EQUAL, CLONE["clone"][column] or 0, 3)
    program.load(FIRST_ARGUMENT)
    program.lines.append((BITS, 1, 0, CLONE_THREAD))
    program.end(REFUSE | errno.EPERM)


class Pointer(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.c_char_p)]


def restrict(*, programs: bool) -> bool:
    """Refuse this process, for good, what it does not need; whether the kernel took the filter."""
    lines = filter_for(platform.machine(), programs=programs)
    if platform.system() != "Linux" or lines is None:
        return False
    pointer = Pointer(len(lines) // 8, lines)
    prctl(NO_NEW_PRIVILEGES, 1)
    return prctl(SET_SECCOMP, FILTER, ctypes.addressof(pointer)) == 0
