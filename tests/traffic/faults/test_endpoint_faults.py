"""Hosts that are silent or send twice, workers that are slower, and servers that forget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from traffic_cases import one_job, ports_of

from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.topo.fabric.generators import named_fabric
from inakit.traffic.endpoints.server import Servers
from inakit.traffic.endpoints.streams import gradient_heads, lay_out
from inakit.traffic.faults.endpoint_faults import DIGITS, SLOWEST, FaultyPorts, Stragglers
from inakit.traffic.sockets.ports import FloatArray, IntArray, Outgoing, Packets
from inakit.traffic.wire.packet_format import BARE_FRAME

HOSTS = ("w0", "w1", "w2")


class Recorder:
    """Ports that note what is sent and take at most `room` packets of each host."""

    def __init__(self, room: int = 1000) -> None:
        self.room, self.time = room, 0.0
        self.sent: list[tuple[int, int]] = []
        self.arrived = Packets.all_of(np.zeros(0, BARE_FRAME), np.zeros((0, 64), np.int32), np.zeros(0, np.int64))

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        found = []
        for batch in batches:
            host = np.repeat(np.arange(len(batch.counts)), batch.counts)
            first = np.cumsum(batch.counts) - batch.counts
            taken = np.arange(len(host)) - first[host] < self.room
            self.sent += list(zip(host[taken].tolist(), batch.rows[taken].tolist(), strict=True))
            found.append(np.minimum(batch.counts, self.room))
        return found

    def receive(self) -> Packets:
        return self.arrived

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def is_quiet(self) -> bool:
        return not len(self.arrived)

    def pass_ticks(self, tick_s: float, due: float) -> FloatArray:
        return np.arange(self.time, due, tick_s)

    def accepts_from(self) -> FloatArray:
        return np.full(len(HOSTS), -np.inf)

    def problems(self) -> dict[str, int]:
        return {}


def outgoing(*counts: int) -> Outgoing:
    rows = np.arange(sum(counts)) + 100
    heads = np.zeros(sum(counts) + 100, BARE_FRAME)
    return Outgoing(heads, np.zeros((len(heads), 64), np.int32), rows, np.array(counts))


def arrived(*hosts: int) -> Packets:
    return Packets.all_of(np.zeros(len(hosts), BARE_FRAME), np.zeros((len(hosts), 64), np.int32), np.array(hosts))


def test_a_silent_host_sends_and_hears_nothing_until_it_is_over() -> None:
    inner = Recorder()
    ports = FaultyPorts(inner, HOSTS, {})
    ports.silence("w1", 5.0)
    inner.arrived = arrived(0, 1, 1, 2)
    assert [sent.tolist() for sent in ports.send([outgoing(2, 3, 1)])] == [[2, 0, 1]]
    assert inner.sent == [(0, 100), (0, 101), (2, 105)]
    assert ports.receive().hosts.tolist() == [0, 2]
    assert ports.unheard.tolist() == [0, 2, 0]
    inner.time = 5.0
    assert [sent.tolist() for sent in ports.send([outgoing(2, 3, 1)])] == [[2, 3, 1]]
    assert ports.receive().hosts.tolist() == [0, 1, 1, 2]


def test_a_killed_host_stays_silent() -> None:
    inner = Recorder()
    ports = FaultyPorts(inner, HOSTS, {})
    ports.silence("w0")
    inner.time = 1e9
    assert ports.send([outgoing(1, 0, 0)])[0].tolist() == [0, 0, 0]


def test_a_host_sends_its_share_of_packets_twice() -> None:
    inner = Recorder()
    ports = FaultyPorts(inner, HOSTS, {"w1": 0.25}, seed=1)
    accepted = ports.send([outgoing(0, 0, 0), outgoing(400, 400, 400)])
    assert accepted[1].tolist() == [400, 400, 400]
    again = inner.sent[1200:]
    assert {host for host, _ in again} == {1}
    assert set(again) <= set(inner.sent[:1200])
    assert len(set(again)) == len(again) == int(ports.doubled[1])
    assert 60 < len(again) < 140


def test_only_what_was_sent_is_sent_twice() -> None:
    inner = Recorder(room=3)
    ports = FaultyPorts(inner, HOSTS, {"w0": 1.0})
    assert ports.send([outgoing(10, 0, 0)])[0].tolist() == [3, 0, 0]
    assert inner.sent == [(0, 100), (0, 101), (0, 102)] * 2


def problem(workers: int) -> Problem:
    fabric = named_fabric("leafspine", leaves=8, spines=2, hosts_per_leaf=64)
    hosts = [host.name for host in fabric.hosts]
    return Problem(fabric, (Job(1, tuple(hosts[1 : workers + 1]), (hosts[0],), 4000),), FragmentFormat(64, 326))


def shares(**options: Any) -> NDArray[np.float64]:
    return np.array(list(Stragglers(**options).shares(problem(500)).values()))


def test_shares_have_no_more_digits_than_all_machines_agree_on() -> None:
    drawn = shares(spread=0.2, seed=1)
    assert (drawn == np.round(drawn, DIGITS)).all()
    assert len(np.unique(drawn)) > 200


def test_without_spread_all_workers_are_alike() -> None:
    assert set(shares(spread=0.0)) == {1.0}


def test_shares_are_normally_distributed_and_cut_off() -> None:
    found = shares(spread=0.1, mean=0.6, seed=4)
    assert (found.mean(), found.std()) == (pytest.approx(0.6, abs=0.02), pytest.approx(0.1, abs=0.02))
    wide = shares(spread=0.5, mean=1.0)
    assert (wide.max(), wide.min()) == (1.0, SLOWEST)
    assert 0.4 < (wide == 1.0).mean() < 0.6


def test_the_seed_decides() -> None:
    assert (shares(spread=0.2, seed=1) == shares(spread=0.2, seed=1)).all()
    assert (shares(spread=0.2, seed=1) != shares(spread=0.2, seed=2)).any()


def test_a_server_that_restarts_forgets_its_own_sums_and_answers() -> None:
    problem, plan = one_job(workers=2, servers=2, levels=0, fragments=2)
    layout = lay_out(problem, plan, ports_of(problem))
    servers = Servers(layout)
    servers.begin(0, 0)
    heads = gradient_heads(layout)  # fragment 0 of every stream: both servers have their whole sum
    values = np.full((len(heads), 64), 3, np.int32)
    servers.receive(Packets.all_of(heads, values, layout.trees.server[layout.streams.tree]), now=1.0)
    assert servers.done.tolist() == [True, True]
    servers.restart(int(layout.trees.server[0]))
    assert servers.done.tolist() == [False, True]
    assert servers.covered.any(axis=1).tolist() == [False, True]
    assert servers.sums.any(axis=1).tolist() == [False, True]
    due = servers.due(0.0)
    assert due is not None
    assert due.heads["ina"]["tree"].tolist() == [2]
