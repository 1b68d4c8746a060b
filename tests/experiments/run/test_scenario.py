"""The options of the command line become a problem: a fabric and jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import FABRICS

GROUPED = """
name: grouped
hosts: [h1, h2, h3, h4]
switches:
  leaf1: {tier: 1, pipelines: [[1, 3], [2]]}
  leaf2: {tier: 1}
links:
  - {a: h1, b: leaf1, capacity: 20M}
  - {a: h2, b: leaf1, capacity: 20M}
  - {a: h3, b: leaf2, capacity: 20M}
  - {a: h4, b: leaf2, capacity: 20M}
  - {a: leaf1, b: leaf2, capacity: 20M}
"""


def test_default_is_a_fat_tree_with_one_server_and_the_rest_workers() -> None:
    problem = build_problem(FabricChoice(), JobChoice())
    (job,) = problem.jobs
    assert len(problem.fabric.switches) == 20
    assert (len(job.workers), len(job.servers)) == (15, 1)


def test_named_servers_of_a_testbed_are_its_servers() -> None:
    problem = build_problem(FabricChoice("inart-testbed"), JobChoice(servers=2))
    assert problem.jobs[0].servers == ("ps1", "ps2")
    assert problem.jobs[0].workers == ("w1", "w2", "w3", "w4", "w5", "w6")


def test_a_size_that_a_fabric_does_not_have_is_ignored_for_make() -> None:
    assert FabricChoice("leafspine", k=4).build() == FabricChoice("leafspine").build()


def test_a_name_may_bring_its_own_options() -> None:
    fabric = FabricChoice("units:units=6,servers=2,ports=2,port_bps=7M", k=4).build()
    optical = [link for link in fabric.links if link.optical]
    assert (len(fabric.switches), len(fabric.hosts), len(optical)) == (6, 12, 6)
    assert {link.capacity_ab_bps for link in optical} == {7e6}


@pytest.mark.parametrize(
    ("topo", "message"),
    [
        ("units:servrs=2", "unknown option of fabric 'units' 'servrs': did you mean 'servers'"),
        ("units:servers", "option 'servers' of a fabric: expected a name and a value such as servers=8"),
        ("units:servers=many", "'many': expected"),
        ("units:servers=0", "servers = 0: at least 1"),
        ("unit:servers=2", "unknown fabric 'unit': did you mean 'units'"),
    ],
)
def test_options_that_a_fabric_cannot_have_are_refused(topo: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FabricChoice(topo).build()


def test_seed_decides_servers_capacities_and_ina() -> None:
    one, same, other = (
        build_problem(FabricChoice(capacity="10M:30M", ina="0.5", seed=seed), JobChoice(seed=seed))
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one.fabric.capacities_bps != other.fabric.capacities_bps
    assert [s.ina for s in one.fabric.switches] != [s.ina for s in other.fabric.switches]
    assert sum(s.ina for s in one.fabric.switches) == 10


def test_ina_of_a_share_at_the_servers() -> None:
    for seed in range(5):
        problem = build_problem(FabricChoice(k=6, ina="0.2+ps", seed=seed), JobChoice(servers=2, seed=seed))
        aggregating = {switch.name for switch in problem.fabric.switches if switch.ina}
        assert len(aggregating) == 9
        assert aggregating >= {problem.fabric.tor_of(server) for server in problem.jobs[0].servers}


def test_ina_by_names() -> None:
    fabric = FabricChoice("leafspine", ina="leaf1, spine2").build()
    assert {s.name for s in fabric.switches if s.ina} == {"leaf1", "spine2"}


def test_pipelines_apply_to_every_switch() -> None:
    assert {len(s.pipelines) for s in FabricChoice(pipelines=2).build().switches} == {2}


@pytest.mark.parametrize("topo", FABRICS)
@pytest.mark.parametrize("pipelines", [2, 3, 8])
def test_any_fabric_has_its_ports_in_groups_of_consecutive_ones(topo: str, pipelines: int) -> None:
    switches = FabricChoice(topo, pipelines=pipelines).build().switches
    for groups in (switch.pipelines for switch in switches):
        assert len(groups) == pipelines
        assert [port for ports in groups for port in ports] == list(range(1, sum(map(len, groups)) + 1))
        assert max(map(len, groups)) - min(map(len, groups)) <= 1


def test_groups_of_ports_in_a_file_give_way_and_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "grouped.yml"
    file.write_text(GROUPED)
    assert [len(each.pipelines) for each in FabricChoice(str(file)).build().switches] == [2, 1]
    assert capsys.readouterr().err == ""
    assert {each.pipelines for each in FabricChoice(str(file), pipelines=3).build().switches} == {((1,), (2,), (3,))}
    assert capsys.readouterr().err == (
        "fabric 'grouped': the 3 pipelines that you ask for replace its own groups of ports (leaf1); "
        "omit pipelines to keep them\n"
    )


def test_jobs_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yml"
    file.write_text("version: 1\njobs: [{workers: [h1, h2], servers: [h3], gradient_bytes: 256, iterations: 2}]")
    problem = build_problem(FabricChoice(), JobChoice(file))
    assert problem.jobs[0].workers == ("h1", "h2")
    assert problem.jobs[0].iterations == 2


def test_more_workers_than_hosts_are_refused() -> None:
    with pytest.raises(InputError, match=r"99 workers: .* choose 1 to 15"):
        build_problem(FabricChoice(), JobChoice(workers=99))


def test_a_model_says_what_the_gradient_consists_of() -> None:
    (job,) = build_problem(FabricChoice(), JobChoice(model="resnet18")).jobs
    assert (job.model, job.gradient_bytes) == ("resnet18", 4 * 11_690)
    assert (
        build_problem(FabricChoice(), JobChoice(gradient_bytes=4000, model="resnet18")).jobs[0].gradient_bytes == 4000
    )
    with pytest.raises(InputError, match="unknown model 'resnet19'"):
        build_problem(FabricChoice(), JobChoice(model="resnet19"))
    with pytest.raises(InputError, match="unknown model 'resnet19'"):
        build_problem(FabricChoice(), JobChoice(gradient_bytes=4000, model="resnet19"))
