"""Hostile hosts: which attacks one can carry out against a job, and what it then sends during a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError, unknown_name
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.faults.attacks import ATTACKS, Knowledge
from inakit.traffic.sockets.ports import HostPort, RepeatedFrames

DIFFERENT_FRAMES = 2000
"""How many frames a hostile host sends over and over."""


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


def hostile_traffic(
    hosts: Sequence[HostPort], layout: StreamLayout, attacks: Sequence[Attack], seed: int = 0
) -> Iterator[RepeatedFrames]:
    """What the hosts of all attacks send."""
    port_of = {host.name: host for host in hosts}
    for attack in attacks:
        frames = hostile_frames(layout, attack, seed)
        rate_fps = attack.rate_bps * len(frames) / (8 * sum(map(len, frames)))
        yield RepeatedFrames(str(attack), port_of[attack.host], frames, rate_fps)
