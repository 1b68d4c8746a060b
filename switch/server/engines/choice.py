"""Whether a program runs in the kernel or is interpreted, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inakit.switch.fast.layout.field_usage import used_fields
from inakit.switch.program.expressions import Constant
from inakit.switch.program.program import Program
from inakit.switch.program.expressions import DROP_PORT
from inakit.switch.server.options import Options
from inakit.switch.targets import TARGETS
from inakit.topo.errors import InakitError, InputError

if TYPE_CHECKING:
    from inakit.switch.fast.load.kernel.kernel_switch import Compiled

VARIABLE = "INAKIT_SWITCH"
QUEUE_DEPTHS = ("enq_qdepth", "deq_qdepth")
KERNELS_HEADERS = 128
"""No packet of a host has more bytes of Ethernet, VLAN tags, IP and TCP that the kernel knows of."""
CHOICES = ("auto", "kernel", "interpreted")


@dataclass(frozen=True)
class Choice:
    """How a program is to run: `compiled` for the kernel, or interpreted (None), because of `why`."""

    compiled: Compiled | None
    why: str


def choose(program: Program, options: Options) -> Choice:
    """The kernel where it can, else interpreted; the environment variable INAKIT_SWITCH can demand one of them."""
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in CHOICES:
        raise InputError(f"{VARIABLE}={wanted}: expected one of {', '.join(CHOICES)}")
    if wanted == "interpreted":
        return Choice(None, f"{VARIABLE} says so")
    reason = only_interpreted(options) or only_interpreted_of(program) or TARGETS["fast"].missing()
    if reason is not None and wanted == "auto":
        return Choice(None, reason)
    from inakit.switch.fast.load.kernel.kernel_switch import compile_program  # noqa: PLC0415, needs libbpf

    try:
        return Choice(compile_program(program), "it is as fast as it gets")
    except InakitError as error:
        if wanted == "kernel":
            raise
        return Choice(None, str(error))


def only_interpreted_of(program: Program) -> str | None:
    """What the program does that packets of hosts would not go through in the kernel as in BMv2; None if nothing."""
    return depth_it_reads(program) or short_packets_of(program)


def short_packets_of(program: Program) -> str | None:
    """The `truncate` by which a packet may become shorter than the headers that a host's stack has made in it.

    The kernel does not cut such packets; None if the program has none.
    """
    for action in program.actions:
        for primitive in action.primitives:
            if primitive.name == "truncate" and not leaves_headers(primitive.arguments[0]):
                cut = primitive.source or primitive.name
                return f"the kernel does not cut packets within their headers, as its statement '{cut}' may"
    return None


def leaves_headers(length: object) -> bool:
    """Whether a length of packets is known, and long enough for all headers that the kernel minds."""
    return isinstance(length, Constant) and length.value >= KERNELS_HEADERS


def depth_it_reads(program: Program) -> str | None:
    """The depth of a queue that the program reads, which is always 0 in the kernel; None if it reads none."""
    for field in sorted(used_fields(program), key=str):
        if field.name in QUEUE_DEPTHS:
            return f"it reads '{field}', and a program in the kernel has no queues in front of egress"
    return None


def only_interpreted(options: Options) -> str | None:
    """What the options ask for that a program in the kernel does not have; None if nothing."""
    if options.log.every_step:
        return f"-L {options.log.level} asks for every step of every packet"
    if options.priority_queues > 1:
        return "--priority-queues asks for queues in front of egress"
    if options.drop_port != DROP_PORT:
        return f"--drop-port {options.drop_port} is compiled into no program"
    if options.log.packet_bytes and options.log.wanted:
        return "--dump-packet-data asks for the bytes of every packet"
    return None
