"""What a compiled program needs of the kernel, and which of it this kernel lacks, by name.

The helpers and map types are read from the program itself; the kernel is asked for each by a small try.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from switch.fast.load.libbpf import library

SCHED_CLS = 3  # enum bpf_prog_type
HASH, ARRAY = 1, 2  # enum bpf_map_type
MMAPABLE = 1 << 10  # BPF_F_MMAPABLE
CALL_HELPER = 0x85  # the instruction; its source register is 0, unlike in a call to a function of the program
INSTRUCTION_BYTES = 8
LEAST_VERSION = (5, 6)

HELPERS = {
    1: ("bpf_map_lookup_elem", "3.19"),
    5: ("bpf_ktime_get_ns", "4.1"),
    9: ("bpf_skb_store_bytes", "4.1"),
    13: ("bpf_clone_redirect", "4.2"),
    19: ("bpf_skb_vlan_pop", "4.3"),
    23: ("bpf_redirect", "4.4"),
    26: ("bpf_skb_load_bytes", "4.5"),
    38: ("bpf_skb_change_tail", "4.9"),
    39: ("bpf_skb_pull_data", "4.9"),
    43: ("bpf_skb_change_head", "4.10"),
}
"""The helpers that kernel.h declares, by their number in the kernel, and the Linux that brought each."""

MAP_TYPES = {HASH: ("hash maps", "3.19"), ARRAY: ("array maps", "3.19")}


@dataclass(frozen=True)
class Need:
    """Something that the kernel must have, and the Linux that brought it."""

    what: str
    since: str
    is_there: Callable[[], bool]

    def __str__(self) -> str:
        return f"{self.what} (Linux {self.since})"


def needs_of(handle: ctypes.c_void_p) -> list[Need]:
    """What the object opened as `handle` needs, from what is in it."""
    helpers, maps = sorted(set(helpers_of(handle))), sorted(set(map_types_of(handle)))
    return [
        Need("programs of tc (CONFIG_NET_CLS_BPF, CONFIG_BPF_SYSCALL)", "4.1", has_program_type),
        *(helper_need(each) for each in helpers),
        *(Need(MAP_TYPES[each][0], MAP_TYPES[each][1], partial(has_map_type, each)) for each in maps),
        Need("memory-mapped maps", "5.5", has_mapped_memory),
        Need("batched updates of maps", "5.6", has_batches),
        Need("global functions, bounded loops and instruction set v3", "5.6", is_recent),
        Need("receive packet steering (CONFIG_RPS)", "2.6.35", has_steering),
    ]


def helper_need(number: int) -> Need:
    name, since = HELPERS[number]
    return Need(f"helper {name}", since, partial(has_helper, number))


def lacking(needs: Iterable[Need]) -> list[Need]:
    """Those of `needs` that this kernel has not got."""
    return [need for need in needs if not need.is_there()]


def explanation(missing: Iterable[Need]) -> str:
    named = ", ".join(str(need) for need in missing)
    return (
        f"this kernel (Linux {platform.release()}) has no {named}, which target 'fast' needs: "
        "use a kernel that has it, or run on BMv2 (SWITCH=bmv2)"
    )


# ---- what is in an object ----------------------------------------------------------------------


def helpers_of(handle: ctypes.c_void_p) -> Iterator[int]:
    """The numbers of the helpers that the object's programs call."""
    for program in parts_of(handle, "program"):
        count = int(library().bpf_program__insn_cnt(program))
        code = ctypes.string_at(library().bpf_program__insns(program), count * INSTRUCTION_BYTES)
        for at in range(0, len(code), INSTRUCTION_BYTES):
            if code[at] == CALL_HELPER and code[at + 1] >> 4 == 0:
                yield int.from_bytes(code[at + 4 : at + 8], "little")


def map_types_of(handle: ctypes.c_void_p) -> Iterator[int]:
    return (int(library().bpf_map__type(each)) for each in parts_of(handle, "map"))


def parts_of(handle: ctypes.c_void_p, kind: str) -> Iterator[ctypes.c_void_p]:
    """All programs or maps of an object."""
    following = getattr(library(), f"bpf_object__next_{kind}")
    part = ctypes.c_void_p(following(handle, None))
    while part:
        yield part
        part = ctypes.c_void_p(following(handle, part))


# ---- asking the kernel -------------------------------------------------------------------------


def has_program_type() -> bool:
    return int(library().libbpf_probe_bpf_prog_type(SCHED_CLS, None)) > 0


def has_helper(number: int) -> bool:
    return int(library().libbpf_probe_bpf_helper(SCHED_CLS, number, None)) > 0


def has_map_type(number: int) -> bool:
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
    """The descriptor of a map of one entry of 4 bytes, or a negative error number."""
    options = MapOptions(size=ctypes.sizeof(MapOptions), map_flags=flags)
    return int(library().bpf_map_create(kind, b"probe", 4, 4, 1, ctypes.byref(options)))


def has_mapped_memory() -> bool:
    fd = new_map(ARRAY, MMAPABLE)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def has_batches() -> bool:
    fd = new_map(HASH)
    if fd < 0:
        return False
    count = ctypes.c_uint32(1)
    code = library().bpf_map_update_batch(fd, bytes(4), bytes(4), ctypes.byref(count), None)
    os.close(fd)
    return int(code) == 0


def is_recent() -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= LEAST_VERSION


def has_steering() -> bool:
    return Path("/sys/class/net/lo/queues/rx-0/rps_cpus").exists()
