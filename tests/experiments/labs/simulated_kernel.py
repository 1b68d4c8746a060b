"""Older kernels, simulated by refusing what they do not have: `python simulated_kernel.py KERNEL COMMAND...`."""

from __future__ import annotations

import errno
import os
import platform
import sys

from inakit.experiments.labs.sandbox.confinement import (
    EQUAL,
    GREATER_OR_EQUAL,
    LOAD,
    MACHINES,
    NUMBER,
    PASS,
    REFUSE,
    RETURN,
    Line,
    argument,
    as_bytes,
    install,
    of_call,
)

UNSHARE, PRCTL = (272, 97), (157, 167)
LANDLOCK = (444, 445, 446)
"""Create a ruleset, add to it, restrict oneself."""


def refused(error: int) -> Line:
    return (RETURN, 0, 0, REFUSE | error)


def lines_of(kernel: str) -> list[Line]:
    """What a kernel refuses."""
    column = MACHINES[platform.machine()][1]
    no_scopes = of_call(LANDLOCK[0], [argument(1), (GREATER_OR_EQUAL, 0, 1, 24), refused(errno.E2BIG), PASS])
    no_landlock = [line for number in LANDLOCK for line in of_call(number, [refused(errno.ENOSYS)])]
    no_namespaces = of_call(UNSHARE[column], [refused(errno.EPERM)])
    no_seccomp = of_call(PRCTL[column], [argument(0), (EQUAL, 0, 1, 22), refused(errno.EINVAL), PASS])
    return {
        "this": [],
        "6.8": no_scopes,
        "5.10": no_landlock,
        "nothing": [*no_landlock, *no_namespaces],
        "no seccomp": no_seccomp,
    }[kernel]


if __name__ == "__main__":
    _, kernel, *command = sys.argv
    if lines := lines_of(kernel):
        assert install(as_bytes([(LOAD, 0, 0, NUMBER), *lines, PASS]))
    os.execvp(command[0], command)
