"""Workers and PSs as automata: the classes that run on real sockets, given one packet at a time, with a stopped clock.

Their counts and times are not part of their state.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from nodes import TIMEOUT, Node, Sent, SwitchNode
from numpy.typing import NDArray
from small_networks import Setting

from inakit.planner.core.slot_policies import policy_of
from inakit.switch.program.program import Program
from inakit.topo.fabric.fabric import addresses
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.retransmission import WHOLE
from inakit.traffic.endpoints.server import Servers
from inakit.traffic.endpoints.streams import StreamLayout, lay_out
from inakit.traffic.endpoints.worker import GradientSource, WorkerMemory, worker_sender
from inakit.traffic.sockets.ports import HostPort, Outgoing, Packets
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME, Flag, Frames, Kind, head_of


def nodes_of(program: Program, setting: Setting) -> Mapping[str, Node]:
    """Every node of a setting's network, by name."""
    servers = {server for job in setting.problem.jobs for server in job.servers}
    hosts = [host.name for host in setting.problem.fabric.hosts]
    nodes: dict[str, Node] = {
        host: ServerNode(setting, host) if host in servers else WorkerNode(setting, host) for host in sorted(hosts)
    }
    return nodes | {name: SwitchNode(program, setting, name) for name in setting.entries}


class Stored:
    """An object whose attributes make up a state, except those that are `fixed` and the `counters`.

    Fixed attributes never change. Counters are counts and times: before each step they get their first values again.
    """

    def __init__(self, owner: object, *, fixed: Iterable[str] = (), counters: Sequence[str] = ()) -> None:
        self.owner = owner
        self.names = sorted(set(vars(owner)) - set(fixed) - set(counters))
        self.first = pickle.dumps({name: getattr(owner, name) for name in counters})

    def values(self) -> list[Any]:
        """What the attributes hold."""
        return [getattr(self.owner, name) for name in self.names]

    def restore(self, values: Sequence[Any]) -> None:
        """Let the attributes hold these values."""
        vars(self.owner).update(pickle.loads(self.first), **dict(zip(self.names, values, strict=True)))


class States:
    """The states of several objects together, told apart by the content of their attributes.

    The bytes of pickles cannot tell them apart: equal values have different pickles if parts of one value are the same
    object and those of the other are not.
    """

    def __init__(self, stored: Sequence[Stored]) -> None:
        self.stored = stored
        self.pickled: dict[bytes, bytes] = {}

    def take(self) -> bytes:
        """The state that the objects are in now."""
        values = [stored.values() for stored in self.stored]
        state = content(values)
        if state not in self.pickled:
            self.pickled[state] = pickle.dumps(values)
        return state

    def restore(self, state: bytes) -> None:
        """Put the objects into a state that was taken before."""
        for stored, values in zip(self.stored, pickle.loads(self.pickled[state]), strict=True):
            stored.restore(values)


def content(value: Any) -> bytes:
    """Bytes that are the same for equal values: arrays, lists of them, whole numbers, dictionaries, None."""
    if isinstance(value, np.ndarray):
        return repr(value.shape).encode() + value.tobytes()
    if isinstance(value, list):
        return b"[%s]" % b",".join(map(content, value))
    assert isinstance(value, int | dict | None), f"{value} may look different from an equal one"
    return repr(value).encode()


PATIENT_TRIES = 3
"""A worker that has sent a fragment this often sends it directly to the PS when it times out again."""
NEVER = 1 << 40
"""A worker sends a fragment again when this many others have overtaken it. That never happens here, so that only a
timeout makes a worker send again, and with the fault "impatience" that may come at any time."""


class WorkerNode(Node):
    """One worker, with what it sends for all of its jobs.

    Its state is in the `Sender` of workers, in the parts that these are composed of, and in their memory. FIXED names
    the attributes of each part that never change here, COUNTERS those that get their first values again before each
    step.
    """

    FIXED: Mapping[str, tuple[str, ...]] = {
        "workers": ("layout", "source", "decoder", "pace", "chosen", "chosen_at", "last", "progress", "windows",
                    "round_trips", "sendings", "retransmission", "counts"),
        "source": ("layout", "memory", "known"),
        "memory": ("layout", "gradients", "expected", "loaded", "checked", "turn_at", "crowd", "sources", "wrong_sums"),
        "progress": ("layout", "streams", "start_seq", "active", "held"),
        "pace": ("streams", "options"),
        "round_trips": ("options", "held_s"),
        "retransmission": ("layout", "options", "acknowledged", "progress", "sendings", "round_trips", "windows", "gap",
                           "yields", "keeps", "max_backoff"),
        "sendings": (),
        "counts": ("miscounts",),
        "miscounts": ("layout",),
    }  # fmt: skip
    COUNTERS: Mapping[str, tuple[str, ...]] = {
        "progress": ("newest",),
        "pace": ("credit", "refilled_at", "ready", "late_s"),
        "round_trips": ("smoothed", "deviation"),
        "sendings": ("begun_at", "sent_at", "order", "total", "newest_order"),
        "retransmission": ("scan_at",),
        "counts": ("sent", "first_sent_at", "last_sent_at", "last_result_at", "retransmitted"),
    }

    def __init__(self, setting: Setting, host: str) -> None:
        self.host, self.layout, self.slots = host, layout_of(setting), setting.slots
        streams, jobs = self.layout.streams, range(len(setting.problem.jobs))
        self.memory = loaded(setting, self.layout)
        self.fits = all((np.abs(piece.sums) < 1 << 31).all() for piece in self.memory.expected.values())
        self.workers = worker_sender(self.layout, self.memory, WorkerOptions(paced=False, first_seq=setting.first_seq))
        self.progress, self.sendings = self.workers.progress, self.workers.sendings
        self.retransmission = self.workers.retransmission
        assert isinstance(self.workers.source, GradientSource)
        self.source = self.workers.source
        self.retransmission.gap[:] = NEVER
        # How often a fragment was sent matters only if an aggregator may answer a fragment that is sent again.
        answered = any(policy_of(tree.policy).keeps_sums for _, tree in setting.trees)
        self.tries_told_apart = PATIENT_TRIES if answered else 1
        for job in jobs:
            self.workers.begin(job, 0)
        self.mine = np.array([self.layout.hosts[number].name == host for number in streams.host])
        self.progress.base[~self.mine] = self.progress.next[~self.mine] = streams.count[~self.mine]
        self.fragment_of_row = np.arange(len(self.memory.parts)) - streams.first_row[self.layout.stream_of_row]
        parts = {
            "workers": self.workers,
            **vars(self.workers),
            "memory": self.memory,
            "miscounts": self.workers.counts.miscounts,
        }
        self.states = States(
            [
                Stored(parts[name], fixed=fixed, counters=self.COUNTERS.get(name, ()))
                for name, fixed in self.FIXED.items()
            ]
        )

    def start(self) -> list[Sent]:
        outgoing = self.workers.due(0.0)
        sent = frames_of(outgoing)
        if outgoing is not None:
            self.workers.note(outgoing.counts, outgoing.counts)
        return sent

    def act(self, port: int, packet: bytes) -> list[Sent]:
        if packet == TIMEOUT:
            of_slot = self.source.heads["ina"]["slot"] % self.slots == port
            self.sendings.sent_at[of_slot] = -np.inf
            self.sendings.begun_at[of_slot & (self.sendings.tries >= PATIENT_TRIES)] = -np.inf
            self.retransmission.look_now()
        else:
            self.workers.receive(arrived(self.layout, self.host, packet), 0.0)
        return self.start()

    def snapshot(self) -> bytes:
        np.minimum(self.sendings.tries, self.tries_told_apart, out=self.sendings.tries)
        self.source.heads["ina"]["flags"] = 0  # a worker writes its flags before it sends a packet again
        return self.states.take()

    def restore(self, state: bytes) -> None:
        self.states.restore(state)

    def unfinished(self, state: bytes) -> bool:
        self.restore(state)
        return bool((self.progress.base < self.layout.streams.count).any())

    def awaits(self, state: bytes) -> set[int]:
        self.restore(state)
        sent = self.progress.next[self.layout.stream_of_row] > self.fragment_of_row
        lacking = sent & (self.memory.parts != WHOLE) & self.mine[self.layout.stream_of_row]
        return set((self.source.heads["ina"]["slot"][lacking] % self.slots).tolist())

    def mute(self, state: bytes) -> bool:
        """Whether all is sent, and no notice can come, as sums fit into 32 bits and no PS has a reason to ask."""
        self.restore(state)
        return (
            self.fits and self.tries_told_apart == 1 and bool((self.progress.next == self.layout.streams.count).all())
        )

    def forgets(self, packet: bytes) -> bool:
        """True except for a notice by which a PS asks for a fragment: that is sent even if its result is here."""
        head = head_in(packet)
        return not (head["kind"] == Kind.NOTICE and head["flags"] & Flag.RETRANSMITTED)

    def wrong(self, state: bytes) -> str:
        self.restore(state)
        for stream in np.flatnonzero(self.mine):
            sums = self.memory.results(int(stream))
            expected = self.memory.expected_of(int(self.layout.streams.tree[stream]))
            whole = self.memory.parts[self.layout.held_rows(np.array([stream]))] == WHOLE
            for fragment in np.flatnonzero(whole & (sums != expected).any(axis=1)):
                return wrong_sum(self.host, int(fragment), sums[fragment], expected[fragment])
        return ""


class ServerNode(Node):
    """A PS, with all trees whose root it is."""

    FIXED = ("layout", "options", "members", "answer_heads", "hides", "start_seq", "at_once", "chosen", "later",
             "miscounts")  # fmt: skip
    COUNTERS = ("ingress_frames", "last_arrival_at", "discarded", "notices", "strangers", "asked_at")

    def __init__(self, setting: Setting, host: str) -> None:
        self.host, self.layout = host, layout_of(setting)
        self.servers = Servers(self.layout, setting.first_seq)
        memory = loaded(setting, self.layout)
        self.expected = np.concatenate([memory.expected_of(tree) for tree in range(len(self.layout.parts))])
        for job in range(len(setting.problem.jobs)):
            self.servers.begin(job, 0)
        self.states = States(
            [
                Stored(self.servers, fixed=(*self.FIXED, *self.COUNTERS)),
                Stored(self.servers.miscounts, fixed=("layout",)),
            ]
        )

    def act(self, port: int, packet: bytes) -> list[Sent]:
        del port
        self.servers.asked_at[:] = -np.inf  # as if enough time had passed since the PS last asked
        self.servers.receive(arrived(self.layout, self.host, packet), 0.0)
        outgoing = self.servers.due(0.0)
        sent = frames_of(outgoing)
        if outgoing is not None:
            self.servers.note(outgoing.counts, outgoing.counts)
        return sent

    def snapshot(self) -> bytes:
        return self.states.take()

    def restore(self, state: bytes) -> None:
        self.states.restore(state)

    def forgets(self, packet: bytes) -> bool:
        """True except for a packet that was sent again: the PS answers it as soon as the sum is complete."""
        return not head_in(packet)["flags"] & Flag.RETRANSMITTED

    def wrong(self, state: bytes) -> str:
        self.restore(state)
        for row in np.flatnonzero(self.servers.done & (self.servers.sums != self.expected).any(axis=1)):
            return wrong_sum(self.host, int(row), self.servers.sums[row], self.expected[row])
        return ""


def layout_of(setting: Setting) -> StreamLayout:
    """The layout of a setting's plan, with all hosts of its network."""
    numbered = addresses(setting.problem.fabric).items()
    hosts = [HostPort(name, 0, "eth0", address.mac_text, address.ipv4_text) for name, address in numbered]
    return lay_out(setting.problem, setting.plan, hosts)


def loaded(setting: Setting, layout: StreamLayout) -> WorkerMemory:
    """The memory of all workers before the first iteration."""
    memory = WorkerMemory(layout)
    for job in range(len(setting.problem.jobs)):
        memory.load(job, setting.contributions, 0)
    return memory


def wrong_sum(who: str, row: int, found: NDArray[np.int64], expected: NDArray[np.int64]) -> str:
    """The first wrong value of a sum, in words."""
    where = int(np.flatnonzero(found != expected)[0])
    return f"{who} holds {found[where]:#x} for fragment {row}, value {where}: {expected[where]:#x} is the sum"


def arrived(layout: StreamLayout, host: str, packet: bytes) -> Packets:
    """One packet that has come to a host, as sockets give it."""
    frame = np.frombuffer(packet.ljust(FRAME.itemsize, b"\0"), FRAME)
    number = next(index for index, port in enumerate(layout.hosts) if port.name == host)
    return Packets.all_of(head_of(frame), frame["values"], np.array([number]))


def frames_of(outgoing: Outgoing | None) -> list[Sent]:
    """The packets that an endpoint hands to its sockets."""
    if outgoing is None:
        return []
    return [(0, frame_of(outgoing.heads[row : row + 1], outgoing.values[row])) for row in outgoing.rows]


def frame_of(head: Frames, values: NDArray[np.int32]) -> bytes:
    """The bytes of a packet; a notice has no values."""
    bare = head["ina"]["kind"][0] == Kind.NOTICE
    return head.tobytes() if bare else head.tobytes() + values.tobytes()


def head_in(packet: bytes) -> Any:
    """The INA header of a packet."""
    return np.frombuffer(packet[: BARE_FRAME.itemsize], BARE_FRAME)["ina"][0]
