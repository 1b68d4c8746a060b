"""What a compiled eBPF object contains: the helpers that its programs call, and the types of its maps."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from inakit.switch.fast.load.kernel.libbpf import library

CALL_HELPER = 0x85  # the instruction; its source register is 0, unlike in a call to a function of the program
INSTRUCTION_BYTES = 8


def helpers_of(handle: ctypes.c_void_p) -> Iterator[int]:
    """The numbers of the helpers that the object's programs call."""
    for program in parts_of(handle, "program"):
        count = int(library().bpf_program__insn_cnt(program))
        code = ctypes.string_at(library().bpf_program__insns(program), count * INSTRUCTION_BYTES)
        for at in range(0, len(code), INSTRUCTION_BYTES):
            if code[at] == CALL_HELPER and code[at + 1] >> 4 == 0:
                yield int.from_bytes(code[at + 4 : at + 8], "little")


def map_types_of(handle: ctypes.c_void_p) -> Iterator[int]:
    """The types of the object's maps, by the kernel's numbers."""
    return (int(library().bpf_map__type(each)) for each in parts_of(handle, "map"))


def parts_of(handle: ctypes.c_void_p, kind: str) -> Iterator[ctypes.c_void_p]:
    """All programs or maps of an object."""
    following = getattr(library(), f"bpf_object__next_{kind}")
    part = ctypes.c_void_p(following(handle, None))
    while part:
        yield part
        part = ctypes.c_void_p(following(handle, part))
