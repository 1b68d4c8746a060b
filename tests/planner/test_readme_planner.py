"""What planner/README.md promises: its planner, written to one file, is in every comparison."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from planner_cases import first_is_server, job

import inakit.planner.own
from inakit.planner.core.check import check
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Method, Options
from inakit.planner.core.problem import Problem
from inakit.planner.registry import METHODS, OwnPlanners
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina, with_pipelines

NAME = "racks-in-turn"
ROOT = Path(__file__).resolve().parents[2]
OWN = "inakit.planner.own"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the README's planner in the one file that it names."""
    copy = tmp_path_factory.mktemp("project")
    (copy / "inakit").mkdir()
    shutil.copy(ROOT / "inakit" / "__init__.py", copy / "inakit")
    (copy / "inakit" / "planner").symlink_to("../planner")
    (copy / "p4").symlink_to(ROOT / "p4")
    for folder in ("topo", "switch", "traffic", "experiments", "p4"):
        (copy / "inakit" / folder).symlink_to(ROOT / folder)
    shutil.copytree(ROOT / "planner", copy / "planner", ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "planner" / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (copy / "planner" / "own" / "racks_in_turn.py").write_text(code)
    return copy


@pytest.fixture
def found(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Method[Options]]]:
    """A function that loads the planners of the copy's `planner/own` in this process."""
    monkeypatch.setattr(inakit.planner.own, "__path__", [str(project / "planner" / "own")])
    monkeypatch.setattr(sys, "modules", {name: module for name, module in sys.modules.items() if OWN + "." not in name})
    return lambda: {name: own.method for name, own in OwnPlanners().items()}


def run(project: Path, *arguments: str) -> str:
    """What a command of Python prints in the copy."""
    environment = os.environ | {"PYTHONPATH": str(project), "COLUMNS": "160"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(project: Path, *arguments: str) -> str:
    return run(project, "-c", "from inakit.experiments.cli.main import main; main()", *arguments)


def problems() -> list[Problem]:
    piped = with_ina(with_pipelines(fat_tree(4), 2), share=0.5, seed=3)
    hosts = [host.name for host in piped.hosts]
    first = first_is_server(piped)
    two = replace(first, jobs=(job(hosts[2:9], "h1", "h16"), job(hosts[9:15], "h2", number=2)))
    return [first_is_server(leaf_spine(3, 2, 4)), first, two]


@pytest.mark.parametrize("problem", problems(), ids=["leaf-spine", "fat-tree", "two jobs"])
def test_its_plans_are_checked_and_predicted(found: Callable[[], dict[str, Method[Options]]], problem: Problem) -> None:
    methods = found()
    assert list(methods) == [NAME]
    plan = methods[NAME].plan(problem, Options(seed=1))
    check(problem, plan)
    assert plan == methods[NAME].plan(problem, Options(seed=1))
    prediction = evaluate(problem, plan)
    capacities = problem.fabric.capacities_bps
    assert max(load / capacities[link] for link, load in prediction.link_loads_bps.items()) == pytest.approx(1)
    best = evaluate(problem, METHODS["aro"].plan(problem))
    assert min(job.sending_rate_bps for job in prediction.jobs.values()) <= min(
        job.sending_rate_bps for job in best.jobs.values()
    ) * (1 + 1e-9)


def test_the_command_line_lists_and_compares_it(project: Path, tmp_path: Path) -> None:
    assert NAME in command(project, "planners")
    listed = command(
        project, "plan", "--topo", "fattree", "--planners", f"aro,random,{NAME}", "--output", str(tmp_path)
    )
    assert [name for name in ("aro", "random", NAME) if re.search(rf"^│ {name} ", listed, re.MULTILINE)] == [
        "aro",
        "random",
        NAME,
    ]
    own = tmp_path / NAME
    assert "valid" in command(project, "check", str(own / "plan.json"), str(own / "fabric.yml"), str(own / "jobs.yml"))


def test_the_papers_figures_have_it(project: Path) -> None:
    script = (
        "import json\n"
        "from dataclasses import asdict\n"
        "from inakit.experiments.papers.aro.setting import compared, measure\n"
        "from inakit.experiments.papers.aro.setting import AroSetting\n"
        "setting = asdict(AroSetting(workers=8, leaves=4, share=0.5))\n"
        "print(json.dumps({name: measure({**setting, 'scheme': name, 'seed': 0})['least_bps'] for name in compared()}))"
    )
    rates = json.loads(run(project, "-c", script))
    assert 0 < rates[NAME] <= rates["ARO"] * 1.01 + 1e9
    assert {"ARO", "RANDOM", NAME} <= set(rates)
