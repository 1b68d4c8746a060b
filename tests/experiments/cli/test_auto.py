"""Which worlds `auto` stands for, by what this machine has; and the line that says so, the first of every command."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from command import AS_NOBODY, ENTRY, PRIVATE, inakit
from rich.console import Console

from inakit.experiments.bench.exactness import chosen_worlds
from inakit.experiments.worlds.registry import find_world, print_choice, worlds_here
from inakit.switch.targets import TARGETS, Target

ROOT = Path(__file__).parents[3]
WITHOUT_MININET = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.modules.update(mininet=None, p4utils=None)
"""
"""Python code after which imports of Mininet and p4-utils fail, as where they are not installed."""
IMPORT_ALL = """
import importlib, pkgutil, inakit.experiments
for module in pkgutil.walk_packages(inakit.experiments.__path__, "inakit.experiments."):
    importlib.import_module(module.name)
"""
SMALL = ("--topo", "fattree", "--k", "4", "--planners", "aro", "--gradient-bytes", "16000", "--iterations", "1")


def nothing() -> None:
    """What a machine lacks for a target that it has."""


def machine_with(monkeypatch: pytest.MonkeyPatch, *names: str, networks: str | None = None) -> None:
    """Make this a machine that has the switch targets of these `names`, and lacks `networks` to build any network."""
    for name in TARGETS:
        here = nothing if name in names else f"there is no {name}".strip
        monkeypatch.setitem(TARGETS, name, Target(name, "", "", here))
    monkeypatch.setattr("inakit.experiments.worlds.emulated.missing_for_networks", lambda: networks)


def said(switch: str, world: str) -> str:
    """What is printed of the choice of a world."""
    console = Console(file=io.StringIO(), width=80)
    print_choice(console, switch, world)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("targets", "networks", "worlds"),
    [
        (("bmv2", "fast"), None, ["bmv2", "fast"]),
        (("fast",), None, ["fast"]),
        ((), None, ["virtual"]),
        (("bmv2", "fast"), "Mininet is not installed", ["virtual"]),
    ],
)
def test_auto_takes_what_this_machine_has(
    targets: tuple[str, ...], networks: str | None, worlds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_with(monkeypatch, *targets, networks=networks)
    assert worlds_here() == worlds


def test_auto_in_virtual_time_is_a_world_for_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    machine_with(monkeypatch)
    assert find_world("auto").name == "virtual"
    assert chosen_worlds(["auto", "virtual"]) == ["virtual"]


def test_the_choice_is_said_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    machine_with(monkeypatch, "fast")
    assert said("auto", "bmv2").startswith("switch auto selected bmv2, which is installed; --switch fast produces")
    assert said("auto", "fast").startswith("switch auto selected fast, because bmv2 cannot run (there is no bmv2)")
    machine_with(monkeypatch, "fast", networks="Mininet is not installed")
    assert said("auto", "virtual") == (
        "switch auto selected virtual, because fast cannot run (Mininet is not installed); time is simulated and "
        "links have the described rates, so that figures do not depend on this machine; they agree with VALID "
        "emulations of the same plans to 0.2 % (`inakit agree`)\n"
    )
    assert said("fast", "fast") == ""


def test_everything_but_emulation_does_without_mininet(tmp_path: Path) -> None:
    """Every module can be imported, and the main command runs in virtual time."""
    code = WITHOUT_MININET + IMPORT_ALL + ENTRY
    done = subprocess.run(
        [sys.executable, "-c", code, "emulate", "--switch", "auto", *SMALL],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert done.stdout.startswith("switch auto selected virtual, because fast cannot run (")
    assert "sums exact" in done.stdout


def test_emulating_without_mininet_names_what_is_missing(tmp_path: Path) -> None:
    answer = inakit("emulate", "--switch", "fast", *SMALL, at=tmp_path, entry=WITHOUT_MININET + ENTRY)
    assert answer.code == 2
    lacking = ("Mininet is not installed: install", "root", "clang is not installed")
    assert any(reason in answer.error for reason in lacking), answer
    assert not list(tmp_path.iterdir())


@pytest.mark.root
@pytest.mark.beside
@pytest.mark.skipif(PRIVATE, reason="another user may not read the project where it is")
def test_without_root_time_is_virtual(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with TemporaryDirectory() as cache:  # which another user reaches, as no folder below pytest's
        Path(cache).chmod(0o777)
        answer = inakit("emulate", *SMALL, at=tmp_path, entry=AS_NOBODY, environment={"XDG_CACHE_HOME": cache})
    assert answer.code == 0, answer
    assert answer.output.startswith(
        "switch auto selected virtual, because fast cannot run (root is needed to load programs"
    )
