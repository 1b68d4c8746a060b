"""The filter of endpoints' sockets: they hear INA frames only. In classic BPF, which the kernel runs for each frame."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

from inakit.traffic.wire.frames import BARE_FRAME, FRAME, offset_of
from inakit.traffic.wire.packet_format import UDP_PORT, Kind

ETH_P_IP = 0x0800
FRAGMENT_OFFSET = 0x1FFF
SO_ATTACH_FILTER = 26

Line = tuple[int, int, int, int]
"""A line of a program: its code, how many lines to skip if its test is true, and if it is false, and its operand."""
LOAD_BYTE, LOAD_HALF, LOAD_LENGTH = 0x30, 0x28, 0x80
JUMP_EQUAL, JUMP_ANY_BIT, RETURN = 0x15, 0x45, 0x06


def ina_filter() -> list[Line]:
    """The program that accepts whole INA frames over UDP over IPv4 without options; one without values is a notice.

    It accepts nothing that the switches' parser takes for other IPv4, because that crosses switches without admission.
    """
    tests = [
        (LOAD_HALF, offset_of("ethernet", "ethertype"), JUMP_EQUAL, ETH_P_IP),
        (LOAD_BYTE, offset_of("ipv4", "version_ihl"), JUMP_EQUAL, 0x45),
        (LOAD_HALF, offset_of("ipv4", "ip_flags_fragment_offset"), JUMP_ANY_BIT, FRAGMENT_OFFSET),
        (LOAD_BYTE, offset_of("ipv4", "protocol"), JUMP_EQUAL, socket.IPPROTO_UDP),
        (LOAD_HALF, offset_of("udp", "dst_port"), JUMP_EQUAL, UDP_PORT),
    ]
    end = 2 * len(tests) + 6
    program = []
    for number, (load, offset, test, value) in enumerate(tests):
        out = end - (2 * number + 2)
        program += [(load, 0, 0, offset), (test, *((0, out) if test == JUMP_EQUAL else (out, 0)), value)]
    return [
        *program,
        (LOAD_LENGTH, 0, 0, 0),
        (JUMP_EQUAL, 3, 0, FRAME.itemsize),
        (JUMP_EQUAL, 0, 3, BARE_FRAME.itemsize),
        (LOAD_BYTE, 0, 0, offset_of("ina", "kind")),
        (JUMP_EQUAL, 0, 1, Kind.NOTICE),
        (RETURN, 0, 0, FRAME.itemsize),
        (RETURN, 0, 0, 0),
    ]


INA_FILTER = ina_filter()


def attach_filter(opened: socket.socket, program: Sequence[Line]) -> None:
    """Let a socket hear only what a program of classic BPF accepts."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    opened.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))
