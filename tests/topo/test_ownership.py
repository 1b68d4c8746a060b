"""What root makes belongs to whom the folder belongs to: by every way to make it, and by every way to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inakit.topo.live.signals import code_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: nobody else can give files away")

USER, GROUP = 54321, 54322
KIT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder of a user."""
    folder = tmp_path / "home"
    folder.mkdir()
    os.chown(folder, USER, GROUP)
    yield folder


def run(body: str, at: Path, **environment: str) -> int:
    """The exit code of a command of the kit that does what `body` says."""
    app = f"""import os, signal, subprocess, sys, types
from pathlib import Path
sys.path.insert(0, {str(KIT)!r})
def app():
{"".join(f"    {line}{chr(10)}" for line in body.splitlines())}
sys.modules["inakit.experiments.cli.app"] = types.SimpleNamespace(app=app)
from inakit.experiments.cli.main import main
main()"""
    return subprocess.run([sys.executable, "-c", app], cwd=at, env=os.environ | environment, check=False).returncode


def owners(folder: Path) -> set[tuple[str, int, int]]:
    """Each file and folder below, with the user and the group that it belongs to."""
    found = ((path, path.lstat()) for path in folder.rglob("*"))
    return {(str(path.relative_to(folder)), state.st_uid, state.st_gid) for path, state in found}


def users(*names: str) -> set[tuple[str, int, int]]:
    return {(name, USER, GROUP) for name in names}


def test_files_folders_links_and_what_other_programs_write(home: Path) -> None:
    """Also what replaces a file of the user."""
    (home / "kept.json").write_text("old")
    os.chown(home / "kept.json", USER, GROUP)
    body = """Path("a/b").mkdir(parents=True)
Path("latest").symlink_to("a")
subprocess.run(["sh", "-c", "mkdir a/b/c; echo 1 > a/b/c/log"])
Path("plain.csv").write_text("1")
Path("draft").write_text("new")
Path("draft").replace("kept.json")"""
    assert run(body, home) == 0
    assert owners(home) == users("a", "a/b", "a/b/c", "a/b/c/log", "latest", "plain.csv", "kept.json")


def test_what_was_there_keeps_its_owner(home: Path) -> None:
    (home / "roots").mkdir()
    (home / "roots" / "old").write_text("")
    body = 'Path("roots").mkdir(exist_ok=True); Path("roots/old").write_text("1"); Path("roots/new").write_text("1")'
    assert run(body, home) == 0
    assert owners(home) == {("roots", 0, 0), ("roots/old", 0, 0), ("roots/new", 0, 0)}


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("raise MachineError('no')", 2),
        ("raise ValueError", 2),
        ("os.kill(os.getpid(), signal.SIGINT)", code_of(signal.SIGINT)),
        ("threading.Thread(target=time.sleep, args=(60,)).start(); os.kill(os.getpid(), signal.SIGTERM)", 143),
    ],
)
def test_a_command_that_fails_or_is_interrupted_has_given_it_away(ending: str, code: int, home: Path) -> None:
    body = f'import threading, time\nfrom inakit.topo.errors import MachineError\nPath("made").mkdir()\n{ending}'
    assert run(body, home) == code
    assert owners(home) == users("made")


def test_in_a_folder_of_everybody_it_belongs_to_whom_calls_sudo(tmp_path: Path) -> None:
    everybody = tmp_path / "tmp"
    everybody.mkdir()
    everybody.chmod(0o1777)
    assert run('Path("out").mkdir(); Path("out/x").write_text("")', everybody, SUDO_UID="54321", SUDO_GID="54322") == 0
    assert owners(everybody) == users("out", "out/x")
    assert run('Path("own").write_text("")', everybody) == 0
    assert ("own", 0, 0) in owners(everybody)
