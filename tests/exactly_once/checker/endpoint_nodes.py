"""Workers and PSs as automata: the machines that run on real sockets, given one packet at a time, with a stopped clock.

Their counts and times are not part of their state.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from nodes import TIMEOUT, Node, Sent, SwitchNode
from numpy.lib.recfunctions import repack_fields
from numpy.typing import NDArray
from small_networks import Setting

from inakit.planner.core.slot_policies import policy_of
from inakit.switch.program.program import Program
from inakit.topo.fabric.fabric import addresses
from inakit.traffic.endpoints.endpoints import Endpoints
from inakit.traffic.endpoints.gradient import exact_sum, padded
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.records import NEVER, NONE
from inakit.traffic.endpoints.streams import StreamLayout, lay_out
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME, Flag, Kind


def nodes_of(program: Program, setting: Setting) -> Mapping[str, Node]:
    """Every node of a setting's network, by name."""
    servers = {server for job in setting.problem.jobs for server in job.servers}
    hosts = [host.name for host in setting.problem.fabric.hosts]
    nodes: dict[str, Node] = {
        host: ServerNode(setting, host) if host in servers else WorkerNode(setting, host) for host in sorted(hosts)
    }
    return nodes | {name: SwitchNode(program, setting, name) for name in setting.entries}


WHOLE = 3
"""Both parts of a result are there."""
PATIENT_TRIES = 3
"""A worker that has sent a fragment this often sends it directly to the PS when it times out again."""
FAR = 1 << 40
"""A worker sends a fragment again when this many others have overtaken it. That never happens here, so that only a
timeout makes a worker send again, and with the fault "impatience" that may come at any time."""
LONG_AGO = -(1 << 60)


class Machine:
    """The endpoints of one host, whose packets are collected. `state` names the fields that make up its state."""

    def __init__(self, setting: Setting, host: str, state: Mapping[str, Sequence[str]]) -> None:
        self.layout = layout_of(setting)
        self.number = next(at for at, port in enumerate(self.layout.hosts) if port.name == host)
        self.endpoints = Endpoints(self.layout, WorkerOptions(paced=False, first_seq=setting.first_seq))
        self.sent: list[Sent] = []
        self.function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_uint32] * 2)(self.collect)
        self.endpoints.all["send"] = ctypes.cast(self.function, ctypes.c_void_p).value or 0
        self.fields = state
        for job in range(len(setting.problem.jobs)):
            self.endpoints.load(job, setting.contributions, 0)
            self.endpoints.begin(job, 0, 0)

    def collect(self, context: int, way: int, frame: int, length: int) -> None:
        del context, way
        self.sent.append((0, ctypes.string_at(frame, length)))

    def keep(self) -> None:
        """Everything is as now whenever a state is restored, except the fields of the state."""
        names = ("hosts", "streams", "rows", "trees", "sums", "expected", "covered", "jobs", "timers", "place", "all")
        self.first = {name: getattr(self.endpoints, name).copy() for name in names}
        self.results = list(self.endpoints.results.values())

    def arrays(self) -> list[NDArray[Any]]:
        """The parts of the state: of records only their fields, without those between them."""
        of = [(getattr(self.endpoints, name), names) for name, names in self.fields.items()]
        return [*(repack_fields(array[list(names)]) if names else array for array, names in of), *self.results]

    def snapshot(self) -> bytes:
        return b"".join(array.tobytes() for array in self.arrays())

    def restore(self, state: bytes) -> None:
        for name, array in self.first.items():
            getattr(self.endpoints, name)[...] = array
        at = 0
        for name, names in self.fields.items():
            array = getattr(self.endpoints, name)
            kind = repack_fields(array[:0][list(names)]).dtype if names else array.dtype
            part = np.frombuffer(state, kind, array.size, at).reshape(array.shape)
            for field in names:
                array[field] = part[field]
            if not names:
                array[...] = part
            at += part.nbytes
        for results in self.results:
            results[:] = np.frombuffer(state, results.dtype, len(results), at)
            at += results.nbytes

    def receive(self, packet: bytes) -> None:
        self.endpoints.library.endpoints_receive(
            self.endpoints.address, self.number, 0, packet.ljust(FRAME.itemsize, b"\0")
        )

    def take(self) -> list[Sent]:
        """What has been sent since the last call."""
        sent, self.sent = self.sent, []
        return sent


class WorkerNode(Node):
    """One worker, with what it sends for all of its jobs."""

    STATE: Mapping[str, Sequence[str]] = {
        "streams": ("base", "next", "size", "threshold", "again_first"),
        "rows": ("tries", "flags", "parts"),
        "trees": ("miscounts",),
    }

    def __init__(self, setting: Setting, host: str) -> None:
        self.host, self.slots = host, setting.slots
        self.machine = Machine(setting, host, self.STATE)
        self.endpoints, self.layout = self.machine.endpoints, self.machine.layout
        self.streams, self.rows = self.endpoints.streams, self.endpoints.rows
        self.mine = np.flatnonzero(self.layout.streams.host == self.machine.number)
        others = np.setdiff1d(np.arange(len(self.streams)), self.mine)
        self.streams["active"][others] = 0
        self.streams["base"][others] = self.streams["next"][others] = self.streams["count"][others]
        self.streams["gap"] = FAR
        # How often a fragment was sent matters only if an aggregator may answer a fragment that is sent again.
        answered = any(policy_of(tree.policy).keeps_sums for _, tree in setting.trees)
        self.tries_told_apart = PATIENT_TRIES if answered else 1
        self.sums = [expected(setting, self.layout, int(self.streams["tree"][stream])) for stream in self.mine]
        self.fits = all((np.abs(sums) < 1 << 31).all() for sums in self.sums)
        self.machine.keep()

    def start(self) -> list[Sent]:
        self.endpoints.library.endpoints_wake(self.endpoints.address, 0)
        return self.machine.take()

    def act(self, port: int, packet: bytes) -> list[Sent]:
        if packet != TIMEOUT:
            self.machine.receive(packet)
            return self.machine.take()
        for stream in self.mine.tolist():
            for fragment in self.fragments(stream):
                row = self.row(stream, fragment)
                if self.slot(stream, fragment) == port:
                    self.rows["sent_at"][row] = LONG_AGO
                    if self.rows["tries"][row] >= PATIENT_TRIES:
                        self.rows["begun_at"][row] = LONG_AGO
            self.streams["look_at"][stream] = 0
            # Where aggregators repair losses, a worker asks for all fragments of a window if it has heard nothing.
            self.streams["last_result_at"][stream], self.streams["silent"][stream] = LONG_AGO, FAR
        self.endpoints.resume(self.machine.number, 0)
        return self.machine.take()

    def fragments(self, stream: int) -> range:
        """The fragments that a stream has sent."""
        return range(int(self.streams["next"][stream]))

    def row(self, stream: int, fragment: int) -> int:
        record = self.streams[stream]
        return int(record["first_row"]) + (fragment & int(record["mask"]))

    def slot(self, stream: int, fragment: int) -> int:
        """The slot of a fragment of a stream."""
        tree = self.layout.streams.tree[[stream]]
        seq = int(self.streams["first_seq"][stream]) + fragment
        return int(self.layout.trees.slot(tree, np.array([seq & 0xFFFFFFFF]))[0]) % self.slots

    def snapshot(self) -> bytes:
        assert (self.streams["again_first"] == NONE).all(), "without a pace all is sent at once"
        np.minimum(self.rows["tries"], self.tries_told_apart, out=self.rows["tries"])
        return self.machine.snapshot()

    def restore(self, state: bytes) -> None:
        self.machine.restore(state)

    def unfinished(self, state: bytes) -> bool:
        self.restore(state)
        return bool((self.streams["base"] < self.streams["count"]).any())

    def awaits(self, state: bytes) -> set[int]:
        self.restore(state)
        return {
            self.slot(stream, fragment)
            for stream in self.mine.tolist()
            for fragment in self.fragments(stream)
            if self.rows["parts"][self.row(stream, fragment)] != WHOLE
        }

    def mute(self, state: bytes) -> bool:
        """Whether all is sent, and no notice can come, as sums fit into 32 bits and no PS has a reason to ask."""
        self.restore(state)
        return self.fits and self.tries_told_apart == 1 and bool((self.streams["next"] == self.streams["count"]).all())

    def forgets(self, packet: bytes) -> bool:
        """True except for a notice by which a PS asks for a fragment: that is sent even if its result is here."""
        head = head_in(packet)
        return not (head["kind"] == Kind.NOTICE and head["flags"] & Flag.RETRANSMITTED)

    def wrong(self, state: bytes) -> str:
        self.restore(state)
        for stream, sums in zip(self.mine.tolist(), self.sums, strict=True):
            part = self.layout.parts[self.layout.streams.tree[stream]]
            results = self.endpoints.results[int(self.streams["job"][stream]), int(self.streams["worker"][stream])]
            held = padded(results, -(-len(results) // sums.shape[1]), sums.shape[1])[part.start :]
            for fragment in self.fragments(stream):
                whole = self.rows["parts"][self.row(stream, fragment)] == WHOLE
                if whole and (held[fragment] != sums[fragment]).any():
                    return wrong_sum(self.host, fragment, held[fragment], sums[fragment])
        return ""


class ServerNode(Node):
    """A PS, with all trees whose root it is."""

    STATE: Mapping[str, Sequence[str]] = {
        "sums": ("fragment", "done", "marked", "sums"),
        "covered": (),
        "trees": ("asks", "miscounts"),
    }

    def __init__(self, setting: Setting, host: str) -> None:
        self.host = host
        self.machine = Machine(setting, host, self.STATE)
        self.endpoints, layout = self.machine.endpoints, self.machine.layout
        self.endpoints.streams["active"] = 0
        self.first_rows = self.endpoints.trees["first_row"].astype(np.int64)
        self.expected = [expected(setting, layout, tree) for tree in range(len(layout.parts))]
        self.machine.keep()

    def act(self, port: int, packet: bytes) -> list[Sent]:
        del port
        self.endpoints.sums["asked_at"] = -NEVER  # as if enough time had passed since the PS last asked
        self.machine.receive(packet)
        return self.machine.take()

    def snapshot(self) -> bytes:
        return self.machine.snapshot()

    def restore(self, state: bytes) -> None:
        self.machine.restore(state)

    def forgets(self, packet: bytes) -> bool:
        """True except for a packet that was sent again: the PS answers it as soon as the sum is complete."""
        return not head_in(packet)["flags"] & Flag.RETRANSMITTED

    def wrong(self, state: bytes) -> str:
        self.restore(state)
        for first, sums in zip(self.first_rows.tolist(), self.expected, strict=True):
            for row in self.endpoints.sums[first : first + len(sums)]:
                if row["done"] and (row["sums"] != sums[row["fragment"]]).any():
                    return wrong_sum(self.host, int(row["fragment"]), row["sums"], sums[row["fragment"]])
        return ""


def layout_of(setting: Setting) -> StreamLayout:
    """The layout of a setting's plan, with all hosts of its network."""
    numbered = addresses(setting.problem.fabric).items()
    hosts = [HostPort(name, 0, "eth0", address.mac_text, address.ipv4_text) for name, address in numbered]
    return lay_out(setting.problem, setting.plan, hosts)


def expected(setting: Setting, layout: StreamLayout, tree: int) -> NDArray[np.int64]:
    """The exact sums of all fragments of a tree, (fragments, values)."""
    part, width = layout.parts[tree], layout.problem.fragment.values
    of = (setting.contributions.of(part.job, worker, 0) for worker in range(len(part.job.workers)))
    whole = exact_sum([padded(own, -(-len(own) // width), width) for own in of])
    return whole[part.start : part.start + part.count]


def wrong_sum(who: str, row: int, found: NDArray[np.int64], expected: NDArray[np.int64]) -> str:
    """The first wrong value of a sum, in words."""
    where = int(np.flatnonzero(found != expected)[0])
    return f"{who} holds {found[where]:#x} for fragment {row}, value {where}: {expected[where]:#x} is the sum"


def head_in(packet: bytes) -> Any:
    """The INA header of a packet."""
    return np.frombuffer(packet[: BARE_FRAME.itemsize], BARE_FRAME)["ina"][0]
