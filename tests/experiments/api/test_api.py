"""The public face: `import inakit as ina` takes plain values, and does what the command line does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from command import inakit as command

import inakit as ina
from inakit.planner.registry import METHODS
from inakit.topo.fabric.generators import leaf_spine

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference.md"
SMALL: dict[str, Any] = {"leaves": 2, "spines": 2, "hosts_per_leaf": 3}


def small() -> ina.Fabric:
    return ina.fabric("leafspine", **SMALL)


def one_path(problem: ina.Problem, _: ina.Options) -> ina.Plan:
    """Every flow by its first path."""
    fabric = problem.fabric
    paths = {
        job.number: [next(iter(ina.unfold(fabric, ps).paths(each))) for ps in job.servers for each in job.workers]
        for job in problem.jobs
    }
    return ina.plan_from_paths(problem, paths, fabric.ina_names, method="one-path")


def test_every_stable_name_is_there_documented_and_in_the_reference() -> None:
    for name in ina.__all__:
        assert getattr(ina, name).__doc__, name
    assert sorted(re.findall(r"^::: inakit\.(\w+)$", REFERENCE.read_text(), re.MULTILINE)) == sorted(ina.__all__)
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        ina.plann  # noqa: B018


def test_the_import_alone_loads_nothing_else() -> None:
    code = "import sys, inakit; print([name for name in ('numpy', 'networkx', 'pulp', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_fabric_is_a_name_with_sizes_and_variations() -> None:
    assert ina.fabric("leafspine", **SMALL) == leaf_spine(2, 2, 3)
    varied = ina.fabric(small(), capacity="40M", ina=["leaf1"], pipelines=2)
    assert varied.ina_names == {"leaf1"}
    assert set(varied.capacities_bps.values()) == {40e6}
    assert len(varied.switches[0].pipelines) == 2
    assert set(ina.fabric(small(), capacity=5e6).capacities_bps.values()) == {5e6}
    drawn = set(ina.fabric(small(), capacity=("10M", 30e6)).capacities_bps.values())
    assert len(drawn) > 1 and min(drawn) >= 10e6 and max(drawn) <= 30e6
    assert set(ina.fabric("leafspine", **SMALL, scale=0.5).capacities_bps.values()) == {10e6}


def test_a_fabric_of_a_graph_is_that_of_its_graphml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph: nx.Graph[int | str] = nx.Graph(name="ring")
    nx.add_cycle(graph, [1, 2, 3], capacity="10M")
    nx.write_graphml(nx.relabel_nodes(graph, str), tmp_path / "ring.graphml")
    made = ina.fabric(graph, hosts_per_switch=1)
    assert made == ina.fabric(tmp_path / "ring.graphml")
    assert repr(made) == "<Fabric ring: 3 switches, 3 hosts, 6 links>"
    assert "ring: no node is a host" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "sizes", "told"),
    [
        ("leafspin", {}, "did you mean 'leafspine'"),
        ("leafspine", {"leafs": 3}, "did you mean 'leaves'"),
        ({"hosts": []}, {}, "dict: expected a name, a file, a Fabric or a networkx graph"),
        (nx.Graph([(1, 2, {"capacity": "20X"})]), {}, "graph: .*20X"),
        (leaf_spine(2, 2, 3), {"k": 4}, "k: only generators take sizes"),
    ],
)
def test_what_is_no_fabric_is_named(given: Any, sizes: dict[str, Any], told: str) -> None:
    with pytest.raises(ina.InputError, match=told):
        ina.fabric(given, **sizes)


def test_jobs_have_the_hosts_that_are_named_or_others_than_their_neighbours() -> None:
    fabric = small()
    named = ina.job(fabric, workers=["h1", "h4"], servers=["h2"], gradient_bytes=6400, compute_s=0.5)
    assert (named.workers, named.servers, named.compute_s) == (("h1", "h4"), ("h2",), 0.5)
    other = ina.job(fabric, workers=2, beside=[named])
    assert other.number == 2
    assert not {*other.workers, *other.servers} & {*named.workers, *named.servers}
    with pytest.raises(ina.InputError, match="3 workers"):
        ina.job(fabric, workers=3, beside=[named])
    with pytest.raises(ina.InputError, match="h99"):
        ina.job(fabric, workers=["h99"], servers=["h1"])


def test_a_plan_is_that_of_its_method_and_shows_itself() -> None:
    fabric = small()
    job = ina.job(fabric, gradient_bytes=6400)
    plan = ina.plan(fabric, job, "aro", seed=3)
    made = METHODS["aro"].plan(ina.Problem(fabric, (job,), plan.problem.fragment), ina.Options(seed=3))
    assert plan.plan.trees == made.trees
    assert repr(plan).startswith("<Plan aro on leafspine-2x2: 1 tree, 20 Mbit/s, ")
    page = plan._repr_html_()
    assert "<table>" in page and "leaf1" in page
    assert "<svg" in plan.picture()._repr_svg_()
    with pytest.raises(ina.InputError, match="did you mean 'time_limit_s'"):
        ina.plan(fabric, job, "aro", time_limit=3)


def test_figures_have_the_units_that_fit_them() -> None:
    fabric = ina.fabric(small(), capacity="100G")
    result = ina.run(ina.plan(fabric, ina.job(fabric, gradient_bytes=6400), "aro"))
    assert "100 Gbit/s sending rate" in repr(result)
    assert re.search(r"[0-9.]+ ns</td>", result._repr_html_())


def test_what_a_notebook_shows_is_escaped() -> None:
    def script(problem: ina.Problem, options: ina.Options) -> ina.Plan:
        return one_path(problem, options)

    script.__name__ = "<script>"
    page = ina.plan(small(), None, script)._repr_html_()
    assert "<script>" not in page


@pytest.mark.compiler
def test_a_comparison_is_what_emulate_measures(tmp_path: Path) -> None:
    job = ina.job(ina.fabric("fattree"), workers=4, gradient_bytes=12_800, iterations=1)
    compared = ina.compare(ina.fabric("fattree"), job, ["aro", "atp"], results=tmp_path / "ours")
    arguments = ("--workers", "4", "--gradient-bytes", "12800", "--iterations", "1", "--planners", "aro,atp")
    answer = command("emulate", *arguments, "--switch", "virtual", at=tmp_path)
    assert answer.code == 0, answer
    theirs = json.loads((tmp_path / "results" / "latest" / "run.json").read_text())
    assert list(compared) == list(theirs["planners"])
    for name, result in compared.items():
        assert result.measured == theirs["planners"][name]["measured"]
        assert result.verdict == "VALID" and result.valid and result.exact
    assert (tmp_path / "ours" / "latest" / "run.json").exists()


@pytest.mark.compiler
def test_a_function_is_compared_with_planners_by_name_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = ina.job(small(), workers=3, gradient_bytes=6400, iterations=1)
    compared = ina.compare(small(), job, ["aro", one_path])
    assert list(compared) == ["aro", "one-path"]
    assert compared["one-path"].exact
    frame = compared.to_frame()
    assert list(frame["planner"]) == ["aro", "one-path"]
    assert list(frame["verdict"]) == ["VALID", "VALID"]
    assert frame["measured_sending_rate_bps"].iloc[0] == compared["aro"].measured["sending_rate_bps"]
    compared.plot().save("bars.png")
    compared.report("out.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bars.png", "out.html"]
    folder = compared.folder
    assert folder is not None and folder.exists()
    del compared
    assert not folder.exists()


@pytest.mark.compiler
def test_faults_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "faults.yml").write_text("version: 1\nlinks: [{link: all, drop: 2%}]\n")
    plan = ina.plan(small(), ina.job(small(), workers=3, gradient_bytes=64_000, iterations=1))
    of_file = ina.run(plan, faults=tmp_path / "faults.yml")
    of_words = ina.run(plan, faults={"links": [{"link": "all", "drop": "2%"}]})
    assert of_file.measured == of_words.measured
    assert of_file.exact and of_file.measured["retransmissions"]
    with pytest.raises(ina.InputError, match="faults: links"):
        ina.run(plan, faults={"links": [{"link": ["leaf1", "moon"], "drop": "2%"}]})


def test_plans_alone_are_compared_without_a_world() -> None:
    compared = ina.compare(small(), None, ["aro", "lbmm"], world=None)
    assert [result.verdict for result in compared.values()] == ["PLANNED", "PLANNED"]
    assert "measured_sending_rate_bps" not in compared.to_frame()
    with pytest.raises(ina.InputError, match="has not run"):
        compared["aro"].report()
    with pytest.raises(KeyError, match="did you mean 'lbmm'"):
        compared["lbm"]


def test_planners_that_are_no_planners_are_named() -> None:
    with pytest.raises(ina.InputError, match=r"expected a list, such as \['aro'\]"):
        ina.compare(small(), planners="aro")
    with pytest.raises(ina.InputError, match="no planner"):
        ina.compare(small(), planners=[])
    with pytest.raises(ina.InputError, match="two planners are called 'aro'"):
        ina.compare(small(), planners=["aro", "aro"], world=None)
    with pytest.raises(ina.InputError, match="'aro': expected a plan"):
        ina.run("aro")  # type: ignore[arg-type]
    with pytest.raises(ina.InputError, match="planner 7: expected a name, a file, a Method or a function"):
        ina.plan(small(), None, 7)  # type: ignore[arg-type]


def test_a_study_is_that_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = {"name": "few", "stays": {"world": "none"}, "varies": [{"planner": ["aro", "atp"], "workers": [4, 8]}]}
    (tmp_path / "few.yml").write_text(json.dumps({"version": 1, **words}))
    found = ina.study(words, processes=1)
    assert found.rows == ina.study("few.yml", processes=1).rows
    assert repr(found) == "<Study few: 4 runs>"
    means = found.summary("sending_rate_bps", by=["planner"])
    assert list(means["planner"]) == ["aro", "atp"]
    assert list(means["runs"]) == [2, 2]
    with pytest.raises(ina.InputError, match="the study defines 0"):
        found.plot()
