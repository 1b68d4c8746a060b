"""Hostile hosts: which attacks one can carry out against a job, and tcpreplay that carries them out during a run."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from scapy.utils import RawPcapWriter

from planner.core.problem import Problem
from topo.errors import InputError, unknown_name
from traffic.endpoints.streams import StreamLayout
from traffic.faults.attacks import ATTACKS, Knowledge
from traffic.sockets.ports import HostPort
from traffic.sockets.tcpreplay import end, repeat_without_end

DIFFERENT_FRAMES = 2000
"""How many frames tcpreplay sends over and over."""


@dataclass(frozen=True)
class Attack:
    """A host sends frames of these `kinds` (keys of `ATTACKS`) against job number `job` as long as a run lasts."""

    host: str
    job: int
    kinds: tuple[str, ...]
    rate_bps: float

    def __str__(self) -> str:
        return f"{self.host} attacks job {self.job} at {self.rate_bps / 1e6:g} Mbit/s: {', '.join(self.kinds)}"


def possible_attacks(problem: Problem, host: str, job: int, wanted: Collection[str] = ()) -> tuple[str, ...]:
    """The kinds of attack that a host can carry out against a job; if some are `wanted`, those of them.

    Raises `InputError` for an unknown one, for a host that has a part in the job and for one that lacks a job.
    """
    for name in wanted:
        if name not in ATTACKS:
            raise unknown_name("attack", name, ATTACKS)
    parts = {each.number: {*each.workers, *each.servers} for each in problem.jobs}
    if host in parts[job]:
        raise InputError(f"host '{host}' has a part in job {job}, whose sums it may set as it likes: choose another")
    is_worker = any(host in each.workers for each in problem.jobs)
    if "abuse" in wanted and not is_worker:
        raise InputError(f"host '{host}' is no worker of another job, whose labels it could abuse: leave 'abuse' out")
    return tuple(kind for kind in ATTACKS if kind in (wanted or ATTACKS) and (is_worker or kind != "abuse"))


def hostile_frames(layout: StreamLayout, attack: Attack, seed: int, count: int = DIFFERENT_FRAMES) -> list[bytes]:
    """Frames of all of an attack's kinds, in random order."""
    random = Random(f"{seed} {attack.host} {attack.job}")
    known = Knowledge(layout, attack.host, attack.job, random)
    return [ATTACKS[random.choice(attack.kinds)](known) for _ in range(count)]


@contextmanager
def hostile(
    hosts: Sequence[HostPort], layout: StreamLayout, attacks: Sequence[Attack], seed: int = 0
) -> Iterator[None]:
    """Carry out all attacks until the end of the block. Raises `RunError` if one has ended by itself."""
    port_of = {host.name: host for host in hosts}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inakit-")))
        for place, attack in enumerate(attacks):
            frames = hostile_frames(layout, attack, seed)
            pcap = folder / f"{place}.pcap"
            with RawPcapWriter(str(pcap), linktype=1) as writer:
                for frame in frames:
                    writer.write(frame)
            rate_fps = attack.rate_bps * len(frames) / (8 * sum(map(len, frames)))
            stack.callback(end, str(attack), repeat_without_end(port_of[attack.host], pcap, rate_fps))
        yield
