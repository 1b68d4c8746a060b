"""Attaches a program to all packets that arrive at an interface, as a filter of tc's clsact qdisc."""

from __future__ import annotations

import ctypes
import errno

from switch.fast.load.libbpf import library, must

INGRESS, EGRESS = 1, 2  # enum bpf_tc_attach_point


class TcHook(ctypes.Structure):
    """struct bpf_tc_hook"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("ifindex", ctypes.c_int),
        ("attach_point", ctypes.c_int),
        ("parent", ctypes.c_uint32),
    ]


class TcOptions(ctypes.Structure):
    """struct bpf_tc_opts"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("program_fd", ctypes.c_int),
        ("flags", ctypes.c_uint32),
        ("program_id", ctypes.c_uint32),
        ("handle", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
    ]


class IngressFilter:
    """A program that is attached to an interface until `remove`."""

    def __init__(self, ifindex: int, program_fd: int) -> None:
        self.ifindex = ifindex
        hook, options = self.hook(INGRESS), tc_options(program_fd)
        code = library().bpf_tc_hook_create(ctypes.byref(hook))
        if code != -errno.EEXIST:
            must(f"adding clsact to interface {ifindex}", code)
        must(f"attaching to interface {ifindex}", library().bpf_tc_attach(ctypes.byref(hook), ctypes.byref(options)))

    def hook(self, attach_point: int) -> TcHook:
        """Where on the interface libbpf looks for filters."""
        return TcHook(ctypes.sizeof(TcHook), self.ifindex, attach_point, 0)

    def is_there(self) -> bool:
        """Whether packets still go through the program."""
        hook, options = self.hook(INGRESS), tc_options()
        return int(library().bpf_tc_query(ctypes.byref(hook), ctypes.byref(options))) == 0

    def remove(self) -> None:
        """Remove the qdisc, and the program with it; do nothing if the interface is gone."""
        hook = self.hook(INGRESS | EGRESS)
        library().bpf_tc_hook_destroy(ctypes.byref(hook))


def tc_options(program_fd: int = 0) -> TcOptions:
    """The options of the switch's own filter, which has priority and handle 1."""
    return TcOptions(ctypes.sizeof(TcOptions), program_fd, 0, 0, 1, 1)
