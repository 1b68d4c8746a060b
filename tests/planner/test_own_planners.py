"""A mistake in a planner of `planner/own` is that planner's error, with file and line, and the others still work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planner_cases import first_is_server

import inakit.planner.own
from inakit.planner.core.method import Options
from inakit.planner.own_planners import OwnPlanner
from inakit.planner.registry import OwnPlanners
from inakit.topo.errors import InakitError, InputError, PlanError
from inakit.topo.fabric.generators import leaf_spine

HEAD = """from inakit.planner.core.method import Method, Options
from inakit.planner.methods.ecmp import plan_random
from inakit.planner.core.plan import Plan
from inakit.planner.core.plan import SolverOutcome
"""
METHOD = "METHOD = Method('mine', Options, plan)\n"
GOOD = HEAD + "METHOD = Method('draws', Options, plan_random)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of `planner/own`."""
    own = tmp_path / "planner" / "own"
    own.mkdir(parents=True)
    monkeypatch.setattr(inakit.planner.own, "__path__", [str(own)])
    loaded = {name: module for name, module in sys.modules.items() if not name.startswith("inakit.planner.own.")}
    monkeypatch.setattr(sys, "modules", loaded)
    return own


def found(folder: Path, **texts: str) -> OwnPlanners:
    """The planners of files with these names and texts."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return OwnPlanners()


def wrong_with(planner: OwnPlanner) -> str:
    """The error of a planner that cannot be used."""
    with pytest.raises(InputError) as told:
        _ = planner.method
    return str(told.value)


NOT_LOADED = {
    "wrong import": (HEAD + "\nimport numpyy\n", "line 6: ModuleNotFoundError: No module named 'numpyy'"),
    "syntax": (HEAD + "def plan(:\n", "line 5: SyntaxError: invalid syntax"),
    "not text": ("\0\n", "null bytes"),
    "ends Python": ("raise SystemExit(3)\n", "line 1: SystemExit: 3"),
    "no METHOD": ('"""Nothing yet."""\n', "has no METHOD: add one as planner/README.md shows"),
    "METHOD is a function": ("def METHOD(): ...\n", "METHOD is function <function METHOD"),
    "METHOD is a class": (HEAD + "METHOD = Method\n", "METHOD is type <class"),
    "no options": (HEAD + "METHOD = Method('x', None, plan_random)\n", "the options of METHOD are None"),
    "options of another kind": (
        HEAD + "METHOD = Method('x', dict, plan_random)\n",
        "Options or a subclass is expected",
    ),
    "no function": (HEAD + "METHOD = Method('x', Options, 7)\n", "METHOD has int 7 where the planner's function"),
    "too few arguments": (HEAD + "METHOD = Method('x', Options)\n", "line 5: TypeError: Method.__init__() missing 1"),
}


@pytest.mark.parametrize(("text", "says"), NOT_LOADED.values(), ids=NOT_LOADED)
def test_a_file_that_is_no_planner_is_an_error_of_its_own(text: str, says: str, folder: Path) -> None:
    own = found(folder, mine=text, other_one=GOOD)
    assert list(own) == ["mine", "other-one"]
    assert own["other-one"].method.summary == "draws"
    told = wrong_with(own["mine"])
    assert told.startswith("planner/own/mine.py")
    assert says in told
    assert "\n" not in told


def test_a_name_of_the_kit_is_taken(folder: Path) -> None:
    own = found(folder, aro=GOOD, aro_unaware=GOOD)
    assert wrong_with(own["aro-unaware"]) == (
        "planner/own/aro_unaware.py: there is a planner 'aro-unaware' already; give the file another name"
    )


NO_PLANS = {
    "nothing": ("def plan(problem, options):\n    pass\n", PlanError, " line 5: the planner returned NoneType None"),
    "a list": ("def plan(problem, options):\n    return [1]\n", PlanError, " line 5: the planner returned list [1]"),
    "no tree": (
        "def plan(problem, options):\n    return Plan('x', problem.fabric.name, (), SolverOutcome('heuristic', 0.0))\n",
        PlanError,
        " line 5: rule job broken at job 1: it has no tree",
    ),
    "trees of another type": (
        "def plan(problem, options):\n    return Plan('x', problem.fabric.name, None, None)\n",
        InputError,
        " line 5: TypeError: 'NoneType' object is not iterable",
    ),
    "an exception": (
        "def plan(problem, options):\n    return deeper(problem)\n\ndef deeper(problem):\n    return problem.jobbs\n",
        InputError,
        " line 9: AttributeError: 'Problem' object has no attribute 'jobbs'",
    ),
    "an exception of what it calls": (
        "def plan(problem, options):\n    return plan_random(None, options)\n", InputError, " line 6: AttributeError:",
    ),
    "an error of the kit": (
        "def plan(problem, options):\n    return Options(gap=2)\n", InputError, " line 6: gap 2: it is relative",
    ),
    "another signature": ("def plan(problem):\n    pass\n", InputError, " line 5: TypeError: plan() takes 1"),
    "endless recursion": (
        "def plan(problem, options):\n    return plan(problem, options)\n", InputError, " line 6: RecursionError:",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "error", "says"), NO_PLANS.values(), ids=NO_PLANS)
def test_what_a_planner_does_wrong_is_its_error(text: str, error: type[InakitError], says: str, folder: Path) -> None:
    method = found(folder, mine=HEAD + text + METHOD)["mine"].method
    with pytest.raises(InakitError) as told:
        method.plan(first_is_server(leaf_spine(2, 2, 2)), Options())
    assert type(told.value) is error
    assert str(told.value).startswith(f"planner/own/mine.py{says}")
    assert "\n" not in str(told.value)


def test_commands_list_a_broken_planner_refuse_it_and_run_the_others(tmp_path: Path) -> None:
    root = Path(inakit.planner.own.__file__).parents[2]
    package = tmp_path / "inakit"
    package.mkdir()
    shutil.copy(root / "__init__.py", package)
    for name in ("topo", "switch", "traffic", "experiments", "p4"):
        (package / name).symlink_to(root / name)
    shutil.copytree(root / "planner", package / "planner", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "planner" / "own" / "mine.py").write_text("import numpyy\n")

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from inakit.experiments.cli.main import main; main()", *arguments],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    error = "planner/own/mine.py line 1: ModuleNotFoundError: No module named 'numpyy'"
    listed, used, other = (
        command("planners", "--load"),
        command("plan", "--planners", "aro,mine"),
        command("plan", "--planners", "atp"),
    )
    assert f"mine             CANNOT BE USED: {error}\n" in listed.stdout
    assert (used.returncode, used.stdout, used.stderr) == (2, "", f"inakit: {error}\n")
    assert other.returncode == listed.returncode == 0
