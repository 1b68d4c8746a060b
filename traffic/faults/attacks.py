"""Hostile hosts: the attacks by name, each of which makes one frame from the host's knowledge, and their traffic.

A hostile host knows everything about its victim: the plan, the headers, the gradients. It has only its own port: its
packets cannot enter the network at another host's port.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from inakit.planner.core.problem import Problem
from inakit.topo.errors import InputError, unknown_name
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.endpoints.streams import StreamLayout, answer_heads, gradient_heads, set_sequence
from inakit.traffic.sockets.ports import HostPort, RepeatedFrames
from inakit.traffic.wire.packet_format import (
    BARE_FRAME,
    FRAGMENT,
    FRAME,
    Flag,
    Frames,
    Kind,
    mac_bytes,
    offset_of,
    pick,
)

# -- Hostile hosts: the possible attacks of a host against a job, and its frames during a run.

DIFFERENT_FRAMES = 2000
"""The number of different gradients of a worker that a hostile host knows."""
LONGEST = 1400
"""The longest frame of an attack, in bytes."""
VLAN_TAG = bytes.fromhex("81000007")
NO_OPERATION = bytes([1] * 4)
"""Options of IPv4."""


class Knowledge:
    """A hostile host's knowledge: frames of a job's workers and servers, and its own frames as a worker.

    `gradients` are frames of the job's workers, `own` those of the host itself, `answers` results and notices of the
    job's servers; `labels` are those of the job's trees. No job has a fragment beyond `last_seq`.
    """

    def __init__(self, layout: StreamLayout, host: str, job: int, random: Random) -> None:
        streams, parts = layout.streams, layout.parts
        of_job = [tree for tree, part in enumerate(parts) if part.job.number == job]
        own = [stream for stream, at in enumerate(streams.host) if layout.hosts[at].name == host]
        self.layout, self.random = layout, random
        self.gradients = self.frames_of([s for s, tree in enumerate(streams.tree) if tree in of_job])
        self.own = self.frames_of(own)
        answers: Frames = np.concatenate(answer_heads(layout), dtype=BARE_FRAME)
        self.answers = with_heads(answers[answers["ina"]["job"] == job])
        self.labels = sorted({label for tree in of_job for label in parts[tree].tree.branch_of})
        self.last_seq = max(part.count * part.job.iterations for part in parts)

    def frames_of(self, streams: Sequence[int]) -> Frames:
        """Some frames of streams' first iteration, (frames,), empty without streams; those of ranks have no sums."""
        if not streams:
            return np.zeros(0, FRAME)
        layout, rows = self.layout, np.arange(DIFFERENT_FRAMES)
        stream = np.array(self.random.choices(streams, k=len(rows)))
        fragment = np.array([self.random.randrange(int(layout.streams.count[each])) for each in stream])
        heads = pick(gradient_heads(layout), stream)
        set_sequence(layout, heads, rows, stream, fragment)
        frames = with_heads(heads)
        for each in set(stream.tolist()):
            part = layout.parts[layout.streams.tree[each]]
            whole = RandomGradients().of(part.job, int(layout.streams.worker[each]), 0)
            padded = np.pad(whole, (0, -len(whole) % FRAGMENT.values)).reshape(-1, FRAGMENT.values)
            frames["values"][stream == each] = padded[(part.start + fragment[stream == each]) % len(padded)]
        return frames

    def one(self, frames: Frames) -> Frames:
        """A copy of one of the frames at random, (1,)."""
        at = self.random.randrange(len(frames))
        return frames[at : at + 1].copy()

    def any_values(self, frame: Frames) -> None:
        """Fill a frame with random values."""
        frame["values"][0] = np.frombuffer(self.random.randbytes(4 * FRAGMENT.values), ">i4")

    def any_address(self, frame: Frames, end: str) -> None:
        """Set a frame's source (`end` "src") or destination ("dst") to a random host."""
        host = self.random.choice(self.layout.hosts)
        frame["ethernet"][end][0] = mac_bytes(host.mac)
        frame["ipv4"][end][0] = int.from_bytes(bytes(map(int, host.ipv4.split("."))), "big")


def with_heads(heads: Frames) -> Frames:
    """Whole frames with these heads, (frames,); their values are zero."""
    frames = np.zeros(len(heads), FRAME)
    frames.view((np.uint8, FRAME.itemsize))[:, : BARE_FRAME.itemsize] = heads.view((np.uint8, BARE_FRAME.itemsize))
    return frames


def on_wire(frame: Frames) -> bytes:
    """A frame's bytes; notices and questions have no values."""
    is_bare = frame["ina"]["kind"][0] in (Kind.NOTICE, Kind.QUESTION)
    return frame.tobytes()[: BARE_FRAME.itemsize if is_bare else None]


def replay(known: Knowledge) -> bytes:
    """A frame of a worker of the job, unchanged."""
    return on_wire(known.one(known.gradients))


def spoof(known: Knowledge) -> bytes:
    """A gradient of random values under the label of a worker or an aggregator of the job."""
    frame, random = known.one(known.gradients), known.random
    frame["ina"]["label"] = random.choice(known.labels)
    frame["ina"]["flags"] = random.choice((0, 0, Flag.PARTIAL, Flag.RETRANSMITTED, Flag.DIRECT, random.randrange(256)))
    frame["ina"]["bitmap"] = random.getrandbits(random.choice((2, 64)))
    frame["ina"]["priority"] = random.randrange(256)
    known.any_values(frame)
    return on_wire(frame)


def ask(known: Knowledge) -> bytes:
    """A question about a fragment of the job, under the label of a worker or an aggregator."""
    frame = known.one(known.gradients)
    frame["ina"]["kind"], frame["ina"]["label"] = Kind.QUESTION, known.random.choice(known.labels)
    known.any_address(frame, "dst")
    return on_wire(frame)


def forge(known: Knowledge) -> bytes:
    """A result of random values, or a notice, to all workers of the job or to one."""
    frame, random = known.one(known.answers), known.random
    frame["ina"]["seq"] = known.one(known.gradients)["ina"]["seq"]
    frame["ina"]["flags"] |= np.uint8(random.choice((0, 0, Flag.OVERFLOW, Flag.ECN)))
    frame["ina"]["part"] = random.choice((0, 0, 1))
    known.any_values(frame)
    return on_wire(frame)


def flood(known: Knowledge) -> bytes:
    """A packet of random job, tree, label, fragment and slot."""
    frame, random = known.one(known.gradients), known.random
    ina = frame["ina"]
    ina["kind"] = random.randrange(1, 5)
    ina["job"] = random.choice((ina["job"][0], random.randrange(5), random.getrandbits(16)))
    ina["tree"] = random.choice((ina["tree"][0], random.randrange(9), random.getrandbits(16)))
    ina["label"] = random.choice((ina["label"][0], random.getrandbits(16)))
    ina["seq"], ina["slot"] = random.getrandbits(32), random.choice((random.randrange(512), random.getrandbits(32)))
    ina["flags"], ina["priority"], ina["workers"] = random.randrange(256), 255, random.getrandbits(16)
    known.any_address(frame, "dst")
    return on_wire(frame)


def disguise(known: Knowledge) -> bytes:
    """A forged packet in a frame that switches do not treat as INA, but a careless host might."""
    frame = known.random.choice((spoof, forge))(known)
    return known.random.choice(DISGUISES)(frame)


def malform(known: Knowledge) -> bytes:
    """A forged packet that is too short or too long, or random bytes."""
    frame, random = known.random.choice((spoof, forge, flood))(known), known.random
    length = random.randrange(len(frame) + 1, LONGEST)
    return random.choice((frame[: random.randrange(20, len(frame))], frame.ljust(length, b"\1"), random.randbytes(60)))


def abuse(known: Knowledge) -> bytes:
    """A fragment beyond the last of the host's own job, or a question about it, which switches admit at its port.

    It can occupy slots, have the highest priority, claim to be a partial sum, go anywhere and be too long.
    """
    frame, random = known.one(known.own), known.random
    ina = frame["ina"]
    ina["kind"] = random.choice((Kind.GRADIENT, Kind.GRADIENT, Kind.QUESTION))
    ina["seq"] = known.last_seq + random.randrange(1 << 20)
    ina["slot"] = random.choice((ina["slot"][0], random.randrange(512), random.getrandbits(32)))
    ina["flags"] = random.choice((0, 0, 0, Flag.DIRECT, Flag.OVERFLOW, Flag.PARTIAL, random.randrange(256)))
    ina["bitmap"], ina["priority"] = random.getrandbits(64), random.choice((255, random.randrange(256)))
    known.any_address(frame, "src")
    known.any_address(frame, "dst")
    known.any_values(frame)
    return on_wire(frame).ljust(random.choice((0, 0, LONGEST)), b"\1")


ATTACKS: Mapping[str, Callable[[Knowledge], bytes]] = {
    "replay": replay,
    "spoof": spoof,
    "ask": ask,
    "forge": forge,
    "flood": flood,
    "disguise": disguise,
    "malform": malform,
    "abuse": abuse,
}


def put(frame: bytes, at: int, data: bytes) -> bytes:
    """The frame with some bytes overwritten by `data`, from `at` on."""
    return frame[:at] + data + frame[at + len(data) :]


def insert(frame: bytes, at: int, data: bytes) -> bytes:
    """The frame with `data` put in at `at`."""
    return frame[:at] + data + frame[at:]


TAG_AT, IPV4_AT = offset_of("ethernet", "ethertype"), offset_of("ipv4")
FRAGMENT_AT, PROTOCOL_AT = offset_of("ipv4", "ip_flags_fragment_offset"), offset_of("ipv4", "protocol")
"""Offsets in a frame, in bytes, of the fields by which switches recognise INA packets."""
DISGUISES: Sequence[Callable[[bytes], bytes]] = (
    lambda frame: put(frame, FRAGMENT_AT, b"\x00\x01"),  # a later fragment of a packet
    lambda frame: put(frame, FRAGMENT_AT, b"\x3f\xff"),
    lambda frame: put(frame, IPV4_AT, b"\x46"),  # with options, where the UDP header is
    lambda frame: put(insert(frame, offset_of("udp"), NO_OPERATION), IPV4_AT, b"\x46"),
    lambda frame: put(frame, IPV4_AT, b"\x65"),  # IPv6 by its version, not by its EtherType
    lambda frame: put(frame, TAG_AT, b"\x86\xdd"),
    lambda frame: put(frame, PROTOCOL_AT, b"\x06"),
    lambda frame: put(frame, offset_of("udp", "dst_port"), b"\x00\x09"),
    lambda frame: insert(frame, TAG_AT, VLAN_TAG),
    lambda frame: insert(frame, TAG_AT, 2 * VLAN_TAG),
)


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

    Raises `InputError` for an unknown kind, for a host that takes part in the job, and for `abuse` by a host without
    another job.
    """
    for name in wanted:
        if name not in ATTACKS:
            raise unknown_name("attack", name, ATTACKS)
    parts = {each.number: {*each.workers, *each.servers} for each in problem.jobs}
    if host in parts[job]:
        raise InputError(f"host '{host}' takes part in job {job} and can set its sums at will: choose another host")
    is_worker = any(host in each.workers for each in problem.jobs)
    if "abuse" in wanted and not is_worker:
        raise InputError(f"host '{host}' is no worker of another job, whose labels it could abuse: omit 'abuse'")
    return tuple(kind for kind in ATTACKS if kind in (wanted or ATTACKS) and (is_worker or kind != "abuse"))


def hostile_frames(layout: StreamLayout, attack: Attack, seed: int, count: int = 2000) -> list[bytes]:
    """Frames of all of an attack's kinds, in random order."""
    random = Random(f"{seed} {attack.host} {attack.job}")
    known = Knowledge(layout, attack.host, attack.job, random)
    return [ATTACKS[random.choice(attack.kinds)](known) for _ in range(count)]


def hostile_traffic(
    hosts: Sequence[HostPort], layout: StreamLayout, attacks: Sequence[Attack], seed: int = 0
) -> Iterator[RepeatedFrames]:
    """Yield the traffic of all attacks."""
    port_of = {host.name: host for host in hosts}
    for attack in attacks:
        frames = hostile_frames(layout, attack, seed)
        rate_fps = attack.rate_bps * len(frames) / (8 * sum(map(len, frames)))
        yield RepeatedFrames(str(attack), port_of[attack.host], frames, rate_fps)
