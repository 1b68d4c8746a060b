"""Lets copies of a packet arrive at an interface, as many a second as asked for, made by the kernel itself.

    python tests/third_party/small_packets.py INTERFACE FILE.pcap PACKETS_PER_SECOND SECONDS

A process that sends takes longer for a packet than a switch in the kernel does, and would be what is measured. So none
sends: an XDP program, which waits until a packet is due and lets it pass, is run on frames of the kernel's own
(BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18). They go where packets go that have come in by the interface: to packet sockets
and to programs of tc. It needs clang, libbpf and root.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
import time
from pathlib import Path

from inakit.switch.fast.compile.generate import EBPF
from inakit.switch.fast.load.libbpf import BpfObject, library, must
from inakit.topo.c_library import build

LIVE_FRAMES = 2  # BPF_F_TEST_XDP_LIVE_FRAMES
BATCH = 64
PCAP_HEADS_BYTES = 24 + 16
WAITING_PROGRAM = """
#include <linux/bpf.h>
static unsigned long long (*now_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
unsigned long long due_ns;
__attribute__((section("xdp"), used)) int let_pass(struct xdp_md *packet) {
    unsigned long long now = now_ns();
    due_ns = (due_ns ? due_ns : now) + %d;
    for (int i = 0; i < 100000 && now < due_ns; i++)
        now = now_ns();
    return XDP_PASS;
}
char license_text[] __attribute__((section("license"), used)) = "GPL";
"""


class RunOptions(ctypes.Structure):
    """struct bpf_test_run_opts"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("data_in", ctypes.c_char_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_char_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    ]


def let_arrive(interface: str, packet: bytes, rate_pps: int, count: int) -> float:
    """Let `count` copies of a packet arrive at an interface, `rate_pps` a second or as many as can be made.

    Returns how many seconds that took.
    """
    waiting = BpfObject(build(WAITING_PROGRAM % (10**9 // rate_pps), EBPF))
    must("loading an XDP program", waiting.load())
    where = struct.pack("<6I", 0, len(packet), 0, socket.if_nametoindex(interface), 0, 0)
    options = RunOptions(ctypes.sizeof(RunOptions), packet, None, len(packet), 0, where, None, len(where))
    options.repeat, options.flags, options.batch_size = count, LIVE_FRAMES, BATCH
    program, began = waiting.program_fd("let_pass"), time.monotonic()
    must("making packets", library().bpf_prog_test_run_opts(program, ctypes.byref(options)))
    return time.monotonic() - began


def main() -> None:
    """Make packets as the command line says, and print how many seconds that took."""
    interface, path, rate, seconds = sys.argv[1:]
    packet = Path(path).read_bytes()[PCAP_HEADS_BYTES:]
    print(let_arrive(interface, packet, int(rate), int(int(rate) * float(seconds))))


if __name__ == "__main__":
    main()
