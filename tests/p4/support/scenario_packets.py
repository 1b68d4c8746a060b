"""Packets that arrive at the switch of `scenarios`, and what comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scenarios import ROOT_PORT, SERVER_IP, SLOTS, example_entries, worker_ip
from sequences import PORTS, PacketSwitch, Seen, Step

from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME, Event, Frames, Kind, new_frames


def packet(port: int, *, dst_ip: str = SERVER_IP, values: Any = None, capable: bool = False, **ina: Any) -> Step:
    """An INA packet that arrives at `port`; without `values` it carries none. `capable`: its sender heeds marks."""
    dtype = BARE_FRAME if values is None else FRAME
    frame = new_frames(1, src_mac="02:00:00:00:00:01", dst_mac="02:00:00:00:00:64", src_ip=worker_ip(port),
                       dst_ip=dst_ip, dtype=dtype, capable=capable)[0]  # fmt: skip
    for name, value in ina.items():
        frame["ina"][name] = value
    if values is not None:
        frame["values"] = values
    return Step(port, frame.tobytes())


def gradient(port: int, label: int, seq: int, values: Any = 1, **ina: Any) -> Step:
    """A worker's gradient of job 1, tree 1, unless `ina` says otherwise."""
    fields = {"job": 1, "tree": 1, "workers": 1, "slot": seq % SLOTS} | ina
    return packet(port, values=values, kind=Kind.GRADIENT, label=label, seq=seq, **fields)


def result(seq: int, values: Any = 1, **ina: Any) -> Step:
    """A result of job 1, tree 1 that comes from the root."""
    return packet(ROOT_PORT, values=values, **({"kind": Kind.RESULT, "job": 1, "tree": 1, "seq": seq} | ina))


def frames(packets: Sequence[bytes]) -> Frames:
    """Packets with values, as one array."""
    return np.frombuffer(b"".join(packets), FRAME)


def columns(packets: Sequence[bytes], *names: str) -> list[tuple[int, ...]]:
    """These INA fields of each packet."""
    return [tuple(int(frame["ina"][name]) for name in names) for frame in frames(packets)]


def values_of(packets: Sequence[bytes]) -> NDArray[np.int64]:
    """The values of each packet, a row for each."""
    return frames(packets)["values"].astype(np.int64)


def first_value(seen: Seen, port: int) -> list[int]:
    """The first value of each packet that left by `port`."""
    return [int(row[0]) for row in values_of(seen.sent[port])]


def run(switch: PacketSwitch, *steps: Step) -> Seen:
    """What the example's switch makes of these packets."""
    return switch.run(example_entries(), list(steps), ())


def events(seen: Seen) -> dict[Event, int]:
    """How often each outcome happened, without the packets that end every sequence."""
    counts = seen.counters["InaIngress.events"][0].astype(int)
    counts[Event.SENT_UNICAST] -= len(PORTS)
    return {event: int(counts[event]) for event in Event if counts[event]}


def ports_of(seen: Seen) -> set[int]:
    """The ports by which packets left."""
    return {port for port, packets in seen.sent.items() if packets}
