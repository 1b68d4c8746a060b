"""Planners from anywhere: a file by its path, a package that pip installs; in plans, runs, studies and figures."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from planner_cases import first_is_server

import inakit.planner.racks_in_turn
from inakit.planner.own_planners import GROUP, name_of, package_texts
from inakit.planner.registry import KIT, METHODS, OWN, SCHEDULERS, by_name, find_method, find_own, find_scheduler
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import leaf_spine

ROOT = Path(inakit.planner.racks_in_turn.__file__).parents[2]
EXAMPLE = Path(inakit.planner.racks_in_turn.__file__).read_text()
README = (Path(inakit.planner.racks_in_turn.__file__).parent / "README.md").read_text()
PACKAGE, MODULE = "ina-mine", "ina_mine"


def inakit_command(
    at: Path, *arguments: str, code: int = 0, path: str = "", environment: Mapping[str, str] | None = None
) -> str:
    """What `inakit` prints in a folder; `path` comes before where Python looks for modules."""
    added = os.pathsep.join(filter(None, (path, str(ROOT))))
    done = subprocess.run(
        [sys.executable, "-c", "from inakit.experiments.cli.main import main; main()", *arguments],
        cwd=at, env=os.environ | {"PYTHONPATH": added, "COLUMNS": "200"} | dict(environment or {}),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def rows_of(table: str) -> list[str]:
    return re.findall(r"^│ (\S+) ", table, re.MULTILINE)


# Names


def test_every_line_of_the_kit_names_a_method() -> None:
    methods = {name: line.method for name, line in KIT.items()}
    assert all(callable(method.function) and method.summary == KIT[name].summary for name, method in methods.items())
    assert {name: method.options.__name__ for name, method in methods.items()} == {
        name: line.options or "Options" for name, line in KIT.items()
    }
    assert all(callable(find_scheduler(name).function) for name in SCHEDULERS)


def test_only_the_planner_that_is_used_is_imported() -> None:
    script = (
        "import sys\n"
        "from inakit.planner.registry import METHODS, find_method\n"
        "'spar' in METHODS, list(METHODS)\n"
        "find_method('sharp')\n"
        "print([name for name in sys.modules if name.startswith('inakit.planner.methods.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "['inakit.planner.methods.sharp']"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("soar:switches=8", "soar:switches=8"),
        ("./my_best.py", "my-best"),
        ("mine.py:depth=2", "mine:depth=2"),
        ("papers/mine", "mine"),
        ("papers/mine/__init__.py", "mine"),
        ("../mine.py", "mine"),
    ],
)
def test_the_name_that_is_shown(text: str, name: str) -> None:
    assert name_of(text) == name


def test_a_path_above_has_a_name_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "mine" / "inner"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert name_of("../") == "mine"


def test_two_planners_of_one_name_are_refused() -> None:
    assert by_name(["aro", "a/mine.py", "aro"]) == {"aro": "aro", "mine": "a/mine.py"}
    with pytest.raises(
        InputError, match=r"^planners a/mine.py and b/mine.py have the same name: rename one of the files"
    ):
        by_name(["a/mine.py", "b/mine.py"])


# Files


def test_a_file_by_its_path_is_run_when_it_is_used_and_again_when_it_was_edited(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(EXAMPLE)
    own = find_own(str(file))
    assert own is not None and own.name == "mine"
    assert own.record == {"file": str(file), "sha256": sha256(EXAMPLE.encode()).hexdigest()}
    assert find_method(str(file)).summary == "all flows of a rack by one path, racks in turn"
    file.write_text(EXAMPLE.replace("all flows", "ALL flows"))
    assert find_method(str(file)).summary == "ALL flows of a rack by one path, racks in turn"
    assert "mine" not in METHODS


def test_a_file_takes_part_as_it_is_when_it_is_added(tmp_path: Path) -> None:
    own, file = type(OWN)(), tmp_path / "mine.py"
    for summary in ("first", "second"):
        file.write_text(EXAMPLE.replace("all flows of a rack by one path, racks in turn", summary))
        assert own.add(str(file)) == "mine"
        assert own["mine"].method.summary == summary
    other = tmp_path / "other" / "mine.py"
    other.parent.mkdir()
    other.write_text(EXAMPLE)
    own.add(str(other))
    with pytest.raises(InputError, match=rf"^{file}: {other} has a planner 'mine' too; give the file another name"):
        _ = own["mine"].method


def test_a_folder_by_its_path_imports_what_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .core import METHOD\n")
    (folder / "core.py").write_text(EXAMPLE.replace("fabric = problem.fabric", "fabric = problem.fabrik"))
    with pytest.raises(InputError, match=rf"^{folder}/core.py line 8: AttributeError: .*'fabrik'$"):
        find_method(str(folder)).plan(first_is_server(leaf_spine(2, 2, 2)))


OPTIONS = '''
from dataclasses import dataclass
from inakit.planner.core.method import Method, Options
from inakit.planner.methods.ecmp import plan_random
@dataclass(frozen=True)
class Own(Options):
    depth: int = 1
def plan(problem, options):
    assert options.depth == 2
    return plan_random(problem, options)
METHOD = Method("with an option", Own, plan)
'''  # fmt: skip


def test_a_path_takes_options(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OPTIONS)
    problem = first_is_server(leaf_spine(2, 2, 2))
    assert find_method(f"{file}:depth=2").plan(problem).method == "random"
    with pytest.raises(InputError, match=rf"^{file} line 9: AssertionError"):
        find_method(str(file)).plan(problem)
    with pytest.raises(InputError, match=r"option of planner '.*mine.py' 'deep'"):
        find_method(f"{file}:deep=2")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("./none.py", "there is no planner file './none.py': `inakit planners new ./none.py` writes one to begin with"),
        ("./empty", "there is no planner in folder './empty': give a .py file, or a folder with __init__.py"),
        ("./aro.py", "./aro.py: there is a planner 'aro' already; give the file another name"),
    ],
)
def test_a_path_without_a_planner_is_refused(
    path: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "aro.py").write_text(EXAMPLE)
    with pytest.raises(InputError) as told:
        find_method(path)
    assert str(told.value) == says


def test_a_new_file_is_a_planner_in_plans_runs_and_studies(tmp_path: Path) -> None:
    wrote = inakit_command(tmp_path, "planners", "new", "my_best.py")
    commands = re.findall(r"^inakit (.*)$", wrote, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["plan", "emulate"]
    assert "already exists" in inakit_command(tmp_path, "planners", "new", "my_best.py", code=2)
    assert rows_of(inakit_command(tmp_path, *commands[0].split(), "--output", "plans")) == ["my-best", "aro"]
    assert (tmp_path / "plans" / "my-best" / "plan.json").is_file()
    inakit_command(tmp_path, *commands[1].split())
    record = json.loads((tmp_path / "results" / "latest" / "run.json").read_text())
    text = (tmp_path / "my_best.py").read_bytes()
    assert record["verdict"] == "VALID"
    code = {"file": "./my_best.py", "sha256": sha256(text).hexdigest()}
    assert record["configuration"]["code"] == {"my-best": code}


STUDY = """\
version: 1
stays: {fabric: "leafspine:leaves=2", workers: 3, gradient_bytes: 6400}
varies:
  - planner: [PLANNER, atp]
    seed: 0..1
shows: [sending_rate_bps]
figures:
  - {x: seed, y: sending_rate_bps}
"""


def test_a_study_runs_a_file_again_when_it_was_edited(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(EXAMPLE)
    (tmp_path / "study.yml").write_text(STUDY.replace("PLANNER", "./mine.py"))

    def kept() -> int:
        inakit_command(tmp_path, "study", "run", "study.yml", "--processes", "2")
        return len([*(tmp_path / "results" / "studies" / "kept").glob("*/*.json")])

    assert (kept(), kept()) == (4, 4)
    (tmp_path / "mine.py").write_text(EXAMPLE + "\n# edited\n")
    assert kept() == 6
    shown = inakit_command(tmp_path, "study", "show", "study.yml")
    assert " mine " in shown and "mine.py" not in shown


def test_a_site_finds_a_file_beside_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    inakit_command(tmp_path, "validate", "--starter", str(folder))
    (folder / "mine.py").write_text(EXAMPLE)
    site = folder / "site.yml"
    text = site.read_text().replace("planners: [aro, atp]", "planners: [./mine.py]")
    site.write_text(re.sub(r"links: all |switches: all ", lambda found: found[0].replace("all", "none"), text))
    said = inakit_command(tmp_path, "validate", str(site))
    assert "holds with mine" in said
    assert (tmp_path / "results" / "sites" / "site" / "mine.plan.json").is_file()


def test_a_file_that_is_added_is_in_a_papers_figure(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(EXAMPLE)
    script = (
        "from pathlib import Path\n"
        "from rich.console import Console\n"
        "from inakit.experiments.cli.commands.reproduce import add_planners\n"
        "from dataclasses import asdict\n"
        "from inakit.experiments.papers.aro.setting import compared, measure\n"
        "from inakit.experiments.papers.aro.setting import AroSetting\n"
        "from inakit.experiments.papers.common.sweep import name_of, sweep\n"
        "from inakit.experiments.report.method_styles import own_style, style_of\n"
        "add_planners(['./mine.py'], Console())\n"
        "setting = asdict(AroSetting(workers=8, leaves=4, share=0.5))\n"
        "trials = [{**setting, 'scheme': name, 'seed': 0} for name in compared() if name in ('mine', 'RANDOM')]\n"
        "found = sweep(trials, measure, Path('kept'), Console(quiet=True), processes=2)\n"
        "print([found[name_of(trial)]['least_bps'] > 0 for trial in trials], style_of('mine') == own_style(0))"
    )
    ran = [sys.executable, "-c", script]
    done = subprocess.run(
        ran, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[True, True] True\n", "")
    (tmp_path / "mine.py").write_text(EXAMPLE + "# edited\n")
    subprocess.run(ran, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    assert len([*(tmp_path / "kept").glob("*/*.json")]) == 3, "only the edited planner is measured again"


# Packages


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which pip has installed the package that the page shows, and one more of which nothing works."""
    work = tmp_path_factory.mktemp("packages")
    target = work / "installed"
    inakit_command(work, "planners", "new", "--package", PACKAGE)
    (work / PACKAGE / "test_ina_mine.py").rename(work / "test_ina_mine.py")
    bad = work / "ina-bad"
    shutil.copytree(work / PACKAGE, bad)
    (bad / f"{MODULE}.py").rename(bad / "ina_bad.py")
    (bad / "ina_bad.py").write_text("print('I was run')\nimport numpyy\n")
    text = (bad / "pyproject.toml").read_text().replace(PACKAGE, "ina-bad").replace(MODULE, "ina_bad")
    (bad / "pyproject.toml").write_text(text.replace('mine = "', 'aro = "ina_bad:METHOD"\nbad = "'))
    for package in (PACKAGE, "ina-bad"):
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
             "--disable-pip-version-check", "--root-user-action=ignore", "--target", str(target), f"./{package}"],
            cwd=work, check=True, capture_output=True, timeout=120,
        )  # fmt: skip
    return target


def test_the_page_shows_what_new_writes() -> None:
    shown = re.findall(r"`([\w.-]+)`:\n\n```(?:toml|py)\n(.*?)```", README, re.DOTALL)
    texts = package_texts(PACKAGE, "mine")
    assert dict(shown) == {name: text for name, text in texts.items() if name != f"{MODULE}.py"}
    (planner,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert planner == EXAMPLE


def test_a_list_runs_nobodys_code_but_on_demand(installed: Path, tmp_path: Path) -> None:
    listed = inakit_command(tmp_path, "planners", path=str(installed))
    assert f"\nmine             package {PACKAGE} 0.1\n" in listed
    assert "\nbad              package ina-bad 0.1\n" in listed
    assert "I was run" not in listed
    taken = f"package ina-bad 0.1: there is a planner 'aro' already; its entry point in {GROUP} needs another name"
    assert f"\naro              CANNOT BE USED: {taken}\n" in listed
    loaded = inakit_command(tmp_path, "planners", "--load", path=str(installed))
    error = "ina_bad.py line 2 (package ina-bad 0.1): ModuleNotFoundError: No module named 'numpyy'"
    assert f"\nbad              CANNOT BE USED: {error}\n" in loaded
    assert f"\nmine             all flows of a rack by one path, racks in turn (package {PACKAGE} 0.1)\n" in loaded
    assert ":switches=" in loaded
    refused = inakit_command(tmp_path, "plan", "--planners", "bad", path=str(installed), code=2)
    assert refused == f"I was run\ninakit: {error}\n"


def test_a_package_is_in_plan_and_emulate(installed: Path, tmp_path: Path) -> None:
    listed = inakit_command(tmp_path, "plan", "--topo", "fattree", "--planners", "mine,aro", path=str(installed))
    assert rows_of(listed) == ["mine", "aro"]
    inakit_command(
        tmp_path, "emulate", "--topo", "fattree", "--switch", "virtual", "--planners", "mine,aro", path=str(installed)
    )
    record = json.loads((tmp_path / "results" / "latest" / "run.json").read_text())
    assert record["planners"]["mine"]["verdict"] == "VALID"
    code = (installed / f"{MODULE}.py").read_bytes()
    made = {"package": PACKAGE, "version": "0.1", "sha256": sha256(code).hexdigest()}
    assert record["configuration"]["code"] == {"mine": made}


def test_a_package_is_in_studies(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "study.yml").write_text(STUDY.replace("PLANNER", "mine"))
    inakit_command(tmp_path, "study", "run", "study.yml", path=str(installed))
    assert " mine " in inakit_command(tmp_path, "study", "show", "study.yml", path=str(installed))


def test_a_package_is_in_papers_figures_and_one_that_is_broken_is_named(installed: Path, tmp_path: Path) -> None:
    said = inakit_command(tmp_path, "reproduce", "goat", "fig10", "--quick", path=str(installed))
    assert "not in this figure: bad: ina_bad.py line 2 (package ina-bad 0.1)" in said
    rows = (row for path in tmp_path.rglob("*.csv") for row in csv.DictReader(path.open()))
    methods = {row["method"].split(",")[0] for row in rows if "method" in row}
    assert {"mine", "GOAT", "goat (ours)"} <= methods and "bad" not in methods


def test_a_packages_own_test_passes(installed: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_ina_mine.py"],
        cwd=installed.parent, env=os.environ | {"PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_two_packages_with_one_name_are_refused(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = installed.parent / "again" / "ina_again-2.dist-info"
    again.mkdir(parents=True)
    (again / "METADATA").write_text("Metadata-Version: 2.1\nName: ina-again\nVersion: 2\n")
    (again / "entry_points.txt").write_text(f"[{GROUP}]\nmine = ina_again:METHOD\n")
    monkeypatch.setattr(sys, "path", [str(installed), str(again.parent), *sys.path])
    with pytest.raises(InputError) as told:
        _ = type(OWN)()["mine"].method
    first, second = f"package {PACKAGE} 0.1", "package ina-again 2"
    assert str(told.value) == (
        f"{first}: {second} has a planner 'mine' too; its entry point in {GROUP} needs another name"
    )
