"""Setting up by `make setup`, on a machine whose package manager, Python environment and users are fakes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASE = ("python3-venv", "gcc", "libc6-dev")
EMULATION = ("mininet", "iproute2", "iputils-ping", "clang", "libbpf-dev", "linux-libc-dev", "tcpreplay", "tcpdump")
FAKE = """#!/bin/sh
name=$(basename "$0")
case $name in
    id) [ "$1" = -un ] && echo student || echo "$USER_ID" ;;
    dpkg-query) grep -qx "$3" "$STATE/installed" && echo "install ok installed" ;;
    apt-get) echo "$name $*" >>"$STATE/calls"; printf '%s\\n' "$@" >>"$STATE/installed" ;;
    *) echo "$name $*" >>"$STATE/calls" ;;
esac
"""
"""Stands in for the commands of `FAKED`: `installed` has the names of packages, `calls` what was called."""
PYTHON = ["python -m pip", "python -m pip", "python -m compileall"]
"""What is called to set up Python's packages."""
FAKED = ("id", "dpkg-query", "apt-get", "chown")


class Checkout:
    """A folder with the Makefile and an environment that is there already, on a machine with these `packages`."""

    def __init__(self, folder: Path, *packages: str) -> None:
        self.folder, self.state, programs = folder / "kit", folder / "state", folder / "bin"
        for made in (self.folder / ".venv" / "bin", self.state, programs):
            made.mkdir(parents=True)
        (self.folder / "src" / "inakit" / "topo").mkdir(parents=True)
        for name in ("Makefile", "requirements.lock", "pyproject.toml", "setup.py"):
            shutil.copy(ROOT / name, self.folder)
        for fake in (*(programs / name for name in FAKED), *(self.folder / ".venv/bin" / n for n in ("python", "pip"))):
            fake.write_text(FAKE)
            fake.chmod(0o755)
        (self.state / "installed").write_text("".join(f"{name}\n" for name in packages))
        self.path = f"{programs}:{os.environ['PATH']}"

    def set_up(self, user_id: int) -> subprocess.CompletedProcess[str]:
        """What `make setup` answers to the user of this number."""
        environment = {"PATH": self.path, "STATE": str(self.state), "USER_ID": str(user_id)}
        return subprocess.run(
            ["make", "setup"], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def take_calls(self) -> list[str]:
        """The first three words of every command that was called since the last time."""
        calls = self.state / "calls"
        found = [" ".join(line.split()[:3]) for line in calls.read_text().splitlines()] if calls.exists() else []
        calls.unlink(missing_ok=True)
        return found


def test_without_root_only_python_and_a_compiler_are_needed(tmp_path: Path) -> None:
    """What is missing for emulation is said in one line, once."""
    checkout = Checkout(tmp_path, *BASE, "iproute2")
    first, second = checkout.set_up(1000), checkout.set_up(1000)
    assert (first.returncode, second.returncode) == (0, 0), first
    missing = " ".join(name for name in EMULATION if name != "iproute2")
    said = f"not installed: {missing}; only emulation in real time needs them (run 'sudo make setup' once)"
    assert first.stdout.splitlines()[0] == said
    assert "not installed" not in second.stdout
    assert checkout.take_calls() == PYTHON


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_checkout_without_links_says_how_git_makes_them(tmp_path: Path) -> None:
    checkout, repository = Checkout(tmp_path, *BASE), tmp_path / "repository"
    (checkout.folder / "src" / "inakit" / "topo").rmdir()
    answer = checkout.set_up(0)
    assert answer.returncode == 2
    assert checkout.take_calls() == []
    said = re.fullmatch(
        r"the links in inakit/ and src/ are missing: run '(.*)', or .* anew", answer.stderr.splitlines()[0]
    )
    assert said, answer.stderr
    for name, target in (("inakit/topo", "../topo"), ("src/inakit", "../inakit")):
        (repository / name).parent.mkdir(parents=True)
        (repository / name).symlink_to(target)
    (repository / "topo").mkdir()
    (repository / "topo" / "file.py").touch()
    commit = "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm links"
    for command in (commit, "git clone -q -c core.symlinks=false . ../clone"):
        subprocess.run(command, cwd=repository, shell=True, check=True)
    clone = tmp_path / "clone"
    assert (clone / "src" / "inakit").is_file() and (clone / "inakit" / "topo").is_file()
    subprocess.run(said[1], cwd=clone, shell=True, check=True)
    assert (clone / "src" / "inakit" / "topo" / "file.py").exists()


@pytest.mark.parametrize("missing", ["python3-venv", "gcc"])
def test_without_python_or_a_compiler_nothing_is_set_up(missing: str, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, *(name for name in BASE if name != missing), *EMULATION)
    answer = checkout.set_up(1000)
    assert answer.returncode == 2
    assert f"missing packages: {missing}; run 'sudo make setup' once" in answer.stderr
    assert checkout.take_calls() == []


def test_root_installs_the_rest_after_somebody_else_has_set_up(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, *BASE)
    checkout.set_up(1000)
    checkout.take_calls()
    assert checkout.set_up(0).returncode == 0
    assert checkout.take_calls() == ["apt-get update -q", "apt-get install -qy"]
    assert set(EMULATION) <= set((checkout.state / "installed").read_text().split())
    checkout.set_up(0)
    assert checkout.take_calls() == []


def test_what_root_sets_up_belongs_to_whom_the_folder_belongs_to(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, *BASE, *EMULATION)
    checkout.set_up(0)
    assert checkout.take_calls() == [*PYTHON, "chown -R --reference=."]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_environment_of_somebody_else_is_named_with_the_way_out(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, *BASE, *EMULATION)
    (checkout.folder / ".venv").chmod(0o555)
    answer = checkout.set_up(1000)
    assert answer.returncode == 2
    assert "student may not write to .venv; run 'sudo make setup' once" in answer.stderr
    assert checkout.take_calls() == []


def elsewhere(folder: Path, *programs: str) -> Checkout:
    """A checkout on a machine that is not Debian's, with these programs and no others."""
    checkout = Checkout(folder)
    (folder / "bin" / "dpkg-query").unlink()
    for name in ("make", "sh", "basename", "test", "mkdir", "touch", "ls"):
        (folder / "bin" / name).symlink_to(shutil.which(name) or name)
    for name in programs:
        (folder / "bin" / name).write_text(FAKE)
        (folder / "bin" / name).chmod(0o755)
    checkout.path = str(folder / "bin")
    return checkout


@pytest.mark.parametrize("compiler", ["cc", "clang"])
def test_where_there_is_no_package_manager_of_debian_nothing_is_asked_of_it(compiler: str, tmp_path: Path) -> None:
    checkout = elsewhere(tmp_path, compiler)
    answer = checkout.set_up(1000)
    assert answer.returncode == 0, answer
    assert checkout.take_calls() == PYTHON


@pytest.mark.parametrize(
    ("installer", "remedy"),
    [
        ("dnf", "; run 'dnf install gcc' once, as root"),
        ("pacman", "; run 'pacman -S gcc' once, as root"),
        ("xcode-select", "; run 'xcode-select --install' once, as root"),
        ("unknown", ""),
    ],
)
def test_a_compiler_that_lacks_is_said_before_anything_is_done(installer: str, remedy: str, tmp_path: Path) -> None:
    checkout = elsewhere(tmp_path, installer)
    for user in (0, 1000):
        answer = checkout.set_up(user)
        assert answer.returncode == 2
        assert answer.stderr.splitlines()[0] == f"missing: a C compiler (cc){remedy}"
        assert checkout.take_calls() == []


def with_pythons(folder: Path, **pythons: str) -> Checkout:
    """A checkout without an environment on a machine with these Pythons: what each says of being new enough.

    An environment that one of them makes has its name as pip.
    """
    checkout = elsewhere(folder, "cc")
    for name in ("pip", "python"):
        (checkout.folder / ".venv" / "bin" / name).unlink()
    for name, code in pythons.items():
        made = 'mkdir -p .venv/bin; for n in pip python; do echo "#!/bin/sh" >.venv/bin/$n; chmod +x .venv/bin/$n; done'
        text = f'#!/bin/sh\n[ "$1" = -c ] && exit {code}\necho "$0" >>"$STATE/calls"; {made}\n'
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    (folder / "bin" / "chmod").symlink_to(shutil.which("chmod") or "chmod")
    makefile = checkout.folder / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/bin/python3 ", ""))  # the one of this machine
    return checkout


def test_the_first_python_that_is_new_enough_makes_the_environment(tmp_path: Path) -> None:
    checkout = with_pythons(tmp_path, **{"python3": "1", "python3.12": "0", "python3.11": "0"})
    answer = checkout.set_up(1000)
    assert answer.returncode == 0, answer
    assert [Path(call).name for call in checkout.take_calls()] == ["python3.12"]


@pytest.mark.parametrize("pythons", [{}, {"python3": "1"}])
def test_without_a_python_that_is_new_enough_the_way_out_is_said(pythons: dict[str, str], tmp_path: Path) -> None:
    checkout = with_pythons(tmp_path, **pythons)
    answer = checkout.set_up(1000)
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[0] == (
        "no Python of 3.11 or newer with venv; install one, or name it: make setup PYTHON=/path/to/python3"
    )
    assert checkout.take_calls() == []
