"""Hosts that are silent or send twice, workers that are slower, and servers that forget."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from network_model import Faults, ModelPorts
from numpy.typing import NDArray
from traffic_cases import one_job, ports_of

from inakit.experiments.worlds.virtual import Inline
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.topo.fabric.generators import named_fabric
from inakit.traffic.closed_loop import ClosedLoop, ReliableOptions
from inakit.traffic.endpoints.endpoints import Endpoints
from inakit.traffic.endpoints.gradient import RandomGradients
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import gradient_heads, lay_out
from inakit.traffic.faults.endpoint_faults import DIGITS, SLOWEST, FaultyHosts, Stragglers
from inakit.traffic.wire.packet_format import FRAME


def begun(shares: Mapping[str, float] = MappingProxyType({}), seed: int = 0) -> tuple[FaultyHosts, ModelPorts]:
    """Three workers in an iteration of 1,000 fragments, on a network that loses everything."""
    problem, plan = one_job(workers=3, levels=1, fragments=1000, slots=512)
    layout = lay_out(problem, plan, ports_of(problem))
    ports, options = ModelPorts(layout, Faults(lose=1.0)), ReliableOptions(WorkerOptions(first_timeout_s=9.0))
    loop = ClosedLoop(layout, ports, RandomGradients(), options, Inline())
    ports.attach(loop.endpoints)
    loop.load(0, 0)
    faults = FaultyHosts(loop, shares, seed)
    loop.endpoints.begin(0, 0, 0)
    return faults, ports


def hear(ports: ModelPorts, host: int) -> None:
    """Let a packet of no tree come to a host."""
    frame = np.zeros(1, FRAME)
    ports.endpoints.library.endpoints_receive(ports.endpoints.address, host, ports.now_ps(), frame.tobytes())


def test_a_silent_host_sends_and_hears_nothing_until_it_is_over() -> None:
    faults, ports = begun()
    faults.silence("w1", 0.005)
    ports.run(0.004)
    sent = ports.sent[:3].tolist()
    assert sent[1] == 0 < sent[0] == sent[2]
    for host in range(3):
        hear(ports, host)
    assert faults.records["unheard"].tolist()[:3] == [0, 1, 0]
    assert faults.records["strangers"].tolist()[:3] == [1, 0, 1]
    ports.run(0.006)
    assert ports.sent[1] > 0
    assert faults.next_due == 0.005
    faults.resume(ports.now())
    assert faults.next_due == inf
    hear(ports, 1)
    assert (faults.unheard, faults.records["strangers"][1]) == (1, 1)


def test_a_killed_host_stays_silent() -> None:
    faults, ports = begun()
    faults.silence("w0")
    ports.run(5.0)
    assert ports.sent[0] == 0 < ports.sent[1]


def test_a_host_that_is_cut_off_goes_on_when_its_link_is_up() -> None:
    faults, ports = begun()
    faults.cut("w0", off=True)
    ports.run(0.01)
    assert ports.sent[0] == 0
    faults.cut("w0", off=False)
    assert faults.next_due == -inf
    faults.resume(ports.now())
    assert ports.sent[0] > 0


def test_a_host_sends_its_share_of_packets_twice() -> None:
    faults, ports = begun({"w1": 0.25}, seed=1)
    ports.run(0.02)
    once, twice = int(ports.sent[0]), int(ports.sent[1])
    assert twice == once + faults.doubled
    assert 0.15 * once < faults.doubled < 0.35 * once


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
    endpoints, ports = Endpoints(layout), ModelPorts(layout, Faults(lose=1.0))
    ports.attach(endpoints)
    endpoints.listen(0, 0)
    first, second = (int(host) for host in layout.trees.server)
    endpoints.hosts["blocked"] = 1
    for head, tree in zip(gradient_heads(layout), layout.streams.tree, strict=True):  # fragment 0 of every stream
        frame = np.zeros(1, FRAME)
        frame.view((np.uint8, FRAME.itemsize))[0, : head.nbytes] = np.frombuffer(head.tobytes(), np.uint8)
        frame["values"] = 3
        endpoints.library.endpoints_receive(endpoints.address, int(layout.trees.server[tree]), 1, frame.tobytes())
    assert endpoints.sums["done"].tolist() == [1, 1]
    assert endpoints.hosts["pending_count"][[first, second]].tolist() == [1, 1]
    endpoints.restart(first)
    assert endpoints.sums["fragment"].tolist() == [-1, 0]
    assert endpoints.hosts["pending_count"][[first, second]].tolist() == [0, 1]
    endpoints.hosts["blocked"] = 0
    for host in (first, second):
        endpoints.resume(host, 2)
    assert ports.sent[[first, second]].tolist() == [0, 1]
