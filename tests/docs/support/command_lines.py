"""Whether a command of a page can be typed today: its program, its options, and every name in it exist.

Nothing is run. `make` is asked what it would run (`make --dry-run`), and that is looked into in its place.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer
from pages import ROOT

from inakit.experiments.cli.app import app
from inakit.experiments.emulate.presets import find_preset
from inakit.experiments.papers.common.figure_registry import figures_of, find_figure
from inakit.experiments.run.faults_file import load_faults
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.registry import WORLDS
from inakit.planner.core.models import find_model
from inakit.planner.core.slot_policies import policy_of
from inakit.planner.registry import find_method
from inakit.topo.files.fabrics import FABRIC_SUFFIXES

OTHERS = ("vagrant", "pip", "pre-commit", "perf", "p4c-bm2-ss", "run", "cp", "docker", "python3", "openssl")
"""Programs that pages name and that are not the project's (`.ci/run` is)."""
OWN_PLANNERS = ("racks-in-turn", "./mine.py", "./racks_in_turn.py")
"""Planners that a page tells its reader to write."""

INAKIT: Any = typer.main.get_command(app)


class OutdatedError(Exception):
    """A command that cannot be typed today, and why."""


def words(text: str) -> list[str]:
    """The words of a command without assignments and `sudo` before it, and without what is redirected."""
    found = shlex.split(text, comments=True)
    while found and (found[0] == "sudo" or re.match(r"[A-Z]+=", found[0])):
        found = found[1:]
    return found[: found.index(">")] if ">" in found else found


def check(text: str, folder: Path) -> None:
    """Raise `OutdatedError` for a command that cannot be typed today. Files that it reads may stand in `folder`."""
    if found := re.match(r"(?:[A-Z]+=\S+ )*sudo ((?:inakit|pytest|python)\S*) ", text):
        raise OutdatedError(f"sudo does not look into .venv/bin: sudo .venv/bin/{found[1]}")
    program, *arguments = words(text) or ["assignment"]
    name = Path(program).name
    if name in CHECKS:
        CHECKS[name](arguments, folder)
    elif name not in (*OTHERS, "assignment"):
        raise OutdatedError(f"nobody knows the program '{program}'")


def check_make(arguments: Sequence[str], folder: Path) -> None:
    """The target exists, its variables are known, and what it would run can be typed."""
    variables = re.findall(r"^(\w+) \?=", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for variable, _, _ in (word.partition("=") for word in arguments if "=" in word):
        if variable not in variables:
            raise OutdatedError(f"the Makefile has no variable {variable}")
    command = ["make", "--dry-run", "--old-file", "setup", *arguments]
    environment = outside_make(os.environ, variables)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OutdatedError(done.stderr.strip())
    for line in done.stdout.replace("\\\n", " ").splitlines():
        if re.match(r"\S*/(inakit|python|pytest) ", line):
            check(line, folder)


def outside_make(environment: Mapping[str, str], variables: Collection[str]) -> dict[str, str]:
    """The environment without what a `make test ARGS=...` that runs these tests has put into it."""
    given = {"MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", *variables}
    return {name: value for name, value in environment.items() if name not in given}


def check_python(arguments: Sequence[str], folder: Path) -> None:
    """The module or the file exists."""
    if arguments[:2] == ["-m", "pytest"]:
        return check_pytest(arguments[2:], folder)
    if arguments[0] == "-m" and importlib.util.find_spec(arguments[1]) is None:
        raise OutdatedError(f"there is no module {arguments[1]}")
    if arguments[0].endswith(".py") and not (ROOT / arguments[0]).exists():
        raise OutdatedError(f"there is no file {arguments[0]}")
    return None


def check_pytest(arguments: Sequence[str], _folder: Path) -> None:
    """The paths exist, and what `-k` chooses by is a part of a test's name there."""
    for word in arguments:
        if word.startswith("tests/") and not (ROOT / word).exists():
            raise OutdatedError(f"there is no {word}")


def check_inakit(arguments: Sequence[str], folder: Path) -> None:
    """The command and its options exist, and so does every name that they are given."""
    command: Any = INAKIT
    rest = [word for word in arguments if word != "--help"]
    if any(rest[:1] == [name] for each in command.params for name in each.opts):
        rest = rest[1:]  # an option of `inakit` itself, such as --version
    called = ["inakit"]
    while hasattr(command, "commands") and rest:
        if alone := getattr(command, "alone", "") if rest[0].startswith("-") else "":
            rest = [alone, *rest]
        elif any(rest[0] in (*each.opts, *each.secondary_opts) for each in command.params):
            rest = rest[1:]
            continue
        if rest[0] not in command.commands:
            raise OutdatedError(f"`{' '.join(called)}` has no command '{rest[0]}'")
        called.append(rest[0])
        command, rest = command.commands[rest[0]], rest[1:]
    if not rest or hasattr(command, "commands"):
        return  # a text that names the command only, or asks for its help
    for old, new in command.row.renamed.items():
        if old in {word.partition("=")[0] for word in rest}:
            raise OutdatedError(f"{old} is now {new}")
    try:
        given = command.make_context(" ".join(called), list(rest)).params
    except Exception as error:
        raise OutdatedError(f"`{' '.join([*called, *rest])}`: {getattr(error, 'message', error)}") from error
    check_names(given)
    check_problem(given, folder)


def check_names(given: Mapping[str, Any]) -> None:
    """Planners, policies, models, presets, worlds and figures by their names."""
    for name in (*names(given, "planners"), *names(given, "planner")):
        if name not in OWN_PLANNERS:
            find_method(name)
    for name in names(given, "policies"):
        policy_of(name)
    for name in names(given, "switch") if "topo" in given or "conditions" in given else []:
        if name not in (*WORLDS, "auto"):
            raise OutdatedError(f"there is no world '{name}'")
    if given.get("preset"):
        find_preset(given["preset"])
    if given.get("model") and not str(given["model"]).endswith(".csv"):
        find_model(given["model"])
    if given.get("figure"):
        find_figure(given["paper"], given["figure"])
    elif given.get("paper"):
        figures_of(given["paper"])


def names(given: Mapping[str, Any], key: str) -> Iterator[str]:
    """The names in an option that takes several, comma between."""
    return filter(None, (name.strip() for name in str(given.get(key) or "").split(",")))


def check_problem(given: Mapping[str, Any], folder: Path) -> None:
    """A fabric of the kit can be built, with jobs; a file of faults that the page writes down is read for them."""
    if "topo" not in given or str(given["topo"]).endswith(FABRIC_SUFFIXES) or given.get("jobs"):
        return
    chosen = {field.name: given[field.name] for field in fields(FabricChoice) if field.name in given}
    fabric = FabricChoice(**chosen)
    problem = build_problem(fabric, JobChoice(workers=given.get("workers"), servers=given.get("servers", 1)))
    faults = given.get("faults")
    if faults is not None and (folder / faults).exists():
        load_faults(folder / faults, problem)


CHECKS: Mapping[str, Callable[[Sequence[str], Path], None]] = {
    "inakit": check_inakit,
    "make": check_make,
    "pytest": check_pytest,
    "python": check_python,
}
