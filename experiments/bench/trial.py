"""One trial: send through a chain for a while, wait until no more arrives, and count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from inakit.experiments.bench.chain import FRAMES_PER_CALL, SLOTS, WORKERS, Bench
from inakit.planner.install.data_plane_program import INA, INA_HW, DataPlaneProgram
from inakit.topo.live.processors import on_endpoint_processor
from inakit.traffic.sockets.sendmmsg import Messages, send_all
from inakit.traffic.wire.frames import FRAGMENT, FRAME
from inakit.traffic.wire.packet_format import UDP_PORT

PLAIN_PORT = 9
AGGREGATION = f"{FRAGMENT.values}-element aggregation"
BURST_S = 0.001
"""A worker hands the packets of this many seconds to the kernel in one call, but at most `FRAMES_PER_CALL`."""
QUIET_S, QUIET_PER_SWITCH_S = 0.06, 0.01
PATIENCE_S = 15.0


@dataclass(frozen=True)
class Workload:
    """What the workers send, how many packets reach the server for each that a worker sends, and the program."""

    name: str
    udp_port: int
    yield_per_packet: float
    program: DataPlaneProgram = INA


WORKLOADS = (
    Workload("plain forwarding", PLAIN_PORT, 1.0),
    Workload(AGGREGATION, UDP_PORT, 1 / len(WORKERS)),
    Workload(f"{AGGREGATION}, {INA_HW.name}", UDP_PORT, 1 / len(WORKERS), INA_HW),
)


@dataclass(frozen=True)
class Trial:
    """The result of one trial: packets per second into the first switch, and the share of packets lost, from 0 to 1."""

    rate_pps: float
    loss: float


RunTrial = Callable[[float, float | None], Trial]
"""A function that runs a trial, given its seconds and packets per second (None: flat out)."""


class Sender:
    """Sends fragments in order of their numbers. The workers take turns, and each sends the same fragments.

    Numbers rise from trial to trial, for `ina_hw` keeps a finished sum in its slot until a newer fragment comes.
    """

    def __init__(self, bench: Bench, workload: Workload) -> None:
        self.sockets = bench.sockets
        self.frames = [bench.frames(worker, workload.udp_port) for worker in WORKERS]
        self.messages = [Messages() for _ in WORKERS]
        for messages, frames in zip(self.messages, self.frames, strict=True):
            messages.point_at(frames, FRAME.itemsize)
            frames["ina"]["seq"] = frames["ina"]["slot"] = np.arange(FRAMES_PER_CALL)

    def send_for(self, seconds: float, rate_pps: float | None) -> int:
        """Send at `rate_pps` packets per second, or flat out; return how many packets that were."""
        start, sent = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds:
            if rate_pps is not None and sent > elapsed * rate_pps:
                time.sleep(sent / rate_pps - elapsed)
            sent += self._send_once(burst_of(rate_pps))
        return sent

    def _send_once(self, burst: int) -> int:
        for worker, sender, messages, frames in zip(WORKERS, self.sockets, self.messages, self.frames, strict=True):
            send_all(sender.fileno(), messages.address, burst, worker)
            ina = frames["ina"]
            ina["seq"] += burst
            ina["slot"] = ina["seq"] % SLOTS
        return burst * len(WORKERS)


def burst_of(rate_pps: float | None) -> int:
    """How many packets a worker hands to the kernel in one call: few at low rates, to spare slow switches' queues."""
    if rate_pps is None:
        return FRAMES_PER_CALL
    return min(FRAMES_PER_CALL, max(1, int(rate_pps * BURST_S / len(WORKERS))))


def run_trial(bench: Bench, workload: Workload, sender: Sender, seconds: float, rate_pps: float | None) -> Trial:
    """Send, wait until nothing arrives any more, and count. Time in queues, and before full ones, is sending time."""
    with on_endpoint_processor():
        before, start = bench.arrived(), time.perf_counter()
        sent = sender.send_for(seconds, rate_pps)
        expected = before + round(sent * workload.yield_per_packet)
        arrived, last_arrival = wait_for_arrivals(bench, expected)
    for switch in bench.network.switches.values():
        switch.check()
    return Trial(sent / (last_arrival - start), 1 - (arrived - before) / (expected - before))


def wait_for_arrivals(bench: Bench, expected: int) -> tuple[int, float]:
    """Wait until all packets have arrived or no more do. Returns how many have arrived, and when the last one did."""
    last_count, last_time = bench.arrived(), time.perf_counter()
    deadline, quiet_s = last_time + PATIENCE_S, QUIET_S + QUIET_PER_SWITCH_S * len(bench.network.switches)
    while last_count < expected and (now := time.perf_counter()) < min(last_time + quiet_s, deadline):
        time.sleep(0.002)
        if (count := bench.arrived()) != last_count:
            last_count, last_time = count, now
    return last_count, last_time
