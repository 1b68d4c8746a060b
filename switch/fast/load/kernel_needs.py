"""The kernel features that a compiled program needs, and the names of those that this kernel lacks.

Helpers and map types are read from the program itself; a small test asks the kernel for each.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from inakit.switch.fast.compile.generate import EBPF
from inakit.switch.fast.load.libbpf import helpers_of, library, map_types_of
from inakit.switch.fast.load.switch_cpu import no_steering
from inakit.topo.c_library import check_compiler
from inakit.topo.errors import MachineError
from inakit.topo.live.needs import in_user_namespace, missing_capabilities
from inakit.topo.live.priority import steering_file

SCHED_CLS = 3  # enum bpf_prog_type
HASH, ARRAY = 1, 2  # enum bpf_map_type
MMAPABLE = 1 << 10  # BPF_F_MMAPABLE
LEAST_VERSION = (5, 6)


def has_program_type() -> bool:
    """Whether the kernel has tc programs."""
    return int(library().libbpf_probe_bpf_prog_type(SCHED_CLS, None)) > 0


def has_helper(number: int) -> bool:
    """Whether tc programs may call the helper with this number."""
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
    """The descriptor of a new map with one entry of 4 bytes, or a negative error number."""
    options = MapOptions(size=ctypes.sizeof(MapOptions), map_flags=flags)
    return int(library().bpf_map_create(kind, b"probe", 4, 4, 1, ctypes.byref(options)))


def has_mapped_memory() -> bool:
    fd = new_map(ARRAY, MMAPABLE)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def has_batches() -> bool:
    """Whether one call can put many entries into a map."""
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
    """Whether the kernel can choose the CPU that processes an interface's packets (RPS)."""
    return steering_file("lo").exists()


HELPERS = {
    1: ("bpf_map_lookup_elem", "3.19"),
    5: ("bpf_ktime_get_ns", "4.1"),
    7: ("bpf_get_prandom_u32", "4.1"),
    9: ("bpf_skb_store_bytes", "4.1"),
    13: ("bpf_clone_redirect", "4.2"),
    19: ("bpf_skb_vlan_pop", "4.3"),
    23: ("bpf_redirect", "4.4"),
    26: ("bpf_skb_load_bytes", "4.5"),
    38: ("bpf_skb_change_tail", "4.9"),
    39: ("bpf_skb_pull_data", "4.9"),
    43: ("bpf_skb_change_head", "4.10"),
}
"""The helpers that kernel.h declares, by their number in the kernel, with the first Linux that has each."""

MAP_TYPES = {HASH: ("hash maps", "3.19"), ARRAY: ("array maps", "3.19")}


@dataclass(frozen=True)
class Need:
    """A required kernel feature, and the first Linux that has it."""

    what: str
    since: str
    is_there: Callable[[], bool]

    def __str__(self) -> str:
        return f"{self.what} (Linux {self.since})"


def needs_of(handle: ctypes.c_void_p) -> list[Need]:
    """The kernel features that the object opened as `handle` needs."""
    helpers, maps = sorted(set(helpers_of(handle))), sorted(set(map_types_of(handle)))
    return [
        *needs_of_all(),
        *(helper_need(each) for each in helpers),
        *(Need(MAP_TYPES[each][0], MAP_TYPES[each][1], partial(has_map_type, each)) for each in maps),
    ]


def needs_of_all() -> list[Need]:
    """The features of the kernel that every program needs."""
    return [
        Need("programs of tc (CONFIG_NET_CLS_BPF, CONFIG_BPF_SYSCALL)", "4.1", has_program_type),
        Need("memory-mapped maps", "5.5", has_mapped_memory),
        Need("batched updates of maps", "5.6", has_batches),
        Need("global functions, bounded loops and instruction set v3", "5.6", is_recent),
        Need("receive packet steering (CONFIG_RPS)", "2.6.35", has_steering),
    ]


def helper_need(number: int) -> Need:
    name, since = HELPERS[number]
    return Need(f"helper {name}", since, partial(has_helper, number))


def lacking(needs: Iterable[Need]) -> list[Need]:
    """The needs that this kernel does not meet."""
    return [need for need in needs if not need.is_there()]


def missing_here() -> str | None:
    """The reason why this machine cannot run any program, or None; checked before a program is compiled."""
    if (rights := missing_capabilities("CAP_NET_ADMIN", "CAP_BPF or CAP_SYS_ADMIN")) is not None:
        return rights
    try:
        library()
        check_compiler(EBPF)
    except MachineError as error:
        return str(error)
    steering = steering_file("lo")
    if steering.exists() and not os.access(steering, os.W_OK):
        return no_steering(steering, errno.EROFS)
    absent = lacking(needs_of_all())
    if absent and in_user_namespace():
        return (
            "the kernel loads no programs for the root of a user namespace (a rootless container): run as the machine's"
        )
    return explanation(absent) if absent else None


def explanation(missing: Iterable[Need]) -> str:
    """The message for a kernel without these features."""
    named = ", ".join(str(need) for need in missing)
    return (
        f"this kernel (Linux {platform.release()}) has no {named}, which target 'fast' needs: "
        "use a kernel that has it, or run on BMv2 (SWITCH=bmv2)"
    )
