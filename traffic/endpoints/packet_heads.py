"""The heads of all packets that endpoints send: a gradient's for each stream, and those of results and notices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inakit.planner.core.plan import ROOT_LABEL
from inakit.planner.core.policies import policy_of
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.sockets.ports import IntArray
from inakit.traffic.wire.frames import BARE_FRAME, FRAME, Frames, head_of, new_frames
from inakit.traffic.wire.packet_format import Flag, Kind

RESULTS_MAC, RESULTS_IPV4 = "01:00:5e:4e:41:01", "239.78.65.1"
"""What a result or a notice is addressed to when all workers of a tree are meant."""


def gradient_heads(layout: StreamLayout, made: Callable[..., Frames] = new_frames) -> Frames:
    """One head per stream, (streams,): complete but for flags, sequence number and slot.

    `made` makes the frame of each; it takes what `new_frames` takes.
    """
    streams = layout.streams
    heads = np.zeros(len(streams.host), BARE_FRAME)
    for stream, (host, tree, label) in enumerate(zip(streams.host, streams.tree, streams.label, strict=True)):
        source, server, part = layout.hosts[host], layout.hosts[layout.trees.server[tree]], layout.parts[tree]
        fields = {"label": int(label), "workers": 1, "priority": int(layout.trees.priority[tree])}
        fields |= {"kind": Kind.GRADIENT, "job": part.job.number, "tree": part.tree.number}
        ways = {"src_mac": source.mac, "dst_mac": server.mac, "src_ip": source.ipv4, "dst_ip": server.ipv4}
        frame = made(1, **ways, ina=fields, capable=policy_of(part.tree.policy).marks)
        heads[stream] = head_of(frame)[0]
    return heads


def set_sequence(layout: StreamLayout, heads: Frames, rows: IntArray, stream: IntArray, seq: IntArray) -> None:
    """Write sequence numbers, and the slots that follow from them, into `heads[rows]`; all arrays are (rows,)."""
    heads["ina"]["seq"][rows] = seq & 0xFFFFFFFF
    heads["ina"]["slot"][rows] = layout.trees.slot(layout.streams.tree[stream], seq)


class AnswerHeads:
    """The heads of all that servers send, in the array `heads`, and at which index of it each is.

    `heads[tree]` is the result to all workers of a tree, and `heads[notice[tree]]` the notice to all of them.
    `heads[result_to[stream]]` is the result to the worker of a stream alone, and `heads[ask[stream]]` the notice that
    asks it for its fragment. All are complete but for sequence number, slot, part and the flag OVERFLOW of results.
    """

    def __init__(self, layout: StreamLayout) -> None:
        trees, streams = range(len(layout.parts)), layout.streams
        to_all, notices = (
            [answer_head(layout, tree, kind, flags, None) for tree in trees]
            for kind, flags in ((Kind.RESULT, 0), (Kind.NOTICE, int(Flag.OVERFLOW)))
        )
        to_one, ask_one = (
            [
                answer_head(layout, int(tree), kind, int(Flag.RETRANSMITTED), int(host))
                for host, tree in zip(streams.host, streams.tree, strict=True)
            ]
            for kind in (Kind.RESULT, Kind.NOTICE)
        )
        # Without its type told, NumPy would make the fields' bytes those of this machine.
        self.heads: Frames = np.concatenate(to_all + notices + to_one + ask_one, dtype=BARE_FRAME)
        self.notice = len(trees) + np.arange(len(trees))
        self.result_to = 2 * len(trees) + np.arange(len(streams.host))
        self.ask = self.result_to + len(streams.host)


def answer_head(layout: StreamLayout, tree: int, kind: Kind, flags: int, host: int | None) -> Frames:
    """The head, (1,), of a packet from a tree's server to a host, or to all its workers. A notice has no values."""
    server, part = layout.hosts[layout.trees.server[tree]], layout.parts[tree]
    mac, ipv4 = (RESULTS_MAC, RESULTS_IPV4) if host is None else (layout.hosts[host].mac, layout.hosts[host].ipv4)
    dtype = BARE_FRAME if kind is Kind.NOTICE else FRAME
    fields = {"kind": kind, "flags": flags, "label": ROOT_LABEL, "workers": len(part.tree.workers)}
    fields |= {"job": part.job.number, "tree": part.tree.number}
    capable = kind is Kind.RESULT and policy_of(part.tree.policy).marks
    ways = {"src_mac": server.mac, "dst_mac": mac, "src_ip": server.ipv4, "dst_ip": ipv4}
    return head_of(new_frames(1, **ways, ina=fields, dtype=dtype, capable=capable))
