"""Attaches a program to all packets that arrive at an interface.

Since Linux 6.6 by a link (TCX), which ends with the process that made it, however that ends. Before, by a filter of
tc's clsact qdisc, which stays behind when the process is killed; the next switch on the interface replaces it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Protocol

from switch.fast.load.kernel.libbpf import failure, library, must
from topo.errors import InputError

INGRESS, EGRESS = 1, 2  # enum bpf_tc_attach_point
REPLACE = 1  # BPF_TC_F_REPLACE
TCX_INGRESS = 46  # enum bpf_attach_type
LINK_INFO_BYTES, LINK_IFINDEX_AT = 64, 16  # struct bpf_link_info: type, id, prog_id, padding, tcx.ifindex


class Attachment(Protocol):
    """A program on an interface."""

    def is_there(self) -> bool:
        """Whether packets still go through the program."""
        ...

    def remove(self) -> None:
        """Let packets pass without the program; do nothing if the interface is gone."""
        ...


def attach(ifindex: int, program_fd: int) -> Attachment:
    """Let all packets that arrive at an interface go through a program; `InputError` if another has them."""
    return link(ifindex, program_fd) or IngressFilter(ifindex, program_fd)


def link(ifindex: int, program_fd: int) -> IngressLink | None:
    """A program linked to an interface; None where the kernel has no such links."""
    count = ctypes.c_uint32()
    found = library().bpf_prog_query(ifindex, TCX_INGRESS, 0, None, None, ctypes.byref(count))
    if found < 0:
        return None
    if count.value:
        name = ctypes.create_string_buffer(16)
        ctypes.CDLL(None).if_indextoname(ifindex, name)
        raise InputError(f"interface '{name.value.decode()}' is the port of another switch: give each its own")
    code = library().bpf_link_create(program_fd, ifindex, TCX_INGRESS, None)
    if code < 0:
        raise failure(f"attaching to interface {ifindex}", code)
    return IngressLink(code)


class IngressLink:
    """A program that is linked to an interface until `remove`, or until this process ends."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def is_there(self) -> bool:
        """Whether packets still go through the program."""
        about, size = ctypes.create_string_buffer(LINK_INFO_BYTES), ctypes.c_uint32(LINK_INFO_BYTES)
        code = library().bpf_obj_get_info_by_fd(self.descriptor, about, ctypes.byref(size))
        return code == 0 and about.raw[LINK_IFINDEX_AT : LINK_IFINDEX_AT + 4] != bytes(4)

    def remove(self) -> None:
        """Let packets pass without the program."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


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
    """A program that is a filter of an interface until `remove`."""

    def __init__(self, ifindex: int, program_fd: int) -> None:
        self.ifindex = ifindex
        hook, options = self.hook(INGRESS), tc_options(program_fd, REPLACE)
        code = library().bpf_tc_hook_create(ctypes.byref(hook))
        if code != -errno.EEXIST:
            must(f"adding clsact to interface {ifindex}", code)
        must(f"attaching to interface {ifindex}", library().bpf_tc_attach(ctypes.byref(hook), ctypes.byref(options)))
        self.program_id = options.program_id

    def hook(self, attach_point: int) -> TcHook:
        """Where on the interface libbpf looks for filters."""
        return TcHook(ctypes.sizeof(TcHook), self.ifindex, attach_point, 0)

    def is_there(self) -> bool:
        """Whether packets still go through the program."""
        hook, options = self.hook(INGRESS), tc_options()
        found = int(library().bpf_tc_query(ctypes.byref(hook), ctypes.byref(options))) == 0
        return found and options.program_id == self.program_id

    def remove(self) -> None:
        """Remove the qdisc, and the program with it; do nothing if the interface is gone."""
        hook = self.hook(INGRESS | EGRESS)
        library().bpf_tc_hook_destroy(ctypes.byref(hook))


def tc_options(program_fd: int = 0, flags: int = 0) -> TcOptions:
    """The options of the switch's own filter, which has priority and handle 1."""
    return TcOptions(ctypes.sizeof(TcOptions), program_fd, flags, 0, 1, 1)
