"""A program on everything that arrives at an interface: by a tcx link, or by a clsact qdisc before Linux 6.6."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Protocol

from switch.fast.libbpf import library, must

TCX_INGRESS = 46  # enum bpf_attach_type
LINK_INFO_WORDS, LINK_IFINDEX = 32, 4  # struct bpf_link_info in 32-bit words, and where a tcx link's interface is
TC_INGRESS, TC_EGRESS = 1, 2  # enum bpf_tc_attach_point


class Attachment(Protocol):
    """A program that has been attached."""

    def is_there(self) -> bool:
        """Whether packets still go through the program."""
        ...

    def remove(self) -> None:
        """Take the program off; also where the interface has gone."""
        ...


def attach(ifindex: int, program_fd: int) -> Attachment:
    """Run a program on what arrives at an interface, by the faster way that the kernel has."""
    fd = library().bpf_link_create(program_fd, ifindex, TCX_INGRESS, None)
    if fd == -errno.EINVAL:  # what older kernels say of an attach type that they do not know
        return ClsactFilter(ifindex, program_fd)
    return TcxLink(must(f"attaching to interface {ifindex}", fd))


class TcxLink:
    """A link, which ends with its descriptor, whatever happens to this process."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def is_there(self) -> bool:
        info = (ctypes.c_uint32 * LINK_INFO_WORDS)()
        size = ctypes.c_uint32(ctypes.sizeof(info))
        must("asking about a link", library().bpf_obj_get_info_by_fd(self.fd, info, ctypes.byref(size)))
        return info[LINK_IFINDEX] != 0

    def remove(self) -> None:
        os.close(self.fd)


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


def tc_options(program_fd: int = 0) -> TcOptions:
    return TcOptions(ctypes.sizeof(TcOptions), program_fd, 0, 0, 1, 1)


class ClsactFilter:
    """A filter of a clsact qdisc; it stays until the qdisc is removed."""

    def __init__(self, ifindex: int, program_fd: int) -> None:
        self.ifindex = ifindex
        hook, options = self.hook(TC_INGRESS), tc_options(program_fd)
        code = library().bpf_tc_hook_create(ctypes.byref(hook))
        if code != -errno.EEXIST:
            must(f"adding clsact to interface {ifindex}", code)
        must(f"attaching to interface {ifindex}", library().bpf_tc_attach(ctypes.byref(hook), ctypes.byref(options)))

    def hook(self, attach_point: int) -> TcHook:
        return TcHook(ctypes.sizeof(TcHook), self.ifindex, attach_point, 0)

    def is_there(self) -> bool:
        hook, options = self.hook(TC_INGRESS), tc_options()
        return int(library().bpf_tc_query(ctypes.byref(hook), ctypes.byref(options))) == 0

    def remove(self) -> None:
        hook = self.hook(TC_INGRESS | TC_EGRESS)  # both: the qdisc itself
        library().bpf_tc_hook_destroy(ctypes.byref(hook))
