"""Designs for switches that differ, several jobs and parameter servers: against enumeration, and against counting."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from planner_cases import FRAGMENT

from inakit.planner.core.check import check
from inakit.planner.core.method import Options
from inakit.planner.core.plan import SolverOptions
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.atro import several_jobs
from inakit.planner.methods.atro.several_jobs import (
    Cluster,
    Demand,
    Device,
    Gate,
    Wiring,
    design,
    fabric_of,
    load_cluster,
)
from inakit.planner.registry import METHODS
from inakit.topo.errors import FabricError, InputError, SolverError
from inakit.topo.fabric.fabric import Chip, Fabric, Switch, contiguous_pipelines

LIMIT = SolverOptions(time_limit_s=20)


def device(
    name: str, ports: int, *, ina: bool = True, pipelines: int = 1, port_bps: float = 100.0, children: int = 64
) -> Device:
    chip = Chip("small", 64, 512, children, 8, 65536, 65535) if children < 64 else None
    return Device(Switch(name, 1, contiguous_pipelines(ports, pipelines), ina, chip=chip), port_bps)


def jobs(*workers: int, servers: int = 1) -> tuple[Job, ...]:
    return tuple(
        Job(n, tuple(f"j{n}w{i}" for i in range(count)), tuple(f"j{n}ps{i}" for i in range(servers)), 25_600)
        for n, count in enumerate(workers, start=1)
    )


def designed_bps(cluster: Cluster, demand: tuple[Job, ...]) -> float:
    """The proven rate of the design, 0 if the hosts cannot be wired."""
    try:
        designed = design(cluster, demand, FRAGMENT, Options(time_limit_s=60))
    except SolverError as error:
        assert "cannot be wired" in str(error)
        return 0.0
    assert designed.plan.outcome.status == "optimal"
    check(designed.problem, designed.plan)
    assert all(len(s.ports) == cluster.by_name[s.name].ports for s in designed.fabric.switches)
    if cluster.panel_ports is not None:
        assert 2 * len(designed.fabric.links) <= cluster.panel_ports
    rates = [designed.plan.job_rate_bps(job.number) for job in demand]
    assert max(rates) == pytest.approx(min(rates))
    return min(rates)


def every_fabric(cluster: Cluster, demand: Demand) -> Iterator[Fabric]:
    """Every fabric of a cluster of two switches: all places of all hosts, with a link in either direction or none."""
    one, two = cluster.devices
    links = [None, *((one.switch.name, g) for g in two.gates), *((two.switch.name, g) for g in one.gates)]
    hosts = list(demand.jobs_of)
    for places, link in product(product(cluster.gates, repeat=len(hosts)), links):
        ports = {name: each.ports for name, each in cluster.by_name.items()}
        room = {gate: gate.ports for gate in cluster.gates}
        for host, gate in zip(hosts, places, strict=True):
            ports[gate.switch] -= 1
            room[gate] -= bool(demand.jobs_of[host])
        layer = dict.fromkeys(cluster.by_name, 1)
        flows: dict[tuple[several_jobs.Task, Gate], dict[Gate | str, int]] = {}
        if link:
            sender, gate = link
            ports[sender] -= 1
            ports[gate.switch] -= 1
            room[gate] -= 1
            layer[sender] = 2
            flows = {(demand.tasks[0], cluster.by_name[sender].gates[0]): {gate: 1}}
        used = 2 * (len(hosts) + bool(link))
        if min(*ports.values(), *room.values()) >= 0 and used <= (cluster.panel_ports or used):
            yield fabric_of(cluster, demand, Wiring(dict(zip(hosts, places, strict=True)), flows, layer))


def enumerated_bps(cluster: Cluster, demand: tuple[Job, ...]) -> float:
    """The highest rate of all jobs over every fabric; ARO, which shares no code with the design, plans on each."""
    best = 0.0
    for fabric in every_fabric(cluster, Demand(demand)):
        try:
            plan = METHODS["aro"].plan(Problem(fabric, demand, FRAGMENT))
        except (InputError, SolverError):
            continue  # no route
        best = max(best, min(plan.job_rate_bps(job.number) for job in demand))
    return best


def small_case(draw: random.Random) -> tuple[Cluster, tuple[Job, ...]]:
    """Two switches with two or three pipelines together, whose ports and rates differ, and one task or two.

    With one task a slot may have only two children.
    """
    demand = draw.choice([jobs(3), jobs(4), jobs(5), jobs(3, servers=2), jobs(2, 2), jobs(3, 1)])
    children = draw.choice([2, 64]) if len(Demand(demand).tasks) == 1 else 64
    devices = [
        device(
            f"s{n}", draw.randint(2, 5), ina=draw.random() < 0.8, pipelines=pipelines,
            port_bps=draw.choice([50.0, 100.0]), children=children,
        )
        for n, pipelines in enumerate(draw.choice([(1, 1), (1, 2), (2, 1)]))
    ]  # fmt: skip
    host_bps, panel_ports = draw.choice([60.0, 100.0]), draw.choice([None, None, 12, 14])
    return Cluster("small", tuple(devices), host_bps, 2, panel_ports), demand


def compare_with_enumeration(seed: int, draws: int) -> None:
    draw = random.Random(seed)
    for _ in range(draws):
        cluster, demand = small_case(draw)
        assert designed_bps(cluster, demand) == pytest.approx(enumerated_bps(cluster, demand)), (cluster, demand)


def test_the_design_is_the_best_of_all_networks() -> None:
    compare_with_enumeration(seed=1, draws=8)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
def test_the_design_is_the_best_of_all_networks_on_hundreds(seed: int) -> None:
    compare_with_enumeration(seed, draws=30)


def test_the_program_agrees_with_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switches that differ in nothing but summing, and one task: the paper's case."""
    draw = random.Random(1)
    for _ in range(12):
        aggregators, ports, children = draw.randint(0, 3), draw.randint(3, 6), draw.choice([2, 3, 64])
        devices = [device(f"agg{n}", ports, children=children) for n in range(aggregators)]
        devices += [device(f"cs{n}", ports, ina=False) for n in range(draw.randint(1, 3))]
        cluster = Cluster("alike", tuple(devices), 100.0, draw.randint(2, 4))
        demand = jobs(draw.randint(2, 9))
        counted = designed_bps(cluster, demand)
        with monkeypatch.context() as patched:
            patched.setattr(several_jobs, "counted", lambda *_: None)
            assert designed_bps(cluster, demand) == pytest.approx(counted), cluster


def test_pipelines_sum_by_themselves() -> None:
    """Ten workers on an aggregator of twelve ports: in one pipeline they are one flow, in three three flows or more."""
    for pipelines, bps in ((1, 100.0), (2, 50.0), (3, 100 / 3)):
        cluster = Cluster("one", (device("agg", 12, pipelines=pipelines),), 100.0)
        assert designed_bps(cluster, jobs(10)) == pytest.approx(bps)


def test_a_chip_that_recirculates_limits_the_rate() -> None:
    """Four flows of a packet's 64 values in two passes: a pipeline recirculates 200 bit/s, so each has 50."""
    chip = Chip("half", 32, 512, 32, 1, 16384, 65535, recirculation_bps=200.0)
    switch = Switch("agg", 1, contiguous_pipelines(5, 1), chip=chip)
    assert designed_bps(Cluster("one", (Device(switch, 100.0),), 100.0), jobs(4)) == pytest.approx(50.0)


def test_without_a_proof_the_gap_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program gives up on every rate above a quarter of the links'."""
    decide = several_jobs.decide
    monkeypatch.setattr(
        several_jobs, "decide",
        lambda cluster, demand, bps, options: decide(cluster, demand, bps, options) if bps <= 25 else "unknown",
    )  # fmt: skip
    cluster = Cluster("pipes", (device("agg", 8, pipelines=2),), 100.0)
    designed = design(cluster, jobs(4), FRAGMENT)
    assert designed.plan.outcome.status == "feasible"
    assert designed.plan.outcome.gap == pytest.approx(100 / 25 - 1)


FILE = """
name: hall
hosts: 100G
panel: {ports: 64, reconfiguration: 10ms}
switches:
  agg: {count: 2, ports: 24, capacity: 100G, chip: tofino1}
  cs: {ports: 32, capacity: 25G, ina: false}
"""


def test_a_cluster_file_counts_switches_of_a_kind(tmp_path: Path) -> None:
    path = tmp_path / "hall.yml"
    path.write_text(FILE)
    cluster = load_cluster(path, scale=0.5)
    assert list(cluster.by_name) == ["agg1", "agg2", "cs"]
    assert [gate.ports for gate in cluster.by_name["agg1"].gates] == [16, 8]
    assert (cluster.by_name["agg2"].children, cluster.by_name["cs"].children) == (32, 64)
    assert (cluster.link_bps("agg1", "agg2"), cluster.link_bps("agg1", "cs")) == (50e9, 12.5e9)
    path.write_text(FILE.replace("capacity: 25G", "rate: 25G"))
    with pytest.raises(FabricError, match=r"line 7: switches\.cs\.rate: unknown key"):
        load_cluster(path)
