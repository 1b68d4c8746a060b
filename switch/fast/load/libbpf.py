"""The functions of libbpf that load a program, with errors as exceptions, and the contents of an object file."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from inakit.topo.errors import MachineError, RunError

PROGRAM_INFO_BYTES, VERIFIED_AT = 256, 216  # struct bpf_prog_info, and the offset of its `verified_insns`
MAP_INFO_BYTES = 128  # struct bpf_map_info: type, id, key_size, value_size, ..., 32 bits each
GIVING_POINTERS = (
    "bpf_object__open_file",
    "bpf_object__find_map_by_name",
    "bpf_object__find_program_by_name",
    "bpf_object__next_map",
    "bpf_object__next_program",
    "bpf_program__insns",
)
MESSAGES = 40  # lines of libbpf's own report in an error
DEBUG = 2  # LIBBPF_DEBUG of enum libbpf_print_level


Printer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class Messages(threading.local):
    """A thread's messages from libbpf, for the text of its next error; libbpf would print them to the terminal."""

    def __init__(self) -> None:
        self.lines: list[str] = []


messages = Messages()


def keep_message(level: int, template: bytes, arguments: int) -> int:
    """Keep a message of libbpf, formatted by C, in `messages`; drop the hundreds of lines that trace its own steps."""
    if level >= DEBUG:
        return 0
    text = ctypes.create_string_buffer(1 << 16)
    ctypes.CDLL(None).vsnprintf(text, ctypes.c_size_t(len(text)), template, ctypes.c_void_p(arguments))
    messages.lines.append(text.value.decode(errors="replace").rstrip())
    return 0


printer = Printer(keep_message)  # kept, since libbpf uses it


@cache
def library() -> Any:
    """libbpf 1.x, loaded once; `MachineError` if it is missing or older."""
    name = ctypes.util.find_library("bpf")
    if name is None:
        raise MachineError("libbpf is not installed, and target 'fast' loads programs with it: apt install libbpf1")
    found = ctypes.CDLL(name, use_errno=True)
    if found.libbpf_major_version() < 1:
        raise MachineError(f"libbpf {name} is too old: target 'fast' needs libbpf 1.0 or newer")
    for function in GIVING_POINTERS:
        getattr(found, function).restype = ctypes.c_void_p
    found.libbpf_set_print(printer)
    return found


def failure(what: str, code: int) -> RunError:
    """The error for a call that returned the negative error number `code`, with libbpf's last messages."""
    report = "\n".join(messages.lines[-MESSAGES:])
    return RunError(f"{what}: {os.strerror(-code)}\n{report}".rstrip())


def must(what: str, result: int) -> int:
    """`result`; `RunError` if it is a negative error number."""
    if result < 0:
        raise failure(what, result)
    return result


class BpfObject:
    """A compiled eBPF file for the kernel. Nothing is pinned: it vanishes once it is closed and detached."""

    def __init__(self, path: Path) -> None:
        messages.lines.clear()
        self.handle = ctypes.c_void_p(library().bpf_object__open_file(os.fsencode(path), None))
        if not self.handle:
            raise failure(f"opening {path}", -ctypes.get_errno())

    def load(self) -> int:
        """Load the object into the kernel; return 0 or a negative error number."""
        return int(library().bpf_object__load(self.handle))

    def close(self) -> None:
        """Release the object; attached programs stay in the kernel."""
        if self.handle:
            library().bpf_object__close(self.handle)
            self.handle = ctypes.c_void_p(None)

    def map_fd(self, name: str) -> int:
        found = ctypes.c_void_p(library().bpf_object__find_map_by_name(self.handle, name.encode()))
        return must(f"finding map '{name}'", library().bpf_map__fd(found))

    def program_fd(self, name: str) -> int:
        found = ctypes.c_void_p(library().bpf_object__find_program_by_name(self.handle, name.encode()))
        return must(f"finding program '{name}'", library().bpf_program__fd(found))


def verified_instructions(program_fd: int) -> int:
    """The number of instructions that the verifier checked; 0 before Linux 5.16, which does not report it."""
    info = (ctypes.c_uint8 * PROGRAM_INFO_BYTES)()
    size = ctypes.c_uint32(len(info))
    must("asking about a program", library().bpf_obj_get_info_by_fd(program_fd, info, ctypes.byref(size)))
    return int.from_bytes(bytes(info)[VERIFIED_AT : VERIFIED_AT + 4], "little")


def update_map(fd: int, entries: Sequence[tuple[bytes, bytes]]) -> None:
    """Put all (key, value) pairs into a map with one call."""
    if not entries:
        return
    keys, values = (b"".join(part) for part in zip(*entries, strict=True))
    count = ctypes.c_uint32(len(entries))
    must("filling a table", library().bpf_map_update_batch(fd, keys, values, ctypes.byref(count), None))


def remove_from_map(fd: int, keys: Sequence[bytes]) -> None:
    if keys:
        count = ctypes.c_uint32(len(keys))
        must("removing entries", library().bpf_map_delete_batch(fd, b"".join(keys), ctypes.byref(count), None))


@dataclass(frozen=True)
class MapInfo:
    """The kernel's description of a map. Any process of root can open the map by its `id` while it exists."""

    id: int
    key_bytes: int
    value_bytes: int


def map_info(fd: int) -> MapInfo:
    """The kernel's description of the map with this descriptor."""
    info = (ctypes.c_uint32 * (MAP_INFO_BYTES // 4))()
    size = ctypes.c_uint32(MAP_INFO_BYTES)
    must("asking about a map", library().bpf_obj_get_info_by_fd(fd, info, ctypes.byref(size)))
    return MapInfo(id=info[1], key_bytes=info[2], value_bytes=info[3])


def open_map(map_id: int) -> int:
    """A descriptor of the map with this id; the caller closes it."""
    fd = int(library().bpf_map_get_fd_by_id(ctypes.c_uint32(map_id)))
    if fd == -errno.EPERM:
        raise MachineError("the kernel does not let this process read a running switch: run as root")
    if fd == -errno.ENOENT:
        raise RunError(f"map {map_id} of the switch is no longer in the kernel: its network has ended")
    return must(f"opening map {map_id}", fd)


def map_items(fd: int) -> Iterator[tuple[bytes, bytes]]:
    """All (key, value) pairs of a hash map, in any order."""
    info = map_info(fd)
    key, value = ctypes.create_string_buffer(info.key_bytes), ctypes.create_string_buffer(info.value_bytes)
    before = None
    while library().bpf_map_get_next_key(fd, before, key) == 0:
        if library().bpf_map_lookup_elem(fd, key, value) == 0:
            yield key.raw, value.raw
        before = ctypes.create_string_buffer(key.raw, info.key_bytes)


CALL_HELPER = 0x85  # the instruction; its source register is 0, unlike in a call of a function of the program
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
