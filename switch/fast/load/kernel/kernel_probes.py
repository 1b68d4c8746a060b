"""Asks the running kernel what it offers, each thing by a small try."""

from __future__ import annotations

import ctypes
import os
import platform
import re

from inakit.switch.fast.load.kernel.libbpf import library
from inakit.topo.live.priority import steering_file

SCHED_CLS = 3  # enum bpf_prog_type
HASH, ARRAY = 1, 2  # enum bpf_map_type
MMAPABLE = 1 << 10  # BPF_F_MMAPABLE
LEAST_VERSION = (5, 6)


def has_program_type() -> bool:
    """Whether the kernel takes programs of tc."""
    return int(library().libbpf_probe_bpf_prog_type(SCHED_CLS, None)) > 0


def has_helper(number: int) -> bool:
    """Whether programs of tc may call the helper of this number."""
    return int(library().libbpf_probe_bpf_helper(SCHED_CLS, number, None)) > 0


def has_map_type(number: int) -> bool:
    """Whether the kernel has maps of the type of this number."""
    return int(library().libbpf_probe_bpf_map_type(number, None)) > 0


class MapOptions(ctypes.Structure):
    """The first members of struct bpf_map_create_opts."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("btf_fd", ctypes.c_uint32),
        ("btf_key_type_id", ctypes.c_uint32),
        ("btf_value_type_id", ctypes.c_uint32),
        ("btf_vmlinux_value_type_id", ctypes.c_uint32),
        ("inner_map_fd", ctypes.c_uint32),
        ("map_flags", ctypes.c_uint32),
    ]


def new_map(kind: int, flags: int = 0) -> int:
    """The descriptor of a new map with one entry of 4 bytes, or a negative error number."""
    options = MapOptions(size=ctypes.sizeof(MapOptions), map_flags=flags)
    return int(library().bpf_map_create(kind, b"probe", 4, 4, 1, ctypes.byref(options)))


def has_mapped_memory() -> bool:
    """Whether arrays can be mapped into memory."""
    fd = new_map(ARRAY, MMAPABLE)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def has_batches() -> bool:
    """Whether many entries can be put into a map by one call."""
    fd = new_map(HASH)
    if fd < 0:
        return False
    count = ctypes.c_uint32(1)
    code = library().bpf_map_update_batch(fd, bytes(4), bytes(4), ctypes.byref(count), None)
    os.close(fd)
    return int(code) == 0


def is_recent() -> bool:
    """Whether the kernel's version is at least `LEAST_VERSION`."""
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= LEAST_VERSION


def has_steering() -> bool:
    """Whether the kernel can choose the CPU that processes what arrives at an interface (RPS)."""
    return steering_file("lo").exists()
