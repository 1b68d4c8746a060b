"""Attaches a program to all packets that arrive at an interface, or that leave by it.

Since Linux 6.6 by a link (TCX), which ends with the process that made it, however that ends. Before, by a filter of
tc's clsact qdisc, which stays behind when the process is killed; the next switch on the interface replaces it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Protocol

from inakit.switch.fast.load.kernel.libbpf import library, must
from inakit.topo.errors import InputError

INGRESS, EGRESS = 1, 2  # enum bpf_tc_attach_point
REPLACE = 1  # BPF_TC_F_REPLACE
TCX_INGRESS, TCX_EGRESS = 46, 47  # enum bpf_attach_type
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
    count = linked(ifindex, TCX_INGRESS)
    if count is None:
        return Filter(ifindex, program_fd, INGRESS)
    if count:
        name = ctypes.create_string_buffer(16)
        ctypes.CDLL(None).if_indextoname(ifindex, name)
        raise InputError(f"interface '{name.value.decode()}' is the port of another switch: give each its own")
    return link(ifindex, program_fd, TCX_INGRESS)


def attach_egress(ifindex: int, program_fd: int) -> Attachment:
    """Let all packets that leave by an interface, at which a program is attached already, go through another one."""
    if linked(ifindex, TCX_EGRESS) is None:
        return Filter(ifindex, program_fd, EGRESS)
    return link(ifindex, program_fd, TCX_EGRESS)


def linked(ifindex: int, where: int) -> int | None:
    """How many programs are linked to an interface; None where the kernel has no such links."""
    count = ctypes.c_uint32()
    found = library().bpf_prog_query(ifindex, where, 0, None, None, ctypes.byref(count))
    return None if found < 0 else count.value


def link(ifindex: int, program_fd: int, where: int) -> Link:
    """A program linked to an interface."""
    return Link(must(f"attaching to interface {ifindex}", library().bpf_link_create(program_fd, ifindex, where, None)))


class Link:
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


class Filter:
    """A program that is a filter of an interface until `remove`."""

    def __init__(self, ifindex: int, program_fd: int, where: int) -> None:
        self.ifindex, self.where = ifindex, where
        hook, options = self.hook(where), tc_options(program_fd, REPLACE)
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
        hook, options = self.hook(self.where), tc_options()
        found = int(library().bpf_tc_query(ctypes.byref(hook), ctypes.byref(options))) == 0
        return found and options.program_id == self.program_id

    def remove(self) -> None:
        """Remove the program, with that of ingress the qdisc as well; do nothing if the interface is gone."""
        if self.where == EGRESS:
            hook, options = self.hook(EGRESS), tc_options()
            library().bpf_tc_detach(ctypes.byref(hook), ctypes.byref(options))
            return
        hook = self.hook(INGRESS | EGRESS)
        library().bpf_tc_hook_destroy(ctypes.byref(hook))


def tc_options(program_fd: int = 0, flags: int = 0) -> TcOptions:
    """The options of the switch's own filter, which has priority and handle 1."""
    return TcOptions(ctypes.sizeof(TcOptions), program_fd, flags, 0, 1, 1)
