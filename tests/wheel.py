"""The kit as `pip install` installs it: a wheel in an empty environment, with the newest versions of its dependencies.

    python3 tests/wheel.py [--old]

The script builds the sdist of a copy of the checkout, and a wheel from it, installs that for the running Python, and
works as an ordinary user, in another folder, from a plan over a run in virtual time to its report, and through a lab;
then with the extras for hardware and studies. It prints the installed megabytes. `--old` installs the oldest versions
that `pyproject.toml` allows instead. All files are removed at the end. The script needs only Python's standard library,
so that any Python can run it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
USER = 20000
"""The number of the ordinary user whose rights root uses; no account has it."""
PLANNERS = "aro,inart,goat,grid,inarouting,lbmm"
"""Planners that solve models in both ways, one after another."""
EXTRAS = ("hardware", "notebook", "study")
"""The extras that are installed at the end."""
NEEDY = {"study run study.yml": "study", "hardware export plan": "hardware", "switch ptf course": "ptf"}
"""Commands that need an extra, and the extra."""
REFUSED = ("Running HiGHS", "Traceback", "Warning")
"""Texts that must not be in the output of a command."""

TIMEOUT_S = 600
Walker = Callable[..., str]


def main() -> None:
    """Build, install and use the kit, in a folder that is removed at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder, home = Path(name), Path(name, "home")
        folder.chmod(0o755)
        home.mkdir()
        package, old = wheel(folder), "--old" in sys.argv[1:]
        python = installed(folder, package, *(oldest() if old else []))
        said([python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"])
        said(["du", "-sm", str(packages_of(python))])
        # Old versions use functions that newer versions of their dependencies deprecate.
        warnings = "ignore" if old else "default"
        inakit = walker(Path(python).with_name("inakit"), home, warnings)
        walk(inakit, home)
        extras = f"{package}[{','.join(EXTRAS)}]"
        said([python, "-m", "pip", "install", "--quiet", extras, *(oldest(*EXTRAS) if old else []), "pytest"])
        walk_with_extras(inakit, home)
        walk_beside_own_modules(walker(Path(python), home, warnings), home)
    print(f"the wheel works with Python {sys.version.split()[0]}")


def walker(command: Path, home: Path, warnings: str) -> Walker:
    """A function that runs `command` with arguments in the folder `home`, as an ordinary user, whose home it is.

    `warnings` is Python's action on deprecation warnings.
    """
    user: dict[str, Any] = {}
    if os.geteuid() == 0 and not all(folder.stat().st_mode & 1 for folder in Path(sys.executable).resolve().parents):
        print(f"as root, because only root can reach {sys.executable}")
    elif os.geteuid() == 0:
        os.chown(home, USER, USER)
        user = {"user": USER, "group": USER, "extra_groups": []}
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"HOME": str(home), "PYTHONWARNINGS": warnings, "COLUMNS": "120"}

    def run(*arguments: str, code: int = 0) -> str:
        """Return the command's output; it must end with this exit code, and without warnings."""
        print("$", command.name, *arguments, flush=True)
        done = subprocess.run(
            [command, *arguments],
            cwd=home,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=TIMEOUT_S,
            **user,
        )
        wrong = [word for word in REFUSED if word in done.stdout]
        if done.returncode != code or wrong:
            sys.exit(f"{done.stdout}\nexit code {done.returncode}, expected {code}; in the output: {wrong}")
        return str(done.stdout)

    return run


def walk(inakit: Walker, home: Path) -> None:
    """Use the kit from a plan to its report, and export the students' files of the course."""
    assert f"(commit {head()[:8]}" in inakit("--version")
    assert "optimal" in inakit("plan", "--topo", "leafspine", "--planners", PLANNERS)
    assert "pip install 'inakit[hardware]'" in inakit("plan", "--topo", "fattree", "--output", "plan")
    assert {"plan.json", "fabric.yml", "jobs.yml", "entries"} == {path.name for path in (home / "plan").iterdir()}
    inakit("topo", "--topo", "fattree", "--planners", "aro", "--output", "picture")
    assert "verdict: VALID" in inakit("emulate", "--topo", "fattree", "--switch", "virtual", "--planners", "aro,atp")
    assert "report.html" in inakit("report", "results/latest")
    inakit("labs", "export", "course")
    assert "of 100 points" in inakit("grade", "course/7-measure", "course/7-measure", code=1)
    assert "solutions are in the kit's repository only" in inakit("labs", "mutants", "7-measure", code=2)
    inakit("study", "new")
    for command, extra in NEEDY.items():
        assert f"pip install 'inakit[{extra}]'" in inakit(*command.split(), code=2), command


def walk_with_extras(inakit: Walker, home: Path) -> None:
    """Use two of the extras."""
    assert "wrote bfrt, p4runtime, hosts" in inakit("hardware", "export", "plan")
    for made in ("p4runtime/p4info.txt", "bfrt/dump.py", "hosts"):
        assert (home / "plan" / made).exists(), f"{made} is missing"
    inakit("study", "run", "study.yml")
    inakit("study", "show", "study.yml")


def walk_beside_own_modules(python: Walker, home: Path) -> None:
    """Run README's example, a run and a test in a project whose modules have the names of the kit's folders."""
    for name in ("labs", "p4", "planner", "switch", "topo", "traffic"):
        (home / f"{name}.py").write_text(f"OWN = '{name}'\n")
    (home / "experiments").mkdir()
    (home / "experiments" / "__init__.py").touch()
    (example,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    check = "assert all(each.valid and each.exact for each in compared.values())"
    (home / "example.py").write_text(f"{example}{check}\nimport switch, traffic\nprint(switch.OWN, traffic.OWN)\n")
    assert "switch traffic" in python("example.py")
    assert "verdict: VALID" in python("-m", "inakit", "emulate", "--switch", "virtual", "--planners", "atp")
    (home / "test_own.py").write_text("import switch\n\ndef test_own():\n    assert switch.OWN == 'switch'\n")
    assert "1 passed" in python("-m", "pytest", "-q", "test_own.py")


def wheel(folder: Path) -> Path:
    """Build the wheel by pip from the sdist of the files that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", ROOT, folder / "copy"], check=True)  # for the commit
    for name in filter(None, listed.split("\0")):
        copy = folder / "copy" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy, follow_symlinks=False)
    said([sys.executable, "-m", "venv", str(folder / "builder")])
    builder = str(folder / "builder" / "bin" / "python")
    said([builder, "-m", "pip", "install", "--quiet", "setuptools>=77"])
    said([builder, "setup.py", "-q", "sdist", "--dist-dir", str(folder)], cwd=folder / "copy")
    sdist = next(folder.glob("*.tar.gz"))
    said([builder, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(sdist)])
    return next(folder.glob("*.whl"))


def head() -> str:
    """The commit of the checkout."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def installed(folder: Path, package: Path, *more: str) -> str:
    """Install the wheel and its dependencies into an empty environment, and return its Python."""
    said([sys.executable, "-m", "venv", str(folder / "environment")])
    python = str(folder / "environment" / "bin" / "python")
    before = top_level(python)
    said([python, "-m", "pip", "install", "--quiet", "--no-deps", str(package)])
    if (brought := top_level(python) - before) != {"inakit"}:
        sys.exit(f"the wheel brings {sorted(brought)}; 'inakit' alone is expected")
    said([python, "-m", "pip", "install", "--quiet", "--upgrade", str(package), *more])
    return python


def top_level(python: str) -> set[str]:
    """The modules and packages that are installed for a Python."""
    return {path.name for path in packages_of(python).iterdir() if path.suffix != ".dist-info"}


def packages_of(python: str) -> Path:
    """The folder of packages of an environment's Python."""
    (folder,) = (Path(python).parents[1] / "lib").glob("python*/site-packages")
    return folder


def oldest(*extras: str) -> list[str]:
    """The lower bounds of `pyproject.toml` as exact versions, including those of extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = project["dependencies"] + [bound for extra in extras for bound in project["optional-dependencies"][extra]]
    return [bound.split(",")[0].replace(">=", "==") for bound in bounds]


def said(command: list[str], cwd: Path | None = None) -> None:
    """Run a command; its output is shown, and its failure ends everything."""
    subprocess.run(command, cwd=cwd, check=True)


if __name__ == "__main__":
    main()
